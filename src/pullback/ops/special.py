"""Special functions whose values SciPy gives, and sliding windows of an axis (layer 2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.refusal import kernel
from pullback.errors import UnsupportedError
from pullback.ops.broadcast import zeros_like
from pullback.ops.elementwise import exp
from pullback.ops.kinds import elementwise, linear
from pullback.typing import Shape


def scipy_special(name: str) -> Any:
    """A function of scipy.special; an error that says what to install where SciPy is missing."""
    try:
        import scipy.special
    except ImportError:
        raise UnsupportedError(with_site(f"{name} needs SciPy: run `pip install scipy`")) from None
    return getattr(scipy.special, name)


def _same_float(x: Any, value: Any) -> Any:
    """SciPy widens float16 and some integers: back to the dtype of x."""
    return np.asarray(value).astype(x.dtype, copy=False)


_SLOPE = 2 / math.sqrt(math.pi)
erfc = elementwise(
    "erfc", lambda x: _same_float(x, scipy_special("erfc")(x)), promotion="float",
    vjp=dict(x=lambda g, x: g * (exp(-(x * x)) * -_SLOPE)),
    jvp=dict(x=lambda t, x: t * (exp(-(x * x)) * -_SLOPE)),
    doc="1 - erf(x), exact where erf is nearly 1", refuses=(kernel("c", "erfc_vml_cpu"),),
)  # fmt: skip


def _polygamma(x: Any, *, order: int) -> Any:
    name = "polygamma" if order else "psi"
    function = scipy_special(name)
    return _same_float(x, function(order, x) if order else function(x))


def _polygamma_rule(g: Any, x: Any, order: int) -> Any:
    return g * polygamma(x, order=order + 1)


polygamma = elementwise(
    "polygamma", _polygamma, promotion="float", vjp=dict(x=_polygamma_rule),
    jvp=dict(x=_polygamma_rule), node_name="PolygammaBackward0",
    doc="the derivative of the given order of digamma",
)  # fmt: skip
def _lgamma(x: Any) -> Any:
    return _same_float(x, np.where(np.isinf(x), np.inf, scipy_special("gammaln")(x)))


lgamma = elementwise(
    "lgamma", _lgamma, promotion="float",
    vjp=dict(x=lambda g, x: g * polygamma(x, order=0)),
    jvp=dict(x=lambda t, x: t * polygamma(x, order=0)),
    doc="the logarithm of the absolute value of the gamma function",
    refuses=(kernel("c", "lgamma_vml_cpu"),),
)  # fmt: skip


nextafter = elementwise(
    "nextafter", np.nextafter, vjp=dict(a=lambda g: g, b=lambda g: zeros_like(g)),
    jvp=dict(a=lambda t: t, b=lambda t: zeros_like(t)),
    doc="the next number from a to b", refuses=(kernel("biuc", "nextafter_cpu"),),
)  # fmt: skip


# ---------------------------------------------------------------- windows
def _windows(x: Any, *, axis: int, size: int, step: int) -> Any:
    n = (x.shape[axis] - size) // step + 1
    shape = (*x.shape[:axis], n, *x.shape[axis + 1 :], size)
    stride = x.strides[axis]
    steps = (*x.strides[:axis], stride * step, *x.strides[axis + 1 :], stride)
    return np.lib.stride_tricks.as_strided(x, shape, steps, writeable=x.flags.writeable)


def _fold(g: Any, *, axis: int, size: int, step: int, shape: Shape) -> Any:
    out = np.zeros(shape, g.dtype)
    lined = np.moveaxis(out, axis, 0)
    parts = np.moveaxis(g, axis, 0)
    for i in range(parts.shape[0]):
        lined[i * step : i * step + size] += np.moveaxis(parts[i], -1, 0)
    return out


def _batch_windows(size_: int, x: Any, *, axis: int, size: int, step: int) -> Any:
    return windows(x, axis=axis + 1, size=size, step=step)


def _batch_fold(size_: int, g: Any, *, axis: int, size: int, step: int, shape: Shape) -> Any:
    return fold(g, axis=axis + 1, size=size, step=step, shape=(size_, *shape))


windows = linear(
    "windows", _windows, batch=_batch_windows, view=True, node_name="UnfoldBackward0",
    transpose=dict(x=lambda g, x_shape, axis, size, step: fold(
        g, axis=axis, size=size, step=step, shape=x_shape)),
    doc="all slices of one size along an axis, a step apart, put last (a view)",
)  # fmt: skip
fold = linear(
    "fold", _fold, batch=_batch_fold, node_name="UnfoldBackwardBackward0",
    transpose=dict(g=lambda g, axis, size, step: windows(g, axis=axis, size=size, step=step)),
    doc="zeros with slices added along an axis, a step apart",
)  # fmt: skip
