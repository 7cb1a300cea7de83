"""The polynomials of the vector maths: near the best of their degree, exact in simple cases."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from pullback.native import series
from pullback.native.arithmetic import FLOAT32, FLOAT64, HALF_PI, LN2, parts


def value(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    return np.polynomial.polynomial.polyval(x, coefficients)


def test_chebyshev_polynomials() -> None:
    assert series.chebyshev(0) == (1,)
    assert series.chebyshev(3) == (0, -3, 0, 4)
    assert series.chebyshev(5) == (0, 5, 0, -20, 0, 16)


def test_a_polynomial_of_low_degree_is_kept() -> None:
    p = [Decimal(3), Decimal(-2), Decimal("0.5")]
    assert series.economised(p, -1.0, 2.0, 3) == (3.0, -2.0, 0.5)


def test_the_best_line_for_the_square() -> None:
    # on [0, 1] the best line for x^2 is x - 1/8 (its error is 1/8 at three points)
    found = series.economised([Decimal(0), Decimal(0), Decimal(1)], 0.0, 1.0, 2)
    assert found == (-0.125, 1.0)


@pytest.mark.parametrize("facts, tolerance", [(FLOAT32, 2.0**-28), (FLOAT64, 2.0**-53)])
def test_the_dropped_part_is_below_a_sixteenth_of_an_ulp(facts, tolerance: float) -> None:
    h = 0.34658
    r = np.linspace(-h, h, 999)[np.linspace(-h, h, 999) != 0]
    rest = value(series.exp_tail(facts.exp_terms, h), r) * r * r
    assert np.abs(rest + r - np.expm1(r)).max() < tolerance * 2
    s = np.linspace(1e-3, 0.17158, 999)
    log = 2 * s + s**3 * value(series.log_tail(facts.log_terms, 0.17158), s * s)
    assert np.abs(log - 2 * np.arctanh(s)).max() < tolerance * 2
    x = np.linspace(1e-3, 0.7854, 999)
    sin = x + x**3 * value(series.sin_tail(facts.sin_terms, 0.7854), x * x)
    cos = 1 - x * x / 2 + x**4 * value(series.cos_tail(facts.cos_terms, 0.7854), x * x)
    assert np.abs(sin - np.sin(x)).max() < tolerance * 4
    assert np.abs(cos - np.cos(x)).max() < tolerance * 4
    x = np.linspace(1e-3, 0.55, 999)
    tanh = x + x**3 * value(series.tanh_tail(facts.tanh_terms, 0.55), x * x)
    assert np.abs(tanh - np.tanh(x)).max() < tolerance * 4
    x = np.linspace(1e-3, 1.0, 999)
    sinh = x + x**3 * value(series.sin_tail(facts.sinh_terms, 1.0, 1), x * x)
    assert np.abs(sinh - np.sinh(x)).max() < tolerance * 8


def test_parts_add_up_and_are_short() -> None:
    with localcontext(series.DIGITS):
        assert abs(sum(map(Decimal, parts(LN2, 41))) - LN2) < Decimal(2) ** -90
        assert abs(sum(map(Decimal, parts(HALF_PI, 33, 33))) - HALF_PI) < Decimal(2) ** -115
    high, middle, low = parts(HALF_PI, 33, 33)
    assert (high * 2.0**32).is_integer() and (middle * 2.0**80).is_integer()
    assert high + middle + low == math.pi / 2
