"""Parts of a tensor: read as views, or written into a copy (layer 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.api import arguments, elementwise, indexing, reduce
from pullback.api.convert import concrete
from pullback.api.movement import broadcast_tensors, expand, reshape, unsqueeze
from pullback.core.callsite import with_site
from pullback.core.refusal import kernel
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor, wrap
from pullback.eager.view import memory
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    DimensionError,
)
from pullback.ops import elementwise as elementwise_ops
from pullback.ops import indexing as indexing_ops
from pullback.ops import movement as ops
from pullback.ops import scattering, special

where = elementwise.where


def unfold(input: Any, dimension: int, size: int, step: int) -> Tensor:  # noqa: A002
    """All slices of `size` along a dim, `step` apart, as a last dim (a view)."""
    x = arguments.tensor(input, "unfold")
    a = arguments.dim(dimension, x.ndim)
    n = x._data.shape[a] if x.ndim else 1
    if size < 0 or size > n:
        raise ArgumentRuntimeError(
            with_site(f"maximum size for tensor at dimension {a} is {n} but size is {size}")
        )
    if step <= 0:
        raise ArgumentRuntimeError(with_site(f"step is {step} but must be > 0"))
    if not x.ndim:
        return reshape(x, 1)[:size]
    return apply(special.windows, (x,), {"axis": a, "size": size, "step": step})


@arguments.numpy_names
def narrow(input: Any, dim: int, start: Any, length: int) -> Tensor:  # noqa: A002
    """`length` slices from `start` along dim (a view).

    start: an int, or a 0-d integer Tensor.  Raises RuntimeError for a 0-d input and for a length
    that does not fit, IndexError for a start outside.
    """
    x = arguments.tensor(input, "narrow")
    if not x.ndim:
        raise ArgumentRuntimeError(with_site("narrow() cannot be applied to a 0-dim tensor."))
    size = arguments.integer(length, "narrow", "length")
    if size < 0:
        raise ArgumentRuntimeError(with_site("narrow(): length must be non-negative."))
    a = arguments.dim(dim, x.ndim)
    n = x._data.shape[a]
    first = arguments.integer(start, "narrow", "start")
    if not -n <= first <= n:
        raise DimensionError(
            with_site(
                f"start out of range (expected to be in range of [-{n}, {n}], but got {first})"
            )
        )
    first += n if first < 0 else 0
    if first + size > n:
        raise ArgumentRuntimeError(
            with_site(f"start ({first}) + length ({size}) exceeds dimension size ({n}).")
        )
    return apply(ops.cut, (x,), {"axis": a, "start": first, "stop": first + size})


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: A002
    """Vectors of the last dim as diagonals of matrices in two new dims, zeros elsewhere."""
    x = arguments.tensor(input, "diag_embed")
    ndim = x.ndim + 1
    a, b = arguments.dim(dim1, ndim), arguments.dim(dim2, ndim)
    if a == b:
        raise ArgumentRuntimeError(
            with_site(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
        )
    n = x.shape[-1] + abs(offset)
    rest = iter(x.shape[:-1])
    shape = tuple(n if i in (a, b) else next(rest) for i in range(ndim))
    return apply(
        ops.diagonal_scatter, (x,), {"shape": shape, "offset": offset, "axis1": a, "axis2": b}
    )


# ---------------------------------------------------------------- written into a copy
def _fits(function: str, src: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(src.shape) != shape:
        raise ArgumentRuntimeError(
            with_site(
                "expected src to have a size equal to the slice of self. src size = "
                f"{list(src.shape)}, slice size = {list(shape)}"
            )
        )


def select_scatter(input: Any, src: Any, dim: int, index: int) -> Tensor:  # noqa: A002
    """A copy of input with src in place of one slice along `dim`."""
    x = arguments.tensor(input, "select_scatter")
    s = arguments.tensor(src, "select_scatter", "src")
    a = arguments.dim(dim, x.ndim)
    _fits("select_scatter", s, tuple(indexing.select(x.detach(), a, index).shape))
    place = wrap(np.array([index % x.shape[a]]))
    return indexing.index_copy(x, a, place, unsqueeze(s, a).to(x.dtype))


def slice_scatter(
    input: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1  # noqa: A002
) -> Tensor:
    """A copy of input with src in place of input[start:end:step] along `dim`."""
    x = arguments.tensor(input, "slice_scatter")
    s = arguments.tensor(src, "slice_scatter", "src")
    a = arguments.dim(dim, x.ndim)
    places = np.arange(x.shape[a])[slice(start, end, step)]
    _fits("slice_scatter", s, (*x.shape[:a], len(places), *x.shape[a + 1 :]))
    return indexing.index_copy(x, a, wrap(places), s.to(x.dtype))


def diagonal_scatter(
    input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1  # noqa: A002
) -> Tensor:
    """A copy of input with src on a diagonal of two dims."""
    from pullback.api.movement import diagonal

    x = arguments.tensor(input, "diagonal_scatter")
    s = arguments.tensor(src, "diagonal_scatter", "src")
    _fits("diagonal_scatter", s, tuple(diagonal(x.detach(), offset, dim1, dim2).shape))
    params = {
        "shape": tuple(x.shape), "offset": offset, "axis1": arguments.dim(dim1, x.ndim),
        "axis2": arguments.dim(dim2, x.ndim),
    }  # fmt: skip
    there = apply(ops.diagonal_scatter, (wrap(np.ones(tuple(s.shape), bool)),), params)
    return where(there, apply(ops.diagonal_scatter, (s.to(x.dtype),), params), x)


def masked_scatter(input: Any, mask: Any, source: Any) -> Tensor:  # noqa: A002
    """input with the elements of source, in order, where the boolean mask holds."""
    x = arguments.tensor(input, "masked_scatter")
    m = arguments.tensor(mask, "masked_scatter", "mask")
    s = arguments.tensor(source, "masked_scatter", "source")
    if m._data.dtype.kind != "b":
        raise ArgumentRuntimeError(
            with_site(f"masked_scatter_ only supports boolean masks, but got mask with dtype "
                      f"{arguments.PYTORCH_NAMES[m._data.dtype.name]}")
        )  # fmt: skip
    if x._data.dtype != s._data.dtype:
        raise ArgumentRuntimeError(
            with_site(
                "masked_scatter: expected self and source to have same dtypes but got "
                f"{x.dtype} and {s.dtype}"
            )
        )
    x, m = broadcast_tensors(x, m)
    flags = reshape(m, -1)
    counts = memory(reduce.sum(flags))
    if type(counts) is not np.ndarray:
        concrete(m, "masked_scatter")  # raises: in a trace, how many are needed is not known
    wanted = int(counts.max())  # of several examples, the one that needs most
    if wanted > s.numel():
        raise ArgumentRuntimeError(
            with_site(
                f"Number of elements of source < number of ones in mask: {s.numel()} < {wanted}"
            )
        )
    if not wanted:
        return x.clone()
    places = elementwise.clamp(reduce.cumsum(flags, 0) - 1, 0)
    values = indexing.index_select(reshape(s, -1), 0, places)
    values = reshape(values, x.shape)
    return apply(elementwise_ops.where, (m, values, x), {}, "MaskedScatterBackward0")


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@arguments.numpy_names
def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True  # noqa: A002
) -> Tensor:
    """input with src reduced into it at index along `dim`; "sum", "mean", "amax", "amin", "prod".

    `include_self=False` leaves the elements of input out where something is written.
    """
    x, s = arguments.tensor(input, "scatter_reduce"), arguments.tensor(src, "scatter_reduce", "src")
    if not isinstance(reduce, str):
        raise ArgumentTypeError(
            with_site(
                "scatter_reduce(): argument 'reduce' (position 5) must be str, not "
                f"{arguments.kind(reduce)}"
            )
        )
    if reduce not in REDUCTIONS:
        raise ArgumentRuntimeError(
            with_site(
                "reduce argument must be either sum, prod, mean, amax or amin, got "
                f"{reduce}"
            )
        )
    a = arguments.dim(dim, x.ndim)
    i = indexing.index_for("scatter", x, a, index)
    used = indexing.source_for(x, s, i, a)
    used = used[tuple(slice(0, n) for n in i.shape)] if used.shape != i.shape else used
    return reduced_into(x, a, i, used, reduce, bool(include_self), "ScatterReduceBackward0")


def reduced_into(
    x: Tensor, axis: int, index: Tensor, src: Tensor, reduction: str, include_self: bool, node: str
) -> Tensor:
    """x with src reduced into it at an index of the same shape."""
    plain = wrap(np.zeros(tuple(x.shape), x._data.dtype))
    ones = wrap(np.ones(tuple(index.shape), x._data.dtype))
    written = indexing.scatter_add(plain, axis, index, ones)  # how many go to each place
    own = wrap(np.ones(tuple(x.shape), bool)) if include_self else written == 0
    if reduction in ("sum", "mean"):
        start = x if include_self else where(own, x, 0)
        total = apply(indexing_ops.scatter_add, (start, index, src), {"axis": axis}, node)
        if reduction == "sum":
            return total
        number = written + own.to(x.dtype)
        if x._data.dtype.kind in "fc":
            return apply(elementwise_ops.div, (total, number), {}, node)
        return elementwise.div(total, number, rounding_mode="floor")
    if reduction == "prod":
        return apply(scattering.scatter_product, (x, index, src, own), {"axis": axis}, node)
    arguments.refuse(x, kernel("c", f"scatter_gather_tensor_cpu_reduce_{reduction}"))
    params = {"axis": axis, "largest": reduction == "amax"}
    return apply(scattering.scatter_extreme, (x, index, src, own), params, node)


@arguments.numpy_names
def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True  # noqa: A002
) -> Tensor:
    """input with slices of source reduced into it at a vector of indices along `dim`.

    reduce: "prod", "mean", "amax" or "amin".
    """
    x = arguments.tensor(input, "index_reduce")
    s = arguments.tensor(source, "index_reduce", "source")
    if reduce not in REDUCTIONS[1:]:
        raise ArgumentRuntimeError(
            with_site(
                "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
                f"{reduce}."
            )
        )
    a = arguments.dim(dim, x.ndim)
    i = indexing.index_vector("index_reduce_", x, a, index, s)
    if s._data.dtype != x._data.dtype:
        raise indexing.different_types("index_reduce_", x, s)
    spread = indexing.spread_index(s, a, i)
    return reduced_into(x, a, spread, s, reduce, bool(include_self), "IndexReduceBackward0")


def broadcast_to(input: Any, size: Any) -> Tensor:  # noqa: A002
    """`expand` to a whole shape."""
    return expand(input, arguments.one_size(size, "broadcast_to"))
