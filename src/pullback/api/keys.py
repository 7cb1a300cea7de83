"""What a key means (layer 4): a view first, then index arrays over that view, as in PyTorch.

`x[0, None, mask]` selects, adds a dim, and then reads at the mask's positions.  Ints, slices,
None, bools and `...` make the view; what is left are index arrays at dims of the view, which have
a template of whole slices and holes.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any, NamedTuple

import numpy as np

from pullback.api import arguments, data
from pullback.core import dtypes
from pullback.core.callsite import here, with_site
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor, wrap
from pullback.eager.view import memory
from pullback.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DimensionError,
    UnsupportedError,
)
from pullback.ops import indexing as ops
from pullback.ops.indexing import HOLE

BASIC = (int, slice, type(None), type(Ellipsis))
_WHOLE = slice(None)
_ENDS = (int, type(None))
_INDEX_DTYPES = ("int64", "int32", "bool", "uint8")


class Place(NamedTuple):
    """An index array or mask, and the dim of the view where it stands."""

    dim: int
    array: Tensor


# ---------------------------------------------------------------- the parts of a key
def as_parts(key: Any) -> tuple[Any, ...]:
    """The parts of a key; a short list that holds sequences or slices counts as a tuple."""
    if isinstance(key, tuple):
        return key
    if (
        isinstance(key, (Tensor, np.ndarray, str, bytes))
        or not data.is_sequence(key)
        or len(key) >= 32
    ):
        return (key,)
    for part in key:
        if (
            part is None
            or isinstance(part, (Tensor, slice, type(Ellipsis)))
            or data.is_sequence(part)
        ):
            _warn(
                "Using a non-tuple sequence for multidimensional indexing is deprecated, and "
                "will be read as one index tensor: use x[tuple(seq)] instead of x[seq]."
            )
            return tuple(key)
    return (key,)


def _warn(text: str) -> None:
    site = here(1)
    warnings.warn_explicit(text, UserWarning, site.file, site.line)


def _plain_part(part: Any) -> Any:
    """A part as int, slice, None, Ellipsis, bool, or an index Tensor."""
    kind = type(part)
    if kind is int or kind is bool or part is None or part is Ellipsis:
        return part
    if isinstance(part, Tensor):
        return _tensor_part(part)
    if kind is slice:
        return slice(*(None if v is None else _slice_end(v) for v in (
            part.start, part.stop, part.step)))  # fmt: skip
    if isinstance(part, np.ndarray) or data.is_sequence(part) or isinstance(part, (str, bytes)):
        return _tensor_part(_sequence(part))
    if not isinstance(part, np.bool_) and hasattr(part, "__index__"):
        return operator.index(part)
    raise DimensionError(
        with_site(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            f"valid indices (got {arguments.kind(part)})"
        )
    )


def _slice_end(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(
            with_site(
                "slice indices must be integers or None or have an __index__ method: got "
                f"{arguments.kind(value)}"
            )
        ) from None


def _sequence(part: Any) -> Tensor:
    """Sequences and arrays of numbers are taken as int64, unless they hold bools or bytes."""
    if isinstance(part, np.ndarray) and part.dtype.kind == "u" and part.itemsize > 1:
        part = part.astype(np.int64)  # dtypes that tensors do not have
    array = data.to_array(part, "tensor")
    if array.dtype.kind != "b" and array.dtype != np.uint8 and array.dtype != np.int64:
        array = data.to_array(part, "tensor", dtypes.int64)
    return wrap(np.array(array))  # a copy: the index of a backward pass must not change


def _tensor_part(part: Tensor) -> Any:
    array = part._data
    if type(array) is np.ndarray and not array.ndim and array.dtype.kind in "iub":
        # without dims: an integer selects, as an int does; a bool or a byte is a bool
        return bool(array) if is_mask(part) else int(array)
    return part


def index_tensor(index: Tensor) -> Tensor:
    """A Tensor that may be an index array: IndexError otherwise."""
    payload = index._data
    if payload.dtype.name not in _INDEX_DTYPES:
        raise DimensionError(
            with_site(
                "tensors used as indices must be long, int, byte or bool tensors: got "
                f"{index.dtype}"
            )
        )
    if is_mask(index) and type(payload) is not np.ndarray:
        raise UnsupportedError(
            with_site(
                "vmap: We do not support batching operators that can support dynamic shape: how "
                "many elements a boolean mask takes depends on data; use torch.where(mask, x, 0) "
                "inside a transform"
            )
        )
    return index


def is_mask(index: Tensor) -> bool:
    """Whether an index says which elements, rather than where they are."""
    return index._data.dtype.kind == "b" or index._data.dtype == np.uint8


# ---------------------------------------------------------------- the view
def basic(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    """The view of x at a key of ints, slices, None and at most one `...`."""
    name = check_basic(key, x._data.shape)
    # an Ellipsis makes NumPy give a view (not a scalar) for a full set of ints
    full = key if Ellipsis in key else (*key, Ellipsis)
    return apply(ops.getitem, (x,), {"key": full}, name)


def is_basic(parts: tuple[Any, ...]) -> bool:
    """Whether `basic` can read the parts as they are."""
    dots = 0
    for p in parts:
        kind = type(p)
        if kind not in BASIC:
            return False
        if kind is slice:
            if not (type(p.start) in _ENDS and type(p.stop) in _ENDS and type(p.step) in _ENDS):
                return False
        elif p is Ellipsis:
            dots += 1
    return dots < 2


def check_basic(key: tuple[Any, ...], shape: tuple[int, ...]) -> str:
    """Refuse what does not fit; the name of the last step, as PyTorch's chain of views has it."""
    used = sum(1 for k in key if k is not None and k is not Ellipsis)
    if used > len(shape):
        raise too_many(len(shape), key)
    name = "AliasBackward0"
    axis = 0
    for k in key:
        if k is None:
            name = "UnsqueezeBackward0"
        elif k is Ellipsis:
            axis += len(shape) - used
        elif type(k) is slice:
            check_step(k)
            if len(key) == 1 or not _covers(k, shape[axis]):
                name = "SliceBackward0"
            axis += 1
        else:
            check_int(k, axis, shape)
            name = "SelectBackward0"
            axis += 1
    return name


def is_all(part: Any, shape: tuple[int, ...]) -> bool:
    """Whether a slice of the first dim is all of it."""
    return type(part) is slice and _covers(part, shape[0])


def _covers(part: slice, size: int) -> bool:
    """Whether a slice is all of a dim, which PyTorch passes over."""
    start, stop, step = part.start, part.stop, part.step
    return (
        (start is None or start == 0)
        and (stop is None or stop >= size)
        and (step is None or step == 1)
    )


def too_many(ndim: int, key: tuple[Any, ...] = ()) -> Exception:
    """PyTorch's error for a key that names more dims than there are."""
    if not ndim and len(key) == 1 and type(key[0]) is int:
        text = (
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
        )
    elif not ndim and len(key) == 1 and type(key[0]) is slice:
        if key[0].step == 0:  # Python's own rule comes first
            check_step(key[0])
        text = "slice() cannot be applied to a 0-dim tensor."
    else:
        text = f"too many indices for tensor of dimension {ndim}"
    return DimensionError(with_site(text))


def check_step(part: slice) -> None:
    """Steps go forward."""
    if part.step is not None and part.step <= 0:
        words = "step must be greater than zero" if part.step else "slice step cannot be zero"
        raise ArgumentValueError(with_site(words))


def check_int(index: int, axis: int, shape: tuple[int, ...]) -> None:
    """IndexError unless the index names an element along the axis."""
    if axis >= len(shape):
        raise too_many(len(shape), (index,))
    n = shape[axis]
    if not -n <= index < n:
        if not -(2**63) <= index < 2**63:
            raise data.too_long()
        raise DimensionError(
            with_site(f"index {index} is out of bounds for dimension {axis} with size {n}")
        )


def _dims_named(part: Any) -> int:
    """How many dims a part counts for: a mask given as a Tensor for all of its own."""
    if part is None or part is Ellipsis or type(part) is bool:
        return 0
    return part.ndim if isinstance(part, Tensor) and is_mask(part) else 1


def split(x: Tensor, key: tuple[Any, ...]) -> tuple[Tensor, list[Place]]:
    """The view of x that the key makes, and the index arrays over it."""
    shape = x._data.shape
    if is_basic(key):
        name = check_basic(key, shape)
        if name == "AliasBackward0" or (len(key) == 1 and is_all(key[0], shape)):
            return x, []
        return basic(x, key), []
    named = sum(_dims_named(p) for p in key)
    if named > len(shape):
        raise too_many(len(shape))
    view: list[Any] = []
    places: list[Place] = []
    axis = dim = 0  # of x, and of the view
    for part in key:
        p = _plain_part(part)
        if p is None or type(p) is bool:
            if p is not None:
                places.append(Place(dim, wrap(np.zeros(int(p), np.int64))))
            view.append(None)
            dim += 1
            continue
        if type(p) is int:
            check_int(p, axis, shape)
            view.append(p)
            axis += 1
            continue
        if type(p) is slice:
            check_step(p)
            whole = axis < len(shape) and _covers(p, shape[axis])
            view.append(_WHOLE if whole else p)
            count = 1
        else:
            # a second Ellipsis skips as many dims again
            count = len(shape) - named if p is Ellipsis else p.ndim if is_mask(p) else 1
            view += [_WHOLE] * count
            if p is not Ellipsis:
                places.append(Place(dim, p))
        axis += count
        dim += count
    if places and all(k == _WHOLE for k in view):
        return x, places
    return _view(x, tuple(view)), places


def _is_whole(part: Any) -> bool:
    return (
        type(part) is slice
        and part.start in (None, 0)
        and part.stop is None
        and part.step in (None, 1)
    )


def _view(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    """x at a key without `...`.

    Whole slices beyond the last dim mean nothing: a second Ellipsis leaves them there, and a mask
    given as a list, which counts for one dim.
    """
    used = sum(1 for k in key if k is not None)
    while used > x.ndim and _is_whole(key[-1]):
        key, used = key[:-1], used - 1
    if used > x.ndim:
        raise too_many(x.ndim)
    return basic(x, key)


# ---------------------------------------------------------------- index arrays
def consecutive(x: Tensor, indices: tuple[Tensor, ...]) -> list[Place]:
    """The places of index arrays for the first dims of x."""
    places: list[Place] = []
    dim = 0
    for i in indices:
        if is_mask(i) and not i.ndim:
            raise UnsupportedError(with_site("a bool without dims among index tensors: use x[key]"))
        places.append(Place(dim, i))
        dim += i.ndim if is_mask(i) else 1
    if not places or dim > x.ndim:
        raise too_many(x.ndim)
    return places


def positions(x: Tensor, places: list[Place]) -> tuple[tuple[Any, ...], tuple[Tensor, ...]]:
    """The template and index arrays of places in x; masks become their positions."""
    found: list[Place] = []
    for dim, index in places:
        if not is_mask(index_tensor(index)):
            found.append(Place(dim, index))
            continue
        if index._data.dtype == np.uint8:
            _warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                "torch.bool instead."
            )
        check_mask(index, dim, x._data.shape)
        found += [Place(dim + k, wrap(at)) for k, at in enumerate(np.nonzero(index._data))]
    if found[-1].dim >= x.ndim:
        raise too_many(x.ndim)
    template: list[Any] = [_WHOLE] * (found[-1].dim + 1)
    for dim, _ in found:
        template[dim] = HOLE
    return tuple(template), tuple(p.array for p in found)


def check_mask(mask: Tensor, dim: int, shape: tuple[int, ...]) -> None:
    """IndexError unless the mask has the sizes of the dims it stands for."""
    if dim + mask.ndim > len(shape):
        raise too_many(len(shape))
    for k, n in enumerate(mask._data.shape):
        if shape[dim + k] != n:
            raise DimensionError(
                with_site(
                    f"The shape of the mask {list(mask.shape)} at index {k} does not match the "
                    f"shape of the indexed tensor {list(shape)} at index {dim + k}"
                )
            )


def common_shape(indices: tuple[Tensor, ...]) -> tuple[int, ...]:
    """The shape that index arrays broadcast to."""
    try:
        return tuple(np.broadcast_shapes(*(i._data.shape for i in indices)))
    except ValueError:
        raise DimensionError(
            with_site(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                + ", ".join(str(list(i.shape)) for i in indices)
            )
        ) from None


def holes(template: tuple[Any, ...]) -> list[int]:
    """The dims that index arrays stand for."""
    return [k for k, t in enumerate(template) if isinstance(t, str)]


def adjacent(template: tuple[Any, ...]) -> bool:
    """Whether the index arrays stand side by side, so that their dims take that place."""
    at = holes(template)
    return at[-1] - at[0] == len(at) - 1


def result_shape(
    x: Tensor, template: tuple[Any, ...], common: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape that index arrays of shape `common` read from x."""
    at = holes(template)
    rest = tuple(n for k, n in enumerate(x._data.shape) if k not in at)
    start = at[0] if adjacent(template) else 0
    return (*rest[:start], *common, *rest[start:])


def refuse_empty_dims(
    x: Tensor, template: tuple[Any, ...], common: tuple[int, ...]
) -> None:
    """IndexError for index arrays with elements along a dim that has none."""
    if 0 not in common and any(not x._data.shape[k] for k in holes(template)):
        raise DimensionError(with_site("index is out of bounds for dimension with size 0"))


def within(
    x: Tensor, template: tuple[Any, ...], indices: tuple[Tensor, ...], common: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """The index arrays, known to lie within x."""
    shape = x._data.shape
    if 0 in common or 0 in shape:
        # nothing is read: PyTorch does not look at the numbers, and NumPy must not
        return tuple(wrap(np.zeros(i._data.shape, np.int64)) for i in indices)
    for k, i in zip(holes(template), indices, strict=True):
        check_range(i, k, shape)
    return indices


def check_range(index: Tensor, axis: int, shape: tuple[int, ...]) -> None:
    """IndexError unless all numbers lie within the axis."""
    array, n = memory(index), shape[axis]
    if type(array) is not np.ndarray or not array.size:
        return
    low, high = int(array.min()), int(array.max())
    if low < -n or high >= n:
        raise DimensionError(
            with_site(
                f"index {high if high >= n else low} is out of bounds for dimension {axis} with "
                f"size {n}"
            )
        )


def read_scalars(x: Tensor, places: list[Place]) -> tuple[Tensor, list[Place]]:
    """Index values without dims (one per example of a vmap) read first, beside index arrays.

    An int selects, and does not count as one of the index arrays, which could move their dims.
    """
    left: list[Place] = []
    gone = 0
    for dim, index in places:
        if index.ndim or len(places) == 1:
            left.append(Place(dim - gone, index))
        else:
            x = elements(x, [Place(dim - gone, index)])
            gone += 1
    return x, left


def elements(x: Tensor, places: list[Place], node: str | None = None) -> Tensor:
    """The elements of x at index arrays."""
    template, indices = positions(x, places)
    common = common_shape(indices)
    refuse_empty_dims(x, template, common)
    indices = within(x, template, indices, common)
    return apply(ops.INDEX[len(indices)], (x, *indices), {"template": template}, node)
