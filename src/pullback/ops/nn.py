"""Operations of neural networks that earn a primitive by speed or accuracy (layer 2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.refusal import kernel
from pullback.errors import UnsupportedError
from pullback.ops.broadcast import broadcast_to, shape_of, sum_
from pullback.ops.elementwise import abs_, clamp, exp, link, log, log1p, sigmoid, sign, where
from pullback.ops.indexing import _pick, unpick
from pullback.ops.kinds import elementwise, general
from pullback.typing import Shape


def _softmax(x: Any, *, axis: int) -> Any:
    if not x.ndim:
        return np.ones_like(x)
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    e = wide - np.maximum.reduce(wide, axis=axis, keepdims=True, initial=-math.inf)
    np.exp(e, out=e)
    e /= np.add.reduce(e, axis=axis, keepdims=True)
    return e.astype(x.dtype, copy=False)


def _softmax_rule(g: Any, out: Any, axis: int) -> Any:
    product = g * out
    axes = (axis,) if product.ndim else ()
    return product - out * sum_(product, axis=axes, keepdims=True)


softmax = general(
    "softmax", _softmax, vjp=dict(x=_softmax_rule), jvp=dict(x=_softmax_rule), batch="axes",
    doc="exp(x) over its sum along an axis",
)  # fmt: skip


def _log_softmax(x: Any, *, axis: int) -> Any:
    if not x.ndim:
        return np.zeros_like(x)
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    shifted = wide - np.maximum.reduce(wide, axis=axis, keepdims=True, initial=-math.inf)
    shifted -= np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))
    return shifted.astype(x.dtype, copy=False)


def _log_softmax_back(g: Any, out: Any, axis: int) -> Any:
    return g - exp(out) * sum_(g, axis=(axis,) if g.ndim else (), keepdims=True)


def _log_softmax_forward(t: Any, out: Any, axis: int) -> Any:
    return t - sum_(exp(out) * t, axis=(axis,) if t.ndim else (), keepdims=True)


log_softmax = general(
    "log_softmax", _log_softmax, vjp=dict(x=_log_softmax_back),
    jvp=dict(x=_log_softmax_forward), batch="axes", doc="log(softmax(x)), without overflow",
)  # fmt: skip


def _softplus(x: Any, *, beta: float, threshold: float) -> Any:
    scaled = x if beta == 1 else x * beta
    curve = np.log1p(np.exp(-np.abs(scaled))) + np.maximum(scaled, 0)
    if beta != 1:
        curve = curve / beta
    if threshold < math.inf:
        curve = np.where(scaled > threshold, x, curve)
    return np.asarray(curve).astype(x.dtype, copy=False)


def _softplus_slope(x: Any, threshold: float) -> Any:
    """sigmoid(x), with a derivative that is exact in both tails, and 0 from the threshold on."""
    if threshold < math.inf:
        x = where(x >= threshold, threshold, x)
    low = sigmoid(where(x > 0, -x, x))
    return where(x > 0, 1 - low, low)


def _softplus_rule(g: Any, x: Any, beta: float, threshold: float) -> Any:
    scaled = x if beta == 1 else x * beta
    slope = sigmoid(scaled) if type(x) is np.ndarray else _softplus_slope(scaled, threshold)
    return where(scaled > threshold, g, g * slope) if threshold < math.inf else g * slope


softplus = elementwise(
    "softplus", _softplus, promotion=None, vjp=dict(x=_softplus_rule),
    jvp=dict(x=_softplus_rule), doc="log(1 + exp(beta x)) / beta",
)  # fmt: skip


def _leaky_relu(x: Any, *, negative_slope: float) -> Any:
    return np.where(x > 0, x, x * negative_slope)


def _leaky_relu_rule(g: Any, x: Any, negative_slope: float) -> Any:
    return link(where(x > 0, g, g * negative_slope), x)


leaky_relu = elementwise(
    "leaky_relu", _leaky_relu, promotion=None, vjp=dict(x=_leaky_relu_rule),
    jvp=dict(x=_leaky_relu_rule), doc="x, or negative_slope x below 0",
)  # fmt: skip


def _elu(x: Any, *, alpha: float, scale: float, rate: float) -> Any:
    below = np.expm1(np.minimum(x, 0) * rate) * (alpha * scale)
    return np.where(x < 0, below, x * scale)


def _elu_rule(g: Any, x: Any, alpha: float, scale: float, rate: float) -> Any:
    """At 0 the slope is the one from below, and constant; NaN stays."""
    below = exp(where(x >= 0, 0, x) * rate) * (alpha * scale * rate)
    return where(x > 0, g * scale, g * below)


def _emit_elu(ir: Any, x: Any, *, alpha: float, scale: float, rate: float) -> Any:
    low = ir.clamp(x, None, 0.0)
    below = ir.fmul(ir.expm1(ir.fmul(low, ir.constant(rate))), ir.constant(alpha * scale))
    above = ir.fmul(x, ir.constant(scale))
    return ir.select(ir.compare("<", x, ir.constant(0.0)), below, above)


elu = elementwise(
    "elu", _elu, promotion=None, vjp=dict(x=_elu_rule), jvp=dict(x=_elu_rule), emit=_emit_elu,
    doc="scale x, or scale alpha (exp(rate x) - 1) below 0",
)  # fmt: skip


def _huber(x: Any, *, delta: float) -> Any:
    size = np.abs(x)
    return np.where(size <= delta, x * x * 0.5, (size - delta / 2) * delta)


def _huber_rule(g: Any, x: Any, delta: float) -> Any:
    """At the ties, and for NaN, the slope is constant."""
    return g * where(abs_(x) < delta, x, where(x != x, math.nan, sign(x) * delta))


def _emit_huber(ir: Any, x: Any, *, delta: float) -> Any:
    size = ir.fabs(x)
    near = ir.fmul(ir.fmul(x, x), ir.constant(0.5))
    far = ir.fmul(ir.fsub(size, ir.constant(delta / 2)), ir.constant(delta))
    return ir.select(ir.compare("<=", size, ir.constant(delta)), near, far)


huber = elementwise(
    "huber", _huber, promotion="float", vjp=dict(x=_huber_rule), jvp=dict(x=_huber_rule),
    emit=_emit_huber, doc="x^2 / 2 for |x| up to delta, delta (|x| - delta / 2) beyond",
)  # fmt: skip


# ---------------------------------------------------------------- the loss of probabilities
_EPSILON = 1e-12  # how far PyTorch keeps the slope's denominator from 0


def _bce(x: Any, t: Any) -> Any:
    return (t - 1) * np.maximum(np.log1p(-x), -100) - t * np.maximum(np.log(x), -100)


def _bce_slope(x: Any, t: Any) -> Any:
    return (x - t) / np.maximum((1 - x) * x, _EPSILON)


def _bce_curve(x: Any, t: Any) -> Any:
    """d bce_slope / dx, which stays finite at 0 and 1 as well."""
    away = (x + _EPSILON) * (1 - x + _EPSILON)
    return (x * x - 2 * x * t + t) / (away * away)


def _bce_in_target(x: Any) -> Any:
    return log1p(-x) - log(x)


bce_slope = elementwise(
    "bce_slope", _bce_slope, promotion="float",
    partials=dict(x=_bce_curve, t=lambda x: -1 / clamp((1 - x) * x, min=_EPSILON, max=None)),
    doc="(x - t) / (x (1 - x)), with a denominator of at least 1e-12",
)  # fmt: skip
bce = elementwise(
    "bce", _bce, promotion="float", node_name="BinaryCrossEntropyBackward0",
    partials=dict(x=lambda x, t: bce_slope(x, t), t=_bce_in_target),
    doc="-(t log x + (1 - t) log(1 - x)), with logarithms of at least -100",
)  # fmt: skip


def _erf(x: Any) -> Any:
    try:
        from scipy.special import erf as scipy_erf
    except ImportError:
        raise UnsupportedError(with_site("erf needs SciPy: run `pip install scipy`")) from None
    return np.asarray(scipy_erf(x)).astype(x.dtype, copy=False)  # SciPy widens float16


erf = elementwise(
    "erf", _erf, promotion="float",
    vjp=dict(x=lambda g, x: g * (exp(-(x * x)) * (2 / math.sqrt(math.pi)))),
    jvp=dict(x=lambda t, x: t * (exp(-(x * x)) * (2 / math.sqrt(math.pi)))),
    doc="the error function", refuses=(kernel("c", "erf_vml_cpu"),),
)  # fmt: skip


# ---------------------------------------------------------------- the loss of classes
def _nll(x: Any, index: Any, *, axis: int, reduction: str) -> Any:
    picked = _pick(x, index, axis=axis, keepdims=False)
    if reduction == "none":
        return -picked
    total = -np.add.reduce(picked, axis=None)
    return total / max(picked.size, 1) if reduction == "mean" and picked.size else (
        total * math.nan if reduction == "mean" else total
    )


def _nll_back(g: Any, index: Any, x_shape: Shape, axis: int, reduction: str) -> Any:
    shape = shape_of(index)
    if reduction == "none":
        spread = -g
    else:
        number = max(math.prod(shape), 1) if reduction == "mean" else 1
        spread = broadcast_to(-g / number if number != 1 else -g, shape=shape)
    return unpick(spread, index, axis=axis, keepdims=False, shape=x_shape)


def _nll_forward(t: Any, index: Any, axis: int, reduction: str) -> Any:
    return nll(t, index, axis=axis, reduction=reduction)


def _batch_nll(
    size: int, x: Any, index: Any, *, axis: int, reduction: str, batched: tuple[bool, ...]
) -> Any:
    full = [
        v if b else broadcast_to(v, shape=(size, *shape_of(v)))
        for v, b in zip((x, index), batched, strict=True)
    ]
    each = nll(*full, axis=axis + 1, reduction="none")
    axes = tuple(range(1, len(shape_of(each))))
    if reduction == "none" or not axes:
        return each
    total = sum_(each, axis=axes, keepdims=False)
    return total / math.prod(shape_of(each)[1:]) if reduction == "mean" else total


nll = general(
    "nll", _nll, vjp=dict(x=_nll_back), jvp=dict(x=_nll_forward), batch=_batch_nll,
    node_name="NllLossBackward0", doc="minus the element of each slice that index names",
)  # fmt: skip
