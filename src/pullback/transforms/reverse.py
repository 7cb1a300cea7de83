"""Reverse mode as a transform (layer 5): `vjp`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.api.autograd import grad as gradients
from pullback.config import MODE, NO_GRAD
from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor, gradient_edge, wrap
from pullback.errors import ArgumentRuntimeError
from pullback.ops.broadcast import zeros_like
from pullback.transforms.grad import fresh, is_shared, outside
from pullback.transforms.inputs import with_aux


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(output, f)`, where `f(cotangents)` gives the cotangents of the primals, as a tuple.

    primals: tensors, or trees of them.  cotangents: of the structure and shapes of the output.
    With `has_aux`, `func` returns `(output, aux)`, and so `(output, f, aux)` is returned.

    Raises RuntimeError for outputs that are no tensors and cotangents that do not fit.

    >>> import pullback
    >>> y, f = pullback.func.vjp(pullback.sin, pullback.tensor(0.0))
    >>> f(pullback.tensor(2.0))
    (tensor(2.),)
    """
    leaves, structure = tree.flatten(primals)
    for i, x in enumerate(leaves):
        if not isinstance(x, Tensor):
            raise ArgumentRuntimeError(
                with_site(
                    "vjp(f, *primals): Expected f to be differentiated in Tensors only; primal "
                    f"{i} is of type {type(x).__name__}")
            )
    mode = MODE.get()
    token = MODE.set(mode & ~NO_GRAD)
    try:
        inner = [fresh(x) for x in leaves]
        mine = {gradient_edge(x)[0] for x in inner}
        result = func(*tree.unflatten(structure, inner))
    finally:
        MODE.reset(token)
    aux: Any = None
    if has_aux:
        result, aux = with_aux(result, "vjp(f, *primals)")
    outputs, shape = tree.flatten(result)
    for out in outputs:
        if not isinstance(out, Tensor):
            raise ArgumentRuntimeError(
                with_site(
                    "vjp(f, *primals): Expected f to return only tensors, got "
                    f"{type(out).__name__}")
            )
    roots = [i for i, out in enumerate(outputs) if out._requires_grad]
    shared = not mode & NO_GRAD and any(is_shared(outputs[i], mine) for i in roots)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, other = tree.flatten(cotangents)
        if other != shape:
            raise ArgumentRuntimeError(
                with_site(
                    "Expected pytree structure of cotangents to be the same as pytree structure "
                    f"of outputs to the function. cotangents: {other}, primal output: {shape}")
            )
        keep = create_graph
        if keep is None:
            keep = not MODE.get() & NO_GRAD and (
                shared or any(isinstance(g, Tensor) and g._requires_grad for g in given)
            )
        found: list[Any] = [None] * len(inner)
        if roots:
            found = list(
                gradients(
                    [outputs[i] for i in roots], inner, [given[i] for i in roots],
                    retain_graph=retain_graph, create_graph=keep, materialize_grads=True,
                )
            )  # fmt: skip
        found = [
            wrap(zeros_like(x)) if g is None else g for x, g in zip(inner, found, strict=True)
        ]
        return tree.unflatten(structure, found)

    output = outside(result, mine, mode)
    return (output, pull, outside(aux, mine, mode)) if has_aux else (output, pull)
