"""What the builder's functions are made of (layer 6): arithmetic, bits, conditions, constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from pullback.core.callsite import with_site
from pullback.errors import UnsupportedError
from pullback.native.series import DIGITS

LN2 = Decimal(2).ln(DIGITS)
LN10 = Decimal(10).ln(DIGITS)
HALF_PI = Decimal("1.57079632679489661923132169163975144209858469968755291048747229615390820314")


def parts(value: Decimal, *bits: int) -> tuple[float, ...]:
    """Numbers of so many bits each that add up to `value`, largest first; the last has all bits.

    A product of an integer and a part is exact while their bits fit in a mantissa.
    """
    found = []
    for n in bits:
        exponent = math.frexp(value)[1]
        scale = DIGITS.power(2, n - exponent)
        found.append(float(DIGITS.divide(DIGITS.multiply(value, scale).to_integral_value(), scale)))
        value = DIGITS.subtract(value, Decimal(found[-1]))
    return (*found, float(value))


class Float(NamedTuple):
    """A floating type: its layout, the lengths of its polynomials, and where exp ends."""

    bits: int
    mantissa: int  # stored bits
    bias: int
    exp_terms: int
    log_terms: int
    sin_terms: int
    cos_terms: int
    sinh_terms: int
    tanh_terms: int
    exact: int  # bits of a constant whose product with an exponent is exact
    lowest: float  # 2 ** lowest rounds to 0
    highest: float  # 2 ** highest is infinite


# The terms are as many as bring the dropped part below 1/16 unit in the last place.
FLOAT32 = Float(32, 23, 127, 6, 3, 4, 3, 4, 6, 15, -152.0, 129.0)
FLOAT64 = Float(64, 52, 1023, 11, 8, 7, 6, 8, 12, 41, -1078.0, 1025.0)


class Arithmetic:
    """Scalar arithmetic on one element; conditions are one-bit values.

    Sums and products may be contracted into fused multiply-adds; nothing else is relaxed, so NaN,
    infinities, signed zeros and subnormal numbers behave as IEEE 754 says.
    """

    def __init__(self, ir: Any, builder: Any, kind: str) -> None:
        self._ir = ir
        self._b = builder
        self.kind = kind
        self.facts = FLOAT32 if kind == "float32" else FLOAT64
        self.type = ir.FloatType() if kind == "float32" else ir.DoubleType()
        self.integer = ir.IntType(self.facts.bits)
        self.traps: list[Any] = []  # conditions under which the result must be computed elsewhere

    # ------------------------------------------------------------ constants, bits
    def constant(self, value: float) -> Any:
        """A number in the type of the loop."""
        if self.facts.bits == 32:  # LLVM's text wants a float that is exact in single precision
            with np.errstate(over="ignore"):
                value = float(np.float32(value))
        return self._ir.Constant(self.type, float(value))

    def _int(self, value: int) -> Any:
        return self._ir.Constant(self.integer, value)

    def _bits(self, x: Any) -> Any:
        return self._b.bitcast(x, self.integer)

    def _float(self, bits: Any) -> Any:
        return self._b.bitcast(bits, self.type)

    def _power_of_two(self, n: Any) -> Any:
        """2 ** n for an integer n in the range of normal numbers."""
        f = self.facts
        return self._float(self._b.shl(self._b.add(n, self._int(f.bias)), self._int(f.mantissa)))

    # ------------------------------------------------------------ kinds of values
    def is_condition(self, x: Any) -> bool:
        """Whether a value is a condition, not a number."""
        return bool(x.type == self._ir.IntType(1))

    def refuse_booleans(self) -> None:
        """Raise for an operation on conditions that gives no condition."""
        raise UnsupportedError(
            with_site("fused loop: arithmetic on booleans alone has no lowering to native code")
        )

    def _numbers(self, *values: Any) -> list[Any]:
        """Operands as numbers; a condition counts as 0 or 1 if it stands beside a number."""
        conditions = [self.is_condition(v) for v in values]
        if all(conditions):
            self.refuse_booleans()
        return [
            self._b.uitofp(v, self.type) if c else v
            for v, c in zip(values, conditions, strict=True)
        ]

    # ------------------------------------------------------------ arithmetic
    def fadd(self, a: Any, b: Any) -> Any:
        """a + b"""
        return self._b.fadd(*self._numbers(a, b), flags=("contract",))

    def fsub(self, a: Any, b: Any) -> Any:
        """a - b"""
        return self._b.fsub(*self._numbers(a, b), flags=("contract",))

    def fmul(self, a: Any, b: Any) -> Any:
        """a * b"""
        return self._b.fmul(*self._numbers(a, b), flags=("contract",))

    def fdiv(self, a: Any, b: Any) -> Any:
        """a / b"""
        return self._b.fdiv(*self._numbers(a, b))

    def fneg(self, x: Any) -> Any:
        """-x"""
        return self._b.fneg(*self._numbers(x))

    def _intrinsic(self, name: str, *args: Any) -> Any:
        module = self._b.module
        full = f"llvm.{name}.f{self.facts.bits}"
        function = module.globals.get(full)
        if function is None:
            kind = self._ir.FunctionType(self.type, [self.type] * len(args))
            function = self._ir.Function(module, kind, full)
        return self._b.call(function, self._numbers(*args))

    def fabs(self, x: Any) -> Any:
        """|x|"""
        return self._intrinsic("fabs", x)

    def sqrt(self, x: Any) -> Any:
        """The square root, one instruction."""
        return self._intrinsic("sqrt", x)

    def floor(self, x: Any) -> Any:
        """Rounded down."""
        return self._intrinsic("floor", x)

    def ceil(self, x: Any) -> Any:
        """Rounded up."""
        return self._intrinsic("ceil", x)

    def trunc(self, x: Any) -> Any:
        """Rounded towards zero."""
        return self._intrinsic("trunc", x)

    def round(self, x: Any, decimals: int = 0) -> Any:
        """Rounded to even, after so many decimals (of a scaled number, as NumPy does it)."""
        scale = self.constant(10.0 ** abs(decimals))
        if decimals > 0:
            x = self.fmul(x, scale)
        elif decimals < 0:
            x = self.fdiv(x, scale)
        x = self._intrinsic("rint", x)
        if decimals > 0:
            return self.fdiv(x, scale)
        return self.fmul(x, scale) if decimals < 0 else x

    def sign(self, x: Any) -> Any:
        """-1, 0 or 1; 0 for NaN."""
        zero = self.constant(0.0)
        one = self._intrinsic("copysign", self.constant(1.0), x)
        return self.select(self.compare(">", self.fabs(x), zero), one, zero)

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """By Horner's rule, lowest power first."""
        value = self.constant(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.fadd(self.fmul(value, x), self.constant(c))
        return value

    # ------------------------------------------------------------ conditions
    def compare(self, relation: str, a: Any, b: Any) -> Any:
        """`<`, `<=`, `>`, `>=`, `==` (false with NaN) or `!=` (true with NaN)."""
        if self.is_condition(a) and self.is_condition(b):
            return self._b.icmp_unsigned(relation, a, b)
        a, b = self._numbers(a, b)
        if relation == "!=":
            return self._b.fcmp_unordered("!=", a, b)
        return self._b.fcmp_ordered(relation, a, b)

    def truth(self, x: Any) -> Any:
        """A condition itself; of a number, whether it is not 0."""
        return x if self.is_condition(x) else self.compare("!=", x, self.constant(0.0))

    def both(self, a: Any, b: Any) -> Any:
        """Whether two conditions hold."""
        return self._b.and_(self.truth(a), self.truth(b))

    def either(self, a: Any, b: Any) -> Any:
        """Whether one of two conditions holds, or both."""
        return self._b.or_(self.truth(a), self.truth(b))

    def differ(self, a: Any, b: Any) -> Any:
        """Whether exactly one of two conditions holds."""
        return self._b.xor(self.truth(a), self.truth(b))

    def negate(self, x: Any) -> Any:
        """Whether a condition does not hold."""
        return self._b.not_(self.truth(x))

    def isnan(self, x: Any) -> Any:
        """Whether x is not a number."""
        return self.compare("!=", x, x)

    def isinf(self, x: Any) -> Any:
        """Whether x is infinite."""
        return self.compare("==", self.fabs(x), self.constant(math.inf))

    def isfinite(self, x: Any) -> Any:
        """Whether x is neither infinite nor NaN."""
        return self.compare("<", self.fabs(x), self.constant(math.inf))

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """a where the condition holds, else b."""
        if not (self.is_condition(a) and self.is_condition(b)):
            a, b = self._numbers(a, b)
        return self._b.select(self.truth(condition), a, b)

    def fmax(self, a: Any, b: Any) -> Any:
        """The larger; NaN when either is."""
        wins = self._b.or_(self.compare(">", a, b), self.isnan(a))
        return self.select(wins, a, b)

    def fmin(self, a: Any, b: Any) -> Any:
        """The smaller; NaN when either is."""
        wins = self._b.or_(self.compare("<", a, b), self.isnan(a))
        return self.select(wins, a, b)

    def clamp(self, x: Any, low: float | None, high: float | None) -> Any:
        """x limited to [low, high]; NaN stays, and a bound that is NaN makes all NaN."""
        if low is not None:
            x = self._at_least(x, low)
        return x if high is None else self._at_most(x, high)

    def _at_least(self, x: Any, low: float) -> Any:
        bound = self.constant(low)
        if math.isnan(low):
            return bound
        return self.select(self.compare("<", x, bound), bound, x)

    def _at_most(self, x: Any, high: float) -> Any:
        bound = self.constant(high)
        if math.isnan(high):
            return bound
        return self.select(self.compare(">", x, bound), bound, x)

    def _where_nan(self, x: Any, other: Any) -> Any:
        """x where it is NaN, else the other."""
        return self.select(self.isnan(x), x, other)
