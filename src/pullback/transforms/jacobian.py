"""Whole Jacobians and Hessians (layer 5): all products at once, by `vmap` over a basis."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError
from pullback.transforms.forward import jvp
from pullback.transforms.reverse import vjp
from pullback.transforms.vmap import vmap

Argnums = int | tuple[int, ...]


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

        def push(*rows: Tensor) -> list[Tensor]:
            tangents = tuple(rows)
            found = jvp(inputs.of_leaves, inputs.leaves, tangents, has_aux=True)
            leaves, shape = tree.flatten(found[1])
            seen[:] = [shape, found[2] if has_aux else None]
            return leaves

        def call(*leaves: Any) -> Any:
            result = inputs.call(*leaves)
            return result if has_aux else (result, None)

        inputs.of_leaves = call
        rows = vmap(push, randomness=randomness)(*basis(inputs.leaves))
        shape, aux = seen
        blocks = [inputs.columns(row.movedim(0, -1)) for row in rows]
        answer = tree.unflatten(shape, blocks)
        return (answer, aux) if has_aux else answer

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
        return (answer, aux[0]) if has_aux else answer

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


class Inputs:
    """The arguments of a call, apart: those that are differentiated, as leaves, and the rest."""

    def __init__(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        argnums: Argnums, name: str,
    ) -> None:  # fmt: skip
        self.func, self.args, self.kwargs = func, args, kwargs
        self.single = isinstance(argnums, int)
        numbers = (argnums,) if isinstance(argnums, int) else argnums
        if not isinstance(numbers, tuple) or not all(type(n) is int for n in numbers):
            raise ArgumentRuntimeError(
                with_site(f"{name}: argnum must be int or a tuple of ints, got {argnums!r}")
            )
        if not numbers:
            raise ArgumentRuntimeError(with_site(f"{name}: argnums must be non-empty"))
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise ArgumentRuntimeError(
                    with_site(f"Got argnum={n}, but only {len(args)} positional inputs")
                )
        self.numbers = tuple(n % len(args) for n in numbers)
        if len(set(self.numbers)) < len(numbers):
            raise ArgumentRuntimeError(
                with_site(f"{name}: argnums elements must be unique, got {argnums!r}")
            )
        self.structures: list[tree.Structure] = []
        self.counts: list[int] = []
        self.leaves: tuple[Tensor, ...] = ()
        for n in self.numbers:
            leaves, structure = tree.flatten(args[n])
            for x in leaves:
                if not isinstance(x, Tensor):
                    raise ArgumentTypeError(
                        with_site(
                            f"{name}: differentiated arguments must be Tensors, got "
                            f"{type(x).__name__} in argument {n}")
                    )
            self.leaves += tuple(leaves)
            self.structures.append(structure)
            self.counts.append(len(leaves))
        self.of_leaves: Callable[..., Any] = self.call

    def call(self, *leaves: Any) -> Any:
        """`func` with these leaves in the differentiated arguments."""
        args = list(self.args)
        start = 0
        for n, structure, count in zip(self.numbers, self.structures, self.counts, strict=True):
            args[n] = tree.unflatten(structure, list(leaves[start : start + count]))
            start += count
        return self.func(*args, **self.kwargs)

    def packed(self, parts: list[Any]) -> Any:
        """One part for each leaf, in the structure of the arguments."""
        found, start = [], 0
        for structure, count in zip(self.structures, self.counts, strict=True):
            found.append(tree.unflatten(structure, parts[start : start + count]))
            start += count
        return found[0] if self.single else tuple(found)

    def columns(self, matrix: Tensor) -> Any:
        """A Jacobian with all inputs along its last dim, in the structure of the arguments."""
        parts, start = [], 0
        for x in self.leaves:
            size = math.prod(x.shape)
            block = matrix[..., start : start + size]
            parts.append(block.reshape(tuple(matrix.shape[:-1]) + tuple(x.shape)))
            start += size
        return self.packed(parts)


def basis(leaves: Any) -> tuple[Tensor, ...]:
    """The unit vectors of the space of all leaves, cut into leaves; the first dim counts them."""
    total = sum(math.prod(x.shape) for x in leaves)
    found, start = [], 0
    for x in leaves:
        size = math.prod(x.shape)
        rows = np.zeros((total, size), x._data.dtype)
        rows[np.arange(start, start + size), np.arange(size)] = 1
        found.append(wrap(rows.reshape(total, *x.shape)))
        start += size
    return tuple(found)
