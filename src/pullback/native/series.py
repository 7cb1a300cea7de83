"""Polynomials for the vector maths (layer 6), made here rather than copied from a table.

A function's Taylor series on an interval around 0 is economised: the highest power is written in
Chebyshev polynomials and its leading one, the smallest in maximum norm, is dropped; again and again
until the wanted number of terms is left.  The arithmetic has 100 digits, so the only errors that
count are the dropped ones.  Source: C. Lanczos, "Applied Analysis" (1956), chapter 7.
"""

from __future__ import annotations

import functools
from decimal import Context, Decimal, localcontext
from math import factorial

EXTRA = 12  # Taylor terms beyond the wanted ones: enough for every interval used here
# Changing between powers and Chebyshev polynomials of degree n loses about 0.8 n digits.
DIGITS = Context(prec=100)


@functools.cache
def chebyshev(n: int) -> tuple[int, ...]:
    """Coefficients of T_n, lowest power first."""
    if n < 2:
        return (1,) if n == 0 else (0, 1)
    twice = [0, *(2 * c for c in chebyshev(n - 1))]
    for k, c in enumerate(chebyshev(n - 2)):
        twice[k] -= c
    return tuple(twice)


def economised(taylor: list[Decimal], low: float, high: float, terms: int) -> tuple[float, ...]:
    """`terms` coefficients, lowest power first, of nearly the best polynomial on [low, high]."""
    with localcontext(DIGITS):
        middle, half = (Decimal(high) + Decimal(low)) / 2, (Decimal(high) - Decimal(low)) / 2
        p = _substituted(taylor, middle, half)
        while len(p) > terms:
            top = p[-1] / chebyshev(len(p) - 1)[-1]
            p = [c - top * t for c, t in zip(p, chebyshev(len(p) - 1), strict=True)][:-1]
        return tuple(float(c) for c in _substituted(p, -middle / half, 1 / half))


def _substituted(p: list[Decimal], shift: Decimal, scale: Decimal) -> list[Decimal]:
    """The polynomial t -> p(shift + scale t), by Horner's rule on coefficient lists."""
    out: list[Decimal] = []
    for c in reversed(p):
        grown = [Decimal(0), *(scale * o for o in out)]
        for k, o in enumerate(out):
            grown[k] += shift * o
        grown[0] += c
        out = grown
    return out


def _quotient(a: int, b: int) -> Decimal:
    return DIGITS.divide(Decimal(a), Decimal(b))


# Each takes the number of terms and the half width h of the interval of the function's argument.


@functools.cache
def exp_tail(terms: int, h: float) -> tuple[float, ...]:
    """(exp(r) - 1 - r) / r^2 for |r| <= h."""
    return economised([_quotient(1, factorial(k + 2)) for k in range(terms + EXTRA)], -h, h, terms)


@functools.cache
def log_tail(terms: int, h: float) -> tuple[float, ...]:
    """(log((1 + s) / (1 - s)) - 2 s) / s^3 in powers of z = s^2, for |s| <= h."""
    return economised([_quotient(2, 2 * k + 3) for k in range(terms + EXTRA)], 0, h * h, terms)


@functools.cache
def sin_tail(terms: int, h: float, sign: int = -1) -> tuple[float, ...]:
    """(sin(r) - r) / r^3 in powers of r^2, for |r| <= h; with sign 1, that of sinh."""
    taylor = [_quotient(sign ** (k + 1), factorial(2 * k + 3)) for k in range(terms + EXTRA)]
    return economised(taylor, 0, h * h, terms)


@functools.cache
def cos_tail(terms: int, h: float) -> tuple[float, ...]:
    """(cos(r) - 1 + r^2 / 2) / r^4 in powers of r^2, for |r| <= h."""
    taylor = [_quotient((-1) ** k, factorial(2 * k + 4)) for k in range(terms + EXTRA)]
    return economised(taylor, 0, h * h, terms)


@functools.cache
def tanh_tail(terms: int, h: float) -> tuple[float, ...]:
    """(tanh(x) - x) / x^3 in powers of x^2, for |x| <= h < pi / 2.

    The coefficients come from tanh' = 1 - tanh^2, power by power.
    """
    with localcontext(DIGITS):
        t = [Decimal(1)]  # of tanh(x) / x in powers of x^2
        for k in range(1, terms + EXTRA + 1):
            t.append(-sum((t[i] * t[k - 1 - i] for i in range(k)), Decimal(0)) / (2 * k + 1))
        return economised(t[1:], 0, h * h, terms)


@functools.cache
def log_tail_after_first(terms: int, h: float) -> tuple[float, ...]:
    """(log((1 + s) / (1 - s)) - 2 s - 2 s^3 / 3) / s^5 in powers of s^2, for |s| <= h."""
    return economised([_quotient(2, 2 * k + 5) for k in range(terms + EXTRA)], 0, h * h, terms)
