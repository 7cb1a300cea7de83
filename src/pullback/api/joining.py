"""Joining and splitting by named directions, blocks and products of lists (layer 4)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.api.movement import cat, meshgrid, reshape, stack
from pullback.core.callsite import with_site
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError
from pullback.ops import movement as ops


def _at_least(name: str, function: Any) -> Any:
    """A function of one tensor that also takes several, or a list of them."""

    def several(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return function(tensors[0])
        if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
            tensors = tuple(tensors[0])
        return tuple(function(x) for x in arguments.tensor_list(tensors, name))

    several.__name__ = several.__qualname__ = name
    several.__doc__ = function.__doc__
    return several


def _one_dim(x: Tensor) -> Tensor:
    """With at least one dim; of several tensors, a tuple."""
    return x if x.ndim else reshape(x, 1)


def _two_dims(x: Tensor) -> Tensor:
    """With at least two dims, new ones first; of several tensors, a tuple."""
    return x if x.ndim > 1 else reshape(x, (1, -1) if x.ndim else (1, 1))


def _three_dims(x: Tensor) -> Tensor:
    """With at least three dims: (n,) gives (1, n, 1), (n, m) gives (n, m, 1)."""
    shape = tuple(x.shape)
    if x.ndim > 2:
        return x
    return reshape(x, (1, *shape, 1) if x.ndim == 1 else (*shape, 1) if x.ndim else (1, 1, 1))


atleast_1d = _at_least("atleast_1d", _one_dim)
atleast_2d = _at_least("atleast_2d", _two_dims)
atleast_3d = _at_least("atleast_3d", _three_dims)


def _tensors(tensors: Any, name: str) -> tuple[Tensor, ...]:
    xs = arguments.tensor_list(tensors, name)
    if not xs:
        raise ArgumentRuntimeError(with_site(f"{name} expects a non-empty TensorList"))
    return xs


def hstack(tensors: Any, *, out: Any = None) -> Tensor:
    """Joined along the first dim of vectors, the second of anything larger."""
    xs = [_one_dim(x) for x in _tensors(tensors, "hstack")]
    return cat(xs, 0 if xs[0].ndim == 1 else 1, out=out)


def vstack(tensors: Any, *, out: Any = None) -> Tensor:
    """Joined as rows."""
    return cat([_two_dims(x) for x in _tensors(tensors, "vstack")], 0, out=out)


def dstack(tensors: Any, *, out: Any = None) -> Tensor:
    """Joined along the third dim."""
    return cat([_three_dims(x) for x in _tensors(tensors, "dstack")], 2, out=out)


def column_stack(tensors: Any, *, out: Any = None) -> Tensor:
    """Vectors as columns, beside matrices."""
    xs = [reshape(x, (-1, 1)) if x.ndim < 2 else x for x in _tensors(tensors, "column_stack")]
    return cat(xs, 1, out=out)


# ---------------------------------------------------------------- splitting
def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:  # noqa: A002
    """Views cut at indices, or so many parts whose sizes differ by at most 1."""
    x = arguments.tensor(input, "tensor_split")
    if not x.ndim:
        raise ArgumentRuntimeError(
            with_site("tensor_split expected at least a 1-dimensional tensor, but got 0 dims")
        )
    a = arguments.dim(dim, x.ndim)
    n = x._data.shape[a]
    given = indices_or_sections
    if isinstance(given, Tensor):
        given = given.tolist()
    if isinstance(given, (tuple, list)):
        cuts = arguments.size((given,), "indices_or_sections", "tensor_split")
        bounds = [slice(i, None).indices(n)[0] for i in cuts]
    else:
        parts = arguments.integer(given, "tensor_split", "indices_or_sections")
        if parts <= 0:
            raise ArgumentRuntimeError(
                with_site(f"number of sections must be larger than 0, got {parts}")
            )
        size, longer = divmod(n, parts)
        bounds = [i * size + min(i, longer) for i in range(1, parts)]
    pieces = []
    for start, stop in itertools.pairwise((0, *bounds, n)):
        params = {"axis": a, "start": start, "stop": max(start, stop)}
        pieces.append(apply(ops.cut, (x,), params))
    return tuple(pieces)


def _split_along(name: str, axis_of: Any, least: int) -> Any:
    def function(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:  # noqa: A002
        x = arguments.tensor(input, name)
        if x.ndim < least:
            raise ArgumentRuntimeError(
                with_site(
                    f"torch.{name} requires a tensor with at least {least} dimension"
                    f"{'s' if least > 1 else ''}, but got a tensor with {x.ndim} dimensions!"
                )
            )
        a = axis_of(x)
        if isinstance(indices_or_sections, int) and x._data.shape[a] % (indices_or_sections or 1):
            raise ArgumentRuntimeError(
                with_site(
                    f"torch.{name} attempted to split along dimension {a}, but the size of the "
                    f"dimension {x._data.shape[a]} is not divisible by the split_size "
                    f"{indices_or_sections}!"
                )
            )
        return tensor_split(x, indices_or_sections, a)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Views cut along one dim, at indices or in parts of equal size."
    return function


hsplit = _split_along("hsplit", lambda x: 0 if x.ndim == 1 else 1, 1)
vsplit = _split_along("vsplit", lambda x: 0, 2)
dsplit = _split_along("dsplit", lambda x: 2, 3)


# ---------------------------------------------------------------- blocks, products of lists
def block_diag(*tensors: Any) -> Tensor:
    """Matrices along the diagonal, zeros elsewhere; vectors count as rows."""
    xs = [_two_dims(x) for x in arguments.tensor_list(tensors, "block_diag")]
    for x in xs:
        if x.ndim > 2:
            raise ArgumentRuntimeError(
                with_site(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions: got "
                    f"{x.ndim}"
                )
            )
    if not xs:
        return wrap(np.zeros((1, 0), np.float32))
    width = sum(x.shape[1] for x in xs)
    rows, before = [], 0
    for x in xs:
        after = width - before - x.shape[1]
        rows.append(apply(ops.pad_zeros, (x,), {"widths": ((0, 0), (before, after))}))
        before += x.shape[1]
    return apply(ops.cat, tuple(rows), {"axis": 0}, "BlockDiagBackward0")


def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples of one element of each vector: (n1 * n2 * ..., number of vectors)."""
    xs = arguments.tensor_list(tensors, "cartesian_prod")
    for x in xs:
        if x.ndim != 1:
            raise ArgumentRuntimeError(
                with_site(f"Expect a 1D vector, but got shape {list(x.shape)}")
            )
    if len(xs) == 1:
        return xs[0]
    return stack([reshape(g, -1) for g in meshgrid(*xs, indexing="ij")], 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Tensor:  # noqa: A002
    """All subsets of r elements of a vector, in order: (number of them, r)."""
    from pullback.api.indexing import getitem

    x = arguments.tensor(input, "combinations")
    if x.ndim != 1:
        raise ArgumentRuntimeError(
            with_site(f"Expect a 1D vector, but got shape {list(x.shape)}")
        )
    if r < 0:
        raise ArgumentRuntimeError(with_site(f"Expect a non-negative number, but got {r}"))
    if r == 0:
        return wrap(np.empty(0, x._data.dtype))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(x._data.shape[0]), r)), np.int64).reshape(-1, r)
    return getitem(x, wrap(places))


def tril_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """(2, n): rows and columns of the lower triangle of a (row, col) matrix."""
    return _triangle_indices("tril_indices", np.tri, row, col, offset, options)


def triu_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """(2, n): rows and columns of the upper triangle of a (row, col) matrix."""

    def upper(rows: int, columns: int, k: int) -> Any:
        return ~np.tri(rows, columns, k - 1, dtype=bool)

    return _triangle_indices("triu_indices", upper, row, col, offset, options)


def _triangle_indices(
    name: str, triangle: Any, row: Any, col: Any, offset: Any, options: dict[str, Any]
) -> Tensor:
    rows, columns = (arguments.integer(v, name, n) for v, n in ((row, "row"), (col, "col")))
    for label, value in (("row", rows), ("col", columns)):
        if value < 0:
            raise ArgumentRuntimeError(with_site(f"{label} must be non-negative, got{value}"))
    numpy = arguments.dtype(options.pop("dtype", None), np.dtype(np.int64), name)
    for ignored in ("device", "layout", "pin_memory"):
        options.pop(ignored, None)
    if options:
        raise ArgumentTypeError(
            with_site(f"{name}() got an unexpected keyword argument '{next(iter(options))}'")
        )
    inside = triangle(rows, columns, arguments.integer(offset, name, "offset"))
    return wrap(np.stack(np.nonzero(inside)).astype(numpy))
