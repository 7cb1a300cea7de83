"""Reshaping, broadcasting and summing back (layer 2): each other's transposes, so one file.

Every other file of `ops/` may import this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.ops.kinds import linear
from pullback.typing import Axes, NumpyDtype, Shape


def is_complex(value: Any) -> bool:
    """Whether a value of any kind (array, Tensor, number) is complex."""
    if isinstance(value, (bool, int, float)):
        return False
    dtype = dtype_of(value)
    return bool(dtype.kind == "c")


def dtype_of(value: Any) -> NumpyDtype:
    """The NumPy dtype of a value of any kind."""
    data = getattr(value, "_data", value)
    if isinstance(data, (bool, int, float, complex)):
        return np.dtype(type(data))
    found: NumpyDtype = data.dtype
    return found


def shape_of(value: Any) -> Shape:
    """The shape of a value of any kind, as a plain tuple."""
    return tuple(getattr(value, "shape", ()))


# ---------------------------------------------------------------- dtype
def _cast(x: Any, *, dtype: NumpyDtype) -> Any:
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real  # the projection that a real input's gradient needs; no ComplexWarning
    return np.asarray(x).astype(dtype)


cast = linear(
    "cast", _cast,
    transpose=dict(x=lambda g, x_dtype: cast(g, dtype=x_dtype)),
    batch="elementwise", node_name="ToCopyBackward0",
    doc="x in another dtype; complex to real keeps the real part",
)  # fmt: skip


# ---------------------------------------------------------------- shape
reshape = linear(
    "reshape", lambda x, *, shape: x.reshape(shape),
    transpose=dict(x=lambda g, x_shape: reshape(g, shape=x_shape)),
    batch="reshape", view=True, node_name="ViewBackward0",
    doc="the same elements in another shape; a view when strides allow",
)  # fmt: skip


def _broadcast_to(x: Any, *, shape: Shape) -> Any:
    have = x.shape
    if have == shape:
        return x[...]
    if x.flags.c_contiguous and x.size:
        # np.broadcast_to takes 8 us: the constructor, given strides of 0, does it in one call
        if not have:
            return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
        extra = len(shape) - len(have)
        if all(n in (1, m) for n, m in zip(have, shape[extra:], strict=True)):
            steps = [0 if n == 1 else s for n, s in zip(have, x.strides, strict=True)]
            return np.ndarray(shape, x.dtype, x, 0, (*(0,) * extra, *steps))
    out = np.broadcast_to(x, shape)
    out.flags.writeable = x.flags.writeable
    return out


broadcast_to = linear(
    "broadcast_to", _broadcast_to,
    transpose=dict(x=lambda g, x_shape: sum_to(g, x_shape)),
    batch="broadcast", view=True, node_name="ExpandBackward0",
    doc="x repeated along new and size-1 axes without a copy",
)  # fmt: skip


_add_reduce: Any = np.add.reduce


def _sum(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    return _add_reduce(x, axis=axis, keepdims=keepdims)


def unsum(g: Any, shape: Shape, axis: Axes, keepdims: bool) -> Any:
    """The transpose of a sum: g repeated along the summed axes."""
    if not keepdims and axis and g.shape:
        kept = tuple(1 if i in axis else n for i, n in enumerate(shape))
        g = reshape(g, shape=kept)
    return broadcast_to(g, shape=shape)


sum_ = linear(
    "sum", _sum,
    transpose=dict(x=lambda g, x_shape, axis, keepdims: unsum(g, x_shape, axis, keepdims)),
    batch="reduction", reference="math.fsum",
    doc="the sum over axes",
)  # fmt: skip


def sum_to(g: Any, shape: Shape) -> Any:
    """`g` summed over the axes along which `shape` was broadcast to the shape of `g`."""
    have = shape_of(g)
    if have == shape:
        return g
    extra = len(have) - len(shape)
    axis = tuple(range(extra)) + tuple(
        i + extra for i, n in enumerate(shape) if n == 1 and have[i + extra] != 1
    )
    out = sum_(g, axis=axis, keepdims=False) if axis else g
    if shape_of(out) != shape:
        out = reshape(out, shape=shape)
    return out


def zeros_like(value: Any) -> Any:
    """An array of zeros, of the shape and dtype of a value of any kind (of one example)."""
    return np.zeros(shape_of(value), dtype_of(value))
