"""What the transforms of `func` share (layer 5): arguments to differentiate, and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.callsite import with_site
from pullback.eager.dual import check_shapes
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError

Argnums = int | tuple[int, ...]


class Inputs:
    """The arguments of a call, apart: those that are differentiated, as leaves, and the rest.

    Raises RuntimeError for argnums that are no ints, repeat or do not exist, ValueError for a
    differentiated argument that is no tensor.
    """

    def __init__(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        argnums: Argnums, name: str,
    ) -> None:  # fmt: skip
        self.func, self.args, self.kwargs = func, args, kwargs
        self.single = isinstance(argnums, int)
        self.numbers = _positions(argnums, len(args), name)
        self.structures: list[tree.Structure] = []
        self.counts: list[int] = []
        self.leaves: tuple[Tensor, ...] = ()
        for n in self.numbers:
            leaves, structure = tree.flatten(args[n])
            for x in leaves:
                if not isinstance(x, Tensor):
                    raise ArgumentValueError(
                        with_site(
                            "Thing passed to transform API must be Tensor, got "
                            f"{type(x)}: {name} differentiates argument {n}")
                    )
            self.leaves += tuple(leaves)
            self.structures.append(structure)
            self.counts.append(len(leaves))

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


def _positions(argnums: Argnums, count: int, name: str) -> tuple[int, ...]:
    """`argnums`, checked, each counted from the first of `count` arguments."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple) or not all(isinstance(n, int) for n in numbers):
        wrong = next((n for n in numbers if not isinstance(n, int)), 0) if isinstance(
            numbers, tuple) else numbers  # fmt: skip
        raise ArgumentRuntimeError(
            with_site(
                f"{name}: argnums must be int or Tuple[int, ...], got: {type(wrong)} in {argnums!r}"
            )
        )
    if not numbers:
        raise ArgumentRuntimeError(with_site(f"{name}: argnums must be non-empty"))
    for n in numbers:
        if not -count <= n < count:
            raise ArgumentRuntimeError(
                with_site(f"Got argnum={n}, but only {count} positional inputs")
            )
    found = tuple(n % count for n in numbers)
    if len(set(found)) < len(found):
        raise ArgumentRuntimeError(
            with_site(f"{name}: argnums elements must be unique, got {argnums!r}")
        )
    return found


def matched(
    primals: Any, tangents: Any, call: str, first: str, second: str
) -> tuple[list[Tensor], list[Tensor], tree.Structure]:
    """The leaves of points and directions, checked; both are tuples of arguments.

    call, first, second: how the messages name the function and the two.
    """
    for name, value in ((first, primals), (second, tangents)):
        if not isinstance(value, tuple):
            raise ArgumentRuntimeError(
                with_site(
                    f"{call}: Expected {name} to be a tuple. E.g. it should be valid to call "
                    f"f(*{first}). Got {type(value).__name__}")
            )
    values, structure = tree.flatten(primals)
    slopes, other = tree.flatten(tangents)
    if not values:
        raise ArgumentRuntimeError(
            with_site(f"{call}: Expected {first} to be non-empty tuple of tensors")
        )
    if structure != other:
        raise ArgumentRuntimeError(
            with_site(
                f"{call}: Expected {first} and {second} to have the same python structure: "
                f"{len(values)} and {len(slopes)} tensors were given, in {structure} and {other}")
        )
    for i, (p, t) in enumerate(zip(values, slopes, strict=True)):
        for name, x in ((first, p), (second, t)):
            if not isinstance(x, Tensor):
                raise ArgumentRuntimeError(
                    with_site(
                        f"{call}: Expected {name} to be a tuple of Tensors; entry {i} is of type "
                        f"{type(x).__name__}")
                )
            if not dtypes.is_differentiable(x._data.dtype):
                raise ArgumentTypeError(
                    with_site(
                        f"{call}: Expected {name} to be floating point or complex, but got: "
                        f"{x.dtype} for entry {i}")
                )
        check_shapes(p, t)
    return values, slopes, structure


def with_aux(result: Any, call: str) -> tuple[Any, Any]:
    """The result of a function with `has_aux`: its output and what is aside."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentRuntimeError(
            with_site(
                f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
        )
    return result


def basis(leaves: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The unit vectors of the space of all leaves, cut into leaves; the first dim counts them."""
    leaves = tuple(leaves)
    total = sum(math.prod(x.shape) for x in leaves)
    found, start = [], 0
    for x in leaves:
        size = math.prod(x.shape)
        rows = np.zeros((total, size), x._data.dtype)
        rows[np.arange(start, start + size), np.arange(size)] = 1
        found.append(wrap(rows.reshape(total, *x.shape)))
        start += size
    return tuple(found)
