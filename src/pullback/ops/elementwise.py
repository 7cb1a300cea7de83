"""Elementwise arithmetic, comparisons and functions (layer 2).

What each rule names is what PyTorch keeps for the same operation, so that an in-place change is
refused in the same programs.  Complex derivatives: g * conj(d out / d input).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.ops.broadcast import cast, is_complex, zeros_like
from pullback.ops.kinds import conj, elementwise, general

LOG2, LOG10 = math.log(2.0), math.log(10.0)
NUMBERS = (bool, int, float, complex)


def is_number(value: Any) -> bool:
    """Whether a rule got a Python number where a tensor could stand."""
    return isinstance(value, NUMBERS)


# ---------------------------------------------------------------- selection
_INTEGER: dict[Any, Any] = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}


def _where(condition: Any, a: Any, b: Any) -> Any:
    """np.where; a selection against the number 0 is done on the bits, eight times faster."""
    keep, other = (a, b) if type(b) is int else (b, a)
    if (
        type(other) is int
        and other == 0
        and type(keep) is np.ndarray
        and type(condition) is np.ndarray
        and condition.dtype.kind == "b"
        and keep.shape == condition.shape
        and keep.size > 64
        and condition.flags.c_contiguous
        and keep.flags.c_contiguous
    ):
        integer = _INTEGER.get(keep.dtype)
        if integer is not None:
            # bytes of all bits or none, then widened with their sign
            short = condition.view(np.int8)
            mask = (np.negative(short) if keep is a else short - 1).astype(integer)
            np.bitwise_and(mask, keep.view(integer), out=mask)
            return mask.view(keep.dtype)
    return np.where(condition, a, b)


where = general(
    "where", _where,
    vjp=dict(
        a=lambda g, condition: where(condition, g, 0),
        b=lambda g, condition: where(condition, 0, g),
    ),
    jvp=dict(
        a=lambda t, condition: where(condition, t, 0),
        b=lambda t, condition: where(condition, 0, t),
    ),
    batch="elementwise", promotion="where", broadcasts=True,
    emit=lambda ir, condition, a, b: ir.select(condition, a, b),
    doc="a where condition holds, b elsewhere",
)  # fmt: skip

# ---------------------------------------------------------------- arithmetic
add = elementwise(
    "add", np.add, partials=dict(a=1, b=1),
    emit=lambda ir, a, b: ir.fadd(a, b), reference="operator.add", doc="a + b",
)  # fmt: skip
sub = elementwise(
    "sub", np.subtract, partials=dict(a=1, b=-1),
    emit=lambda ir, a, b: ir.fsub(a, b), reference="operator.sub", doc="a - b",
)  # fmt: skip
mul = elementwise(
    "mul", np.multiply,
    vjp=dict(a=lambda g, b: g * conj(b), b=lambda g, a: g * conj(a)),
    jvp=dict(a=lambda t, b: t * b, b=lambda t, a: t * a),
    emit=lambda ir, a, b: ir.fmul(a, b), reference="operator.mul", doc="a * b",
)  # fmt: skip
div = elementwise(
    "div", np.true_divide, promotion="float",
    vjp=dict(a=lambda g, b: g / conj(b), b=lambda g, a, b: -g * conj(a / b / b)),
    jvp=dict(a=lambda t, b: t / b, b=lambda t, a, b: -t * (a / b / b)),
    emit=lambda ir, a, b: ir.fdiv(a, b), reference="operator.truediv", doc="a / b",
)  # fmt: skip
neg = elementwise(
    "neg", np.negative, partials=dict(x=-1), promotion=None,
    emit=lambda ir, x: ir.fneg(x), reference="operator.neg", doc="-x",
)  # fmt: skip


def _power(a: Any, b: Any) -> Any:
    if getattr(a, "dtype", None) is not None and a.dtype.kind == "b":
        return np.power(a.astype(np.int64), b).astype(bool) if not is_number(b) else a**b
    return a**b


def _power_in_base(a: Any, b: Any) -> Any:
    """b a^(b-1), which is 0 (not 0 * inf) where b is 0."""
    if is_number(b):
        if b == 0:
            return zeros_like(a)
        if b == 1:
            return 1.0
        return a * 2 if b == 2 else b * a ** (b - 1)
    return where(b == 0, 0, b * a ** where(b == 0, 1, b - 1))


def _power_in_exponent(a: Any, b: Any, out: Any) -> Any:
    """a^b log a, which is 0 at a = 0 where b >= 0 (PyTorch's choice, and the limit for b > 0)."""
    if is_number(a):
        if a == 0:
            return where(_real(b) >= 0, 0, out * -math.inf)
        return out * (np.log(complex(a)).item() if is_complex(out) or a < 0 else math.log(a))
    at_zero = a == 0
    if is_number(b):
        keep = at_zero if complex(b).real >= 0 else at_zero != at_zero
    else:
        keep = _and(at_zero, _real(b) >= 0)
    return where(keep, 0, out * log(where(keep, 1, a)))


def _real(value: Any) -> Any:
    return real(value) if is_complex(value) else value


def _and(a: Any, b: Any) -> Any:
    return logical_and(a, b)


pow_ = elementwise(
    "pow", _power, inputs=("a", "b"),
    partials=dict(a=_power_in_base, b=_power_in_exponent),
    emit=lambda ir, a, b: ir.power(a, b), reference="operator.pow", doc="a ** b",
)  # fmt: skip
square = elementwise(
    "square", np.square, partials=dict(x=lambda x: x * 2), promotion=None,
    node_name="PowBackward0", emit=lambda ir, x: ir.fmul(x, x), doc="x * x",
)  # fmt: skip
reciprocal = elementwise(
    "reciprocal", np.reciprocal, promotion="float", partials=dict(x=lambda out: -out * out),
    emit=lambda ir, x: ir.fdiv(ir.constant(1.0), x),
    doc="1 / x",
)  # fmt: skip

_zero = dict(x=lambda g: zeros_like(g))
_flat = dict(x=lambda t: zeros_like(t))
fmod = elementwise(
    "fmod", np.fmod,
    vjp=dict(a=lambda g: g, b=lambda g, a, b: -g * trunc(a / b)),
    jvp=dict(a=lambda t: t, b=lambda t, a, b: -t * trunc(a / b)),
    doc="the remainder with the sign of a",
)  # fmt: skip
remainder = elementwise(
    "remainder", np.remainder,
    vjp=dict(a=lambda g: g, b=lambda g, a, b: -g * floor(a / b)),
    jvp=dict(a=lambda t: t, b=lambda t, a, b: -t * floor(a / b)),
    doc="the remainder with the sign of b",
)  # fmt: skip
floor_divide = elementwise("floor_divide", np.floor_divide, doc="the quotient rounded down")

# ---------------------------------------------------------------- rounding: zero derivative
sign = elementwise("sign", np.sign, vjp=_zero, jvp=_flat, promotion=None,
                   emit=lambda ir, x: ir.sign(x), doc="-1, 0 or 1")  # fmt: skip
floor = elementwise("floor", np.floor, vjp=_zero, jvp=_flat,
                    promotion=None, emit=lambda ir, x: ir.floor(x), doc="rounded down")  # fmt: skip
ceil = elementwise("ceil", np.ceil, vjp=_zero, jvp=_flat,
                   promotion=None, emit=lambda ir, x: ir.ceil(x), doc="rounded up")  # fmt: skip
trunc = elementwise("trunc", np.trunc, vjp=_zero, jvp=_flat,
                    promotion=None, emit=lambda ir, x: ir.trunc(x), doc="rounded towards zero")  # fmt: skip
round_ = elementwise(
    "round", lambda x, *, decimals: np.round(x, decimals), vjp=_zero,
    jvp=_flat, promotion=None, emit=lambda ir, x, *, decimals: ir.round(x, decimals),
    doc="rounded to even",
)  # fmt: skip

# ---------------------------------------------------------------- exponentials and logarithms
exp = elementwise(
    "exp", np.exp, promotion="float", partials=dict(x=lambda out: out),
    emit=lambda ir, x: ir.exp(x), reference="cmath.exp", doc="e ** x",
)  # fmt: skip
exp2 = elementwise(
    "exp2", np.exp2, promotion="float", partials=dict(x=lambda out: out * LOG2),
    emit=lambda ir, x: ir.exp2(x), doc="2 ** x",
)  # fmt: skip
expm1 = elementwise(
    "expm1", np.expm1, promotion="float", partials=dict(x=lambda out: out + 1),
    emit=lambda ir, x: ir.expm1(x), doc="exp(x) - 1",
)  # fmt: skip
log = elementwise(
    "log", np.log, promotion="float",
    vjp=dict(x=lambda g, x: g / conj(x)), jvp=dict(x=lambda t, x: t / x),
    emit=lambda ir, x: ir.log(x), reference="cmath.log", doc="the natural logarithm",
)  # fmt: skip
log2 = elementwise(
    "log2", np.log2, promotion="float",
    vjp=dict(x=lambda g, x: g / conj(x * LOG2)), jvp=dict(x=lambda t, x: t / (x * LOG2)),
    emit=lambda ir, x: ir.log2(x), doc="the logarithm to base 2",
)  # fmt: skip
log10 = elementwise(
    "log10", np.log10, promotion="float",
    vjp=dict(x=lambda g, x: g / conj(x * LOG10)), jvp=dict(x=lambda t, x: t / (x * LOG10)),
    emit=lambda ir, x: ir.log10(x), doc="the logarithm to base 10",
)  # fmt: skip
log1p = elementwise(
    "log1p", np.log1p, promotion="float",
    vjp=dict(x=lambda g, x: g / conj(x + 1)), jvp=dict(x=lambda t, x: t / (x + 1)),
    emit=lambda ir, x: ir.log1p(x), doc="log(1 + x)",
)  # fmt: skip
sqrt = elementwise(
    "sqrt", np.sqrt, promotion="float",
    vjp=dict(x=lambda g, out: g / (2 * conj(out))), jvp=dict(x=lambda t, out: t / (2 * out)),
    emit=lambda ir, x: ir.sqrt(x), reference="cmath.sqrt", doc="the square root",
)  # fmt: skip
rsqrt = elementwise(
    "rsqrt", lambda x: np.reciprocal(np.sqrt(x)), promotion="float",
    partials=dict(x=lambda out: out * out * out * -0.5),
    emit=lambda ir, x: ir.fdiv(ir.constant(1.0), ir.sqrt(x)), doc="1 / sqrt(x)",
)  # fmt: skip

# ---------------------------------------------------------------- trigonometric, hyperbolic
sin = elementwise(
    "sin", np.sin, promotion="float", partials=dict(x=lambda x: cos(x)),
    emit=lambda ir, x: ir.sin(x), reference="cmath.sin", doc="the sine of x (radians)",
)  # fmt: skip
cos = elementwise(
    "cos", np.cos, promotion="float", partials=dict(x=lambda x: -sin(x)),
    emit=lambda ir, x: ir.cos(x), reference="cmath.cos", doc="the cosine of x (radians)",
)  # fmt: skip
tan = elementwise(
    "tan", np.tan, promotion="float", partials=dict(x=lambda out: out * out + 1),
    emit=lambda ir, x: ir.tan(x), reference="cmath.tan", doc="the tangent of x (radians)",
)  # fmt: skip
asin = elementwise(
    "asin", np.arcsin, promotion="float", partials=dict(x=lambda x: rsqrt(1 - x * x)),
    doc="the inverse sine, in radians",
)  # fmt: skip
acos = elementwise(
    "acos", np.arccos, promotion="float", partials=dict(x=lambda x: -rsqrt(1 - x * x)),
    doc="the inverse cosine, in radians",
)  # fmt: skip
atan = elementwise(
    "atan", np.arctan, promotion="float", partials=dict(x=lambda x: 1 / (x * x + 1)),
    doc="the inverse tangent, in radians",
)  # fmt: skip
sinh = elementwise(
    "sinh", np.sinh, promotion="float", partials=dict(x=lambda x: cosh(x)),
    emit=lambda ir, x: ir.sinh(x), doc="hyperbolic sine",
)  # fmt: skip
cosh = elementwise(
    "cosh", np.cosh, promotion="float", partials=dict(x=lambda x: sinh(x)),
    emit=lambda ir, x: ir.cosh(x), doc="hyperbolic cosine",
)  # fmt: skip
tanh = elementwise(
    "tanh", np.tanh, promotion="float",
    vjp=dict(x=lambda g, out: g * (1 - conj(out * out))),
    jvp=dict(x=lambda t, out: t * (1 - out * out)),
    emit=lambda ir, x: ir.tanh(x), reference="cmath.tanh", doc="hyperbolic tangent",
)  # fmt: skip
asinh = elementwise(
    "asinh", np.arcsinh, promotion="float", partials=dict(x=lambda x: rsqrt(x * x + 1)),
    doc="inverse hyperbolic sine",
)  # fmt: skip
acosh = elementwise(
    "acosh", np.arccosh, promotion="float",
    partials=dict(x=lambda x: rsqrt(x - 1) * rsqrt(x + 1)), doc="inverse hyperbolic cosine",
)  # fmt: skip
atanh = elementwise(
    "atanh", np.arctanh, promotion="float", partials=dict(x=lambda x: 1 / (1 - x * x)),
    doc="inverse hyperbolic tangent",
)  # fmt: skip
atan2 = elementwise(
    "atan2", np.arctan2, promotion="float",
    partials=dict(a=lambda a, b: b / (a * a + b * b), b=lambda a, b: -a / (a * a + b * b)),
    doc="the angle of the point (b, a), in radians",
)  # fmt: skip


def _sigmoid(x: Any) -> Any:
    # exp of a non-positive argument never overflows: either form of 1 / (1 + exp(-x))
    e = np.exp(-np.abs(x)) if x.dtype.kind == "f" else np.exp(-x)
    if x.dtype.kind != "f":
        return 1 / (1 + e)
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


sigmoid = elementwise(
    "sigmoid", _sigmoid, promotion="float",
    vjp=dict(x=lambda g, out: g * conj((1 - out) * out)),
    jvp=dict(x=lambda t, out: t * ((1 - out) * out)),
    emit=lambda ir, x: ir.sigmoid(x), doc="1 / (1 + exp(-x))",
)  # fmt: skip

# ---------------------------------------------------------------- absolute value, complex parts


def _sgn(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)


def _tangential(g: Any, x: Any, out: Any) -> Any:
    """The derivative of x / |x| in direction g: what is left of g across x, over |x|."""
    size = abs_(x)
    safe = where(size == 0, 1, size)
    radial = real(g * conj(out))
    return where(size == 0, 0, (g - radial * out) / safe)


sgn = general(
    "sgn", _sgn,
    vjp=dict(x=lambda g, x, out: _tangential(g, x, out) if is_complex(x) else zeros_like(g)),
    jvp=dict(x=lambda t, x, out: _tangential(t, x, out) if is_complex(x) else zeros_like(t)),
    batch="elementwise", broadcasts=True, emit=lambda ir, x: ir.sign(x),
    doc="x / |x|, and 0 at 0",
)  # fmt: skip
abs_ = general(
    "abs", np.abs,
    vjp=dict(x=lambda g, x: g * sgn(x)),
    jvp=dict(x=lambda t, x: real(t * conj(sgn(x))) if is_complex(x) else t * sgn(x)),
    batch="elementwise", broadcasts=True, emit=lambda ir, x: ir.fabs(x),
    reference="operator.abs", doc="the absolute value",
)  # fmt: skip
real = general(
    "real", lambda x: x.real,
    vjp=dict(x=lambda g, x_dtype: cast(g, dtype=x_dtype)), jvp=dict(x=lambda t: real(t)),
    batch="elementwise", broadcasts=True, view=True, doc="the real part (a view)",
)  # fmt: skip
imag = general(
    "imag", lambda x: x.imag,
    vjp=dict(x=lambda g, x_dtype: cast(g, dtype=x_dtype) * 1j), jvp=dict(x=lambda t: imag(t)),
    batch="elementwise", broadcasts=True, view=True, doc="the imaginary part (a view)",
)  # fmt: skip


def _complex(a: Any, b: Any) -> Any:
    out = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)),
                   np.complex128 if a.dtype.itemsize == 8 else np.complex64)  # fmt: skip
    out.real, out.imag = a, b
    return out


complex_ = general(
    "complex", _complex,
    vjp=dict(a=lambda g: real(g), b=lambda g: imag(g)),
    jvp=dict(a=lambda t: complex_(t, zeros_like(t)), b=lambda t: complex_(zeros_like(t), t)),
    batch="elementwise", broadcasts=True, doc="a + ib",
)  # fmt: skip
angle = general(
    "angle", lambda x: np.angle(x).astype(x.real.dtype),
    vjp=dict(x=lambda g, x: g * _angle_direction(x) if is_complex(x) else zeros_like(g)),
    jvp=dict(x=lambda t, x: real(t * conj(_angle_direction(x))) if is_complex(x)
             else zeros_like(t)),
    promotion="float", batch="elementwise", broadcasts=True, doc="the argument, in radians",
)  # fmt: skip


def _angle_direction(x: Any) -> Any:
    """i x / |x|^2, and 0 at 0."""
    size = abs_(x)
    safe = where(size == 0, 1, size)
    return where(size == 0, 0, x / safe / safe * 1j)


# ---------------------------------------------------------------- maxima
def _half_at_ties(g: Any, wins: Any, ties: Any) -> Any:
    return where(ties, g / 2, where(wins, g, 0))


maximum = elementwise(
    "maximum", np.maximum,
    vjp=dict(a=lambda g, a, b: _half_at_ties(g, a > b, a == b),
             b=lambda g, a, b: _half_at_ties(g, b > a, a == b)),
    jvp=dict(a=lambda t, a, b: _half_at_ties(t, a > b, a == b),
             b=lambda t, a, b: _half_at_ties(t, b > a, a == b)),
    emit=lambda ir, a, b: ir.fmax(a, b), doc="the larger; ties share the gradient",
)  # fmt: skip
minimum = elementwise(
    "minimum", np.minimum,
    vjp=dict(a=lambda g, a, b: _half_at_ties(g, a < b, a == b),
             b=lambda g, a, b: _half_at_ties(g, b < a, a == b)),
    jvp=dict(a=lambda t, a, b: _half_at_ties(t, a < b, a == b),
             b=lambda t, a, b: _half_at_ties(t, b < a, a == b)),
    emit=lambda ir, a, b: ir.fmin(a, b), doc="the smaller; ties share the gradient",
)  # fmt: skip


def _relu(x: Any) -> Any:
    if x.size > 4096 and x.dtype.kind == "f":
        return x.clip(0, math.inf)  # the same, in half the time
    return np.maximum(x, 0)


relu = elementwise(
    "relu", _relu, promotion=None,
    vjp=dict(x=lambda g, out: where(out <= 0, 0, g)),
    jvp=dict(x=lambda t, out: where(out <= 0, 0, t)),
    emit=lambda ir, x: ir.fmax(x, ir.constant(0.0)), doc="max(x, 0), with derivative 0 at 0",
)  # fmt: skip


def _clamp(x: Any, *, min: Any, max: Any) -> Any:  # noqa: A002  PyTorch's names
    return np.clip(x, min, max)


def _inside(x: Any, low: Any, high: Any) -> Any:
    if low is None:
        return x <= high
    return x >= low if high is None else logical_and(x >= low, x <= high)


clamp = elementwise(
    "clamp", _clamp, promotion=None,
    vjp=dict(x=lambda g, x, min, max: where(_inside(x, min, max), g, 0)),
    jvp=dict(x=lambda t, x, min, max: where(_inside(x, min, max), t, 0)),
    emit=lambda ir, x, *, min, max: ir.clamp(x, min, max),
    doc="x limited to [min, max]; the gradient passes at the bounds",
)  # fmt: skip

# ---------------------------------------------------------------- comparisons and logic
eq = elementwise(
    "eq", np.equal, emit=lambda ir, a, b: ir.compare("==", a, b),
    reference="operator.eq", doc="a == b",
)  # fmt: skip
ne = elementwise(
    "ne", np.not_equal, emit=lambda ir, a, b: ir.compare("!=", a, b),
    reference="operator.ne", doc="a != b",
)  # fmt: skip
lt = elementwise(
    "lt", np.less, emit=lambda ir, a, b: ir.compare("<", a, b),
    reference="operator.lt", doc="a < b",
)  # fmt: skip
le = elementwise(
    "le", np.less_equal, emit=lambda ir, a, b: ir.compare("<=", a, b),
    reference="operator.le", doc="a <= b",
)  # fmt: skip
gt = elementwise(
    "gt", np.greater, emit=lambda ir, a, b: ir.compare(">", a, b),
    reference="operator.gt", doc="a > b",
)  # fmt: skip
ge = elementwise(
    "ge", np.greater_equal, emit=lambda ir, a, b: ir.compare(">=", a, b),
    reference="operator.ge", doc="a >= b",
)  # fmt: skip
logical_and = elementwise(
    "logical_and", np.logical_and, promotion=None, emit=lambda ir, a, b: ir.both(a, b),
    doc="both are true",
)  # fmt: skip
logical_or = elementwise("logical_or", np.logical_or, promotion=None,
                         emit=lambda ir, a, b: ir.either(a, b), doc="either is true")  # fmt: skip
logical_xor = elementwise("logical_xor", np.logical_xor, promotion=None,
                          emit=lambda ir, a, b: ir.differ(a, b), doc="one is true")  # fmt: skip
logical_not = elementwise("logical_not", np.logical_not, promotion=None,
                          emit=lambda ir, x: ir.negate(x), doc="x is false")  # fmt: skip
bitwise_and = elementwise("bitwise_and", np.bitwise_and, doc="bits set in both")
bitwise_or = elementwise("bitwise_or", np.bitwise_or, doc="bits set in either")
bitwise_xor = elementwise("bitwise_xor", np.bitwise_xor, doc="bits set in one")
bitwise_not = elementwise("bitwise_not", np.invert, promotion=None, doc="all bits flipped")
left_shift = elementwise("left_shift", np.left_shift, doc="a * 2 ** b")
right_shift = elementwise("right_shift", np.right_shift, doc="a // 2 ** b")
isnan = elementwise("isnan", np.isnan, promotion=None,
                    emit=lambda ir, x: ir.isnan(x), doc="is not a number")  # fmt: skip
isinf = elementwise("isinf", np.isinf, promotion=None,
                    emit=lambda ir, x: ir.isinf(x), doc="is infinite")  # fmt: skip
isfinite = elementwise("isfinite", np.isfinite, promotion=None,
                       emit=lambda ir, x: ir.isfinite(x), doc="is finite")  # fmt: skip
