"""Indexing, gathering and scattering (layer 4), with PyTorch's rules for keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments, data, elementwise, keys
from pullback.api.convert import item
from pullback.api.elementwise import without_derivative
from pullback.api.keys import Place
from pullback.api.movement import expand
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.shapes import broadcast_shapes
from pullback.eager.apply import apply
from pullback.eager.inplace import apply_inplace, check_writable
from pullback.eager.overlap import at_places
from pullback.eager.tensor import Tensor, wrap
from pullback.eager.view import memory
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    DimensionError,
    DtypeError,
    UnsupportedError,
)
from pullback.ops import elementwise as elementwise_ops
from pullback.ops import indexing as ops
from pullback.ops import scattering
from pullback.ops.indexing import HOLE


# ---------------------------------------------------------------- reading
def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]`: a view for ints, slices, None and `...`; a copy with index arrays."""
    kind = type(key)
    if kind is int:
        keys.check_int(key, 0, x._data.shape)
        return apply(ops.getitem, (x,), {"key": (key, Ellipsis)}, "SelectBackward0")
    parts = (key,) if kind is slice else key if kind is tuple else keys.as_parts(key)
    if keys.is_basic(parts):
        return keys.basic(x, parts)
    x, places = keys.split(x, parts)
    if not places:
        return x
    x, places = keys.read_scalars(x, places)
    return keys.elements(x, places) if places else x


# ---------------------------------------------------------------- assignment
def setitem(x: Tensor, key: Any, value: Any) -> None:
    """`x[key] = value`: in place, recorded, with value broadcast to the place."""
    v = _value(x, value)
    if key is False:
        return
    x, places = keys.split(x, (None,) if key is True else keys.as_parts(key))
    if not places:
        _assign(x, v)
        return
    _write(x, places, v, inplace=True)


def _assign(target: Tensor, value: Tensor) -> None:
    """value written into a view."""
    from pullback.api.inplace import copy_, fill_

    if target._data.shape != value._data.shape:
        if not value._data.ndim:
            fill_(target, value)
            return
        value = expand(_without_leading_ones(value, target.ndim), target._data.shape)
    copy_(target, value)


def _without_leading_ones(value: Tensor, ndim: int) -> Tensor:
    """Leading dims of size 1 are dropped from a value with more dims than its place."""
    shape = value._data.shape
    if len(shape) <= ndim:
        return value
    first = next((k for k, n in enumerate(shape) if n != 1), len(shape))
    return value.reshape(shape[first:]) if first else value


def _write(
    x: Tensor, places: list[Place], value: Tensor, *, inplace: bool, accumulate: bool = False
) -> Tensor:
    """value written (or added) at index arrays: into x, or into a copy of it."""
    if inplace:
        check_writable(x, int(value._requires_grad))
    template, indices = keys.positions(x, places)
    common = keys.common_shape(indices)
    keys.refuse_empty_dims(x, template, common)
    shape = keys.result_shape(x, template, common)
    if inplace:
        value = _without_leading_ones(value, len(shape))
    if not arguments.fits(value._data.shape, shape):
        raise ArgumentRuntimeError(
            with_site(
                f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast "
                f"to indexing result of shape {list(shape)}"
            )
        )
    check = at_places("index_put_")
    if len(places) == 1 and keys.is_mask(places[0].array) and not accumulate:
        value = _for_mask(x, places[0].array, value)
        if math.prod(value._data.shape) == 1:
            check = at_places("masked_fill_")
    if value._data.dtype != x._data.dtype:
        names = arguments.PYTORCH_NAMES
        raise DtypeError(
            with_site(
                "Index put requires the source and destination dtypes match, got "
                f"{names[x._data.dtype.name]} for the destination and "
                f"{names[value._data.dtype.name]} for the source."
            )
        )
    scalars = {not i.ndim for i in indices}
    if len(scalars) == 2 and not keys.adjacent(template):
        raise UnsupportedError(
            with_site(
                "vmap: writing at an index per example that stands apart from an index array: "
                "select with the one, then write at the other"
            )
        )
    indices = keys.within(x, template, indices, common)
    put = ops.PUT[len(indices), accumulate]
    params = {"template": template}
    if inplace:
        return apply_inplace(put, (x, value, *indices), params, "IndexPutBackward0", check)
    return apply(put, (x, value, *indices), params)


def _for_mask(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """One value for a mask is converted, as `masked_fill` does."""
    if math.prod(value._data.shape) != 1:
        return value
    if mask._data.dtype.kind != "b":
        raise ArgumentRuntimeError(
            with_site("masked_fill_ only supports boolean masks, but got mask with dtype unsigned "
                      "char: use mask.bool()")
        )  # fmt: skip
    if value._data.dtype == x._data.dtype:
        return value
    if not value.requires_grad and type(value._data) is np.ndarray:
        return wrap(data.fill_value(value.reshape(()), x._data.dtype))
    return value.to(x.dtype)


def _value(x: Tensor, value: Any) -> Tensor:
    """What is assigned: a Tensor as it is, a number in the dtype of x."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (bool, int, float, complex, np.integer)):
        raise ArgumentTypeError(
            with_site(
                f"can't assign a {arguments.kind(value)} to a torch."
                f"{arguments.PYTORCH_NAMES[x._data.dtype.name]}Tensor"
            )
        )
    if isinstance(value, (int, np.integer)) and not -(2**63) <= value < 2**63:
        raise data.too_long()
    if x._data.dtype == np.float16:  # which may become infinite here, unlike in `fill_`
        if isinstance(value, complex) and value.imag:
            raise data.overflow("double")
        with np.errstate(over="ignore"):
            return wrap(np.asarray(value.real).astype(np.float16))
    return wrap(data.fill_value(value, x._data.dtype))


# ---------------------------------------------------------------- along one dim
# PyTorch's words for an index of the wrong dtype, and the dtypes that are not wrong.
_WORDS = {
    "index_select": "index_select(): Expected dtype int32 or int64 for index",
    "take": "take(): Expected a long tensor for index, but got {}",
    "index_copy_": "index_copy_(): Expected a long tensor for index, but got {}",
    "index_fill_": "index_fill_(): Expected dtype int64 for index.",
    "take_along_dim": "torch.take_along_dim(): dtype of indices should be Long but got {}",
}
_INT32 = ("gather", "scatter", "index_select", "index_add_", "index_reduce_")


def index_dtype(i: Tensor, function: str) -> None:
    """RuntimeError (IndexError of `index_fill`) for an index that is not of an index's dtype."""
    dtype = i._data.dtype
    if dtype == np.int64 or (dtype == np.int32 and function in _INT32):
        return
    words = _WORDS.get(function, f"{function}(): Expected dtype int32/int64 for index")
    if function in ("index_add_", "index_reduce_"):
        words += " but got: {}"
    error = DimensionError if function == "index_fill_" else ArgumentRuntimeError
    raise error(with_site(words.format(arguments.PYTORCH_NAMES[dtype.name])))


def _index(index: Any, function: str, x: Tensor, axis: int, name: str = "index") -> Tensor:
    """An index along an axis, checked; `index_fill` counts from the end too."""
    i = arguments.tensor(index, function, name)
    if not i._data.size and function in ("gather", "scatter"):
        return i if i._data.dtype.kind == "i" else i.to(dtypes.int64)
    index_dtype(i, function)
    values = memory(i)
    if type(values) is np.ndarray and values.size:
        n = x._data.shape[axis] if x.ndim else 1
        low, high = int(values.min()), int(values.max())
        least = -n if function == "index_fill_" else 0
        if low < least or high >= n:
            bad = high if high >= n else low
            if function in ("index_select", "index_add_", "index_reduce_"):
                raise DimensionError(
                    with_site(
                        f"index out of range in self: index {bad} for dimension {axis} with size "
                        f"{n}"
                    )
                )
            whose = "index_copy_(): " if function == "index_copy_" else ""
            error = DimensionError if function[:6] == "index_" else ArgumentRuntimeError
            raise error(
                with_site(f"{whose}index {bad} is out of bounds for dimension {axis} with size {n}")
            )
        if low < 0:
            return elementwise.where(i < 0, i + n, i)
    return i


@arguments.numpy_names
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Tensor:  # noqa: A002
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on; shape of `index`."""
    x = arguments.tensor(input, "gather")
    a = arguments.dim(dim, x.ndim)
    i = _index(index, "gather", x, a)
    _same_ndim("gather", x, i, a, "input")
    return apply(ops.gather, (x, i), {"axis": a})


def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Tensor:  # noqa: A002
    """`gather` with broadcasting; over the flat tensor without a dim."""
    x = arguments.tensor(input, "take_along_dim")
    index_dtype(arguments.tensor(indices, "take_along_dim", "indices"), "take_along_dim")
    if dim is None:
        return gather(x.reshape(-1), 0, indices.reshape(-1))
    if x.ndim != indices.ndim:
        raise ArgumentRuntimeError(
            with_site(
                "torch.take_along_dim(): input and indices should have the same number of "
                f"dimensions, but got {x.ndim} dimensions for input, and {indices.ndim} dimensions "
                "for indices"
            )
        )
    a = arguments.dim(dim, x.ndim)
    shape = list(broadcast_shapes(
        [tuple(1 if k == a else n for k, n in enumerate(v._data.shape)) for v in (x, indices)]
    ))  # fmt: skip
    mine, theirs = shape.copy(), shape.copy()
    mine[a], theirs[a] = x._data.shape[a], indices._data.shape[a]
    return gather(expand(x, mine), a, expand(indices, theirs))


def _same_ndim(function: str, x: Tensor, index: Tensor, axis: int, what: str) -> None:
    if max(x.ndim, 1) != max(index.ndim, 1) and index._data.size:
        raise ArgumentRuntimeError(
            with_site(
                f"Index tensor must have the same number of dimensions as {what} tensor: "
                f"got {index.ndim} and {x.ndim}"
            )
        )
    if what == "input" and not _fits(index, x, axis):
        raise ArgumentRuntimeError(
            with_site(
                f"Size does not match at dimension {_misfit(index, x, axis)} expected index "
                f"{list(index.shape)} to be no larger than self {list(x.shape)} apart from "
                f"dimension {axis}"
            )
        )


def _fits(index: Tensor, x: Tensor, axis: int | None) -> bool:
    return _misfit(index, x, axis) is None


def _misfit(index: Tensor, x: Tensor, axis: int | None) -> int | None:
    """The first dim, apart from `axis`, along which an index is larger than a tensor."""
    sizes = zip(index._data.shape or (1,), x._data.shape or (1,), strict=False)
    return next((k for k, (n, m) in enumerate(sizes) if k != axis and n > m), None)


def source_for(x: Tensor, src: Tensor, index: Tensor, axis: int) -> Tensor:
    """What is scattered into x, checked."""
    if src._data.dtype != x._data.dtype:
        raise ArgumentRuntimeError(
            with_site(f"scatter(): Expected self.dtype to be equal to src.dtype, got "
                      f"{x.dtype} and {src.dtype}")
        )  # fmt: skip
    if not index._data.size:
        return src if src.ndim == x.ndim else src.reshape(-1)[:0].reshape((0,) * x.ndim)
    if max(src.ndim, 1) != max(index.ndim, 1):
        raise ArgumentRuntimeError(
            with_site(
                "Index tensor must have the same number of dimensions as src tensor: got "
                f"{index.ndim} and {src.ndim}"
            )
        )
    if not _fits(index, x, axis) or not _fits(index, src, None):
        raise ArgumentRuntimeError(
            with_site(
                f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} "
                f"apart from dimension {axis} and to be no larger size than src {list(src.shape)}"
            )
        )
    return src


def _number_for(x: Tensor, value: Any) -> Tensor:
    """A number that is scattered, in the dtype of x."""
    if isinstance(value, Tensor):  # of one element, as anywhere where PyTorch wants a number
        value = item(value)
    return wrap(data.fill_value(value, x._data.dtype))


def index_for(function: str, x: Tensor, axis: int, index: Any) -> Tensor:
    """The index of a scatter into x along an axis, checked."""
    i = _index(index, function, x, axis)
    _same_ndim(function, x, i, axis, "self")
    return i if i._data.size or not x.ndim else i.reshape((0,) * x.ndim)


@arguments.numpy_names
def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None,  # noqa: A002
) -> Tensor:  # fmt: skip
    """input with src (or a number) written at `index` along dim: the reverse of `gather`.

    `reduce` "add" or "multiply" (of old programs; without gradient, as in PyTorch).
    """
    x = arguments.tensor(input, "scatter")
    a = arguments.dim(dim, x.ndim)
    i = index_for("scatter", x, a, index)
    given = value if src is None else src
    number = not isinstance(given, Tensor)
    s = _number_for(x, given) if number else source_for(x, given, i, a)
    if reduce is None:
        return apply(ops.scatter, (x, i, s), {"axis": a}, f"ScatterBackward{int(number)}")
    if reduce not in ("add", "multiply"):
        raise ArgumentRuntimeError(with_site("reduce argument must be either add or multiply."))
    plain = x.detach()
    if reduce == "add":
        out = apply(ops.scatter_add, (plain, i, s.detach()), {"axis": a})
    else:
        own = wrap(np.ones(tuple(x.shape), bool))
        parts = s.detach().expand(i._data.shape) if number else s.detach()[_corner(i)]
        out = apply(scattering.scatter_product, (plain, i, parts, own), {"axis": a})
    words = "derivative for aten::scatter is not implemented"
    return without_derivative(out, "aten::scatter", "NotImplemented", x, s, words=words)


def _corner(index: Tensor) -> Any:
    """The part of a source that an index of its ndim uses."""
    return tuple(slice(0, n) for n in index._data.shape)


@arguments.numpy_names
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:  # noqa: A002
    """input with src added at `index` along dim; duplicates add up."""
    x = arguments.tensor(input, "scatter_add")
    s = arguments.tensor(src, "scatter_add", "src")
    a = arguments.dim(dim, x.ndim)
    i = index_for("scatter", x, a, index)
    return apply(ops.scatter_add, (x, i, source_for(x, s, i, a)), {"axis": a})


@arguments.numpy_names
def index_select(input: Any, dim: int, index: Any) -> Tensor:  # noqa: A002
    """The slices of input at a vector of indices along dim."""
    x = arguments.tensor(input, "index_select")
    a = arguments.dim(dim, x.ndim)
    i = _index(index, "index_select", x, a)
    if i.ndim > 1:
        raise DimensionError(with_site("index_select(): Index is supposed to be a vector"))
    if i.ndim == 0:
        i = i.reshape(1)
    return apply(ops.take, (x, i), {"axis": a})


def spread_index(x: Tensor, axis: int, index: Tensor) -> Tensor:
    """A vector of indices as the full index array that scatter wants."""
    if not x.ndim:
        return index[:1].reshape(())
    shape = list(x._data.shape)
    shape[axis] = index._data.shape[0]
    return expand(index.reshape([-1 if k == axis else 1 for k in range(x.ndim)]), shape)


def index_vector(function: str, x: Tensor, axis: int, index: Any, source: Any) -> Tensor:
    """The vector of indices at which slices of a source go into x, checked with the source."""
    i = _index(index, function, x, axis)
    copies = function == "index_copy_"
    if i.ndim > 1:
        raise DimensionError(
            with_site(
                f"{function}(): Index should have dimension 1 or 0 (got {i.ndim})" if copies else
                f"{function}(): Index is supposed to be a vector, but got dim: {i.ndim} with type: "
                f"{arguments.PYTORCH_NAMES[i._data.dtype.name]} and size: {list(i.shape)}"
            )
        )
    i = i.reshape(-1)
    if copies and x.ndim and source.ndim and x.ndim != source.ndim:
        raise DimensionError(
            with_site(
                f"{function}(): When source and destination are not scalars, their dimensionality "
                f"must match. Source dimensionality ({source.ndim}), destination dimensionality "
                f"({x.ndim})"
            )
        )
    size = source._data.shape[axis] if source.ndim > axis else 1
    if copies and source.ndim and x.ndim:
        _same_slices(function, x, source, axis)
    if size != i._data.shape[0]:
        many = f"{function}(): Number of indices ({i.shape[0]}) should be equal to source.size(dim)"
        if copies:
            raise DimensionError(with_site(f"{many} ({size})"))
        raise ArgumentRuntimeError(with_site(f"{many}: ({size}), for dim: {axis}"))
    if not copies:
        _same_slices(function, x, source, axis)
    return i


def _same_slices(function: str, x: Tensor, source: Tensor, axis: int) -> None:
    mine, theirs = (
        [n for k, n in enumerate(v._data.shape) if k != axis] for v in (x, source)
    )  # fmt: skip
    if mine == theirs and (x.ndim == source.ndim or function == "index_copy_"):
        return
    if function == "index_copy_":
        said = (
            f"{function}(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {mine} at dimension {axis} and source slice shape: {theirs} at "
            "dimension 0."
        )
    else:
        said = (
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(x.shape)} source.shape = {list(source.shape)}"
        )
    raise ArgumentRuntimeError(with_site(said))


def different_types(function: str, x: Tensor, source: Tensor) -> Exception:
    """PyTorch's error for a source of another dtype."""
    names = arguments.PYTORCH_NAMES
    mine, theirs = names[x._data.dtype.name], names[source._data.dtype.name]
    return DtypeError(
        with_site(
            f"{function}(): self and source expected to have the same dtype, but got (self) {mine} "
            f"and (source) {theirs}" if function == "index_copy_" else
            f"{function}(): self ({mine}) and source ({theirs}) must have the same scalar type"
        )
    )


@arguments.numpy_names
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:  # noqa: A002
    """input with alpha * slices of source added at a vector of indices along dim."""
    x = arguments.tensor(input, "index_add")
    s = arguments.tensor(source, "index_add", "source")
    a = arguments.dim(dim, x.ndim)
    i = index_vector("index_add_", x, a, index, s)
    if s._data.dtype != x._data.dtype:
        raise different_types("index_add_", x, s)
    if not x.ndim:
        s = s.reshape(())
    if alpha != 1:
        s = s * data.fill_value(alpha, x._data.dtype).item()
    params = {"axis": a}
    return apply(ops.scatter_add, (x, spread_index(x, a, i), s), params, "IndexAddBackward0")


@arguments.numpy_names
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Tensor:  # noqa: A002
    """input with slices of source written at a vector of indices along dim."""
    x = arguments.tensor(input, "index_copy")
    s = arguments.tensor(source, "index_copy", "source")
    a = arguments.dim(dim, x.ndim)
    i = index_vector("index_copy_", x, a, index, s)
    if s._data.dtype != x._data.dtype:
        raise different_types("index_copy_", x, s)
    return apply(
        ops.scatter, (x, spread_index(x, a, i), s), {"axis": a}, "IndexCopyBackward0"
    )


@arguments.numpy_names
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Tensor:  # noqa: A002
    """input with a number written in the slices at `index` along dim."""
    x = arguments.tensor(input, "index_fill")
    a = arguments.dim(dim, x.ndim)
    i = _index(index, "index_fill_", x, a)
    if i.ndim > 1:
        raise ArgumentRuntimeError(with_site("Index has to be a vector/scalar"))
    number = not isinstance(value, Tensor)
    v = wrap(data.fill_value(value, x._data.dtype)) if number else value
    if v.ndim:
        raise ArgumentRuntimeError(
            with_site(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{v.ndim} dimension(s)."
            )
        )
    spread = spread_index(x, a, i.reshape(-1))
    if number:
        return apply(ops.scatter, (x, spread, v), {"axis": a}, "IndexFillBackward0")
    v = v if v._data.dtype == x._data.dtype else v.to(x.dtype)
    mask = apply(  # a place that is named twice is filled once, and counts once in the gradient
        ops.scatter, (wrap(np.zeros(tuple(x.shape), bool)), spread, wrap(np.asarray(True))),
        {"axis": a},
    )  # fmt: skip
    return apply(elementwise_ops.where, (mask, v, x), {}, "IndexFillBackward1")


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Tensor:  # noqa: A002
    """input with `values` written (or added) at a tuple of index tensors."""
    x = arguments.tensor(input, "index_put")
    found = arguments.tensor_list(indices, "index_put", "indices")
    v = arguments.tensor(values, "index_put", "values")
    places = keys.consecutive(x, found)
    return _write(x, places, v, inplace=False, accumulate=bool(accumulate))


def masked_select(input: Any, mask: Any) -> Tensor:  # noqa: A002
    """The elements where the boolean mask holds, as a vector."""
    from pullback.api.movement import broadcast_tensors

    x, m = broadcast_tensors(arguments.tensor(input, "masked_select"),
                             arguments.tensor(mask, "masked_select", "mask"))  # fmt: skip
    if m._data.dtype.kind != "b":
        raise ArgumentRuntimeError(
            with_site("masked_select: expected BoolTensor for mask")
        )
    if not x.ndim:
        x, m = x.reshape(1), m.reshape(1)
    return keys.elements(x, keys.consecutive(x, (m,)), "MaskedSelectBackward0")


def take(input: Any, index: Any) -> Tensor:  # noqa: A002
    """Elements of the flat tensor at `index`."""
    x = arguments.tensor(input, "take")
    flat = x.reshape(-1)
    i = arguments.tensor(index, "take", "index")
    index_dtype(i, "take")
    keys.check_range(i, 0, flat._data.shape)
    return apply(ops.INDEX[1], (flat, i), {"template": (HOLE,)}, "TakeBackward0")


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:  # noqa: A002
    """The positions of elements that are not 0: (n, ndim), or one vector per dim."""
    x = arguments.tensor(input, "nonzero")
    if type(x._data) is not np.ndarray:
        raise UnsupportedError(
            with_site(
                "vmap: nonzero has a dynamic shape, one that depends on data: use torch.where("
                "condition, a, b) inside a transform"
            )
        )
    if as_tuple:
        return tuple(wrap(i) for i in np.nonzero(np.atleast_1d(x._data)))
    return wrap(np.argwhere(x._data))


@arguments.numpy_names
def select(input: Any, dim: int, index: int) -> Tensor:  # noqa: A002
    """The slice at `index` along dim, without it (a view)."""
    x = arguments.tensor(input, "select")
    a = arguments.dim(dim, x.ndim)
    index = arguments.integer(index, "select", "index")
    keys.check_int(index, a, x._data.shape)
    return apply(ops.getitem, (x,), {"key": (slice(None),) * a + (index, Ellipsis)},
                 "SelectBackward0")  # fmt: skip
