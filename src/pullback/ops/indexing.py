"""Indexing, gathering and scattering (layer 2).

A key is split by `api/indexing.py` into a template (slices, ints, None, Ellipsis, and `HOLE` where
an index array stands) and the index arrays, which are inputs that have no derivative.  Reading and
adding at the same places are each other's transposes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.primitive import Primitive, RuleSpec
from pullback.ops.broadcast import reshape, shape_of, sum_to, zeros_like
from pullback.ops.kinds import linear
from pullback.typing import Shape

HOLE = "hole"
MAX_INDICES = 8
_NAMES = ("i", "j", "k", "l", "m", "n", "o", "p")


# ---------------------------------------------------------------- basic keys: views
def _uncut(g: Any, *, key: Any, shape: Shape) -> Any:
    out = np.zeros(shape, g.dtype)
    out[key] = g
    return out


def _batch_getitem(size: int, x: Any, *, key: Any) -> Any:
    key = key if isinstance(key, tuple) else (key,)
    return getitem(x, key=(slice(None), *key))


def _batch_uncut(size: int, g: Any, *, key: Any, shape: Shape) -> Any:
    key = key if isinstance(key, tuple) else (key,)
    return uncut(g, key=(slice(None), *key), shape=(size, *shape))


uncut = linear(
    "uncut", _uncut, transpose=dict(g=lambda g, key: getitem(g, key=key)), batch=_batch_uncut,
    node_name="SliceBackward0", doc="zeros of a shape, with g at the places of a basic key",
)  # fmt: skip
getitem = linear(
    "getitem", lambda x, *, key: x[key],
    transpose=dict(x=lambda g, x_shape, key: uncut(g, key=key, shape=x_shape)),
    batch=_batch_getitem, view=True, node_name="SliceBackward0",
    doc="ints, slices, None and Ellipsis (a view)",
)  # fmt: skip


# ---------------------------------------------------------------- index arrays
def fill_template(template: tuple[Any, ...], indices: tuple[Any, ...]) -> tuple[Any, ...]:
    """The NumPy key with the index arrays put into the holes."""
    arrays = iter(indices)
    return tuple(next(arrays) if isinstance(k, str) else k for k in template)


def _add_at(out: Any, key: tuple[Any, ...], value: Any) -> None:
    """out[key] += value, each duplicate counted."""
    first = key[0]
    if (
        len(key) == 1
        and first.ndim == 1
        and first.dtype.kind == "i"
        and out.ndim == 2
        and value.shape[0] > 4
        and value.flags.c_contiguous
    ):
        # rows: sorting them and adding runs is several times faster than ufunc.at
        rows = np.where(first < 0, first + out.shape[0], first)
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
        if len(starts) == len(rows):
            out[rows] += value[order]
        else:
            out[rows[starts]] += np.add.reduceat(value[order], starts, axis=0)
        return
    np.add.at(out, key, value)


def _make_index(n: int) -> tuple[Primitive, Primitive]:
    """Reading with n index arrays, and its transpose."""
    names = _NAMES[:n]

    def read(x: Any, *rest: Any, template: Any) -> Any:
        return x[fill_template(template, rest)]

    def add(g: Any, *rest: Any, template: Any, shape: Shape) -> Any:
        out = np.zeros(shape, g.dtype)
        _add_at(out, fill_template(template, rest), g)
        return out

    reading = Primitive(
        f"index{n}", read, kind="linear", inputs=("x", *names), params=("template",),
        vjps={"x": RuleSpec(
            lambda g, *r: adding(g, *r[:n], shape=r[n], template=r[n + 1]),
            (*names, "x_shape", "template"),
        )},
        jvp="linear", batch=_batch_read, node_name="IndexBackward0",
        doc=f"elements at {n} index arrays",
    )  # fmt: skip
    adding = Primitive(
        f"unindex{n}", add, kind="linear", inputs=("g", *names), params=("template", "shape"),
        vjps={"g": RuleSpec(lambda g, *r: reading(g, *r[:n], template=r[n]),
                            (*names, "template"))},
        jvp="linear", batch=_batch_add, node_name="IndexPutBackward0",
        doc=f"zeros with g added at {n} index arrays",
    )  # fmt: skip
    return reading, adding


def _spread(size: int, template: Any, indices: tuple[Any, ...], batched: tuple[bool, ...]) -> Any:
    """Template and index arrays with a leading one that pairs example with example.

    Only for index arrays that stand side by side (or alone): then the result's batch axis leads.
    """
    ndim = max(i.ndim - b for i, b in zip(indices, batched, strict=True))
    mine = []
    for i, b in zip(indices, batched, strict=True):
        logical = shape_of(i)[1:] if b else shape_of(i)
        shape = (size if b else 1, *(1,) * (ndim - len(logical)), *logical)
        mine.append(reshape(i, shape=shape))
    lead = np.arange(size).reshape(size, *(1,) * ndim)
    return (HOLE, *template), (lead, *mine)


def _holes_adjacent(template: tuple[Any, ...]) -> bool:
    places = [k for k, t in enumerate(template) if isinstance(t, str) or isinstance(t, int)]
    return not places or places[-1] - places[0] == len(places) - 1


def _batch_read(
    size: int, x: Any, *indices: Any, template: Any, batched: tuple[bool, ...]
) -> Any:
    if not any(batched[1:]):
        n = len(indices)
        return INDEX[n](x, *indices, template=(slice(None), *template))
    template, spread = _spread(size, template, indices, batched[1:])
    if not batched[0]:
        x = reshape(x, shape=(1, *shape_of(x)))
        spread = (spread[0] * 0, *spread[1:])
    return INDEX[len(spread)](x, *spread, template=template)


def _batch_add(
    size: int, g: Any, *indices: Any, template: Any, shape: Shape, batched: tuple[bool, ...]
) -> Any:
    if not any(batched[1:]):
        n = len(indices)
        return UNINDEX[n](g, *indices, template=(slice(None), *template), shape=(size, *shape))
    template, spread = _spread(size, template, indices, batched[1:])
    if not batched[0]:
        from pullback.ops.broadcast import broadcast_to

        g = broadcast_to(g, shape=(size, *shape_of(g)))
    return UNINDEX[len(spread)](g, *spread, template=template, shape=(size, *shape))


INDEX: dict[int, Primitive] = {}
UNINDEX: dict[int, Primitive] = {}
for _n in range(1, MAX_INDICES + 1):
    INDEX[_n], UNINDEX[_n] = _make_index(_n)


def _make_put(n: int, accumulate: bool) -> Primitive:
    """A copy of x with value written (or added) at n index arrays."""
    names = _NAMES[:n]

    def put(x: Any, value: Any, *rest: Any, template: Any) -> Any:
        out = x.copy()
        key = fill_template(template, rest)
        if accumulate:
            np.add.at(out, key, value)
        else:
            out[key] = value
        return out

    def back_x(g: Any, *r: Any) -> Any:
        return g if accumulate else PUT[n, False](g, zeros_of(g), *r[:n], template=r[n])

    def back_value(g: Any, *r: Any) -> Any:
        return sum_to(INDEX[n](g, *r[:n], template=r[n]), r[n + 1])

    return Primitive(
        f"index_{'add_put' if accumulate else 'put'}{n}", put, kind="linear",
        inputs=("x", "value", *names), params=("template",),
        vjps={"x": RuleSpec(back_x, (*names, "template")),
              "value": RuleSpec(back_value, (*names, "template", "value_shape"))},
        jvp="linear", node_name="IndexPutBackward0",
        doc=f"x with value {'added' if accumulate else 'written'} at {n} index arrays",
    )  # fmt: skip


def zeros_of(g: Any) -> Any:
    """One zero of the dtype of g."""
    dtype = getattr(g, "_data", g).dtype
    return np.zeros((), dtype)


PUT: dict[tuple[int, bool], Primitive] = {
    (n, accumulate): _make_put(n, accumulate)
    for n in range(1, MAX_INDICES + 1)
    for accumulate in (False, True)
}


# ---------------------------------------------------------------- along one axis
def _mesh(index: Any, axis: int, ndim: int) -> tuple[Any, ...]:
    """The key that pairs each element of `index` with its own position on the other axes."""
    key = []
    for i in range(ndim):
        if i == axis:
            key.append(index)
        else:
            shape = [1] * index.ndim
            shape[i] = index.shape[i]
            key.append(np.arange(index.shape[i]).reshape(shape))
    return tuple(key)


def _gather(x: Any, index: Any, *, axis: int) -> Any:
    return x[_mesh(index, axis, x.ndim)] if x.ndim else x.copy()


def _ungather(g: Any, index: Any, *, axis: int, shape: Shape) -> Any:
    out = np.zeros(shape, g.dtype)
    if shape:
        np.add.at(out, _mesh(index, axis, len(shape)), g)
    else:
        out += g.sum()
    return out


def _along(size: int, x: Any, b: bool) -> Any:
    from pullback.ops.broadcast import broadcast_to

    return x if b else broadcast_to(x, shape=(size, *shape_of(x)))


def _batch_gather(size: int, x: Any, index: Any, *, axis: int, batched: tuple[bool, ...]) -> Any:
    return gather(_along(size, x, batched[0]), _along(size, index, batched[1]), axis=axis + 1)


def _batch_ungather(
    size: int, g: Any, index: Any, *, axis: int, shape: Shape, batched: tuple[bool, ...]
) -> Any:
    return ungather(
        _along(size, g, batched[0]), _along(size, index, batched[1]), axis=axis + 1,
        shape=(size, *shape),
    )  # fmt: skip


gather = linear(
    "gather", _gather,
    transpose=dict(x=lambda g, index, x_shape, axis: ungather(g, index, axis=axis, shape=x_shape)),
    batch=_batch_gather, doc="x at index along one axis, elementwise on the others",
)  # fmt: skip
ungather = linear(
    "ungather", _ungather,
    transpose=dict(g=lambda g, index, axis: gather(g, index, axis=axis)),
    batch=_batch_ungather, node_name="ScatterAddBackward0",
    doc="zeros with g added at index along one axis",
)  # fmt: skip


def _scatter(x: Any, index: Any, src: Any, *, axis: int) -> Any:
    out = x.copy()
    if not x.ndim:
        return np.asarray(src).reshape(x.shape).astype(x.dtype)
    out[_mesh(index, axis, x.ndim)] = _fitting(src, index)
    return out


def _scatter_add(x: Any, index: Any, src: Any, *, axis: int) -> Any:
    if not x.ndim:
        return x + np.asarray(src).reshape(x.shape)
    out = x.copy()
    np.add.at(out, _mesh(index, axis, x.ndim), _fitting(src, index))
    return out


def _fitting(src: Any, index: Any) -> Any:
    """The part of src that index uses: it may be larger."""
    if not np.ndim(src) or src.shape == index.shape:
        return src
    return src[tuple(slice(0, n) for n in index.shape)]


def _src_back(g: Any, index: Any, src_shape: Shape, axis: int) -> Any:
    out = gather(g, index, axis=axis)
    have = shape_of(out)
    if have == src_shape:
        return out
    if not src_shape:
        return sum_to(out, src_shape)
    from pullback.ops.movement import pad_zeros

    return pad_zeros(out, widths=tuple((0, n - m) for n, m in zip(src_shape, have, strict=True)))


scatter = linear(
    "scatter", _scatter,
    transpose=dict(
        x=lambda g, index, axis: scatter(g, index, zeros_of(g), axis=axis), src=_src_back),
    doc="x with src written at index along one axis",
)  # fmt: skip
scatter_add = linear(
    "scatter_add", _scatter_add, transpose=dict(x=lambda g: g, src=_src_back),
    doc="x with src added at index along one axis",
)  # fmt: skip


def _take(x: Any, index: Any, *, axis: int) -> Any:
    return np.take(x, index, axis) if x.ndim else x.reshape(index.shape)


def _untake(g: Any, index: Any, *, axis: int, shape: Shape) -> Any:
    out = np.zeros(shape, g.dtype)
    if not shape:
        return out + g.sum()
    moved, value = np.moveaxis(out, axis, 0), np.moveaxis(g, axis, 0)
    if index.ndim != 1:
        value = g.reshape(*shape[:axis], index.size, *shape[axis + 1 :])
        value, index = np.moveaxis(value, axis, 0), index.reshape(-1)
    _add_at(moved, (index,), value)
    return out


take = linear(
    "take", _take,
    transpose=dict(x=lambda g, index, x_shape, axis: untake(g, index, axis=axis, shape=x_shape)),
    node_name="IndexSelectBackward0", doc="slices of x at a vector of indices along one axis",
)  # fmt: skip
untake = linear(
    "untake", _untake, transpose=dict(g=lambda g, index, axis: take(g, index, axis=axis)),
    node_name="IndexAddBackward0", doc="zeros with slices added at indices along one axis",
)  # fmt: skip


# ---------------------------------------------------------------- one element per slice
def _pick(x: Any, index: Any, *, axis: int, keepdims: bool) -> Any:
    if not x.ndim:
        return x.copy()
    if x.ndim == 2 and axis == 1 and not keepdims:
        return x[np.arange(len(x)), index]  # four times as fast as the general way
    out = np.take_along_axis(x, np.expand_dims(index, axis), axis)
    return out if keepdims else np.squeeze(out, axis)


def _unpick(g: Any, index: Any, *, axis: int, keepdims: bool, shape: Shape) -> Any:
    if not shape:
        return np.array(g)
    out = np.zeros(shape, g.dtype)
    if len(shape) == 2 and axis == 1 and not keepdims:
        out[np.arange(shape[0]), index] = g
        return out
    value = g if keepdims else np.expand_dims(g, axis)
    np.put_along_axis(out, np.expand_dims(index, axis), value, axis)
    return out


def _batch_pick(
    size: int, x: Any, index: Any, *, axis: int, keepdims: bool, batched: tuple[bool, ...]
) -> Any:
    return pick(_along(size, x, batched[0]), _along(size, index, batched[1]), axis=axis + 1,
                keepdims=keepdims)  # fmt: skip


def _batch_unpick(
    size: int, g: Any, index: Any, *, axis: int, keepdims: bool, shape: Shape,
    batched: tuple[bool, ...],
) -> Any:  # fmt: skip
    return unpick(_along(size, g, batched[0]), _along(size, index, batched[1]), axis=axis + 1,
                  keepdims=keepdims, shape=(size, *shape))  # fmt: skip


pick = linear(
    "pick", _pick, batch=_batch_pick,
    transpose=dict(x=lambda g, index, x_shape, axis, keepdims: unpick(
        g, index, axis=axis, keepdims=keepdims, shape=x_shape)),
    doc="the element at index of each slice along one axis",
)  # fmt: skip
unpick = linear(
    "unpick", _unpick, batch=_batch_unpick,
    transpose=dict(g=lambda g, index, axis, keepdims: pick(
        g, index, axis=axis, keepdims=keepdims)),
    doc="zeros with one element of each slice set",
)  # fmt: skip


def reduced_size(shape: Shape, axis: int) -> int:
    """The number of slices along an axis."""
    return math.prod(n for i, n in enumerate(shape) if i != axis)


__all__ = [
    "HOLE", "INDEX", "PUT", "UNINDEX", "gather", "getitem", "pick", "scatter", "scatter_add",
    "take", "uncut", "ungather", "unpick", "untake", "zeros_like",
]  # fmt: skip
