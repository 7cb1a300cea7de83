"""Order statistics, histograms, covariances, differences (layer 4), with PyTorch's signatures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments, elementwise, reduce
from pullback.api.convert import concrete
from pullback.api.indexing import gather, index_select
from pullback.api.movement import cat, expand, movedim, reshape, unsqueeze
from pullback.api.slices import narrow
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.refusal import Refusal, kernel, refuse
from pullback.eager.apply import apply
from pullback.eager.batched import by_example
from pullback.eager.tensor import Tensor, wrap
from pullback.eager.view import memory
from pullback.errors import (
    ArgumentRuntimeError,
    DimensionError,
)
from pullback.ops import indexing as indexing_ops
from pullback.ops import reduce as reduce_ops
from pullback.ops import searching

into = elementwise.into


def _chosen(name: str, x: Tensor, places: Tensor, axis: int, keepdim: bool, node: str) -> Any:
    """Values and indices of one element per slice."""
    keep = arguments.flag(keepdim, name, "keepdim")
    values = apply(indexing_ops.pick, (x, places), {"axis": axis, "keepdims": keep}, node)
    if keepdim and x.ndim:
        places = unsqueeze(places, axis)
    return reduce.RETURN_TYPES[name](values, places)


@arguments.numpy_names
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:  # noqa: A002
    """The k-th smallest element along `dim` (k counts from 1), and its index."""
    x = arguments.tensor(input, "kthvalue")
    a = arguments.dim(dim, x.ndim)
    k = arguments.integer(k, "kthvalue", "k")
    n = x.shape[a] if x.ndim else 1
    if not n:
        raise DimensionError(
            with_site(f"kthvalue(): Expected reduction dim {a} to have non-zero size.")
        )
    if not 1 <= k <= n:
        raise ArgumentRuntimeError(
            with_site("kthvalue(): selected number k out of range for dimension " + str(a))
        )
    if not x.ndim:
        return reduce.of_scalar("kthvalue", x, "KthvalueBackward0")
    arguments.refuse(x, kernel("bc", "kthvalue_cpu"))
    places = by_example(
        x, lambda data, axis: np.take(np.argsort(data, axis, kind="stable"), k - 1, axis), a
    )
    return _chosen("kthvalue", x, places, a, keepdim, "KthvalueBackward0")


@arguments.numpy_names
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:  # noqa: A002
    """The most frequent value along `dim` (the smallest of several), and its last index."""
    x = arguments.tensor(input, "mode")
    arguments.refuse(x, kernel("c", "mode_cpu"))
    a = arguments.dim(dim, x.ndim)
    if not x.ndim:
        return reduce.of_scalar("mode", x, "ModeBackward0")
    if not x.shape[a]:
        raise DimensionError(
            with_site(f"mode(): Expected reduction dim {a} to have non-zero size.")
        )
    places = by_example(x, _most_frequent, a)
    return _chosen("mode", x, places, a, keepdim, "ModeBackward0")


def _most_frequent(data: Any, axis: int) -> Any:
    """The last place of the value that occurs most along an axis."""
    rows = np.moveaxis(data, axis, -1)
    found = np.empty(rows.shape[:-1], np.int64)
    for place in np.ndindex(found.shape):
        values, counts = np.unique(rows[place], return_counts=True, equal_nan=False)
        best = values[np.argmax(counts)]
        same = np.isnan(rows[place]) if best != best else rows[place] == best
        found[place] = np.flatnonzero(same)[-1]
    return found


@arguments.numpy_names
def nanmean(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None  # noqa: A002
) -> Tensor:
    """The mean of the elements that are not NaN."""
    x = arguments.tensor(input, "nanmean")
    x = x if dtype is None else x.to(dtype)
    if x._data.dtype.kind not in "fc":
        raise ArgumentRuntimeError(
            with_site(
                "nanmean(): expected input to have floating point or complex dtype but got "
                f"{arguments.PYTORCH_NAMES[x._data.dtype.name]}"
            )
        )
    arguments.refuse(x, Refusal("c", "nansum on CPU does not support complex inputs"))
    missing = elementwise.isnan(x)
    total = reduce.sum(elementwise.masked_fill(x, missing, 0), dim, keepdim)
    return into(out, total / reduce.sum(elementwise.logical_not(missing), dim, keepdim))


@arguments.numpy_names
def nanmedian(input: Any, dim: Any = None, keepdim: bool = False) -> Any:  # noqa: A002
    """The median of the elements that are not NaN; along `dim`, with its index."""
    x = arguments.tensor(input, "nanmedian")
    if dim is None:
        arguments.refuse(x, kernel("bc", "median_cpu"))
        params = {"axis": tuple(range(x.ndim)), "keepdims": False}
        return apply(reduce_ops.nan_middle, (x,), params)
    a = arguments.dim(dim, x.ndim)
    if x.ndim and not x.shape[a]:
        raise DimensionError(
            with_site(f"median(): Expected reduction dim {a} to have non-zero size.")
        )
    arguments.refuse(x, kernel("bc", "median_out"))
    if not x.ndim:
        return reduce.of_scalar("nanmedian", x, "NanmedianBackward1")
    places = by_example(x, _middle_present, a)
    return _chosen("nanmedian", x, places, a, keepdim, "NanmedianBackward1")


def _middle_present(data: Any, axis: int) -> Any:
    """Where the median of what is not NaN lies along an axis."""
    order = np.argsort(data, axis, kind="stable")  # NaN comes last
    present = (data == data).sum(axis, keepdims=True)
    middle = np.maximum((present - 1) // 2, 0)
    return np.take_along_axis(order, middle, axis).squeeze(axis)


def _shown(self: Any) -> str:
    return f"torch.return_types.aminmax(\nmin={self[0]!r},\nmax={self[1]!r})"


_Extremes: Any = type("aminmax", (tuple,), {
    "__slots__": (), "__module__": "torch.return_types", "__repr__": _shown,
    "min": property(lambda self: self[0]), "max": property(lambda self: self[1]),
})  # fmt: skip


def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False) -> Any:  # noqa: A002
    """The smallest and the largest elements, over one dim or all."""
    x = arguments.tensor(input, "aminmax")
    arguments.refuse(x, kernel("c", "aminmax_cpu"))
    if dim is None and not x._data.size:
        raise ArgumentRuntimeError(
            with_site(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                "identity."
            )
        )
    if dim is None:
        dims: Any = tuple(range(x.ndim))
    else:
        dims = arguments.dim(dim, x.ndim)
        if x.ndim and not x.shape[dims]:
            raise DimensionError(
                with_site(f"aminmax: Expected reduction dim {dims} to have non-zero size.")
            )
    keep = arguments.flag(keepdim, "aminmax", "keepdim")
    params = {"axis": arguments.dims(dims, x.ndim), "keepdims": keep}
    both = (reduce_ops.amin, reduce_ops.amax)
    return _Extremes(apply(p, (x,), params, "AminmaxBackward0") for p in both)


# ---------------------------------------------------------------- distinct values
def _results(x: Tensor, function: str, node: str, values: Any, more: list[Any]) -> Any:
    """The values, which require grad when x does, and what else was asked for."""
    first = elementwise.without_derivative(wrap(values), function, node, x)
    return (first, *(wrap(np.asarray(m, order="C")) for m in more)) if more else first


def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,  # noqa: A002
    dim: Any = None,
) -> Any:  # fmt: skip
    """The distinct elements (or slices along `dim`) in order.

    Optionally where each went and how often it came.  NaNs are all distinct.
    """
    x = arguments.tensor(input, "unique")
    for value, which in ((sorted, "sorted"), (return_inverse, "return_inverse"),
                         (return_counts, "return_counts")):  # fmt: skip
        arguments.flag(value, "_unique2", which)
    data = concrete(x, "unique")
    if dim is None:
        arguments.refuse(x, kernel("c", "unique"))
        axis, node, function = None, "Unique2Backward0", "_unique2"
    else:
        node, function = "UniqueDimBackward0", "unique_dim"
        axis = _axis_of_slices(x, dim, function)
    values, inverse, counts = np.unique(
        data, return_inverse=True, return_counts=True, axis=axis, equal_nan=False
    )
    inverse = inverse.reshape(data.shape if axis is None else -1)
    values = values.reshape(-1) if axis is None else values
    more = [inverse] * bool(return_inverse) + [counts] * bool(return_counts)
    return _results(x, function, node, values, more)


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None  # noqa: A002
) -> Any:
    """The elements (or slices along `dim`) without those equal to the one before.

    Optionally where each went and how long each run is.
    """
    x = arguments.tensor(input, "unique_consecutive")
    data = concrete(x, "unique_consecutive")
    axis = 0
    lined = data.reshape(-1)
    if dim is not None:
        axis = _axis_of_slices(x, dim, "unique_consecutive")
        lined = np.moveaxis(data, axis, 0)
    rows = lined.reshape(lined.shape[0], math.prod(lined.shape[1:]))
    starts = np.ones(lined.shape[0], bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(1)
    values = lined[starts] if dim is None else np.moveaxis(lined[starts], 0, axis)
    more = []
    if return_inverse:
        places = np.cumsum(starts) - 1
        more.append(places.reshape(data.shape) if dim is None else places)
    if return_counts:
        more.append(np.diff(np.append(np.flatnonzero(starts), starts.size)))
    return _results(x, "unique_consecutive", "UniqueConsecutiveBackward0", values, more)


def _axis_of_slices(x: Tensor, dim: Any, function: str) -> int:
    """The axis along which slices are told apart; they need elements for that."""
    if not x.ndim:
        raise DimensionError(
            with_site(f"Dimension specified as {dim} but tensor has no dimensions")
        )
    axis = arguments.dim(dim, x.ndim)
    if not x._data.size and any(n == 0 for k, n in enumerate(x._data.shape) if k != axis):
        raise ArgumentRuntimeError(
            with_site(
                f"{function}(): There are 0 sized dimensions, and they aren't selected, so unique "
                f"cannot be applied: shape {list(x.shape)}, dim {axis}"
            )
        )
    return axis


# ---------------------------------------------------------------- quantiles
def _quantile(
    name: str, input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, skip: bool  # noqa: A002
) -> Tensor:
    x = arguments.tensor(input, name)
    if x._data.dtype.kind != "f" or x._data.dtype.itemsize < 4:
        raise ArgumentRuntimeError(
            with_site(f"{name}() input tensor must be either float or double dtype")
        )
    if not isinstance(q, (Tensor, int, float)):
        raise elementwise.invalid_combination(name, x, q)
    keepdim = arguments.flag(keepdim, name, "keepdim")
    at = q if isinstance(q, Tensor) else wrap(np.asarray(q, x._data.dtype))
    if at.ndim > 1:
        raise ArgumentRuntimeError(with_site(f"{name}() q must be a scalar or 1D tensor"))
    if at._data.dtype != x._data.dtype:
        raise ArgumentRuntimeError(
            with_site(f"{name}() q tensor must be same dtype as the input tensor")
        )
    known = memory(at)
    if type(known) is np.ndarray and not ((known >= 0) & (known <= 1)).all():
        raise ArgumentRuntimeError(with_site(f"{name}() q values must be in the range [0, 1]"))
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ArgumentRuntimeError(
            with_site(
                f"{name}() interpolation must be one of linear, lower, higher, midpoint or "
                f"nearest, but got {interpolation}"
            )
        )
    kept = [1] * x.ndim
    if dim is None:
        line = reshape(x, -1)
    else:
        a = arguments.dim(dim, x.ndim)
        line = movedim(x, a, -1) if x.ndim else reshape(x, 1)
        kept = [1 if i == a else n for i, n in enumerate(x.shape)]
    if not line.shape[-1] or not x._data.size:
        raise ArgumentRuntimeError(with_site(f"{name}() input tensor must be non-empty"))
    found = _between(line, reshape(at, -1), interpolation, skip)  # (..., number of q)
    shape = kept if keepdim else list(line.shape[:-1])
    if not at.ndim:
        return reshape(found, tuple(shape))
    return reshape(movedim(found, -1, 0), (at.numel(), *shape))


def _between(line: Tensor, at: Tensor, interpolation: str, skip: bool) -> Tensor:
    """Quantiles along the last dim, from the sorted elements around them."""
    ordered = reduce.sort(line, -1).values
    still = ordered.detach()
    present = reduce.sum(still == still, -1, keepdim=True)  # NaN is sorted to the end
    last = line.shape[-1] - 1
    if skip:
        rank = at * elementwise.clamp(present - 1, 0).to(line.dtype)
    else:  # a NaN makes the result NaN: the last element
        worst = wrap(np.asarray(last, line._data.dtype))
        rank = elementwise.where(present == last + 1, at * last, worst)
    if interpolation == "nearest":
        rank = elementwise.round(rank)
    fixed = rank.detach()
    low, high = elementwise.floor(fixed), elementwise.ceil(fixed)
    if interpolation == "lower":
        rank = high = low
    elif interpolation == "higher":
        rank = low = high
    below = _gathered(ordered, low)
    if interpolation in ("lower", "higher", "nearest"):
        return below
    weight: Any = 0.5 if interpolation == "midpoint" else rank - low
    return elementwise.lerp(below, _gathered(ordered, high), weight)


def _gathered(ordered: Tensor, places: Tensor) -> Tensor:
    index = expand(places.to(dtypes.int64), (*ordered.shape[:-1], places.shape[-1]))
    return apply(indexing_ops.gather, (ordered, index), {"axis": ordered.ndim - 1})


@arguments.numpy_names
def quantile(
    input: Any, q: Any, dim: Any = None, keepdim: bool = False, *,  # noqa: A002
    interpolation: str = "linear", out: Any = None,
) -> Tensor:  # fmt: skip
    """The q-quantiles over `dim` (or all); of several q, along a first dim.  NaN gives NaN."""
    return into(out, _quantile("quantile", input, q, dim, keepdim, interpolation, False))


@arguments.numpy_names
def nanquantile(
    input: Any, q: Any, dim: Any = None, keepdim: bool = False, *,  # noqa: A002
    interpolation: str = "linear", out: Any = None,
) -> Tensor:  # fmt: skip
    """The q-quantiles of the elements that are not NaN."""
    return into(out, _quantile("nanquantile", input, q, dim, keepdim, interpolation, True))


# ---------------------------------------------------------------- differences, covariance
@arguments.numpy_names
def diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None,  # noqa: A002
) -> Tensor:  # fmt: skip
    """Differences of neighbours along `dim`, n times; of bools, whether they differ."""
    x = arguments.tensor(input, "diff")
    if not x.ndim:
        raise ArgumentRuntimeError(
            with_site("diff expects input to be at least one-dimensional")
        )
    n = arguments.integer(n, "diff", "n")
    if n < 0:
        raise ArgumentRuntimeError(with_site(f"order must be non-negative but got {n}"))
    a = arguments.dim(dim, x.ndim)
    around = [v for v in (prepend, x, append) if v is not None]
    x = cat(around, a) if len(around) > 1 else x
    for _ in range(min(n, x.shape[a])):
        size = max(x.shape[a] - 1, 0)
        later, earlier = narrow(x, a, x.shape[a] - size, size), narrow(x, a, 0, size)
        x = later != earlier if x._data.dtype.kind == "b" else later - earlier
    return x


def cov(
    input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None  # noqa: A002
) -> Tensor:
    """Covariances of variables (rows) over observations (columns).

    fweights: (m,) integers - how often an observation counts; aweights: (m,) its weight.
    """
    x = arguments.tensor(input, "cov")
    arguments.refuse(x, Refusal("b", "cov(): bool dtype is not supported for input"))
    if x.ndim > 2:
        raise ArgumentRuntimeError(
            with_site(f"cov(): expected input to have two or fewer dimensions, got {x.ndim}")
        )
    rows = reshape(x, (1, -1)) if x.ndim < 2 else x
    weights: Any = None
    if fweights is not None:
        if fweights._data.dtype.kind not in "iu":
            raise ArgumentRuntimeError(with_site("cov(): expected fweights to be integral dtype"))
        weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        total: Any = rows.shape[1]
        mean = reduce.sum(rows, 1, True) / total
        divisor = max(total - correction, 0)
    else:
        total = reduce.sum(weights)
        mean = reduce.sum(rows * weights, 1, True) / total
        if aweights is None or not correction:
            divisor = total - correction
        else:
            divisor = total - correction * reduce.sum(weights * aweights) / total
        divisor = elementwise.clamp(divisor, min=0)
    centred = rows - mean
    scaled = centred if weights is None else centred * weights
    found = (scaled @ elementwise.conj(centred).t()) / divisor
    return reshape(found, ()) if x.ndim < 2 else found


def corrcoef(input: Any) -> Tensor:  # noqa: A002
    """Correlation coefficients of variables (rows) over observations (columns)."""
    x = arguments.tensor(input, "corrcoef")
    c = cov(x)
    if not c.ndim:
        return c / c
    deviation = elementwise.sqrt(elementwise.real(c.diagonal()))
    c = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if c.is_complex():
        parts = (elementwise.clamp(f(c), -1, 1) for f in (elementwise.real, elementwise.imag))
        return elementwise.complex(*parts)
    return elementwise.clamp(c, -1, 1)  # rounding may have gone beyond


# ---------------------------------------------------------------- counting and searching
def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0, *, out: Any = None) -> Tensor:  # noqa: A002
    """How many elements fall in each of `bins` equal parts of [min, max] (of all when equal)."""
    x = arguments.tensor(input, "histc")
    data = concrete(x, "histc").reshape(-1)
    arguments.refuse(x, kernel("b", "linspace_cpu"), kernel("iu", "histogram_cpu"),
                     kernel("c", "aminmax_cpu"))  # fmt: skip
    if bins <= 0:
        raise ArgumentRuntimeError(with_site("bins must be > 0"))
    low, high = float(min), float(max)
    if low == high and data.size:
        low, high = float(data.min()), float(data.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ArgumentRuntimeError(with_site(f"range of [{low}, {high}] is not finite"))
    if low > high:
        raise ArgumentRuntimeError(with_site("torch.histc: max must be larger than min"))
    counts, _ = np.histogram(data, bins, (low, high))
    return into(out, wrap(counts.astype(x._data.dtype)))


def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False,  # noqa: A002
    side: str | None = None, sorter: Any = None, out: Any = None,
) -> Tensor:  # fmt: skip
    """Where elements would go in a sorted sequence (row by row) to keep it sorted.

    `right` (or side="right"): after equal elements, not before.
    """
    rows = arguments.tensor(sorted_sequence, "searchsorted", "sorted_sequence").detach()
    values = input.detach() if isinstance(input, Tensor) else wrap(np.asarray(input))
    if sorter is not None:
        rows = gather(rows, -1, arguments.tensor(sorter, "searchsorted", "sorter"))
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentRuntimeError(
            with_site("torch.searchsorted(): side and right can't be set to opposites")
        )
    wide = dtypes.promote_types(rows._data.dtype, values._data.dtype)
    refuse((kernel("bc", "searchsorted_out_cpu"),), wide, ())
    if rows.ndim != 1 and rows.shape[:-1] != values.shape[:-1]:
        raise ArgumentRuntimeError(
            with_site(
                "torch.searchsorted(): boundaries tensor should be 1 dimension or the first "
                "N-1 dimensions of boundaries tensor and input value tensor must match"
            )
        )
    params = {"side": "right" if right or side == "right" else "left", "narrow": bool(out_int32)}
    return into(out, apply(searching.searchsorted, (rows, values), params))


def bucketize(
    input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None  # noqa: A002
) -> Tensor:
    """The number of the interval between boundaries (1-D, sorted) in which each element lies."""
    edges = arguments.tensor(boundaries, "bucketize", "boundaries")
    if edges.ndim != 1:
        raise ArgumentRuntimeError(
            with_site(f"boundaries tensor must be 1 dimension, but got dim({edges.ndim})")
        )
    return searchsorted(edges, input, out_int32=out_int32, right=right, out=out)


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Which elements occur among the test elements."""
    given, among = (
        v.detach() if isinstance(v, Tensor) else wrap(np.asarray(v))
        for v in (elements, test_elements)
    )
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise elementwise.invalid_combination("isin", elements, test_elements)
    for v in (given, among):
        said = Refusal("bc", "Unsupported input type encountered for isin(): {dtype}")
        refuse((said,), v._data.dtype, ())
    return apply(searching.isin, (given, among), {"invert": bool(invert)})


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """(n, N): the powers 0 to N - 1 of each element, falling unless `increasing`."""
    v = arguments.tensor(x, "vander", "x")
    if v.ndim != 1:
        raise ArgumentRuntimeError(with_site("x must be a one-dimensional tensor."))
    n = v.shape[0] if N is None else N
    if n < 0:
        raise ArgumentRuntimeError(with_site("N must be non-negative."))
    if v._data.dtype.kind in "biu":
        v = v.to(dtypes.int64)
    one = unsqueeze(v, 1)
    columns = [elementwise.power(one, k) for k in range(n)]
    if not columns:
        return wrap(np.empty((v.shape[0], 0), v._data.dtype))
    table = cat([c.to(dtypes.public(v._data.dtype)) for c in columns], 1)
    return table if increasing else index_select(table, 1, wrap(np.arange(n)[::-1].copy()))
