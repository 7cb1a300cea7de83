"""Elementwise arithmetic, comparisons and functions (layer 2).

What each rule names is what PyTorch keeps for the same operation, so that an in-place change is
refused in the same programs.  Complex derivatives: g * conj(d out / d input).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.refusal import Refusal, kernel, unsupported
from pullback.ops.broadcast import cast, is_complex, zeros_like
from pullback.ops.kinds import conj, elementwise, general
from pullback.ops.underived import no_forward, refusing

LOG2, LOG10 = math.log(2.0), math.log(10.0)
NUMBERS = (bool, int, float, complex)


def is_number(value: Any) -> bool:
    """Whether a rule got a Python number where a tensor could stand."""
    return isinstance(value, NUMBERS)


# ---------------------------------------------------------------- selection
_INTEGER: dict[Any, Any] = {
    np.dtype(np.float32): np.dtype(np.int32),
    np.dtype(np.float64): np.dtype(np.int64),
}


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

linked = elementwise(
    "linked", lambda a, x: np.where(True, a, x), node_name="ThresholdBackwardBackward0",
    vjp=dict(a=lambda g: g, x=lambda g: None), jvp=dict(a=lambda t: t, x=lambda t: zeros_like(t)),
    emit=lambda ir, a, x: a,
    doc="a, which does not change with x: `autograd.grad` gives zeros, and no pass computes them",
)  # fmt: skip


def link(value: Any, x: Any) -> Any:
    """A slope that is constant in x: on the tape its derivative is 0, as in PyTorch, not absent."""
    if type(x) is np.ndarray or not getattr(x, "requires_grad", False):
        return value
    return linked(value, x)


gated = elementwise(
    "gated", _where, inputs=("condition", "x", "fixed"), promotion="where",
    vjp=dict(x=lambda g, condition, x: link(where(condition, g, 0), x)),
    jvp=dict(x=lambda t, condition: where(condition, t, 0)),
    emit=lambda ir, condition, x, fixed: ir.select(condition, x, fixed),
    doc="x where condition holds, a constant elsewhere",
)  # fmt: skip

# ---------------------------------------------------------------- arithmetic
add = elementwise(
    "add", np.add, partials=dict(a=1, b=1),
    emit=lambda ir, a, b: ir.fadd(a, b), reference="operator.add", doc="a + b",
)  # fmt: skip
sub = elementwise(
    "sub", np.subtract, partials=dict(a=1, b=-1),
    emit=lambda ir, a, b: ir.fsub(a, b), reference="operator.sub", doc="a - b",
    refuses=(
        Refusal("b", "Subtraction, the `-` operator, with two bool tensors is not supported. Use "
                "the `^` or `logical_xor()` operator instead."),
        Refusal("b", "Subtraction, the `-` operator, with a bool tensor is not supported. If you "
                "are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
                each=True),
    ),
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
    refuses=(
        Refusal("b", "Negation, the `-` operator, on a bool tensor is not supported. If you are "
                "trying to invert a mask, use the `~` or `logical_not()` operator instead."),
    ),
)  # fmt: skip


def _power(a: Any, b: Any) -> Any:
    if getattr(a, "dtype", None) is not None and a.dtype.kind == "b":
        return np.power(a.astype(np.int64), b).astype(bool) if not is_number(b) else a**b
    if is_number(b) and b == -0.5 and getattr(a, "dtype", _FLOAT).kind == "f":
        return np.reciprocal(np.sqrt(a))  # NaN at -inf, as a ** 0.5 is; C's pow has 0
    out = a**b
    if out.dtype.kind == "c" and np.isnan(out).any():
        # NumPy multiplies for a whole b, and a huge a ** 20 is no number to divide by
        return np.where(np.isnan(out) & np.isfinite(a) & (a != 0), np.exp(b * np.log(a)), out)
    return out


def _known_power_slope(g: Any, a: Any, b: Any) -> Any:
    """g * conj(b a^(b-1)) for a number b."""
    if b == 0:
        return zeros_like(g)
    # on the tape the result depends on a, if only by a ** 0
    if type(a) is np.ndarray or not getattr(a, "requires_grad", False):
        if b == 1:
            return g
        if b == 2:
            return g * conj(a * 2)
    return g * conj(b * pow_(a, b - 1))


def _power_in_base(g: Any, a: Any, b: Any) -> Any:
    """g * conj(b a^(b-1)); at b = 0 the 0 wins where a^-1 is no number to multiply with.

    Elsewhere b = 0 is no exception: there the derivative of this by b, 1 / a, must not be lost.
    """
    if is_number(b):
        return _known_power_slope(g, a, b)
    power = pow_(a, b - 1)
    size = abs_(power) if is_complex(power) else power
    constant = logical_and(b == 0, logical_not(logical_and(size > 0, size < math.inf)))
    return where(constant, 0, g * conj(b * power))


def _power_in_exponent(a: Any, b: Any, out: Any) -> Any:
    """a^b log a, which is 0 at a = 0 where b >= 0 (PyTorch's choice, and the limit for b > 0).

    Second derivatives there are 0 for b > 1, and NaN for b <= 1, where there are none.
    """
    exponent = where(imag(b) == 0, real(b), -1) if is_complex(b) else b  # 0 ** 1j has no value
    if is_number(a):
        if a == 0:
            return where(exponent >= 0, 0, where(exponent > 0, 0, out) * -math.inf)
        if is_complex(out):
            return out * np.log(complex(a)).item()
        return out * (math.log(a) if a > 0 else math.nan)
    at_zero = a == 0
    slope = out * log(where(logical_and(at_zero, exponent > 1), 1, a))
    return where(logical_and(at_zero, exponent >= 0), 0, slope)


_FLOAT = np.dtype(np.float64)
pow_ = elementwise(
    "pow", _power, inputs=("a", "b"),
    partials=dict(b=_power_in_exponent), vjp=dict(a=_power_in_base),
    jvp=dict(a=lambda t, a, b: conj(_power_in_base(conj(t), a, b))),
    emit=lambda ir, a, b: ir.power(a, b), reference="operator.pow", doc="a ** b",
    refuses=(kernel("b", "pow"),),
)  # fmt: skip
def _square_rule(g: Any, x: Any) -> Any:
    return g * conj(x * 2) if type(x) is np.ndarray else _known_power_slope(g, x, 2)


square = elementwise(
    "square", np.square, promotion=None, vjp=dict(x=_square_rule),
    jvp=dict(x=lambda t, x: t * (x * 2)),
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
    vjp=dict(a=lambda g: g, b=lambda g, a, b: -g * div_trunc(a, b)),
    jvp=dict(a=lambda t: t, b=lambda t, a, b: -t * div_trunc(a, b)),
    doc="the remainder with the sign of a", refuses=(kernel("bc", "fmod_cpu"),),
)  # fmt: skip
remainder = elementwise(
    "remainder", np.remainder,
    vjp=dict(a=lambda g: g, b=lambda g, a, b: -g * div_floor(a, b)),
    jvp=dict(a=lambda t: t, b=lambda t, a, b: -t * div_floor(a, b)),
    doc="the remainder with the sign of b", refuses=(kernel("bc", "remainder_cpu"),),
)  # fmt: skip
_NO_QUOTIENT = refusing("derivative for aten::floor_divide is not implemented")
_NO_TANGENT = no_forward("aten::floor_divide")
floor_divide = elementwise(
    "floor_divide", np.floor_divide, doc="the quotient rounded down (recorded: no derivative)",
    vjp=dict(a=_NO_QUOTIENT, b=_NO_QUOTIENT), jvp=dict(a=_NO_TANGENT, b=_NO_TANGENT),
    node_name="NotImplemented", refuses=(kernel("bc", "div_floor_cpu"),),
)  # fmt: skip
_zeros = dict(a=lambda g: zeros_like(g), b=lambda g: zeros_like(g))
_flats = dict(a=lambda t: zeros_like(t), b=lambda t: zeros_like(t))
div_floor = elementwise(
    "div_floor", np.floor_divide, vjp=_zeros, jvp=_flats, node_name="DivBackward2",
    doc="the quotient rounded down, constant between its steps",
    refuses=(kernel("bc", "div_floor_cpu"),),
)  # fmt: skip


def _div_trunc(a: Any, b: Any) -> Any:
    return np.trunc(np.true_divide(a, b))


div_trunc = elementwise(
    "div_trunc", _div_trunc, vjp=_zeros, jvp=_flats, promotion="float",
    node_name="DivBackward2", doc="the quotient rounded towards zero, constant between its steps",
    refuses=(kernel("bc", "div_trunc_cpu"),),
)  # fmt: skip

# ---------------------------------------------------------------- rounding: zero derivative


def _sign(x: Any) -> Any:
    """-1, 0 or 1, and 0 for NaN, as in PyTorch."""
    if x.dtype.kind == "b":
        return x.copy()
    if x.dtype.kind != "f":
        return np.sign(x)
    if x.size > 4096:  # the same in half the time
        return ((x > 0).view(np.int8) - (x < 0).view(np.int8)).astype(x.dtype)
    out = np.asarray(np.sign(x))
    out[out != out] = 0
    return out


sign = elementwise("sign", _sign, vjp=_zero, jvp=_flat, promotion=None,
                   emit=lambda ir, x: ir.sign(x), doc="-1, 0 or 1; 0 for NaN", refuses=(
                       unsupported("c", "Unlike NumPy, torch.sign is not intended to support "
                                   "complex numbers. Please use torch.sgn instead."),))  # fmt: skip


def _rounding(name: str) -> Any:
    """What the functions that round do not take."""
    return kernel("b", f"{name}_vml_cpu"), unsupported(
        "c", f"{name} is not supported for complex inputs"
    )


floor = elementwise("floor", np.floor, vjp=_zero, jvp=_flat,
                    promotion=None, emit=lambda ir, x: ir.floor(x), doc="rounded down",
                    refuses=_rounding("floor"))  # fmt: skip
ceil = elementwise("ceil", np.ceil, vjp=_zero, jvp=_flat,
                   promotion=None, emit=lambda ir, x: ir.ceil(x), doc="rounded up",
                   refuses=_rounding("ceil"))  # fmt: skip
trunc = elementwise("trunc", np.trunc, vjp=_zero, jvp=_flat,
                    promotion=None, emit=lambda ir, x: ir.trunc(x), doc="rounded towards zero",
                    refuses=_rounding("trunc"))  # fmt: skip
round_ = elementwise(
    "round", lambda x, *, decimals: np.round(x, decimals), vjp=_zero,
    jvp=_flat, promotion=None, emit=lambda ir, x, *, decimals: ir.round(x, decimals),
    doc="rounded to even", refuses=(kernel("bc", "round_vml_cpu"),),
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


def _acosh_slope(x: Any) -> Any:
    """1 / sqrt(x^2 - 1), positive below -1 too; for complex x the branch of acosh."""
    size = x if is_complex(x) else abs_(x)
    return rsqrt(size - 1) * rsqrt(size + 1)


acosh = elementwise(
    "acosh", np.arccosh, promotion="float",
    partials=dict(x=lambda x: _acosh_slope(x)), doc="inverse hyperbolic cosine",
)  # fmt: skip
atanh = elementwise(
    "atanh", np.arctanh, promotion="float", partials=dict(x=lambda x: 1 / (1 - x * x)),
    doc="inverse hyperbolic tangent",
)  # fmt: skip


def _inverse_square(a: Any, b: Any) -> Any:
    """1 / (a^2 + b^2), and 0 at the origin: the subgradient that PyTorch takes."""
    square_ = a * a + b * b
    return where(square_ == 0, 0, 1 / square_)


atan2 = elementwise(
    "atan2", np.arctan2, promotion="float",
    partials=dict(a=lambda a, b: b * _inverse_square(a, b),
                  b=lambda a, b: -a * _inverse_square(a, b)),
    doc="the angle of the point (b, a), in radians", refuses=(kernel("c", "atan2_cpu"),),
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
        return _sign(x)
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
    reference="operator.abs", doc="the absolute value", refuses=(kernel("b", "abs_cpu"),),
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


def _angle(x: Any) -> Any:
    if x.dtype.kind == "c":
        return np.arctan2(x.imag, x.real)
    return np.where(x < 0, math.pi, np.where(x != x, x, 0)).astype(x.dtype)  # -0.0 has angle 0


angle = general(
    "angle", _angle,
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
def _half_at_ties(g: Any, loses: Any, ties: Any) -> Any:
    """All of g but to the loser; so beside NaN both get all of it, as in PyTorch."""
    return where(ties, g / 2, where(loses, 0, g))


maximum = elementwise(
    "maximum", np.maximum,
    vjp=dict(a=lambda g, a, b: _half_at_ties(g, a < b, a == b),
             b=lambda g, a, b: _half_at_ties(g, b < a, a == b)),
    jvp=dict(a=lambda t, a, b: _half_at_ties(t, a < b, a == b),
             b=lambda t, a, b: _half_at_ties(t, b < a, a == b)),
    emit=lambda ir, a, b: ir.fmax(a, b), doc="the larger; ties share the gradient",
    refuses=(Refusal("c", "maximum not implemented for complex tensors."),),
)  # fmt: skip
minimum = elementwise(
    "minimum", np.minimum,
    vjp=dict(a=lambda g, a, b: _half_at_ties(g, a > b, a == b),
             b=lambda g, a, b: _half_at_ties(g, b > a, a == b)),
    jvp=dict(a=lambda t, a, b: _half_at_ties(t, a > b, a == b),
             b=lambda t, a, b: _half_at_ties(t, b > a, a == b)),
    emit=lambda ir, a, b: ir.fmin(a, b), doc="the smaller; ties share the gradient",
    refuses=(Refusal("c", "minimum not implemented for complex tensors."),),
)  # fmt: skip


def _takes_first(a: Any, b: Any) -> Any:
    return logical_or(a >= b, b != b)


def _takes_first_below(a: Any, b: Any) -> Any:
    return logical_or(a <= b, b != b)


fmax = elementwise(
    "fmax", np.fmax,
    vjp=dict(a=lambda g, a, b: where(_takes_first(a, b), g, 0),
             b=lambda g, a, b: where(_takes_first(a, b), 0, g)),
    jvp=dict(a=lambda t, a, b: where(_takes_first(a, b), t, 0),
             b=lambda t, a, b: where(_takes_first(a, b), 0, t)),
    doc="the larger, and the other one of a NaN; at a tie the gradient goes to a",
    refuses=(Refusal("c", "fmax not implemented for complex tensors."),),
)  # fmt: skip
fmin = elementwise(
    "fmin", np.fmin,
    vjp=dict(a=lambda g, a, b: where(_takes_first_below(a, b), g, 0),
             b=lambda g, a, b: where(_takes_first_below(a, b), 0, g)),
    jvp=dict(a=lambda t, a, b: where(_takes_first_below(a, b), t, 0),
             b=lambda t, a, b: where(_takes_first_below(a, b), 0, t)),
    doc="the smaller, and the other one of a NaN; at a tie the gradient goes to a",
    refuses=(Refusal("c", "fmin not implemented for complex tensors."),),
)  # fmt: skip

_NO_COMPLEX_BOUND = (unsupported("c", "clamp is not supported for complex types"),)


def _relu(x: Any) -> Any:
    if x.size > 4096 and x.dtype.kind == "f":
        return x.clip(0, math.inf)  # the same, in half the time
    return np.maximum(x, 0)


relu = elementwise(
    "relu", _relu, promotion=None,
    vjp=dict(x=lambda g, out: link(where(out <= 0, 0, g), out)),
    jvp=dict(x=lambda t, out: where(out <= 0, 0, t)),
    emit=lambda ir, x: ir.fmax(x, ir.constant(0.0)), doc="max(x, 0), with derivative 0 at 0",
    refuses=(Refusal("b", "Boolean inputs not supported for relu"), *_NO_COMPLEX_BOUND),
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
    doc="x limited to [min, max]; the gradient passes at the bounds", refuses=_NO_COMPLEX_BOUND,
)  # fmt: skip


def _clamped(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


at_least = elementwise(
    "at_least", np.maximum, inputs=("x", "low"), node_name="ClampBackward0",
    vjp=dict(x=lambda g, x, low: where(x >= low, g, 0), low=lambda g, x, low: where(x < low, g, 0)),
    jvp=dict(x=lambda t, x, low: where(x >= low, t, 0), low=lambda t, x, low: where(x < low, t, 0)),
    doc="x, or low where x is below it; at a tie the gradient goes to x",
    refuses=_NO_COMPLEX_BOUND,
)  # fmt: skip
at_most = elementwise(
    "at_most", np.minimum, inputs=("x", "high"), node_name="ClampBackward0",
    vjp=dict(x=lambda g, x, high: where(x <= high, g, 0),
             high=lambda g, x, high: where(x > high, g, 0)),
    jvp=dict(x=lambda t, x, high: where(x <= high, t, 0),
             high=lambda t, x, high: where(x > high, t, 0)),
    doc="x, or high where x is above it; at a tie the gradient goes to x",
    refuses=_NO_COMPLEX_BOUND,
)  # fmt: skip


def _within(g: Any, x: Any, low: Any, high: Any) -> Any:
    return where(logical_and(x >= low, x <= high), g, 0)


def _to_low(g: Any, x: Any, low: Any, high: Any) -> Any:
    return where(logical_and(x < low, low < high), g, 0)


def _to_high(g: Any, x: Any, low: Any, high: Any) -> Any:
    return where(logical_or(x > high, low > high), g, 0)


clamp_tensors = elementwise(
    "clamp_tensors", _clamped, node_name="ClampBackward0",
    vjp=dict(x=_within, low=_to_low, high=_to_high),
    jvp=dict(x=lambda t, x, low, high: _within(t, x, low, high),
             low=lambda t, x, low, high: _to_low(t, x, low, high),
             high=lambda t, x, low, high: _to_high(t, x, low, high)),
    doc="x limited to [low, high]; high where the bounds cross", refuses=_NO_COMPLEX_BOUND,
)  # fmt: skip

# ---------------------------------------------------------------- of two and three numbers
hypot = elementwise(
    "hypot", np.hypot, promotion="float",
    vjp=dict(a=lambda g, a, out: g * (a / out), b=lambda g, b, out: g * (b / out)),
    jvp=dict(a=lambda t, a, out: t * (a / out), b=lambda t, b, out: t * (b / out)),
    doc="sqrt(a * a + b * b), without overflow", refuses=(kernel("biuc", "hypot_cpu"),),
)  # fmt: skip
logaddexp = elementwise(
    "logaddexp", np.logaddexp, promotion="float",
    vjp=dict(a=lambda g, a, b: g * sigmoid(a - b), b=lambda g, a, b: g * sigmoid(b - a)),
    jvp=dict(a=lambda t, a, b: t * sigmoid(a - b), b=lambda t, a, b: t * sigmoid(b - a)),
    doc="log(exp(a) + exp(b)), without overflow", refuses=(kernel("biu", "logaddexp_cpu"),),
)  # fmt: skip


def _lerp(x: Any, end: Any, weight: Any) -> Any:
    """From the nearer end, so that weight 1 gives `end` itself."""
    step = end - x
    if is_number(weight):
        return x + weight * step if abs(weight) < 0.5 else end - step * (1 - weight)
    return np.where(np.abs(weight) < 0.5, x + weight * step, end - step * (1 - weight))


lerp = elementwise(
    "lerp", _lerp,
    vjp=dict(x=lambda g, weight: g * conj(1 - weight), end=lambda g, weight: g * conj(weight),
             weight=lambda g, x, end: g * conj(end - x)),
    jvp=dict(x=lambda t, weight: t * (1 - weight), end=lambda t, weight: t * weight,
             weight=lambda t, x, end: t * (end - x)),
    doc="x + weight * (end - x)",
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
    reference="operator.lt", doc="a < b", refuses=(kernel("c", "lt_cpu"),),
)  # fmt: skip
le = elementwise(
    "le", np.less_equal, emit=lambda ir, a, b: ir.compare("<=", a, b),
    reference="operator.le", doc="a <= b", refuses=(kernel("c", "le_cpu"),),
)  # fmt: skip
gt = elementwise(
    "gt", np.greater, emit=lambda ir, a, b: ir.compare(">", a, b),
    reference="operator.gt", doc="a > b", refuses=(kernel("c", "gt_cpu"),),
)  # fmt: skip
ge = elementwise(
    "ge", np.greater_equal, emit=lambda ir, a, b: ir.compare(">=", a, b),
    reference="operator.ge", doc="a >= b", refuses=(kernel("c", "ge_cpu"),),
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
bitwise_and = elementwise("bitwise_and", np.bitwise_and, doc="bits set in both",
                          refuses=(kernel("fc", "bitwise_and_cpu"),))  # fmt: skip
bitwise_or = elementwise("bitwise_or", np.bitwise_or, doc="bits set in either",
                          refuses=(kernel("fc", "bitwise_or_cpu"),))  # fmt: skip
bitwise_xor = elementwise("bitwise_xor", np.bitwise_xor, doc="bits set in one",
                          refuses=(kernel("fc", "bitwise_xor_cpu"),))  # fmt: skip
bitwise_not = elementwise("bitwise_not", np.invert, promotion=None, doc="all bits flipped",
                          refuses=(kernel("fc", "bitwise_not_cpu"),))  # fmt: skip
left_shift = elementwise("left_shift", np.left_shift, doc="a * 2 ** b",
                         refuses=(kernel("bfc", "lshift_cpu"),))  # fmt: skip
right_shift = elementwise("right_shift", np.right_shift, doc="a // 2 ** b",
                         refuses=(kernel("bfc", "rshift_cpu"),))  # fmt: skip
isnan = elementwise("isnan", np.isnan, promotion=None,
                    emit=lambda ir, x: ir.isnan(x), doc="is not a number")  # fmt: skip
isinf = elementwise("isinf", np.isinf, promotion=None,
                    emit=lambda ir, x: ir.isinf(x), doc="is infinite")  # fmt: skip
isfinite = elementwise("isfinite", np.isfinite, promotion=None,
                       emit=lambda ir, x: ir.isfinite(x), doc="is finite")  # fmt: skip


def _nan_to_num(x: Any, *, nan: float, posinf: float, neginf: float) -> Any:
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


nan_to_num = elementwise(
    "nan_to_num", _nan_to_num, promotion=None,
    vjp=dict(x=lambda g, x: where(isfinite(x), g, 0)),
    jvp=dict(x=lambda t, x: where(isfinite(x), t, 0)),
    node_name="NanToNumBackward0", doc="x with NaN and infinities replaced",
)  # fmt: skip
