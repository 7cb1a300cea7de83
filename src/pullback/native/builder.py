"""The builder that lowerings get (layer 6): functions of one element that LLVM can vectorise.

Calls to a maths library do not vectorise, so every function is straight-line code here: both sides
of a choice are computed and one is selected.  Sources: argument reduction by W. J. Cody and
W. Waite, "Software Manual for the Elementary Functions" (1980); double-length arithmetic by
T. J. Dekker, Numerische Mathematik 18 (1971); polynomials from `series.py`.

The largest errors that tests/native allows are in ACCURACY; measured with fused multiply-add, they
are 0.8 to 1.6 units in the last place, 2.3 for sigmoid and tan.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from pullback.native import series
from pullback.native.arithmetic import HALF_PI, LN2, LN10, Arithmetic, parts
from pullback.native.series import DIGITS

# in units in the last place: 0.5 is correctly rounded, and holds for what is not listed
ACCURACY = {
    "exp": 1.25, "exp2": 1.5, "expm1": 2.0, "log": 1.25, "log2": 1.5, "log10": 1.5, "log1p": 1.5,
    "tanh": 1.5, "sigmoid": 2.5, "sinh": 2.0, "cosh": 1.5, "sin": 1.5, "cos": 1.5, "tan": 2.5,
    "pow": 1.5, "rsqrt": 1.5, "round": 1.0,
    "elu": 3.0, "huber": 2.0,
}  # fmt: skip

HALF_LN2 = 0.34658  # a little over ln(2) / 2, for the rounding of the reduction
LOG_RANGE = 0.17158  # a little over (sqrt 2 - 1) / (sqrt 2 + 1)
QUARTER_PI = 0.78541
TRIGONOMETRIC_RANGE = 2.0**20  # beyond, the reduction would need more digits of pi


class Builder(Arithmetic):
    """Arithmetic, conditions and functions of one element of a loop."""

    @property
    def _wide(self) -> Builder:
        """The same place in the code, for float64."""
        if self.kind == "float64":
            return self
        return Builder(self._ir, self._b, "float64")

    def _widened(self, x: Any) -> Any:
        return x if self.kind == "float64" else self._b.fpext(x, self._ir.DoubleType())

    def _narrowed(self, x: Any) -> Any:
        return x if self.kind == "float64" else self._b.fptrunc(x, self.type)

    # ------------------------------------------------------------ exponentials
    def _nearest(self, x: Any) -> tuple[Any, Any]:
        """The nearest integer to x, as an integer and as a float.

        Adding 1.5 * 2**mantissa leaves it in the low bits, without a conversion that NaN would
        make undefined.
        """
        magic = self.constant(1.5 * 2.0**self.facts.mantissa)
        # the product that makes x may be fused with this sum, but not the sum with what follows
        shifted = self.fadd(x, magic)
        return self._b.sub(self._bits(shifted), self._bits(magic)), self._b.fsub(shifted, magic)

    def _exp_tail(self, r: Any) -> Any:
        """exp(r) - 1 - r for |r| <= ln 2 / 2."""
        tail = self.polynomial(r, series.exp_tail(self.facts.exp_terms, HALF_LN2))
        return self.fmul(self.fmul(r, r), tail)

    def _reduced(self, x: Any, careful: bool = True) -> tuple[Any, Any]:
        """x = n ln 2 + r with |r| <= ln 2 / 2: the integer n, and exp(r) - 1.

        What rounding r loses counts only where exp(r) - 1 itself is wanted (`careful`).
        """
        high, low = (self.constant(c) for c in parts(LN2, self.facts.exact))
        n, n_float = self._nearest(self.fmul(x, self.constant(float(1 / LN2))))
        first = self.fsub(x, self.fmul(n_float, high))  # exact
        second = self.fmul(n_float, low)
        if not careful:
            r = self.fsub(first, second)
            return n, self.fadd(r, self._exp_tail(r))
        r = self._b.fsub(first, second)
        lost = self._b.fsub(self._b.fsub(first, r), second)
        return n, self.fadd(r, self.fadd(self._exp_tail(r), lost))

    def _scaled(self, value: Any, n: Any) -> Any:
        """value * 2**n, in two steps because 2**n itself may not exist."""
        half = self._b.ashr(n, self._int(1))
        other = self._b.sub(n, half)
        return self.fmul(self.fmul(value, self._power_of_two(half)), self._power_of_two(other))

    def exp(self, x: Any, halvings: int = 0) -> Any:
        """e ** x (over 2 ** halvings, without overflow before that); NaN for NaN."""
        highest = (self.facts.highest + halvings) * float(LN2)
        x = self.clamp(x, self.facts.lowest * float(LN2), highest)
        n, rest = self._reduced(x, careful=False)
        n = self._b.sub(n, self._int(halvings)) if halvings else n
        return self._scaled(self.fadd(rest, self.constant(1.0)), n)

    def exp2(self, x: Any) -> Any:
        """2 ** x"""
        x = self.clamp(x, self.facts.lowest, self.facts.highest)
        n, n_float = self._nearest(x)
        r = self.fmul(self.fsub(x, n_float), self.constant(float(LN2)))
        rest = self.fadd(r, self._exp_tail(r))
        return self._scaled(self.fadd(rest, self.constant(1.0)), n)

    def expm1(self, x: Any) -> Any:
        """exp(x) - 1 = 2**n ((exp(r) - 1) + (1 - 2**-n)), which loses nothing near 0."""
        f = self.facts
        bounded = self.clamp(x, -0.75 * (f.mantissa + 8), f.highest * float(LN2))
        n, rest = self._reduced(bounded)
        most = self._int(2 * f.mantissa)  # beyond, 2**-n no longer counts
        capped = self._b.select(self._b.icmp_signed(">", n, most), most, n)
        inverse = self._power_of_two(self._b.neg(capped))
        value = self._scaled(self.fadd(rest, self.fsub(self.constant(1.0), inverse)), n)
        return self.select(self.compare("==", x, self.constant(0.0)), x, value)  # keeps -0

    def tanh(self, x: Any) -> Any:
        """A polynomial near 0, else 1 - 2 / (exp(2|x|) + 1) with the sign of x."""
        one, two = self.constant(1.0), self.constant(2.0)
        size = self.fabs(x)
        large = self.fsub(one, self.fdiv(two, self.fadd(self.exp(self.fadd(size, size)), one)))
        z = self.fmul(x, x)
        tail = self.polynomial(z, series.tanh_tail(self.facts.tanh_terms, 0.55))
        small = self.fadd(size, self.fmul(self.fmul(size, z), tail))
        value = self.select(self.compare("<", size, self.constant(0.55)), small, large)
        return self._intrinsic("copysign", value, x)

    def sigmoid(self, x: Any) -> Any:
        """1 / (1 + exp(-x)), by exp(-|x|), which cannot overflow."""
        one, zero = self.constant(1.0), self.constant(0.0)
        e = self.exp(self.fneg(self.fabs(x)))
        top = self.select(self.compare("<", x, zero), e, one)
        return self.fdiv(top, self.fadd(one, e))

    def cosh(self, x: Any) -> Any:
        """exp(|x|) / 2 + exp(-|x|) / 2"""
        half = self.exp(self.fabs(x), halvings=1)
        return self.fadd(half, self.fdiv(self.constant(0.25), half))

    def sinh(self, x: Any) -> Any:
        """A polynomial near 0, else exp(|x|) / 2 - exp(-|x|) / 2 with the sign of x."""
        size = self.fabs(x)
        half = self.exp(size, halvings=1)
        large = self.fsub(half, self.fdiv(self.constant(0.25), half))
        z = self.fmul(x, x)
        tail = self.polynomial(z, series.sin_tail(self.facts.sinh_terms, 1.0, 1))
        small = self.fadd(size, self.fmul(self.fmul(size, z), tail))
        value = self.select(self.compare("<", size, self.constant(1.0)), small, large)
        return self._intrinsic("copysign", value, x)

    # ------------------------------------------------------------ logarithms
    def _mantissa(self, x: Any) -> tuple[Any, Any]:
        """x = 2**e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), for positive x: e and f."""
        f = self.facts
        tiny = self.constant(2.0 ** (1 - f.bias))
        lifted = self.compare("<", x, tiny)  # subnormal: scaled up to have all its bits
        y = self.select(lifted, self.fmul(x, self.constant(2.0 ** (f.mantissa + 1))), x)
        root = self._bits(self.constant(math.sqrt(0.5)))
        # how far above sqrt(1/2), in whole powers of two
        steps = self._b.ashr(self._b.sub(self._bits(y), root), self._int(f.mantissa))
        m = self._float(self._b.sub(self._bits(y), self._b.shl(steps, self._int(f.mantissa))))
        back = self._b.select(lifted, self._int(f.mantissa + 1), self._int(0))
        e = self._small_integer(self._b.sub(steps, back))
        return e, self.fsub(m, self.constant(1.0))

    def _small_integer(self, n: Any) -> Any:
        """An integer as a float; without AVX-512 there is no vector instruction for 64 bits."""
        magic = self.constant(1.5 * 2.0**self.facts.mantissa)
        return self._b.fsub(self._float(self._b.add(n, self._bits(magic))), magic)

    def _below(self, f: Any) -> Any:
        """f - log(1 + f), with s = f / (2 + f): log(1 + f) = 2 s + s^3 P(s^2), 2 s = f - s f."""
        s = self.fdiv(f, self.fadd(f, self.constant(2.0)))
        z = self.fmul(s, s)
        tail = self.polynomial(z, series.log_tail(self.facts.log_terms, LOG_RANGE))
        return self.fmul(s, self.fsub(f, self.fmul(z, tail)))

    def _logarithm(self, x: Any, base: Decimal) -> Any:
        """log(x) / base, the base given by its natural logarithm."""
        e, f = self._mantissa(x)
        below = self._below(f)
        if base == 1:
            rest_high, rest_low = f, self.fneg(below)
        else:  # log(1 + f) in two parts, times a factor in two parts
            factor, factor_low = (
                self.constant(c) for c in parts(DIGITS.divide(1, base), self.facts.exact)
            )
            high = self._b.fsub(f, below)
            low = self._b.fsub(self._b.fsub(f, high), below)
            rest_high = self.fmul(high, factor)
            rest_low = self.fadd(self.fmul(high, factor_low), self.fmul(low, factor))
        per_e, per_e_low = (
            self.constant(c) for c in parts(DIGITS.divide(LN2, base), self.facts.exact)
        )
        small = self.fadd(rest_high, self.fadd(rest_low, self.fmul(e, per_e_low)))
        return self._log_ends(x, self.fadd(self.fmul(e, per_e), small))

    def _log_ends(self, x: Any, value: Any) -> Any:
        """What every logarithm is at 0, below it, at infinity and for NaN."""
        zero, infinity = self.constant(0.0), self.constant(math.inf)
        value = self.select(self.compare("==", x, zero), self.constant(-math.inf), value)
        value = self.select(self.compare("<", x, zero), self.constant(math.nan), value)
        value = self.select(self.compare("==", x, infinity), infinity, value)
        return self._where_nan(x, value)

    def log(self, x: Any) -> Any:
        """The natural logarithm."""
        return self._logarithm(x, Decimal(1))

    def log2(self, x: Any) -> Any:
        """The logarithm to base 2."""
        return self._logarithm(x, LN2)

    def log10(self, x: Any) -> Any:
        """The logarithm to base 10."""
        return self._logarithm(x, LN10)

    def log1p(self, x: Any) -> Any:
        """log(1 + x), with what the sum 1 + x lost."""
        one, zero = self.constant(1.0), self.constant(0.0)
        u = self._b.fadd(x, one)
        e, f = self._mantissa(u)
        lost_large = self._b.fsub(one, self._b.fsub(u, x))
        lost_small = self._b.fsub(x, self._b.fsub(u, one))
        lost = self.select(self.compare(">", x, one), lost_large, lost_small)
        near = self.compare("==", e, zero)  # then x itself is f, with nothing lost
        lost = self.select(near, zero, self.fdiv(lost, u))
        f = self.select(near, x, f)
        high, low = (self.constant(c) for c in parts(LN2, self.facts.exact))
        small = self.fsub(self.fadd(lost, self.fmul(e, low)), self._below(f))
        value = self._log_ends(u, self.fadd(self.fmul(e, high), self.fadd(f, small)))
        return self.select(self.compare("==", x, zero), x, value)  # keeps -0

    # ------------------------------------------------------------ trigonometric
    def _quadrant(self, x: Any) -> tuple[Any, Any, Any]:
        """x = n pi / 2 + r with |r| <= pi / 4: the low bits of n, sin(r) and cos(r).

        The reduction is done in float64, with pi / 2 in parts that n multiplies exactly.  Finite
        arguments beyond its range are left to NumPy (a trap).
        """
        limit = self.constant(TRIGONOMETRIC_RANGE)
        size = self.fabs(x)
        self.traps.append(self.both(self.compare(">", size, limit), self.isfinite(x)))
        inside = self.compare("<=", size, limit)
        bounded = self.select(inside, x, self.constant(math.nan))  # infinity gives NaN
        wide, y = self._wide, self._widened(bounded)
        n, n_float = wide._nearest(wide.fmul(y, wide.constant(float(1 / HALF_PI))))
        first, second, third = (wide.constant(c) for c in parts(HALF_PI, 33, 33))
        t = wide.fsub(y, wide.fmul(n_float, first))  # exact
        product = wide.fmul(n_float, second)  # exact
        u = wide._b.fsub(t, product)
        lost = wide._b.fsub(wide._b.fsub(t, u), product)
        correction = wide.fsub(lost, wide.fmul(n_float, third))
        r = self._narrowed(wide._b.fadd(u, correction))
        low = wide._b.fadd(wide._b.fsub(u, self._widened(r)), correction)
        low = self._narrowed(low)
        z = self.fmul(r, r)
        sin = self.polynomial(z, series.sin_tail(self.facts.sin_terms, QUARTER_PI))
        sin = self.fadd(r, self.fadd(self.fmul(self.fmul(r, z), sin), low))
        cos = self.polynomial(z, series.cos_tail(self.facts.cos_terms, QUARTER_PI))
        cos = self.fmul(self.fmul(z, z), cos)
        half = self.fmul(z, self.constant(0.5))
        main = self._b.fsub(self.constant(1.0), half)
        lost = self._b.fsub(self._b.fsub(self.constant(1.0), main), half)
        cos = self.fadd(main, self.fadd(lost, self.fsub(cos, self.fmul(r, low))))
        if self.kind == "float32":
            n = self._b.trunc(n, self.integer)
        return n, sin, cos

    def _turned(self, n: Any, even: Any, odd: Any) -> Any:
        """`even` or `odd` by the lowest bit of n, with the sign of the next bit."""
        one = self._int(1)
        value = self.select(self._b.icmp_unsigned("==", self._b.and_(n, one), one), odd, even)
        sign = self._b.shl(self._b.and_(n, self._int(2)), self._int(self.facts.bits - 2))
        return self._float(self._b.xor(self._bits(value), sign))

    def sin(self, x: Any) -> Any:
        """The sine of x radians."""
        n, sin, cos = self._quadrant(x)
        value = self._turned(n, sin, cos)
        return self.select(self.compare("==", x, self.constant(0.0)), x, value)  # keeps -0

    def cos(self, x: Any) -> Any:
        """The cosine of x radians."""
        n, sin, cos = self._quadrant(x)
        return self._turned(self._b.add(n, self._int(1)), sin, cos)

    def tan(self, x: Any) -> Any:
        """sin / cos"""
        n, sin, cos = self._quadrant(x)
        even = self._b.icmp_unsigned("==", self._b.and_(n, self._int(1)), self._int(0))
        top = self.select(even, sin, self.fneg(cos))
        value = self.fdiv(top, self.select(even, cos, sin))
        return self.select(self.compare("==", x, self.constant(0.0)), x, value)

    # ------------------------------------------------------------ powers
    def power(self, a: Any, b: Any) -> Any:
        """a ** b; the commonest constant exponents are products and roots, as in PyTorch."""
        if isinstance(b, self._ir.Constant) and not isinstance(a, self._ir.Constant):
            found = self._known_power(a, b.constant)
            if found is not None:
                return found
        a, b = self._numbers(a, b)
        return self._power_ends(a, b, self._magnitude(self.fabs(a), b))

    def _known_power(self, a: Any, b: float) -> Any:
        one = self.constant(1.0)
        if b == 0.0:
            return one
        if abs(b) == 0.5:
            root = self.sqrt(a)
            return root if b > 0 else self.fdiv(one, root)
        if abs(b) not in (1.0, 2.0, 3.0):
            return None
        value = a
        for _ in range(int(abs(b)) - 1):
            value = self.fmul(value, a)
        return value if b > 0 else self.fdiv(one, value)

    def _magnitude(self, a: Any, b: Any) -> Any:
        """a ** b for a >= 0: exp(b log a), the logarithm with some 13 bits more than the result."""
        if self.kind == "float32":
            wide = self._wide
            product = wide.fmul(self._widened(b), wide.log(self._widened(a)))
            return self._narrowed(wide.exp(product))
        high, low = self._long_log(a)
        product = self.fmul(b, high)
        rest = self.fadd(self._intrinsic("fma", b, high, self.fneg(product)), self.fmul(b, low))
        value = self.exp(product)
        # where the power is 0 or infinite, the correction would make NaN of it
        ordinary = self._b.and_(self.compare("<", self.fabs(product), self.constant(745.2)),
                                self.isfinite(value))  # fmt: skip
        return self.select(ordinary, self.fadd(value, self.fmul(value, rest)), value)

    def _long_log(self, a: Any) -> tuple[Any, Any]:
        """log a as two numbers: s = f / (2 + f) and 2/3 s^3 are carried in double length."""

        def fma(p: Any, q: Any, r: Any) -> Any:
            return self._intrinsic("fma", p, q, r)

        sub, add = self._b.fsub, self._b.fadd
        e, f = self._mantissa(a)
        d = add(f, self.constant(2.0))
        d_low = sub(f, sub(d, self.constant(2.0)))
        s = self.fdiv(f, d)
        s_low = self.fdiv(sub(fma(self.fneg(s), d, f), self._b.fmul(s, d_low)), d)
        z = self._b.fmul(s, s)
        z_low = add(fma(s, s, self.fneg(z)), self._b.fmul(add(s, s), s_low))
        # 2/3 + 2/5 z + ...: the first term in two parts
        tail = self._b.fmul(z, self.polynomial(z, self._longer_tail()))
        third, third_low = (self.constant(c) for c in parts(Decimal(2) / Decimal(3), 53))
        p = add(third, tail)
        p_low = add(add(sub(third, p), tail), third_low)
        cube = self._b.fmul(s, z)
        cube_low = add(fma(s, z, self.fneg(cube)), add(self._b.fmul(s, z_low),
                                                       self._b.fmul(s_low, z)))  # fmt: skip
        q = self._b.fmul(cube, p)
        q_low = add(fma(cube, p, self.fneg(q)), add(self._b.fmul(cube, p_low),
                                                    self._b.fmul(cube_low, p)))  # fmt: skip
        high, low = (self.constant(c) for c in parts(LN2, self.facts.exact))
        total = self._b.fmul(e, high)  # exact
        rest = add(add(add(s_low, s_low), q_low), self._b.fmul(e, low))
        for term in (add(s, s), q):  # e ln 2 is 0 or larger than 2 s, which is larger than q
            grown = add(total, term)
            rest = add(rest, self._lost(total, term, grown))
            total = grown
        result = add(total, rest)
        low_part = add(sub(total, result), rest)
        ordinary = self._b.and_(self.compare(">", a, self.constant(0.0)), self.isfinite(a))
        result = self.select(ordinary, result, self._log_ends(a, result))
        return result, self.select(ordinary, low_part, self.constant(0.0))

    def _longer_tail(self) -> tuple[float, ...]:
        """The terms after 2/3 of the series of `log_tail`."""
        return series.log_tail_after_first(self.facts.log_terms, LOG_RANGE)

    def _lost(self, a: Any, b: Any, total: Any) -> Any:
        """What a + b = total lost, exactly (D. E. Knuth, TAOCP 2, 4.2.2, theorem B)."""
        sub, add = self._b.fsub, self._b.fadd
        part = sub(total, a)
        return add(sub(a, sub(total, part)), sub(b, part))

    def _power_ends(self, a: Any, b: Any, value: Any) -> Any:
        """Signs, and the cases that C's pow defines."""
        zero, one, nan = self.constant(0.0), self.constant(1.0), self.constant(math.nan)
        whole = self.compare("==", self._intrinsic("rint", b), b)
        half = self.fmul(b, self.constant(0.5))
        odd = self._b.and_(whole, self.compare("!=", self.floor(half), half))
        value = self.select(self.compare("==", self.fabs(a), one), one, value)  # 1 ** inf
        signed = self._intrinsic("copysign", value, a)
        value = self.select(odd, signed, value)
        negative = self._b.and_(self.compare("<", a, zero), self.isfinite(a))
        value = self.select(self._b.and_(negative, self._b.not_(whole)), nan, value)
        value = self._where_nan(a, self._where_nan(b, value))
        unit = self.either(self.compare("==", b, zero), self.compare("==", a, one))
        return self.select(unit, one, value)
