"""Whole Jacobians and Hessians (layer 5): all products at once, by `vmap` over a basis."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentValueError
from pullback.transforms.forward import jvp
from pullback.transforms.inputs import Argnums, Inputs, basis
from pullback.transforms.reverse import vjp
from pullback.transforms.vmap import vmap


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
    randomness: str = "error",
) -> Callable[..., Any]:  # fmt: skip
    """The Jacobian of `func` in its arguments `argnums`, by forward mode.

    Cheaper than `jacrev` where there are fewer inputs than outputs.  The result has the structure
    of the output; each leaf is a tensor of shape `(*output.shape, *input.shape)` for an int
    `argnums`, a tuple of them for a tuple.  With `has_aux`, `func` returns `(output, aux)` and the
    result is `(jacobian, aux)`.

    Raises RuntimeError for argnums that do not exist and outputs that are no tensors.

    >>> import pullback
    >>> pullback.func.jacfwd(lambda x: x * x)(pullback.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        inputs = Inputs(func, args, kwargs, argnums, "jacfwd")
        seen: list[Any] = []

        def push(*tangents: Tensor) -> list[Tensor]:
            _, found, *aux = jvp(inputs.call, inputs.leaves, tangents, has_aux=has_aux)
            leaves, shape = tree.flatten(found)
            seen[:] = [shape, aux]
            return leaves

        rows = vmap(push, randomness=randomness)(*basis(inputs.leaves))
        shape, aux = seen
        blocks = [inputs.columns(row.movedim(0, -1)) for row in rows]
        answer = tree.unflatten(shape, blocks)
        return (answer, *aux) if has_aux else answer

    return jacobian


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """The Jacobian of `func` in its arguments `argnums`, by reverse mode.

    Cheaper than `jacfwd` where there are fewer outputs than inputs.  Structure, `argnums` and
    `has_aux` as in `jacfwd`.  chunk_size: how many rows are computed at once (all by default).

    Raises RuntimeError for argnums that do not exist and outputs that are no tensors, ValueError
    for a chunk size below 1.

    >>> import pullback
    >>> pullback.func.jacrev(lambda x: x * x)(pullback.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ArgumentValueError(
            with_site(f"jacrev: `chunk_size` should be greater than 0, got {chunk_size}")
        )

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        inputs = Inputs(func, args, kwargs, argnums, "jacrev")
        output, pull, *aux = vjp(inputs.call, *inputs.leaves, has_aux=has_aux)
        outputs, shape = tree.flatten(output)

        def pulled(*cotangents: Tensor) -> Any:
            return pull(tree.unflatten(shape, list(cotangents)))

        rows = basis(outputs)
        if len(rows) == 1 and outputs[0].numel() == 1:  # one product needs no batch
            found = tuple(g.unsqueeze(0) for g in pulled(rows[0].reshape(outputs[0].shape)))
        else:
            found = vmap(pulled, chunk_size=chunk_size)(*rows)
        blocks, start = [], 0
        for out in outputs:
            stop = start + math.prod(out.shape)
            parts = [
                g[start:stop].reshape(tuple(out.shape) + tuple(x.shape))
                for g, x in zip(found, inputs.leaves, strict=True)
            ]
            blocks.append(inputs.packed(parts))
            start = stop
        answer = tree.unflatten(shape, blocks)
        return (answer, *aux) if has_aux else answer

    return jacobian


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The second derivatives of a scalar `func`: forward mode over reverse mode.

    Raises RuntimeError as `jacrev` does.

    >>> import pullback
    >>> pullback.func.hessian(lambda x: (x**3).sum())(pullback.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
