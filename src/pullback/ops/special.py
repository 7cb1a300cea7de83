"""Special functions whose values SciPy gives, and sliding windows of an axis (layer 2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.refusal import kernel
from pullback.errors import UnsupportedError
from pullback.ops.broadcast import zeros_like
from pullback.ops.elementwise import (
    abs_,
    cos,
    exp,
    log,
    logical_and,
    logical_or,
    sign,
    where,
)
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
    value = function(order, x) if order else function(x)
    # a pole at each -n: at -inf PyTorch keeps its sign where that is the same for all
    beyond = (-1) ** (order + 1) * math.inf if order > 1 else math.nan
    return _same_float(x, np.where(x == -math.inf, beyond, value))


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


gcd = elementwise("gcd", np.gcd, doc="the greatest common divisor of integers",
                  refuses=(kernel("bfc", "gcd_cpu"),))  # fmt: skip
lcm = elementwise("lcm", np.lcm, doc="the least common multiple of integers",
                  refuses=(kernel("bfc", "lcm_cpu"),))  # fmt: skip


def _signbit(x: Any) -> Any:
    return np.signbit(x) if x.dtype.kind == "f" else np.less(x, 0)


signbit = elementwise("signbit", _signbit, promotion=None, doc="whether the sign is negative")
heaviside = elementwise(
    "heaviside", lambda x, values: np.heaviside(x, values).astype(x.dtype, copy=False),
    promotion=None, doc="0 below 0, values at 0, 1 above",
)  # fmt: skip


def _copysign_slope(a: Any, out: Any) -> Any:
    """Whether the sign was kept (1) or changed (-1); 0 at 0, as for |a|."""
    return where(a != a, math.nan, sign(a) * sign(out))


copysign = elementwise(
    "copysign", np.copysign, promotion="float", partials=dict(a=_copysign_slope),
    vjp=dict(b=lambda g: zeros_like(g)), jvp=dict(b=lambda t: zeros_like(t)),
    doc="|a| with the sign of b (-0.0 counts as negative)",
)  # fmt: skip


# ---------------------------------------------------------------- quotients with a hole
def _sinc(x: Any) -> Any:
    angle = np.where(x == 0, 1, x) * math.pi
    return np.where(x == 0, 1, np.sin(angle) / angle).astype(x.dtype, copy=False)


# d/du (sin u / u) = u sum_k c_k u^(2 k), exact in float64 for |u| < 1
_SINC_SERIES = tuple((-1) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 11))


def _sinc_slope(x: Any, out: Any) -> Any:
    """By its series near 0, where cos(pi x) - sinc(x) cancels; so are all higher derivatives."""
    near = abs_(x) < 1 / math.pi
    u = where(near, x, 0) * math.pi
    square = u * u
    series: Any = _SINC_SERIES[-1]
    for c in _SINC_SERIES[-2::-1]:
        series = series * square + c
    away = where(near, 1, x)
    return where(near, series * u * math.pi, (cos(away * math.pi) - out) / away)


sinc = elementwise(
    "sinc", _sinc, promotion="float", partials=dict(x=_sinc_slope),
    doc="sin(pi x) / (pi x), 1 at 0",
)  # fmt: skip


def _logit(x: Any) -> Any:
    return np.log(x / (1 - x))


def _logit_rule(g: Any, x: Any) -> Any:
    """NaN outside [0, 1], as the value is."""
    return where(logical_or(x < 0, x > 1), math.nan, g / (x * (1 - x)))


logit = elementwise(
    "logit", _logit, promotion="float", vjp=dict(x=_logit_rule), jvp=dict(x=_logit_rule),
    doc="log(x / (1 - x))",
)  # fmt: skip


def _xlogy(a: Any, b: Any) -> Any:
    return np.where(np.logical_and(a == 0, b == b), 0, a * np.log(b))


def _xlogy_in_factor(g: Any, a: Any, b: Any) -> Any:
    """log b, but 0 where a zero a hides a b that has none."""
    return where(logical_and(a == 0, b <= 0), 0, g * log(b))


xlogy = elementwise(
    "xlogy", _xlogy, promotion="float",
    vjp=dict(a=_xlogy_in_factor, b=lambda g, a, b: g * a / b),
    jvp=dict(a=_xlogy_in_factor, b=lambda t, a, b: t * a / b),
    doc="a log(b), and 0 where a is 0 and b no NaN",
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
