"""Indexing, gathering and scattering (layer 4), with PyTorch's rules for keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments, data, keys
from pullback.api.keys import Place
from pullback.api.movement import expand
from pullback.core.callsite import with_site
from pullback.eager.apply import apply
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
from pullback.ops import indexing as ops
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
    from pullback.eager.inplace import apply_inplace, check_writable

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
def _index(index: Any, function: str, x: Tensor, axis: int, name: str = "index") -> Tensor:
    i = arguments.tensor(index, function, name)
    if i._data.dtype.kind not in "iu":
        raise ArgumentRuntimeError(
            with_site(f"{function}(): Expected dtype int64 for index, got {i.dtype}")
        )
    data = memory(i)
    if type(data) is np.ndarray and data.size and x.ndim:
        n = x._data.shape[axis]
        low, high = int(data.min()), int(data.max())
        if low < 0 or high >= n:
            bad = high if high >= n else low
            if function == "index_select":
                raise DimensionError(
                    with_site(
                        f"index out of range in self: index {bad} for dimension {axis} with size "
                        f"{n}"
                    )
                )
            raise ArgumentRuntimeError(
                with_site(f"index {bad} is out of bounds for dimension {axis} with size {n}")
            )
    return i


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
    if dim is None:
        return gather(x.reshape(-1), 0, indices.reshape(-1))
    a = arguments.dim(dim, x.ndim)
    shape = list(np.broadcast_shapes(
        tuple(1 if k == a else n for k, n in enumerate(x._data.shape)),
        tuple(1 if k == a else n for k, n in enumerate(indices._data.shape)),
    ))  # fmt: skip
    mine, theirs = shape.copy(), shape.copy()
    mine[a], theirs[a] = x._data.shape[a], indices._data.shape[a]
    return gather(expand(x, mine), a, expand(indices, theirs))


def _same_ndim(function: str, x: Tensor, index: Tensor, axis: int, what: str) -> None:
    if max(x.ndim, 1) != max(index.ndim, 1):
        raise ArgumentRuntimeError(
            with_site(
                f"Index tensor must have the same number of dimensions as {what} tensor: "
                f"got {index.ndim} and {x.ndim}"
            )
        )
    for k in range(index.ndim if x.ndim else 0):
        if k != axis and index._data.shape[k] > x._data.shape[k]:
            raise ArgumentRuntimeError(
                with_site(
                    f"Size does not match at dimension {k} expected index "
                    f"{list(index.shape)} to be no larger than self {list(x.shape)} apart from "
                    f"dimension {axis}"
                )
            )


def _source_for(function: str, x: Tensor, src: Any, index: Tensor) -> Tensor:
    if not isinstance(src, Tensor):
        return wrap(np.asarray(src).astype(x._data.dtype))
    if src._data.dtype != x._data.dtype:
        raise ArgumentRuntimeError(
            with_site(f"{function}(): Expected self.dtype to be equal to src.dtype, got "
                      f"{x.dtype} and {src.dtype}")
        )  # fmt: skip
    if any(n > m for n, m in zip(index._data.shape, src._data.shape, strict=False)):
        raise ArgumentRuntimeError(
            with_site(
                f"Expected index {list(index.shape)} to be no larger than src {list(src.shape)}"
            )
        )
    return src


def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None,  # noqa: A002
) -> Tensor:  # fmt: skip
    """input with src (or a number) written at `index` along dim: the reverse of `gather`."""
    x = arguments.tensor(input, "scatter")
    a = arguments.dim(dim, x.ndim)
    i = _index(index, "scatter", x, a)
    _same_ndim("scatter", x, i, a, "self")
    s = _source_for("scatter", x, value if src is None else src, i)
    if reduce == "add":
        return apply(ops.scatter_add, (x, i, s), {"axis": a})
    if reduce is not None:
        raise UnsupportedError(with_site(f"scatter(reduce={reduce!r}): only 'add' is built"))
    return apply(ops.scatter, (x, i, s), {"axis": a})


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:  # noqa: A002
    """input with src added at `index` along dim; duplicates add up."""
    x = arguments.tensor(input, "scatter_add")
    a = arguments.dim(dim, x.ndim)
    i = _index(index, "scatter_add", x, a)
    _same_ndim("scatter_add", x, i, a, "self")
    return apply(ops.scatter_add, (x, i, _source_for("scatter_add", x, src, i)), {"axis": a})


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


def _spread_index(x: Tensor, axis: int, index: Tensor) -> Tensor:
    """A vector of indices as the full index array that scatter wants."""
    shape = list(x._data.shape)
    shape[axis] = index._data.shape[0]
    return expand(index.reshape([-1 if k == axis else 1 for k in range(x.ndim)]), shape)


def _index_vector(function: str, x: Tensor, axis: int, index: Any, source: Any) -> Tensor:
    i = _index(index, function, x, axis)
    if i.ndim > 1:
        raise DimensionError(with_site(f"{function}(): Index is supposed to be a vector"))
    i = i.reshape(-1)
    if source.ndim and source._data.shape[axis] != i._data.shape[0]:
        raise ArgumentRuntimeError(
            with_site(
                f"{function}(): Number of indices ({i.shape[0]}) should be equal to source.size("
                f"dim): ({source._data.shape[axis]}), for dim: {axis}"
            )
        )
    return i


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:  # noqa: A002
    """input with alpha * slices of source added at a vector of indices along dim."""
    x = arguments.tensor(input, "index_add")
    s = arguments.tensor(source, "index_add", "source")
    a = arguments.dim(dim, x.ndim)
    i = _index_vector("index_add", x, a, index, s)
    if s._data.dtype != x._data.dtype:
        raise ArgumentRuntimeError(
            with_site("index_add(): self and source expected to have the same dtype, but got "
                      f"(self) {x.dtype} and (source) {s.dtype}")
        )  # fmt: skip
    if not x.ndim:
        return x + s.reshape(()) * alpha
    if alpha != 1:
        s = s * alpha
    params = {"axis": a}
    return apply(ops.scatter_add, (x, _spread_index(x, a, i), s), params, "IndexAddBackward0")


def index_copy(input: Any, dim: int, index: Any, source: Any) -> Tensor:  # noqa: A002
    """input with slices of source written at a vector of indices along dim."""
    x = arguments.tensor(input, "index_copy")
    s = arguments.tensor(source, "index_copy", "source")
    a = arguments.dim(dim, x.ndim)
    i = _index_vector("index_copy", x, a, index, s)
    return apply(
        ops.scatter, (x, _spread_index(x, a, i), s), {"axis": a}, "IndexCopyBackward0"
    )


def index_fill(input: Any, dim: int, index: Any, value: Any) -> Tensor:  # noqa: A002
    """input with a number written in the slices at `index` along dim."""
    x = arguments.tensor(input, "index_fill")
    a = arguments.dim(dim, x.ndim)
    i = _index(index, "index_fill", x, a).reshape(-1)
    v = value if isinstance(value, Tensor) else wrap(np.asarray(value).astype(x._data.dtype))
    return apply(
        ops.scatter, (x, _spread_index(x, a, i), v), {"axis": a}, "IndexFillBackward0"
    )


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


def select(input: Any, dim: int, index: int) -> Tensor:  # noqa: A002
    """The slice at `index` along dim, without it (a view)."""
    x = arguments.tensor(input, "select")
    a = arguments.dim(dim, x.ndim)
    keys.check_int(index, a, x._data.shape)
    return apply(ops.getitem, (x,), {"key": (slice(None),) * a + (index, Ellipsis)},
                 "SelectBackward0")  # fmt: skip
