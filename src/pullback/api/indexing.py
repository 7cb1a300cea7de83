"""Indexing, gathering and scattering (layer 4), with PyTorch's rules for keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.api.movement import expand
from pullback.core.callsite import with_site
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor, wrap
from pullback.eager.view import memory
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    DimensionError,
    UnsupportedError,
)
from pullback.ops import indexing as ops
from pullback.ops.indexing import HOLE

_BASIC = (int, slice, type(None), type(Ellipsis))


# ---------------------------------------------------------------- reading keys
def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]`: a view for ints, slices, None and `...`; a copy with index arrays."""
    kind = type(key)
    if kind is int:
        _check_int(key, 0, x._data.shape)
        return apply(ops.getitem, (x,), {"key": (key, Ellipsis)}, "SelectBackward0")
    parts = key if kind is tuple else as_parts(key)
    for part in parts:
        if type(part) not in _BASIC:
            return _general(x, parts)
    return _basic(x, parts)


def as_parts(key: Any) -> tuple[Any, ...]:
    """The parts of a key; a short list that holds sequences or slices counts as a tuple."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and len(key) < 32:
        if any(k is None or isinstance(k, (Tensor, list, tuple, slice, type(Ellipsis)))
               for k in key):  # fmt: skip
            return tuple(key)
    return (key,)


def _basic(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    name = check_basic(key, x._data.shape)
    # an Ellipsis makes NumPy give a view (not a scalar) for a full set of ints
    full = key if Ellipsis in key else (*key, Ellipsis)
    return apply(ops.getitem, (x,), {"key": full}, name)


def check_basic(key: tuple[Any, ...], shape: tuple[int, ...]) -> str:
    """Refuse what does not fit; the name of the last step, as PyTorch's chain of views has it."""
    used = sum(1 for k in key if k is not None and k is not Ellipsis)
    if used > len(shape):
        raise DimensionError(
            with_site(f"too many indices for tensor of dimension {len(shape)}")
        )
    name = "AliasBackward0"
    axis = 0
    for k in key:
        if k is None:
            name = "UnsqueezeBackward0"
        elif k is Ellipsis:
            axis += len(shape) - used
        elif type(k) is slice:
            if k.step is not None and k.step <= 0:
                words = "step must be greater than zero" if k.step else "slice step cannot be zero"
                raise ArgumentValueError(with_site(words))
            if k.start is not None or k.stop is not None or k.step is not None:
                name = "SliceBackward0"
            axis += 1
        else:
            _check_int(k, axis, shape)
            name = "SelectBackward0"
            axis += 1
    return name


def _check_int(index: int, axis: int, shape: tuple[int, ...]) -> None:
    if axis >= len(shape):
        raise DimensionError(
            with_site(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        )
    n = shape[axis]
    if not -n <= index < n:
        raise DimensionError(
            with_site(
                f"index {index} is out of bounds for dimension {axis} with size {n}"
            )
        )


def _python_index(part: Any) -> Any:
    """A key part as an int, slice, None, Ellipsis, bool, or index Tensor."""
    if isinstance(part, Tensor):
        if part._data.dtype.kind in "iu" and part.ndim == 0 and type(part._data) is np.ndarray:
            return int(part._data)  # an integer tensor without dims selects, as an int does
        if part._data.dtype.kind not in "iub":
            raise DimensionError(
                with_site(
                    "tensors used as indices must be long, int, byte or bool tensors: got "
                    f"{part.dtype}"
                )
            )
        return part
    if isinstance(part, (bool, np.bool_)):
        return wrap(np.asarray(bool(part)))
    if isinstance(part, np.ndarray):
        return wrap(part)
    if isinstance(part, (list, tuple, range)):
        array = np.array([_plain(p) for p in part])
        return wrap(array.astype(np.int64) if not array.size else array)
    if isinstance(part, slice):
        ends = (part.start, part.stop, part.step)
        return slice(*(None if v is None else _plain(v) for v in ends))
    if part is None or part is Ellipsis:
        return part
    if hasattr(part, "__index__"):
        return part.__index__()
    raise ArgumentTypeError(
        with_site(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            f"valid indices (got {type(part).__name__})"
        )
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._data.item() if value.ndim == 0 else value._data.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    return value.__index__() if whole else value


def analyse(x: Tensor, key: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Tensor, ...]]:
    """A key as (template, index tensors); boolean masks become their positions."""
    parts = [_python_index(p) for p in key]
    dims = sum(
        (p.ndim if p._data.dtype.kind == "b" else 1) if isinstance(p, Tensor) else 1
        for p in parts
        if p is not None and p is not Ellipsis
    )
    shape = x._data.shape
    if dims > len(shape):
        raise DimensionError(
            with_site(f"too many indices for tensor of dimension {len(shape)}")
        )
    template: list[Any] = []
    indices: list[Tensor] = []
    axis = 0
    for p in parts:
        if isinstance(p, Tensor):
            if p._data.dtype.kind == "b":
                if type(p._data) is not np.ndarray:
                    raise UnsupportedError(
                        with_site(
                            "vmap: indexing with a boolean mask has a dynamic shape, one that "
                            "depends on data: use torch.where(mask, x, 0) instead"
                        )
                    )
                if p.ndim == 0:
                    raise UnsupportedError(
                        with_site("a single bool inside a longer key: index with it alone")
                    )
                _check_mask(p._data, axis, shape)
                for found in np.nonzero(p._data):
                    template.append(HOLE)
                    indices.append(wrap(found))
                axis += p.ndim
            else:
                _check_range(p, axis, shape)
                template.append(HOLE)
                indices.append(p)
                axis += 1
            continue
        template.append(p)
        if p is Ellipsis:
            axis += len(shape) - dims
        elif p is not None:
            if type(p) is int:
                _check_int(p, axis, shape)
            axis += 1
    _check_broadcast(indices)
    return tuple(template), tuple(indices)


def single_bool(key: tuple[Any, ...]) -> Tensor | None:
    """For a key that is one bool (a number or a 0-d tensor): which rows of x[None] it means."""
    if len(key) != 1:
        return None
    k = key[0]
    plain = k._data if isinstance(k, Tensor) else k
    if isinstance(plain, (bool, np.bool_)) or (
        isinstance(plain, np.ndarray) and plain.ndim == 0 and plain.dtype.kind == "b"
    ):
        return wrap(np.zeros(int(plain), np.int64))
    return None


def _check_mask(mask: Any, axis: int, shape: tuple[int, ...]) -> None:
    for k, n in enumerate(mask.shape):
        if shape[axis + k] != n:
            raise DimensionError(
                with_site(
                    f"The shape of the mask {list(mask.shape)} at index {k} does not match the "
                    f"shape of the indexed tensor {list(shape)} at index {axis + k}"
                )
            )


def _check_range(index: Tensor, axis: int, shape: tuple[int, ...]) -> None:
    data, n = memory(index), shape[axis]
    if type(data) is not np.ndarray or not data.size:
        return
    low, high = int(data.min()), int(data.max())
    if low < -n or high >= n:
        raise DimensionError(
            with_site(
                f"index {high if high >= n else low} is out of bounds for dimension {axis} with "
                f"size {n}"
            )
        )


def _check_broadcast(indices: list[Tensor]) -> None:
    try:
        np.broadcast_shapes(*(i._data.shape for i in indices))
    except ValueError:
        raise DimensionError(
            with_site(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                + ", ".join(str(list(i.shape)) for i in indices)
            )
        ) from None


def _general(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    rows = single_bool(key)
    if rows is not None:
        x, key = _basic(x, (None,)), (rows,)
    template, indices = analyse(x, key)
    if not indices:
        return _basic(x, template)
    x, template = _selected(x, template)
    return apply(ops.INDEX[len(indices)], (x, *indices), {"template": template})


def _selected(x: Tensor, template: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
    """The basic parts of a key done first, as PyTorch does: what is left has whole slices only.

    NumPy counts an int beside index arrays as one of them, which can move their dims to the front.
    """
    plain = tuple(slice(None) if isinstance(k, str) else k for k in template)
    if any(k is not Ellipsis and k != slice(None) for k in plain):
        x = _basic(x, plain)
    used = sum(1 for k in template if k is not Ellipsis and not isinstance(k, int))
    left: list[Any] = []
    for k in template:
        if k is Ellipsis:
            left += [slice(None)] * (x.ndim - used)
        elif not isinstance(k, int):
            left.append(k if isinstance(k, str) else slice(None))
    return x, tuple(left)


# ---------------------------------------------------------------- assignment
def setitem(x: Tensor, key: Any, value: Any) -> None:
    """`x[key] = value`: in place, recorded, with value broadcast to the place."""
    from pullback.api.inplace import copy_
    from pullback.eager.inplace import apply_inplace

    parts = as_parts(key)
    rows = single_bool(parts)
    if rows is not None:
        x, parts = _basic(x, (None,)), (rows,)
    basic = all(type(p) in _BASIC for p in parts)
    template, indices = (parts, ()) if basic else analyse(x, parts)
    value = _value(x, value)
    if not indices:
        check_basic(template, x._data.shape)
        target = _basic(x, template)
        if isinstance(value, Tensor):
            value = _squeezed(value, target)
        copy_(target, value)
        return
    x, template = _selected(x, template)
    shape = np.broadcast_shapes(*(i._data.shape for i in indices))
    try:
        # of the index arrays only the shapes matter here: inside vmap they have no elements
        stand_ins = tuple(np.zeros(i._data.shape, np.int64) for i in indices)
        place = ops.fill_template(template, stand_ins)
        probe = np.broadcast_to(np.zeros((), bool), x._data.shape)[place].shape
        np.broadcast_to(np.empty(value._data.shape, bool), probe)
    except ValueError:
        raise ArgumentRuntimeError(
            with_site(
                f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast "
                f"to indexing result of shape {list(shape)}"
            )
        ) from None
    if value._data.dtype != x._data.dtype:
        value = value.to(x.dtype)
    put = ops.PUT[len(indices), False]
    apply_inplace(put, (x, value, *indices), {"template": template}, "IndexPutBackward0")


def _squeezed(value: Tensor, target: Tensor) -> Tensor:
    """Leading dims of size 1 that the target lacks are dropped, as in PyTorch."""
    extra = value.ndim - target.ndim
    if extra > 0 and all(n == 1 for n in value._data.shape[:extra]):
        return value.reshape(value._data.shape[extra:])
    return value


def _value(x: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        if isinstance(value, complex) and x._data.dtype.kind != "c":
            raise ArgumentTypeError(
                with_site(f"can't assign a complex number to a {x.dtype} tensor")
            )
        with np.errstate(all="ignore"):
            return wrap(np.asarray(value).astype(x._data.dtype))
    if isinstance(value, np.ndarray):
        return wrap(value)
    raise ArgumentTypeError(
        with_site(
            f"can't assign a {type(value).__name__} to a "
            f"{arguments.PYTORCH_NAMES[x._data.dtype.name]} tensor"
        )
    )


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
    template, found = analyse(x, tuple(indices))
    put = ops.PUT[len(found), bool(accumulate)]
    return apply(put, (x, _value(x, values), *found), {"template": template})


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
    template, indices = analyse(x, (m,))
    return apply(ops.INDEX[len(indices)], (x, *indices), {"template": template},
                 "MaskedSelectBackward0")  # fmt: skip


def take(input: Any, index: Any) -> Tensor:  # noqa: A002
    """Elements of the flat tensor at `index`."""
    x = arguments.tensor(input, "take")
    flat = x.reshape(-1)
    i = arguments.tensor(index, "take", "index")
    _check_range(i, 0, flat._data.shape)
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
    _check_int(index, a, x._data.shape)
    return apply(ops.getitem, (x,), {"key": (slice(None),) * a + (index, Ellipsis)},
                 "SelectBackward0")  # fmt: skip


def narrow(input: Any, dim: int, start: Any, length: int) -> Tensor:  # noqa: A002
    """`length` slices from `start` along dim (a view)."""
    x = arguments.tensor(input, "narrow")
    a = arguments.dim(dim, x.ndim)
    n = x._data.shape[a]
    start = int(start) + (n if int(start) < 0 else 0)
    if length < 0 or not 0 <= start <= n - length:
        raise ArgumentRuntimeError(
            with_site(
                f"start ({start}) + length ({length}) exceeds dimension size ({n})."
            )
        )
    key = (slice(None),) * a + (slice(start, start + length), Ellipsis)
    return apply(ops.getitem, (x,), {"key": key}, "SliceBackward0")
