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
from pullback.transforms.grad import fresh, others_differentiable


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
    token = MODE.set(MODE.get() & ~NO_GRAD)
    outer = not (token.old_value if isinstance(token.old_value, int) else 0) & NO_GRAD
    try:
        inner = [fresh(x) for x in leaves]
        result = func(*tree.unflatten(structure, inner))
    finally:
        MODE.reset(token)
    aux: Any = None
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            raise ArgumentRuntimeError(
                with_site(
                    "vjp(f, *primals): output of function f should be a tuple: (output, aux) if "
                    "has_aux is True")
            )
        result, aux = result
    outputs, shape = tree.flatten(result)
    for out in outputs:
        if not isinstance(out, Tensor):
            raise ArgumentRuntimeError(
                with_site(
                    "vjp(f, *primals): Expected f to return only tensors, got "
                    f"{type(out).__name__}")
            )
    mine = {gradient_edge(x)[0] for x in inner}
    roots = [i for i, out in enumerate(outputs) if out._requires_grad]
    shared = outer and any(others_differentiable(gradient_edge(outputs[i])[0], mine) for i in roots)

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
        found = [held_zero(x) if g is None else g for x, g in zip(inner, found, strict=True)]
        return tree.unflatten(structure, found)

    def outside(out: Any) -> Any:
        return out if shared or not isinstance(out, Tensor) else out.detach()

    output = tree.map_leaves(_released if not shared else lambda x: x, result)
    if has_aux:
        return output, pull, tree.map_leaves(outside, aux)
    return output, pull


def held_zero(x: Tensor) -> Tensor:
    """Zeros like a tensor, as a tensor."""
    zero = zeros_like(x)
    return zero if isinstance(zero, Tensor) else wrap(zero)


def _released(out: Any) -> Any:
    """An output without the history inside the transform; its tangents stay."""
    return wrap(out._data) if isinstance(out, Tensor) else out
