"""The builder that lowerings get (layer 6): scalar arithmetic that LLVM turns into vector code.

Calls to a maths library do not vectorise, so exp, log, tanh and sigmoid are written out here as
straight-line code on one element.  Sources: argument reduction by W. J. Cody and W. Waite,
"Software Manual for the Elementary Functions" (1980); the series are Taylor's, cut where the next
term is below half a unit in the last place on the reduced interval.

Accuracy, measured over the whole range by tests/native: at most 4 units in the last place.
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple


class Float(NamedTuple):
    """What the functions need to know of a floating type."""

    bits: int
    mantissa: int  # stored bits
    bias: int
    exp_terms: int
    log_terms: int
    lowest: float  # exp is 0 below
    highest: float  # exp is infinite above
    saturated: float  # tanh is 1 above
    ln2_high: float  # few bits, so that n * ln2_high is exact
    ln2_low: float


FLOAT32 = Float(32, 23, 127, 8, 5, -110.0, 90.0, 10.0, 0.693359375, -2.12194440e-4)
FLOAT64 = Float(
    64, 52, 1023, 14, 12, -760.0, 712.0, 21.0,
    6.93147180369123816490e-01, 1.90821492927058770002e-10,
)  # fmt: skip


class Builder:
    """Arithmetic on one element of a loop; conditions are one-bit values."""

    def __init__(self, ir: Any, builder: Any, kind: str) -> None:
        self._ir = ir
        self._b = builder
        self.facts = FLOAT32 if kind == "float32" else FLOAT64
        self.type = ir.FloatType() if kind == "float32" else ir.DoubleType()
        self.integer = ir.IntType(self.facts.bits)

    # ------------------------------------------------------------ constants, bits
    def constant(self, value: float) -> Any:
        """A number in the type of the loop."""
        if self.facts.bits == 32:  # LLVM's text wants a float that is exact in single precision
            value = struct.unpack("f", struct.pack("f", value))[0] if abs(value) < 3.4e38 else value
        return self._ir.Constant(self.type, float(value))

    def _int(self, value: int) -> Any:
        return self._ir.Constant(self.integer, value)

    def _bits(self, x: Any) -> Any:
        return self._b.bitcast(x, self.integer)

    def _float(self, bits: Any) -> Any:
        return self._b.bitcast(bits, self.type)

    # ------------------------------------------------------------ arithmetic
    def fadd(self, a: Any, b: Any) -> Any:
        """a + b"""
        return self._b.fadd(a, b, flags=("contract",))

    def fsub(self, a: Any, b: Any) -> Any:
        """a - b"""
        return self._b.fsub(a, b, flags=("contract",))

    def fmul(self, a: Any, b: Any) -> Any:
        """a * b"""
        return self._b.fmul(a, b, flags=("contract",))

    def fdiv(self, a: Any, b: Any) -> Any:
        """a / b"""
        return self._b.fdiv(a, b)

    def fneg(self, x: Any) -> Any:
        """-x"""
        return self._b.fneg(x)

    def _intrinsic(self, name: str, *args: Any) -> Any:
        module = self._b.module
        full = f"llvm.{name}.f{self.facts.bits}"
        function = module.globals.get(full)
        if function is None:
            kind = self._ir.FunctionType(self.type, [self.type] * len(args))
            function = self._ir.Function(module, kind, full)
        return self._b.call(function, args)

    def fabs(self, x: Any) -> Any:
        """|x|"""
        return self._intrinsic("fabs", x)

    def sqrt(self, x: Any) -> Any:
        """The square root, one instruction."""
        return self._intrinsic("sqrt", x)

    # ------------------------------------------------------------ conditions
    def compare(self, relation: str, a: Any, b: Any) -> Any:
        """`<`, `<=`, `>`, `>=`, `==` (false with NaN) or `!=` (true with NaN)."""
        if relation == "!=":
            return self._b.fcmp_unordered("!=", a, b)
        return self._b.fcmp_ordered(relation, a, b)

    def both(self, a: Any, b: Any) -> Any:
        """Whether two conditions hold."""
        return self._b.and_(a, b)

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """a where the condition holds, else b."""
        return self._b.select(condition, a, b)

    def fmax(self, a: Any, b: Any) -> Any:
        """The larger; NaN when either is."""
        wins = self._b.or_(self.compare(">", a, b), self.compare("!=", a, a))
        return self.select(wins, a, b)

    def fmin(self, a: Any, b: Any) -> Any:
        """The smaller; NaN when either is."""
        wins = self._b.or_(self.compare("<", a, b), self.compare("!=", a, a))
        return self.select(wins, a, b)

    # ------------------------------------------------------------ exponentials
    def _reduced(self, x: Any) -> tuple[Any, Any]:
        """x = n ln 2 + r with |r| <= ln 2 / 2: the integer n, and exp(r) - 1.

        Adding 1.5 * 2**mantissa rounds to an integer and leaves it in the low bits, without a
        conversion that NaN would make undefined.
        """
        f = self.facts
        magic = self.constant(1.5 * 2.0**f.mantissa)
        shifted = self._b.fadd(self.fmul(x, self.constant(1 / math.log(2))), magic)
        n = self._b.sub(self._bits(shifted), self._bits(magic))
        n_float = self._b.fsub(shifted, magic)
        r = self.fsub(x, self.fmul(n_float, self.constant(f.ln2_high)))
        r = self.fsub(r, self.fmul(n_float, self.constant(f.ln2_low)))
        # exp(r) - 1 = r + r^2 (1/2 + r/6 + ...)
        tail = self.constant(1 / math.factorial(f.exp_terms))
        for k in range(f.exp_terms - 1, 1, -1):
            tail = self.fadd(self.fmul(tail, r), self.constant(1 / math.factorial(k)))
        return n, self.fadd(self.fmul(self.fmul(r, r), tail), r)

    def _power_of_two(self, n: Any) -> Any:
        f = self.facts
        return self._float(self._b.shl(self._b.add(n, self._int(f.bias)), self._int(f.mantissa)))

    def exp(self, x: Any) -> Any:
        """e ** x; 0 and infinity at the ends, NaN for NaN."""
        f = self.facts
        low, high = self.constant(f.lowest), self.constant(f.highest)
        x = self.select(self.compare("<", x, low), low, x)
        x = self.select(self.compare(">", x, high), high, x)
        n, rest = self._reduced(x)
        value = self.fadd(rest, self.constant(1.0))
        half = self._b.ashr(n, self._int(1))  # two steps: 2**n itself may not exist
        other = self._b.sub(n, half)
        return self.fmul(self.fmul(value, self._power_of_two(half)), self._power_of_two(other))

    def tanh(self, x: Any) -> Any:
        """t / (t + 2) with t = exp(2|x|) - 1, with the sign of x."""
        f = self.facts
        top = self.constant(f.saturated)
        size = self.fabs(x)
        size = self.select(self.compare(">", size, top), top, size)
        n, rest = self._reduced(self.fadd(size, size))
        scale = self._power_of_two(n)
        t = self.fadd(self.fmul(scale, rest), self.fsub(scale, self.constant(1.0)))
        value = self.fdiv(t, self.fadd(t, self.constant(2.0)))
        return self._intrinsic("copysign", value, x)

    def sigmoid(self, x: Any) -> Any:
        """1 / (1 + exp(-x)), by exp(-|x|), which cannot overflow."""
        one, zero = self.constant(1.0), self.constant(0.0)
        e = self.exp(self.fneg(self.fabs(x)))
        top = self.select(self.compare("<", x, zero), e, one)
        return self.fdiv(top, self.fadd(one, e))

    # ------------------------------------------------------------ logarithm
    def log(self, x: Any) -> Any:
        """With s = (m - 1) / (m + 1): log m = 2 (s + s^3 / 3 + ...), for m near 1."""
        f = self.facts
        one, zero = self.constant(1.0), self.constant(0.0)
        tiny = self.constant(2.0 ** (1 - f.bias))
        lifted = self.compare("<", x, tiny)  # subnormal: scaled up to have all its bits
        y = self.select(lifted, self.fmul(x, self.constant(2.0 ** (f.mantissa + 1))), x)
        root = self._bits(self.constant(math.sqrt(0.5)))
        # how far above sqrt(1/2), in whole powers of two
        e = self._b.ashr(self._b.sub(self._bits(y), root), self._int(f.mantissa))
        m = self._float(self._b.sub(self._bits(y), self._b.shl(e, self._int(f.mantissa))))
        e_float = self._b.sitofp(e, self.type)
        e_float = self.select(
            lifted, self.fsub(e_float, self.constant(float(f.mantissa + 1))), e_float
        )
        s = self.fdiv(self.fsub(m, one), self.fadd(m, one))
        z = self.fmul(s, s)
        tail = self.constant(2 / (2 * f.log_terms + 1))
        for k in range(f.log_terms - 1, 0, -1):
            tail = self.fadd(self.fmul(tail, z), self.constant(2 / (2 * k + 1)))
        small = self.fmul(self.fmul(s, z), tail)
        small = self.fadd(small, self.fmul(e_float, self.constant(f.ln2_low)))
        value = self.fadd(small, self.fadd(s, s))
        value = self.fadd(value, self.fmul(e_float, self.constant(f.ln2_high)))
        infinity = self.constant(math.inf)
        value = self.select(self.compare("==", x, zero), self.constant(-math.inf), value)
        value = self.select(self.compare("<", x, zero), self.constant(math.nan), value)
        value = self.select(self.compare("==", x, infinity), infinity, value)
        return self.select(self.compare("!=", x, x), x, value)
