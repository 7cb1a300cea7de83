"""Random arrays (layer 2), equal to PyTorch's CPU kernels bit for bit.

Every function takes the `Generator` first and leaves it where PyTorch's own would stand.  Observed
equal to PyTorch 2.13 (x86-64, AVX2): all functions here, for every dtype that PyTorch has for them.

Not bit-equal, though right as random numbers:
- `multinomial` without replacement orders equal scores by index; PyTorch's partial sort leaves
  their order open.  It shows with more samples than non-zero weights, and in float16.
- `randperm` from 214748364 up, where PyTorch changes to another way of shuffling.
- `poisson` refuses infinite rates, for which PyTorch returns -2**63.
- PyTorch itself depends on the processor: its float32 normals of 16 or more samples differ in the
  last bits without AVX2 (seen), and Intel's processors are said to draw `bernoulli` and dropout
  with one probability from Intel's MKL (not seen: an AMD processor does not).

float32 normals of 16 or more samples come from an AVX2 kernel with polynomials for log, sin and
cos; they are evaluated here in the same order with the same fused multiply-adds.  Source of the
polynomials: the single-precision functions of the Cephes library, S. L. Moshier, 1989.  In float64
PyTorch calls the C library, and so do we wherever NumPy has a kernel of its own that differs.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.generator import Generator
from pullback.core.shapes import broadcast_shapes
from pullback.errors import ArgumentRuntimeError, UnsupportedError
from pullback.typing import Array, NumpyDtype, Shape

_F32, _F64 = np.float32, np.float64
TWO_PI = 2 * math.pi
CHUNK = 8192  # samples worked on at a time: their temporaries stay in the first-level cache

# What the C++ compiler calls the types, as PyTorch's messages about bounds do.
CPP_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
    "int32": "int", "int64": "long int", "float16": "c10::Half", "float32": "float",
    "float64": "double",
}  # fmt: skip


def _quiet() -> np.errstate:
    """Infinity and NaN are results here, as in PyTorch, and not worth a warning.

    Not used as a decorator: its frame would stand between an error and the user's line.
    """
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


# ---------------------------------------------------------------- arguments
def _refuse(message: str) -> ArgumentRuntimeError:
    return ArgumentRuntimeError(with_site(message, 3))


def _needs(kinds: str, dtype: NumpyDtype, kernel: str) -> None:
    """PyTorch's NotImplementedError unless the dtype's kind is one of `kinds`."""
    if dtype.kind not in kinds:
        name = dtypes.PYTORCH_NAMES[dtype.name]
        raise UnsupportedError(with_site(f"\"{kernel}\" not implemented for '{name}'", 3))


def _needs_floating(dtype: NumpyDtype, distribution: str) -> None:
    if dtype.kind != "f":
        raise _refuse(
            f"{distribution} distribution is a continuous probability distribution. dtype must be "
            f"a floating point but you specified {dtypes.PYTORCH_NAMES[dtype.name]}"
        )


def in_memory_order(like: Array, draw: Callable[..., Array], *operands: Array) -> Array:
    """What `draw` gives, in the shape of `like`, drawn in the order in which its elements lie.

    That is the order of PyTorch's fills in place, of its `*_like` functions and of dropout; the
    other functions follow the shape, however their arguments lie.

    draw: called with the shape, its axes sorted by stride, and with the operands in that shape
    """
    order = sorted(range(like.ndim), key=lambda axis: -like.strides[axis])
    inverse = sorted(range(like.ndim), key=order.__getitem__)
    moved = (np.broadcast_to(x, like.shape).transpose(order) for x in operands)
    return draw(tuple(like.shape[axis] for axis in order), *moved).transpose(inverse)


# ---------------------------------------------------------------- uniform
def uniform53(generator: Generator, n: int) -> Array:
    """(n,) float64 in [0, 1): the low 53 bits of 64."""
    return (generator.draw64(n) & np.uint64(2**53 - 1)) * 2.0**-53


def uniform24(generator: Generator, n: int) -> Array:
    """(n,) float32 in [0, 1): the low 24 bits of 32."""
    return ((generator.draw32(n) & np.uint64(2**24 - 1)) * 2.0**-24).astype(_F32)


def uniform(
    generator: Generator, shape: Shape, dtype: NumpyDtype, low: float = 0.0, high: float = 1.0
) -> Array:
    """Evenly spread over [low, high); `rand` with the bounds left out.

    dtype: floating or complex (both parts are drawn)

    Raises NotImplementedError for other dtypes; RuntimeError when low > high, or a bound or their
    difference does not fit the dtype.
    """
    _needs("fc", dtype, "check_uniform_bounds")
    if dtype.kind == "c":
        parts = uniform(generator, (*shape, 2), dtypes.real_of(dtype), low, high)
        return parts.view(dtype).reshape(shape)
    _check_interval(dtype, low, high)
    n = math.prod(shape)
    kind = _F64 if dtype.itemsize == 8 else _F32
    with _quiet():
        draws = uniform53(generator, n) if kind is _F64 else uniform24(generator, n)
        if (low, high) != (0.0, 1.0):
            draws = (_fma64 if kind is _F64 else _fma)(draws, kind(high) - kind(low), kind(low))
        found = draws.astype(dtype, copy=False)
        if dtype.itemsize == 2 or (low, high) != (0.0, 1.0):
            # rounding up to `high` wraps around: the interval is half open
            found = np.where(found == dtype.type(high), dtype.type(low), found)
    return found.reshape(shape)


def _check_interval(dtype: NumpyDtype, low: float, high: float) -> None:
    top = float(np.finfo(dtype).max)
    for name, bound in (("from", low), ("to", high)):
        if not -top <= bound <= top:
            raise _refuse(f"{name} is out of bounds for {CPP_NAMES[dtype.name]}, got {bound:g}")
    if low > high:
        raise _refuse(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > top:
        raise _refuse(
            f"uniform_ expects to-from <= std::numeric_limits<{dtypes.PYTORCH_NAMES[dtype.name]}>"
            f"::max(), but found to={high:g} and from={low:g} which result in to-from to exceed "
            "the limit"
        )


# ---------------------------------------------------------------- normal
def normal(
    generator: Generator,
    shape: Shape,
    dtype: NumpyDtype,
    mean: float = 0.0,
    std: float = 1.0,
    contiguous: bool = True,
) -> Array:
    """Normally distributed; `randn` with mean and std left out.

    dtype: floating or complex - a complex number has `mean` in both parts and variance std**2
    contiguous: whether the array to be filled is; PyTorch fills others one by one, which gives
        other numbers from 16 elements on

    Raises NotImplementedError for other dtypes, RuntimeError when std < 0.
    """
    if not std >= 0:
        raise _refuse(f"normal expects std >= 0.0, but found std {std:g}")
    _needs("fc", dtype, "normal_kernel_cpu")
    if dtype.kind == "c":
        part, std = dtypes.real_of(dtype), std / math.sqrt(2)
        parts = normal(generator, (*shape, 2), part, mean, std, contiguous)
        return parts.view(dtype).reshape(shape)
    n = math.prod(shape)
    with generator.lock, _quiet():
        if n < 16 or not contiguous:
            found = _fma64(_samples(generator, n), _F64(std), _F64(mean))
        else:
            found = _blocks(generator, n, dtype, mean, std)
        return found.astype(dtype, copy=False).reshape(shape)


def normal_like(generator: Generator, mean: Array | float, std: Array | float) -> Array:
    """Normally distributed about each mean with each std, one of which at least is an array.

    mean: (...,) floating or complex, or a number
    std: (...,) floating, or a number - broadcast against mean

    Returns the broadcast shape, in the dtype of mean if that is an array, else of std.
    Raises RuntimeError for a negative or complex std.
    """
    if not isinstance(std, np.ndarray):
        assert isinstance(mean, np.ndarray), "one of mean and std is an array"
        around = normal(generator, mean.shape, mean.dtype, 0.0, std)
        with _quiet():
            return np.asarray(around + mean)
    if std.dtype.kind == "c":
        raise _refuse("normal expects standard deviation to be non-complex")
    if std.size and not std.min() >= 0:
        raise _refuse("normal expects all elements of std >= 0.0")
    like = mean if isinstance(mean, np.ndarray) else std
    shape = broadcast_shapes([np.shape(mean), std.shape])
    samples = normal(generator, shape, like.dtype)
    with _quiet():  # rounded to the result's dtype at each of the two steps
        scaled = _narrow(np.asarray(samples * std), like.dtype)
        return _narrow(np.asarray(scaled + mean), like.dtype)


def _samples(generator: Generator, n: int) -> Array:
    """(n,) float64 - Box-Muller pairs one by one; the generator keeps an unused second half."""
    with generator.lock:
        kept = generator.next_normal
        head = [] if kept is None or n == 0 else [kept]
        rest = n - len(head)
        u = uniform53(generator, rest + rest % 2).reshape(-1, 2)
        radius = np.sqrt(-2.0 * c_function("log1p")(-u[:, 1]))
        theta = TWO_PI * u[:, 0]
        pairs = np.stack(
            [radius * c_function("cos")(theta), radius * c_function("sin")(theta)], 1
        ).reshape(-1)
        if n:
            generator.next_normal = float(pairs[-1]) if rest % 2 else None
        return np.concatenate([head, pairs[:rest]])


def _blocks(generator: Generator, n: int, dtype: NumpyDtype, mean: float, std: float) -> Array:
    """(n >= 16,) - Box-Muller in blocks of 16 uniforms: eight radii, then their eight angles."""
    draw, turn = (uniform53, _turn_double) if dtype.itemsize == 8 else (uniform24, _turn_single)
    whole = n - n % 16
    tail = 16 if n != whole else 0  # the last 16 are drawn anew
    # the float16 kernel draws no uniforms for the places that its last step fills
    uniforms = draw(generator, (whole if dtype.itemsize == 2 else n) + tail)
    if tail:
        uniforms = np.concatenate([uniforms[:whole], uniforms[-tail:]])
    found = np.empty(whole + tail, uniforms.dtype)
    for start in range(0, len(found), CHUNK):
        found[start : start + CHUNK] = turn(uniforms[start : start + CHUNK], mean, std)
    if tail:
        found[n - tail : n] = found[whole:].copy()  # they overlap
    return found[:n]


def _turn_double(uniforms: Array, mean: float, std: float) -> Array:
    block = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(-2 * c_function("log")(1 - block[:, 0]))
    theta = TWO_PI * block[:, 1]
    pairs = np.stack([radius * c_function("cos")(theta), radius * c_function("sin")(theta)], 1)
    return _fma64(pairs, _F64(std), _F64(mean)).reshape(-1)


def _turn_single(uniforms: Array, mean: float, std: float) -> Array:
    block = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(_F32(-2) * _log(_F32(1) - block[:, 0]))
    sine, cosine = _sincos(_F32(TWO_PI) * block[:, 1])
    pairs = np.stack([radius * cosine, radius * sine], 1).reshape(-1)
    return _fma(pairs, _F32(std), _F32(mean))


# ---------------------------------------------------------------- exact arithmetic
@functools.cache
def c_function(name: str) -> Callable[[Array], Array]:
    """NumPy's float64 function where it gives the C library's bits, else the C library's."""
    fast, exact = getattr(np, name), getattr(math, name)
    low, high = {
        "log": (2.0**-24, 1.0), "log1p": (-1 + 2.0**-24, 0.0), "exp": (-20.0, 20.0),
        "sin": (0.0, TWO_PI), "cos": (0.0, TWO_PI), "tan": (-1.57, 1.57),
    }[name]  # fmt: skip
    probe = np.linspace(low, high, 4099)
    if (fast(probe) == [exact(x) for x in probe.tolist()]).all():
        return fast  # type: ignore[no-any-return]

    def slow(x: Array) -> Array:
        try:
            return np.fromiter(map(exact, x.ravel().tolist()), _F64, x.size).reshape(x.shape)
        except (ValueError, OverflowError):  # where the result is infinite, which math refuses
            return fast(x)  # type: ignore[no-any-return]

    return slow


def _fma(a: Any, b: Any, c: Any) -> Array:
    """a * b + c in float32, rounded once: the product of two float32 is exact in float64."""
    out: Array = (np.multiply(a, b, dtype=_F64) + c).astype(_F32)
    return out


def _fma64(a: Array, b: Any, c: Any) -> Array:
    """a * b + c rounded once, up to the rare ties that a second rounding of the error can turn.

    Source: the error-free product and sum of T. J. Dekker, 1971, and D. E. Knuth.
    """
    if b == 1:
        return np.asarray(a + c)
    with _quiet():
        split = 134217729.0  # 2**27 + 1
        product = a * b
        big_a, big_b = a * split, b * split
        high_a, high_b = big_a - (big_a - a), big_b - (big_b - b)
        low_a, low_b = a - high_a, b - high_b
        lost = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
        total = product + c
        part = total - product
        lost_sum = (product - (total - part)) + (c - part)
        out: Array = total + (lost_sum + lost)
        # beyond 2**996 splitting overflows, and an infinite term has no error to add
        return np.where(np.isfinite(out), out, total)


def _single(*values: float) -> tuple[float, ...]:
    return tuple(float(_F32(v)) for v in values)


_LOG = _single(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_COS = _single(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN = _single(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_PI_PARTS = _single(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
_HALF_ROOT = np.int32(0x3F3504F3)  # the bits of sqrt(1/2)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """float32 by Horner's rule with a fused multiply-add for each step, highest power first."""
    wide_x, wide = x.astype(_F64), np.full(x.shape, coefficients[0])
    single = np.empty(x.shape, _F32)
    for coefficient in coefficients[1:]:
        np.multiply(wide, wide_x, out=wide)
        np.add(wide, coefficient, out=wide)
        np.copyto(single, wide, casting="same_kind")
        np.copyto(wide, single)
    return single


def _log(x: Array) -> Array:
    """float32 natural logarithm of normal numbers."""
    # x = m * 2**e with m in [sqrt(1/2), sqrt(2)), read off the bits
    bits = x.view(np.int32)
    exponent = (bits - _HALF_ROOT) >> 23
    m = (bits - (exponent << 23)).view(_F32) - _F32(1)
    e = exponent.astype(_F32)
    z = m * m
    y = _fma(_polynomial(_LOG, m) * m, z, e * _F32(-2.12194440e-4))
    y = _fma(z, _F32(-0.5), y)
    return _fma(e, _F32(0.693359375), m + y)


def _sincos(x: Array) -> tuple[Array, Array]:
    """float32 sine and cosine of numbers in [0, 2 pi]."""
    octant = ((x * _F32(1.27323954473516)).astype(np.int32) + 1) & ~1
    y = octant.astype(_F32)
    for part in _PI_PARTS:
        x = _fma(y, part, x)
    z = x * x
    c = _fma(_polynomial(_COS, z) * z, z, z * _F32(-0.5)) + _F32(1)
    s = _fma(_polynomial(_SIN, z) * z, x, x)
    # swap them in every other quadrant, and set the signs, by bits: faster than np.where
    c_bits, s_bits = c.view(np.int32), s.view(np.int32)
    swap = (c_bits ^ s_bits) & -((octant >> 1) & 1)
    sine = s_bits ^ swap ^ ((octant & 4) << 29)
    cosine = c_bits ^ swap ^ ((~(octant - 2) & 4) << 29)
    return sine.view(_F32), cosine.view(_F32)


# ---------------------------------------------------------------- integers
def randint(
    generator: Generator, low: int, high: int | None, shape: Shape, dtype: NumpyDtype
) -> Array:
    """Integers in [low, high), or from low to the largest of `random_integers` if high is None.

    dtype: any but complex

    Raises RuntimeError for an empty range, for bounds that the dtype does not hold, and for
    complex dtypes.  Warns (UserWarning) of bounds that a floating dtype only holds rounded.
    """
    if dtype.kind == "c":
        raise _refuse("check_random_bounds handles only integral, floating-point and boolean types")
    n = math.prod(shape)
    if high is None and low == -(2**63) and dtype.itemsize >= 4 and dtype != np.int32:
        # all there is: PyTorch takes the 64 bits as they come
        return generator.draw64(n).astype(np.int64).astype(dtype).reshape(shape)
    low, top = _bounds(dtype, low, high)
    span = top - low
    draws = generator.draw64(n) if span >= 2**28 else generator.draw32(n)
    if span < 2**64:
        draws = draws % np.uint64(span)
    # wrapping addition of low: exact, since the result is in range
    return (draws + np.uint64(low % 2**64)).astype(np.int64).astype(dtype).reshape(shape)


def _largest(dtype: NumpyDtype) -> int:
    """The largest integer of the dtype; of a floating one, the last below which it has them all."""
    if dtype.kind == "b":
        return 1
    return 2 ** (np.finfo(dtype).nmant + 1) if dtype.kind == "f" else int(np.iinfo(dtype).max)


def _bounds(dtype: NumpyDtype, low: int, high: int | None) -> tuple[int, int]:
    """The half-open range to draw from, checked against the dtype."""
    if high is None:
        _check_bound(dtype, "from", low)
        last = _largest(dtype)
        low = _raised(dtype, low)
        if low > last or (low == last and dtype.kind == "f"):
            raise _refuse(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' "
                f"casted to dtype, but got from={low} > to_inc={last}"
            )
        return low, last + 1
    if not low < high:
        raise _refuse(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    _check_bound(dtype, "from", low)
    _check_bound(dtype, "to - 1", high - 1)
    low, high = _raised(dtype, low), _lowered(dtype, high)
    if low >= high:
        raise _refuse(
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
            f"from={low} >= to={high}"
        )
    return low, high


def _check_bound(dtype: NumpyDtype, name: str, bound: int) -> None:
    """PyTorch's error for an integer outside the dtype, its warning for one that is rounded."""
    exact = _largest(dtype)
    if dtype.kind == "f":
        last = int(np.finfo(dtype).max)
        first = -last
    else:
        last, first = exact, 0 if dtype.kind == "b" else int(np.iinfo(dtype).min)
    if not first <= bound <= last:
        raise _refuse(f"{name} is out of bounds for {CPP_NAMES[dtype.name]}, got {bound}")
    if dtype.kind == "f" and abs(bound) > exact:
        digits = exact.bit_length() - 1
        text = (
            f"{name} is out of bounds [-(2^{digits}), 2^{digits}]: got {bound}, and {dtype} does "
            "not hold all integers there"
        )
        warnings.warn(with_site(text), UserWarning, stacklevel=4)


def _raised(dtype: NumpyDtype, low: int) -> int:
    """`low`, moved up where a floating dtype would round a number of the range to below it."""
    if dtype.kind == "f":
        first = int(dtype.type(low + 1))
        if first < low:
            return first + _spacing(low + 1, dtype)
    return low


def _lowered(dtype: NumpyDtype, high: int) -> int:
    """`high`, moved down where a floating dtype would round a number of the range up to it."""
    if dtype.kind == "f":
        last = int(dtype.type(high - 1))
        if high <= last < 2**63:  # 2**63 overflows PyTorch's own comparison
            return last - _spacing(high - 1, dtype)
    return high


def _spacing(n: int, dtype: NumpyDtype) -> int:
    """The distance between neighbouring numbers of a floating dtype near n."""
    return int(2 ** max(abs(n).bit_length() - (int(np.finfo(dtype).nmant) + 1), 0))


def random_integers(generator: Generator, shape: Shape, dtype: NumpyDtype) -> Array:
    """Integers from 0 to the dtype's largest; to 2**digits for floating ones, which count so far.

    Raises NotImplementedError for complex dtypes.
    """
    _needs("biuf", dtype, "random_kernel_cpu")
    n = math.prod(shape)
    draws = generator.draw64(n) if dtype.itemsize == 8 else generator.draw32(n)
    return (draws % np.uint64(_largest(dtype) + 1)).astype(dtype).reshape(shape)


def randperm(generator: Generator, n: int, dtype: NumpyDtype) -> Array:
    """(n,) - the numbers below n in random order.

    Raises RuntimeError when n < 0 or the dtype does not hold n - 1; NotImplementedError for bool
    and complex.
    """
    if n < 0:
        raise _refuse(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype.kind == "f" and n > _largest(dtype) + 1:
        limit = "2049" if dtype.itemsize == 2 else f"2^{np.finfo(dtype).nmant + 1}+1"
        name = dtypes.PYTORCH_NAMES[dtype.name]
        raise _refuse(f"n cannot be greater than {limit} for {name} type.")
    _needs("iuf", dtype, "randperm")
    if dtype.kind != "f" and n > _largest(dtype) + 1:
        raise _refuse(f"value cannot be converted to type {dtype.name}_t without overflow: {n}")
    wide = n >= 2**32 // 20  # 32 bits would favour some places
    draws = (generator.draw64 if wide else generator.draw32)(max(n - 1, 0))
    index = np.arange(max(n - 1, 0), dtype=np.uint64)
    chosen = draws % (np.uint64(n) - index) + index
    return (_shuffled(n, chosen) if n < 1000 else _shuffled_at_once(n, chosen)).astype(dtype)


def _shuffled(n: int, chosen: Array) -> Array:
    """Each place in turn changes its number with the chosen one, at or behind it."""
    order = list(range(n))
    for i, j in enumerate(chosen.tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def _shuffled_at_once(n: int, chosen: Array) -> Array:
    """`_shuffled` without a loop over places, for n < 2**32.

    Place j holds j until somebody chooses it; from then on it holds what the last chooser i had
    when its turn came.  So `held[i]`, the number at place i when its turn comes, is found by
    following "the last chooser of" down to a place that nobody chose; then place i receives
    `held` of the chooser of its `chosen[i]` before it, or, without one, `chosen[i]` itself.
    """
    places = np.arange(n)
    target = np.append(chosen.astype(np.int64), n - 1)
    key = np.sort((target << 32) | places)  # by target, then by turn
    target_sorted, turn = key >> 32, key & 0xFFFFFFFF
    same = target_sorted[1:] == target_sorted[:-1]
    before = np.full(n, -1)  # the last earlier chooser of what each place chose
    before[turn[1:][same]] = turn[:-1][same]
    held = places.copy()
    earlier = turn < target_sorted  # choosing oneself changes nothing
    # a place's own turn sorts last among its choosers, so the last assignment is the latest one
    held[target_sorted[earlier]] = turn[earlier]
    while True:
        further = held[held]
        if (further == held).all():
            break
        held = further
    return np.where(before < 0, target, held[before])


# ---------------------------------------------------------------- other distributions
def bernoulli(
    generator: Generator, p: Array | float, dtype: NumpyDtype, shape: Shape | None = None
) -> Array:
    """1 with probability p, else 0.

    p: (...,) floating, broadcast to shape (default: its own); or a number, which needs a shape -
        the two draw differently, since a number is compared in float64
    dtype: any but complex

    Raises RuntimeError for p outside [0, 1], NotImplementedError for dtypes not listed.
    """
    if not isinstance(p, np.ndarray):
        if not 0 <= p <= 1:
            raise _refuse(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        _needs("biuf", dtype, "bernoulli_scalar_cpu_")
        assert shape is not None, "one probability needs a shape"
        return (uniform53(generator, math.prod(shape)) < p).astype(dtype).reshape(shape)
    _needs("f", p.dtype, "bernoulli_tensor_cpu_p_")
    _needs("biuf", dtype, "bernoulli_tensor_cpu_self_")
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise _refuse(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false: probabilities go from "
            f"{p.min()} to {p.max()}"
        )
    shape = p.shape if shape is None else shape
    draw = uniform53 if p.dtype.itemsize == 8 else uniform24
    return (draw(generator, math.prod(shape)).reshape(shape) < p).astype(dtype)


def dropout_mask(generator: Generator, shape: Shape, p: float, dtype: NumpyDtype) -> Array:
    """1 / (1 - p) with probability 1 - p, else 0; nothing is drawn when p is 0 or 1.

    dtype: floating

    Raises ValueError, as `dropout` does, for p outside [0, 1]: checked by the caller.
    """
    if p == 0 or p == 1:
        return np.full(shape, 1 - p, dtype)
    kept = bernoulli(generator, 1 - p, dtype, shape)
    # float16 divides in float32
    wide = np.promote_types(dtype, _F32).type
    return (kept / wide(1 - p)).astype(dtype)


def exponential(generator: Generator, shape: Shape, dtype: NumpyDtype, rate: float = 1.0) -> Array:
    """Exponentially distributed with the given rate.

    dtype: floating

    Raises RuntimeError for rate <= 0 and for other dtypes.
    """
    _needs_floating(dtype, "Exponential")
    if not rate > 0:
        raise _refuse(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    draws = uniform53(generator, math.prod(shape))
    return _narrow((-1 / rate) * c_function("log1p")(-draws), dtype).reshape(shape)


def _narrow(values: Array, dtype: NumpyDtype) -> Array:
    """In the kernel's dtype, as C++ converts: to float16 by way of float32."""
    with _quiet():
        if dtype.kind == "f" and dtype.itemsize == 2:
            values = values.astype(_F32)
        return values.astype(dtype, copy=False)


def geometric(generator: Generator, shape: Shape, dtype: NumpyDtype, p: float) -> Array:
    """The number of the first success in trials of probability p: 1, 2, ...

    dtype: integer or floating

    Raises RuntimeError for p outside (0, 1), NotImplementedError for other dtypes.
    """
    if not 0 < p < 1:
        raise _refuse(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    _needs("iuf", dtype, "geometric_cpu")
    draws = np.maximum(uniform53(generator, math.prod(shape)), 2.0**-1074)  # no infinite result
    return _narrow(np.ceil(c_function("log")(draws) / math.log1p(-p)), dtype).reshape(shape)


def cauchy(
    generator: Generator, shape: Shape, dtype: NumpyDtype, median: float = 0.0, sigma: float = 1.0
) -> Array:
    """Cauchy distributed about the median; half of the samples lie within sigma of it.

    dtype: floating

    Raises RuntimeError for sigma <= 0 and for other dtypes.
    """
    _needs_floating(dtype, "Cauchy")
    if not sigma > 0:
        raise _refuse(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    turns = uniform53(generator, math.prod(shape)) - 0.5
    slopes = c_function("tan")(math.pi * turns)
    return _narrow(_fma64(slopes, _F64(sigma), _F64(median)), dtype).reshape(shape)


def log_normal(
    generator: Generator, shape: Shape, dtype: NumpyDtype, mean: float = 1.0, std: float = 2.0
) -> Array:
    """The exponential of normally distributed numbers.

    dtype: floating

    Raises RuntimeError for std <= 0, NotImplementedError for other dtypes.
    """
    if not std > 0:
        raise _refuse(f"log_normal_ expects std > 0.0, but found std={std:g}")
    _needs("f", dtype, "log_normal_cpu")
    samples = _fma64(_samples(generator, math.prod(shape)), _F64(std), _F64(mean))
    with _quiet():
        return _narrow(c_function("exp")(samples), dtype).reshape(shape)


def multinomial(generator: Generator, weights: Array, n: int, replacement: bool) -> Array:
    """Indices drawn by weight from each row.

    weights: (k,) or (rows, k) floating - need not sum to 1

    Returns (n,) or (rows, n) int64.
    Raises RuntimeError for other dtypes and shapes, weights that are negative, not finite or all
    zero, n <= 0, and n > k without replacement.
    """
    if weights.ndim not in (1, 2):
        raise _refuse("prob_dist must be 1 or 2 dim")
    if weights.dtype.kind != "f":
        raise _refuse(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{dtypes.PYTORCH_NAMES[weights.dtype.name]}"
        )
    if n <= 0:
        raise _refuse(f"cannot sample n_sample <= 0 samples, got {n}")
    if not replacement and n > weights.shape[-1]:
        raise _refuse(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement: "
            f"{n} of {weights.shape[-1]}"
        )
    rows = np.atleast_2d(weights)
    _check_weights(rows, sampled_by_score := n == 1 or not replacement)
    with generator.lock:
        draw = _by_score if sampled_by_score else _by_cumulative_sum
        return draw(generator, rows, n).reshape(*weights.shape[:-1], n)


def _check_weights(rows: Array, sampled_by_score: bool) -> None:
    finite = np.isfinite(rows).all()
    if not finite or (rows < 0).any():
        if sampled_by_score:
            raise _refuse("probability tensor contains either `inf`, `nan` or element < 0")
        what = "< 0" if finite else "= infinity or NaN"
        raise _refuse(f"invalid multinomial distribution (encountering probability entry {what})")
    if (rows.sum(-1, dtype=_F64) <= 0).any():
        raise _refuse("invalid multinomial distribution (sum of probabilities <= 0)")


def _by_score(generator: Generator, rows: Array, n: int) -> Array:
    """The n largest of weight / exponential sample: an index wins in proportion to its weight."""
    samples = in_memory_order(rows, lambda shape: exponential(generator, shape, rows.dtype))
    with _quiet():
        score = rows / samples
    return np.argsort(-score, axis=-1, kind="stable")[:, :n]


def _by_cumulative_sum(generator: Generator, rows: Array, n: int) -> Array:
    found = np.empty((len(rows), n), np.int64)
    for i, row in enumerate(rows.astype(np.promote_types(rows.dtype, _F32), copy=False)):
        steps = np.cumsum(row)
        found[i] = np.searchsorted(steps / steps[-1], uniform53(generator, n), side="left")
    return found


# ---------------------------------------------------------------- poisson
def poisson(generator: Generator, rates: Array) -> Array:
    """Counts of events that happen at each rate, in the shape and dtype of `rates`.

    rates: (...,) floating, finite, >= 0

    Raises RuntimeError for negative or non-finite rates, NotImplementedError for other dtypes.
    """
    _needs("f", rates.dtype, "poisson_cpu")
    if not (rates >= 0).all():
        raise _refuse("invalid Poisson rate, expected rate to be non-negative")
    if not np.isfinite(rates).all():
        raise _refuse("poisson: needs finite rates, got inf; there is no count to draw for it")
    left = rates.astype(_F64).ravel().tolist()
    found: list[float] = []
    with generator.lock:
        while len(found) < len(left):
            # look ahead, and take from the stream only what whole samples used
            ahead = min(8 * (len(left) - len(found)), 2**16) + 1000
            uniforms = ((generator.peek64(ahead) & np.uint64(2**53 - 1)) * 2.0**-53).tolist()
            used = 0
            try:
                while len(found) < len(left):
                    rate = left[len(found)]
                    count, used = (_by_products if rate < 10 else _by_rejection)(
                        rate, uniforms, used
                    )
                    found.append(count)
            except IndexError:  # a sample runs over the end: it starts afresh in the next look
                pass
            generator.draw64(used)
    return _narrow(np.array(found, _F64), rates.dtype).reshape(rates.shape)


def _by_products(rate: float, uniforms: list[float], at: int) -> tuple[float, int]:
    """How many uniforms multiply to more than exp(-rate).  Source: D. E. Knuth, 1969."""
    if rate == 0:
        return 0.0, at
    limit, product, count = math.exp(-rate), uniforms[at], 0
    at += 1
    while product > limit:
        product *= uniforms[at]
        at += 1
        count += 1
    return float(count), at


def _by_rejection(rate: float, uniforms: list[float], at: int) -> tuple[float, int]:
    """Transformed rejection with squeeze.  Source: W. Hoermann, PTRS, 1993."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniforms[at] - 0.5, uniforms[at + 1]
        at += 2
        us = 0.5 - abs(u)
        if us == 0:
            continue
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= v_r:
            return float(k), at
        if k < 0 or (us < 0.013 and v > us) or v == 0:
            continue
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b) <= (
            -rate + k * math.log(rate) - math.lgamma(k + 1)
        ):
            return float(k), at
