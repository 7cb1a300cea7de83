"""Random arrays (layer 2), equal to PyTorch's CPU kernels bit for bit where that is possible.

Observed equal, for every dtype that has them: uniform, normal, random integers, permutations,
bernoulli with a tensor of probabilities, exponential, multinomial with replacement.  Not equal
(PyTorch's wheel takes another generator there): bernoulli and dropout with one probability.

float32 normals of 16 or more samples come from an AVX2 kernel with polynomials for log, sin and
cos; they are evaluated here in the same order with the same fused multiply-adds.  Source of the
polynomials: the single-precision functions of the Cephes library, S. L. Moshier, 1989.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.generator import Generator
from pullback.errors import ArgumentRuntimeError
from pullback.typing import Array, NumpyDtype, Shape

_F32, _F64 = np.float32, np.float64
TWO_PI = 2 * math.pi


def uniform53(generator: Generator, n: int) -> Array:
    """(n,) float64 in [0, 1): the low 53 bits of 64."""
    return (generator.draw64(n) & np.uint64(2**53 - 1)) * 2.0**-53


def uniform24(generator: Generator, n: int) -> Array:
    """(n,) float32 in [0, 1): the low 24 bits of 32."""
    return ((generator.draw32(n) & np.uint64(2**24 - 1)) * 2.0**-24).astype(_F32)


def uniform(generator: Generator, shape: Shape, dtype: NumpyDtype, low: float = 0.0,
            high: float = 1.0) -> Array:  # fmt: skip
    """Evenly spread over [low, high).  Raises RuntimeError when low > high."""
    if not low <= high:
        raise ArgumentRuntimeError(
            with_site(
                "uniform_ expects to return a [from, to) range, but found from="
                f"{low} > to={high}"
            )
        )
    n = math.prod(shape)
    if dtype.kind == "c":
        parts = uniform(generator, (2 * n,), np.dtype(_F32 if dtype.itemsize == 8 else _F64))
        return parts.view(dtype).reshape(shape)
    kind = _F64 if dtype.itemsize == 8 else _F32
    draws = uniform53(generator, n) if kind is _F64 else uniform24(generator, n)
    if (low, high) != (0.0, 1.0):
        draws = (_fma64 if kind is _F64 else _fma)(draws, kind(high) - kind(low), kind(low))
    found = draws.astype(dtype, copy=False)
    if dtype.itemsize == 2:  # rounding up to `high` wraps around: the interval is half open
        found = np.where(found == dtype.type(high), dtype.type(low), found)
    return found.reshape(shape)


# ---------------------------------------------------------------- normal
def normal(generator: Generator, shape: Shape, dtype: NumpyDtype, mean: float = 0.0,
           std: float = 1.0) -> Array:  # fmt: skip
    """Normally distributed.  Raises RuntimeError when std < 0."""
    if not std >= 0:
        raise ArgumentRuntimeError(with_site(f"normal expects std >= 0.0, but found std {std}"))
    n = math.prod(shape)
    if dtype.kind == "c":
        part = np.dtype(_F32 if dtype.itemsize == 8 else _F64)
        half = std / math.sqrt(2)
        flat = normal(generator, (2 * n,), part, 0.0, half).view(dtype) + dtype.type(mean)
        return flat.astype(dtype, copy=False).reshape(shape)
    if n < 16:
        samples = np.array([_sample(generator) for _ in range(n)], _F64)
        found = _fma64(samples, np.float64(std), np.float64(mean))
        return found.astype(dtype).reshape(shape)
    draw = uniform53 if dtype.itemsize == 8 else uniform24
    turn = _turn_double if dtype.itemsize == 8 else _turn_single
    whole = n - n % 16
    # the float16 kernel draws no uniforms for the places that its last step fills
    uniforms = draw(generator, whole if dtype.itemsize == 2 else n)
    found = np.empty(n, uniforms.dtype)
    found[:whole] = turn(uniforms[:whole], mean, std)
    if whole != n:  # the last 16 are drawn anew
        found[n - 16 :] = turn(draw(generator, 16), mean, std)
    return found.astype(dtype, copy=False).reshape(shape)


def _sample(generator: Generator) -> float:
    """One sample of a Box-Muller pair; the generator keeps the other."""
    kept = generator.next_normal
    if kept is not None:
        generator.next_normal = None
        return kept
    u1, u2 = uniform53(generator, 2).tolist()
    radius = math.sqrt(-2.0 * math.log1p(-u2))
    generator.next_normal = radius * math.sin(TWO_PI * u1)
    return radius * math.cos(TWO_PI * u1)


def _turn_double(uniforms: Array, mean: float, std: float) -> Array:
    """Box-Muller in blocks of 16: eight radii, eight angles."""
    block = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(-2 * np.log(1 - block[:, 0]))
    theta = TWO_PI * block[:, 1]
    pairs = np.stack([radius * np.cos(theta), radius * np.sin(theta)], 1)
    out: Array = _fma64(pairs, np.float64(std), np.float64(mean)).reshape(-1)
    return out


def _turn_single(uniforms: Array, mean: float, std: float) -> Array:
    block = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(_F32(-2) * _log(_F32(1) - block[:, 0]))
    sine, cosine = _sincos(_F32(TWO_PI) * block[:, 1])
    pairs = np.stack([radius * cosine, radius * sine], 1).reshape(-1)
    return _fma(pairs, _F32(std), _F32(mean))


def _fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c rounded once: the product of two float32 is exact in float64."""
    return (np.multiply(a, b, dtype=_F64) + c).astype(_F32)


def _fma64(a: Any, b: Any, c: Any) -> Any:
    """a * b + c rounded once, up to the rare ties that a second rounding of the error can turn.

    Source: the error-free product and sum of T. J. Dekker, 1971, and D. E. Knuth.
    """
    split = 134217729.0  # 2**27 + 1
    product = a * b
    big_a, big_b = a * split, b * split
    high_a, high_b = big_a - (big_a - a), big_b - (big_b - b)
    low_a, low_b = a - high_a, b - high_b
    lost = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    total = product + c
    part = total - product
    lost_sum = (product - (total - part)) + (c - part)
    return total + (lost_sum + lost)


_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip


def _log(x: Array) -> Array:
    mantissa, exponent = np.frexp(x)
    e = exponent.astype(_F32)
    small = mantissa < _F32(0.707106781186547524)
    e = np.where(small, e - _F32(1), e)
    x = np.where(small, (mantissa - _F32(1)) + mantissa, mantissa - _F32(1))
    z = x * x
    y = np.full_like(x, _LOG[0])
    for coefficient in _LOG[1:]:
        y = _fma(y, x, _F32(coefficient))
    y = _fma(y * x, z, e * _F32(-2.12194440e-4))
    y = _fma(-z, _F32(0.5), y)
    out: Array = _fma(e, _F32(0.693359375), x + y)
    return out


def _sincos(x: Array) -> tuple[Array, Array]:
    octant = ((x * _F32(1.27323954473516)).astype(np.int32) + 1) & ~1
    y = octant.astype(_F32)
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):
        x = _fma(y, _F32(part), x)
    z = x * x
    c = np.full_like(x, 2.443315711809948e-5)
    c = _fma(c, z, _F32(-1.388731625493765e-3))
    c = _fma(c, z, _F32(4.166664568298827e-2))
    c = _fma(c * z, z, -(z * _F32(0.5))) + _F32(1)
    s = np.full_like(x, -1.9515295891e-4)
    s = _fma(s, z, _F32(8.3321608736e-3))
    s = _fma(s, z, _F32(-1.6666654611e-1))
    s = _fma(s * z, x, x)
    swap = (octant & 2) != 0
    sine, cosine = np.where(swap, c, s), np.where(swap, s, c)
    sine = np.where(octant & 4, -sine, sine)
    cosine = np.where((octant - 2) & 4, cosine, -cosine)
    return sine, cosine


# ---------------------------------------------------------------- integers
def randint(generator: Generator, low: int, high: int, shape: Shape, dtype: NumpyDtype) -> Array:
    """Integers in [low, high).

    Raises RuntimeError for an empty range, or bounds that the dtype does not hold.
    """
    if not low < high:
        raise ArgumentRuntimeError(
            with_site(
                f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
            )
        )
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        for name, bound in (("from", low), ("to - 1", high - 1)):
            if not info.min <= bound <= info.max:
                raise ArgumentRuntimeError(
                    with_site(f"{name} is out of bounds for {dtype}: got {bound}")
                )
    n = math.prod(shape)
    span = high - low
    draws = generator.draw64(n) if span >= 2**28 else generator.draw32(n)
    if span < 2**64:
        draws = draws % np.uint64(span)
    if dtype.kind in "fc":
        return (draws.astype(np.float64) + low).astype(dtype).reshape(shape)
    # wrapping addition of low: exact, since the result is in range
    return (draws + np.uint64(low % 2**64)).astype(np.int64).astype(dtype).reshape(shape)


def random_integers(generator: Generator, shape: Shape, dtype: NumpyDtype) -> Array:
    """All values of an integer dtype from 0 up; the integers a floating one holds exactly."""
    if dtype.kind in "fc":
        top = {2: 2**11, 4: 2**24, 8: 2**53}[dtype.itemsize if dtype.kind == "f" else 4] + 1
    elif dtype.kind == "b":
        top = 2
    else:
        top = int(np.iinfo(dtype).max) + 1
    n = math.prod(shape)
    wide = dtype.itemsize == 8
    draws = generator.draw64(n) if wide else generator.draw32(n)
    return (draws % np.uint64(top)).astype(dtype).reshape(shape)


def randperm(generator: Generator, n: int, dtype: NumpyDtype) -> Array:
    """The numbers below n in random order: each place takes one of those not yet placed."""
    if n < 0:
        raise ArgumentRuntimeError(with_site(f"n must be non-negative, got {n}"))
    order = list(range(n))
    if n > 1:
        draws = generator.draw32(n - 1)
        steps = (draws % np.arange(n, 1, -1, dtype=np.uint64)).tolist()
        for i, step in enumerate(steps):
            j = i + step
            order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64).astype(dtype)


# ---------------------------------------------------------------- other distributions
def bernoulli(generator: Generator, p: Array, dtype: NumpyDtype) -> Array:
    """1 with the probability that stands at each place.  Raises RuntimeError outside [0, 1]."""
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise ArgumentRuntimeError(
            with_site(f"Expected p_in >= 0 && p_in <= 1, got {p.min()} to {p.max()}")
        )
    kind = np.dtype(_F64 if p.dtype.itemsize == 8 else _F32)
    return (uniform(generator, p.shape, kind) < p).astype(dtype)


def exponential(generator: Generator, shape: Shape, dtype: NumpyDtype, rate: float) -> Array:
    """Exponentially distributed with the given rate."""
    if not rate > 0:
        raise ArgumentRuntimeError(
            with_site(f"exponential_ expects lambda > 0.0, but found lambda={rate}")
        )
    draws = uniform53(generator, math.prod(shape))
    return (-np.log1p(-draws) / rate).astype(dtype).reshape(shape)


def multinomial(generator: Generator, weights: Array, n: int, replacement: bool) -> Array:
    """Indices drawn by weight from each row of (..., k): (..., n)."""
    rows = weights.reshape(-1, weights.shape[-1])
    if not np.isfinite(rows).all() or (rows < 0).any():
        raise ArgumentRuntimeError(
            with_site("probability tensor contains either `inf`, `nan` or element < 0")
        )
    if (rows.sum(-1) <= 0).any():
        raise ArgumentRuntimeError(
            with_site("invalid multinomial distribution (sum of probabilities <= 0)")
        )
    if not replacement and n > rows.shape[-1]:
        raise ArgumentRuntimeError(
            with_site(
                "cannot sample n_sample > prob_dist.size(-1) samples without replacement: "
                f"{n} of {rows.shape[-1]}"
            )
        )
    found = np.empty((len(rows), n), np.int64)
    for i, row in enumerate(rows):
        if replacement:
            steps = np.cumsum(row)
            steps = steps / steps[-1]
            found[i] = np.searchsorted(steps, uniform53(generator, n), side="left")
        else:
            with np.errstate(all="ignore"):
                score = row / exponential(generator, row.shape, row.dtype, 1.0)
            found[i] = np.argsort(-score, kind="stable")[:n]
    return found.reshape(*weights.shape[:-1], n)
