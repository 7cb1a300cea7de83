"""Values reduced into places along an axis: products and extremes (layer 2).

`own` says which elements of x take part; the others count as nothing.  `index` and `src` have one
shape, and several elements of src may go to one place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.ops.broadcast import zeros_like
from pullback.ops.elementwise import abs_, logical_and, where
from pullback.ops.indexing import along, gather, mesh, scatter_add
from pullback.ops.kinds import conj, general


def _into(function: Any, x: Any, index: Any, src: Any, axis: int) -> Any:
    """`function` (a ufunc) of x and of all elements of src that go to the same place."""
    if not x.ndim:
        return function(x, src.reshape(x.shape))
    out = np.array(x)
    function.at(out, mesh(index, axis, x.ndim), src)
    return out


def _batch(primitive: str) -> Any:
    def rule(
        size: int, x: Any, index: Any, src: Any, own: Any, *, axis: int,
        batched: tuple[bool, ...], **params: Any,
    ) -> Any:  # fmt: skip
        given = (x, index, src, own)
        spread = [along(size, v, b) for v, b in zip(given, batched, strict=True)]
        return globals()[primitive](*spread, axis=axis + 1, **params)

    return rule


# ---------------------------------------------------------------- products
def _product(x: Any, index: Any, src: Any, own: Any, *, axis: int) -> Any:
    return _into(np.multiply, np.where(own, x, np.ones((), x.dtype)), index, src, axis)


def _of_src(x: Any, index: Any, src: Any, own: Any, axis: int) -> Any:
    """The product of what goes to each place, without x."""
    return scatter_product(x, index, src, logical_and(own, own != own), axis=axis)


def _of_others(x: Any, index: Any, src: Any, own: Any, out: Any, axis: int) -> Any:
    """For each element of src, the product of all else at its place.

    That of a lone zero has no zero left.  Of two zeros each multiplies the product of the rest,
    which is 0 with a derivative; of more than two, not even that.
    """
    zero = src == 0
    rest = where(zero, 1, src)
    nothing = zeros_like(x)
    zeros = where(zero, src, 0)
    number = gather(scatter_add(nothing, index, where(zero, zeros_like(src) + 1, 0), axis=axis),
                    index, axis=axis)  # fmt: skip
    number = abs_(number)
    without = gather(scatter_product(x, index, rest, own, axis=axis), index, axis=axis)
    other = gather(scatter_add(nothing, index, zeros, axis=axis), index, axis=axis) - zeros
    of_zero = where(number == 1, without, where(number == 2, without * other, 0))
    return where(zero, of_zero, gather(out, index, axis=axis) / rest)


scatter_product = general(
    "scatter_product", _product,
    vjp=dict(
        x=lambda g, x, index, src, own, axis: where(
            own, g * conj(_of_src(x, index, src, own, axis)), 0),
        src=lambda g, x, index, src, own, out, axis: (
            gather(g, index, axis=axis) * conj(_of_others(x, index, src, own, out, axis))),
    ),
    jvp=dict(
        x=lambda t, x, index, src, own, axis: where(own, t * _of_src(x, index, src, own, axis), 0),
        src=lambda t, x, index, src, own, out, axis: scatter_add(
            zeros_like(x), index, t * _of_others(x, index, src, own, out, axis), axis=axis),
    ),
    batch=_batch("scatter_product"), node_name="ScatterReduceBackward0",
    doc="the product of x and of what goes to each place",
)  # fmt: skip


# ---------------------------------------------------------------- extremes
def neutral(dtype: Any, largest: bool) -> Any:
    """What is no larger (smaller) than any value."""
    if dtype.kind == "f":
        return np.asarray(-np.inf if largest else np.inf, dtype)
    if dtype.kind == "b":
        return np.asarray(not largest)
    info = np.iinfo(dtype)
    return np.asarray(info.min if largest else info.max, dtype)


def _extreme(x: Any, index: Any, src: Any, own: Any, *, axis: int, largest: bool) -> Any:
    start = np.where(own, x, neutral(x.dtype, largest))
    return _into(np.maximum if largest else np.minimum, start, index, src, axis)


def _shares(x: Any, index: Any, src: Any, own: Any, out: Any, axis: int) -> tuple[Any, Any]:
    """What part of the gradient of a place each element gets: ties share it."""
    mine = where(logical_and(own, x == out), zeros_like(x) + 1, 0)
    theirs = where(src == gather(out, index, axis=axis), zeros_like(src) + 1, 0)
    number = scatter_add(mine, index, theirs, axis=axis)
    return where(own, mine / number, 0), theirs / gather(number, index, axis=axis)


scatter_extreme = general(
    "scatter_extreme", _extreme,
    vjp=dict(
        x=lambda g, x, index, src, own, out, axis: (
            g * _shares(x, index, src, own, out, axis)[0]),
        src=lambda g, x, index, src, own, out, axis: (
            gather(g, index, axis=axis) * _shares(x, index, src, own, out, axis)[1]),
    ),
    jvp=dict(
        x=lambda t, x, index, src, own, out, axis: t * _shares(x, index, src, own, out, axis)[0],
        src=lambda t, x, index, src, own, out, axis: scatter_add(
            zeros_like(x), index, t * _shares(x, index, src, own, out, axis)[1], axis=axis),
    ),
    batch=_batch("scatter_extreme"), node_name="ScatterReduceBackward0",
    doc="the largest (smallest) of x and of what goes to each place; ties share the gradient",
)  # fmt: skip
