"""Random numbers equal PyTorch's, bit for bit (recorded by tools/record_random.py)."""

from __future__ import annotations

import hashlib
import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.core.generator import Generator
from pullback.ops import random as ops
from tests.parity.random_cases import all_digests

RECORDED_FILE = pathlib.Path(__file__).parent.parent / "parity" / "random.json"
F16, F32, F64, I64 = (np.dtype(d) for d in ("float16", "float32", "float64", "int64"))

# Fills as PyTorch's in-place methods have them: method -> dtypes, arguments.
FLOATS, INTEGERS = ("float16", "float32", "float64"), ("int8", "uint8", "int16", "int32", "int64")
FILLS: dict[str, tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]] = {
    "uniform_": (FLOATS, ((), (-0.37, 1.3), (-1e4, 1e4))),
    "normal_": (FLOATS, ((), (0.3, 1.7), (2, 0))),
    "exponential_": (FLOATS, ((), (1.3,), (math.inf,))),
    "cauchy_": (FLOATS, ((), (-0.3, 0.7))),
    "log_normal_": (FLOATS, ((), (-0.3, 0.7))),
    "geometric_": (FLOATS + INTEGERS, ((0.3,), (0.01,), (0.999,))),
    "bernoulli_": (("bool", *FLOATS, *INTEGERS), ((0.3,), (0.0,), (1.0,))),
    "random_": (("bool", *FLOATS, *INTEGERS), ((), (0, 2), (1, None), (0, None))),
}
WIDE_RANGES = {  # random_ where 64 bits are drawn, or floating dtypes cannot tell the bounds apart
    "int64": ((0, 2**28), (0, 2**28 - 1), (0, 2**32 + 5), (-(2**63), 2**63 - 1), (-(2**63), None)),
    "float64": ((0, 2**53 + 1), (-(2**63), None), (-(2**60) - 3, None), (0, 2**63 - 1)),
    "float32": ((0, 2**28), (2**24 + 1, 2**24 + 9), (-(2**26) - 14, -(2**25)), (0, 2**40),
                (2**24, 2**24 + 8)),
    "float16": ((0, 65504), (2049, 4000)),
}  # fmt: skip
SIZES = (0, 1, 5, 15, 16, 17, 33, 200)


def fill_cases() -> list[tuple[str, str, tuple[Any, ...]]]:
    """(method, dtype, arguments) of all fills."""
    found = [(m, d, a) for m, (names, args) in FILLS.items() for d in names for a in args]
    return found + [("random_", d, a) for d, ranges in WIDE_RANGES.items() for a in ranges]


def fill(generator: Generator, method: str, n: int, dtype: str, args: tuple[Any, ...]) -> Any:
    """What the method of PyTorch's tensors does, by our functions on arrays."""
    numpy, shape = np.dtype(dtype), (n,)
    if method == "bernoulli_":
        return ops.bernoulli(generator, args[0], numpy, shape)
    if method == "random_":
        if not args:
            return ops.random_integers(generator, shape, numpy)
        return ops.randint(generator, args[0], args[1], shape, numpy)
    return getattr(ops, method[:-1])(generator, shape, numpy, *args)


def draw_digest(array: Any, state: Any) -> str:
    """A short name of the dtype and bits drawn, and of the state that they leave."""
    text = str(array.dtype).encode() + array.tobytes() + state.tobytes()
    return hashlib.sha256(text).hexdigest()[:12]


def fill_digests(draw: Callable[[str, int, str, tuple[Any, ...], int], tuple[Any, Any]],
                 seed: int) -> dict[str, str]:  # fmt: skip
    """Name -> the digests of one case over all sizes; `draw` gives (array, state)."""
    return {
        f"fill {method}{args} {dtype}": "".join(
            draw_digest(*draw(method, n, dtype, args, seed))[:6] for n in SIZES
        )
        for method, dtype, args in fill_cases()
    }


def our_fill(method: str, n: int, dtype: str, args: tuple[Any, ...], seed: int) -> tuple[Any, Any]:
    """One case, from a generator just seeded."""
    g = Generator().manual_seed(seed)
    return fill(g, method, n, dtype, args), g.get_state_array()


def rates(dtype: str) -> Any:
    """Poisson rates on both sides of 10, where the algorithm changes."""
    return np.concatenate([np.linspace(0, 30, 61), [0.0, 9.99, 1000.0]]).astype(dtype)


def stream(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


RECORDED: dict[str, str] = json.loads(RECORDED_FILE.read_text()) if RECORDED_FILE.exists() else {}
FILL_SEED = 11


# ---------------------------------------------------------------- goldens
def test_every_draw_of_tensors_has_the_recorded_bits() -> None:
    got = all_digests(torch, seeds=(0, 42, -3))
    want = {k: v for k, v in RECORDED.items() if not k.startswith(("fill ", "array "))}
    assert got.keys() == want.keys()
    assert [k for k in got if got[k] != want[k]] == []


@pytest.mark.filterwarnings("ignore:.*is out of bounds")
def test_every_fill_has_the_recorded_bits_and_leaves_the_recorded_state() -> None:
    got = fill_digests(our_fill, FILL_SEED)
    want = {k: v for k, v in RECORDED.items() if k.startswith("fill ")}
    assert got.keys() == want.keys()
    assert [k for k in got if got[k] != want[k]] == []


@pytest.mark.parametrize("dtype", FLOATS)
def test_poisson_has_the_recorded_bits(dtype: str) -> None:
    g = stream(FILL_SEED)
    counts = ops.poisson(g, rates(dtype))
    assert draw_digest(counts, g.get_state_array()) == RECORDED[f"array poisson {dtype}"]


@pytest.mark.parametrize("p", [0.0, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_masks_have_the_recorded_bits(dtype: str, p: float) -> None:
    g = stream(FILL_SEED)
    mask = ops.dropout_mask(g, (50,), p, np.dtype(dtype))
    assert draw_digest(mask, g.get_state_array()) == RECORDED[f"array dropout {p} {dtype}"]


def test_known_numbers() -> None:
    torch.manual_seed(0)
    assert torch.rand(2).tolist() == [0.49625658988952637, 0.7682217955589294]


# ---------------------------------------------------------------- order
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_fills_follow_the_memory(axes: tuple[int, ...]) -> None:
    like = np.zeros((2, 3, 4)).transpose(axes)
    found = ops.in_memory_order(like, lambda shape: ops.uniform(stream(), shape, F32))
    assert found.shape == like.shape
    # undoing the transposition gives back the plain draw
    assert (found.transpose(np.argsort(axes)) == ops.uniform(stream(), (2, 3, 4), F32)).all()


def test_operands_move_along_with_the_memory() -> None:
    like, p = np.zeros((2, 3)).T, np.array([[0.0, 1.0]])
    found = ops.in_memory_order(like, lambda s, q: ops.bernoulli(stream(), q, F32, s), p)
    assert found.tolist() == [[0, 1]] * 3


def test_a_number_has_no_order() -> None:
    assert ops.in_memory_order(np.zeros(()), lambda s: ops.uniform(stream(), s, F32)).shape == ()


# ---------------------------------------------------------------- mathematics
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 50, 999, 1000, 2000])
def test_both_ways_of_shuffling_agree(n: int) -> None:
    chosen = np.array([np.random.default_rng(n + i).integers(i, n) for i in range(n - 1)], int)
    assert (ops._shuffled(n, chosen) == ops._shuffled_at_once(n, chosen)).all()


def test_randperm_is_a_permutation() -> None:
    assert (np.sort(ops.randperm(stream(), 5000, I64)) == np.arange(5000)).all()


@pytest.mark.parametrize("name", ["log", "log1p", "exp", "sin", "cos", "tan"])
def test_the_c_library_stands_in_for_a_numpy_kernel_that_differs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(np, name)
    monkeypatch.setattr(np, name, lambda x: np.nextafter(real(x), np.inf))
    ops.c_function.cache_clear()
    try:
        x = np.linspace(-0.9, -0.1, 12).reshape(3, 4) * (-1 if name == "log" else 1)
        exact = [[getattr(math, name)(v) for v in row] for row in x.tolist()]
        assert ops.c_function(name)(x).tolist() == exact
        with np.errstate(all="ignore"):  # math would raise
            assert not np.isfinite(ops.c_function(name)(np.array([-np.inf]))).any() or name == "exp"
    finally:
        ops.c_function.cache_clear()


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("n", [9, 100])
def test_infinite_and_nan_parameters_give_such_numbers(n: int, dtype: Any) -> None:
    assert np.isposinf(ops.normal(stream(), (n,), dtype, np.inf, 1)).all()
    assert np.isnan(ops.normal(stream(), (n,), dtype, np.nan, 1)).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_moments(dtype: str) -> None:
    n, d = 40000, np.dtype(dtype)

    def near(samples: Any, mean: float, std: float) -> None:
        wide = samples.astype(np.float64)
        assert abs(wide.mean() - mean) < 5 * std / math.sqrt(n)
        assert abs(wide.std() / std - 1) < 0.1

    near(ops.uniform(stream(), (n,), d), 0.5, 12**-0.5)
    near(ops.normal(stream(), (n,), d, 1.0, 2.0), 1.0, 2.0)
    near(ops.exponential(stream(), (n,), d, 2.0), 0.5, 0.5)
    near(ops.geometric(stream(), (n,), d, 0.25), 4.0, 12**0.5)
    near(ops.bernoulli(stream(), 0.3, d, (n,)), 0.3, 0.21**0.5)
    near(ops.dropout_mask(stream(), (n,), 0.3, d), 1.0, (0.3 / 0.7) ** 0.5)
    near(ops.poisson(stream(), np.full(n, 4, d)), 4.0, 2.0)
    near(ops.poisson(stream(), np.full(n, 25, d)), 25.0, 5.0)


def test_float64_becomes_float16_by_way_of_float32() -> None:
    above_a_tie = np.array([1 + 2.0**-11 + 2.0**-40])  # which float32 does not see
    assert ops._narrow(above_a_tie, F16) == 1 < above_a_tie.astype(F16)


def test_float16_never_reaches_the_upper_end() -> None:
    assert ops.uniform(stream(), (200000,), F16).max() < 1


@pytest.mark.parametrize("dtype", [F16, F32, F64])
def test_no_dtype_reaches_the_upper_end_of_a_narrow_interval(dtype: Any) -> None:
    step = np.finfo(dtype).eps  # between 1 and `high` lies one number only
    found = ops.uniform(stream(), (1000,), dtype, 1.0, float(1 + 2 * step))
    assert set(found.tolist()) == {1.0, float(1 + step)}
    # half of what rounds to the middle, a quarter below and a quarter above, which wraps around
    assert abs((found == 1).mean() - 0.5) < 0.1


def test_multinomial_draws_by_weight_and_never_twice_without_replacement() -> None:
    weights = np.tile(np.array([1.0, 0.0, 3.0, 4.0]), (4000, 1))
    with_replacement = ops.multinomial(stream(), weights, 5, True)
    share = np.bincount(with_replacement.ravel(), minlength=4) / with_replacement.size
    assert np.abs(share - [0.125, 0, 0.375, 0.5]).max() < 0.02
    without = ops.multinomial(stream(), weights, 3, False)
    assert all(sorted(row) == [0, 2, 3] for row in without.tolist())


# ---------------------------------------------------------------- errors
CALLS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.randint(stream(), 5, 5, (2,), I64), RuntimeError, "from=5 >= to=5"),
    (lambda: ops.randint(stream(), 0, 300, (2,), np.dtype("u1")), RuntimeError,
     "to - 1 is out of bounds for unsigned char"),
    (lambda: ops.randint(stream(), -1, 3, (2,), np.dtype("?")), RuntimeError,
     "from is out of bounds for bool"),
    (lambda: ops.randint(stream(), 0, 70000, (2,), F16), RuntimeError, "bounds for c10::Half"),
    (lambda: ops.randint(stream(), 2**24, None, (2,), F32), RuntimeError, "to_inc"),
    (lambda: ops.randint(stream(), 0, 5, (2,), np.dtype("c8")), RuntimeError, "random_bounds"),
    (lambda: ops.random_integers(stream(), (2,), np.dtype("c8")), NotImplementedError,
     "\"random_kernel_cpu\" not implemented for 'ComplexFloat'"),
    (lambda: ops.randperm(stream(), -1, I64), RuntimeError, "negative dimension -1"),
    (lambda: ops.randperm(stream(), 257, np.dtype("u1")), RuntimeError, "without overflow"),
    (lambda: ops.randperm(stream(), 2050, F16), RuntimeError, "n cannot be greater than 2049"),
    (lambda: ops.randperm(stream(), 3, np.dtype("?")), NotImplementedError, "randperm"),
    (lambda: ops.uniform(stream(), (2,), F32, 3, 1), RuntimeError, "from=3 > to=1"),
    (lambda: ops.uniform(stream(), (2,), F32, math.nan, 1), RuntimeError, "from is out of bounds"),
    (lambda: ops.uniform(stream(), (2,), F16, 0, 1e5), RuntimeError, "to is out of bounds"),
    (lambda: ops.uniform(stream(), (2,), F32, -3e38, 3e38), RuntimeError, "exceed the limit"),
    (lambda: ops.uniform(stream(), (2,), I64), NotImplementedError, "check_uniform_bounds"),
    (lambda: ops.normal(stream(), (2,), F32, 0, -1), RuntimeError, "std >= 0.0, but found std -1"),
    (lambda: ops.normal(stream(), (2,), F32, 0, math.nan), RuntimeError, "found std nan"),
    (lambda: ops.normal(stream(), (2,), I64), NotImplementedError, "normal_kernel_cpu"),
    (lambda: ops.normal_like(stream(), 0.0, np.array([1.0, -1])), RuntimeError, "all elements"),
    (lambda: ops.normal_like(stream(), 0.0, np.array([1j])), RuntimeError, "non-complex"),
    (lambda: ops.normal_like(stream(), np.zeros(2), np.ones(3)), RuntimeError, "must match"),
    (lambda: ops.bernoulli(stream(), 1.5, F32, (2,)), RuntimeError, r"in \[0, 1\], but got p=1.5"),
    (lambda: ops.bernoulli(stream(), np.array([math.nan]), F32), RuntimeError, "p_in >= 0"),
    (lambda: ops.bernoulli(stream(), np.array([1]), F32), NotImplementedError, "for 'Long'"),
    (lambda: ops.exponential(stream(), (2,), F32, 0), RuntimeError, "found lambda=0"),
    (lambda: ops.exponential(stream(), (2,), I64), RuntimeError, "must be a floating point"),
    (lambda: ops.geometric(stream(), (2,), F32, 1), RuntimeError, r"in \(0, 1\), but got p=1"),
    (lambda: ops.cauchy(stream(), (2,), F32, 0, 0), RuntimeError, "found sigma=0"),
    (lambda: ops.log_normal(stream(), (2,), F32, 0, 0), RuntimeError, "found std=0"),
    (lambda: ops.poisson(stream(), np.array([-1.0])), RuntimeError, "invalid Poisson rate"),
    (lambda: ops.poisson(stream(), np.array([math.inf])), RuntimeError, "finite"),
    (lambda: ops.poisson(stream(), np.array([1])), NotImplementedError, "poisson_cpu"),
    (lambda: ops.multinomial(stream(), np.ones(3), 0, False), RuntimeError, "n_sample <= 0"),
    (lambda: ops.multinomial(stream(), np.ones(3), 4, False), RuntimeError, "without replacement"),
    (lambda: ops.multinomial(stream(), np.ones((1, 1, 1)), 1, False), RuntimeError, "1 or 2 dim"),
    (lambda: ops.multinomial(stream(), np.zeros(3), 1, False), RuntimeError, "sum of prob"),
    (lambda: ops.multinomial(stream(), np.array([-1.0, 1]), 1, True), RuntimeError, "element < 0"),
    (lambda: ops.multinomial(stream(), np.array([-1.0, 1]), 2, True), RuntimeError, "entry < 0"),
    (lambda: ops.multinomial(stream(), np.array([math.inf]), 2, True), RuntimeError, "infinity"),
    (lambda: ops.multinomial(stream(), np.ones(2, int), 1, True), RuntimeError, "got: Long"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), CALLS)
def test_bad_arguments_are_refused(
    call: Callable[[], Any], error: type[Exception], words: str
) -> None:  # fmt: skip
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_random.py" in str(caught.value)  # the user's line, not one of NumPy's


def test_bounds_that_a_floating_dtype_rounds_are_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"from is out of bounds \[-\(2\^24\), 2\^24\]"):
        ops.randint(stream(), -(2**24) - 1, 0, (2,), F32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: torch.randint(5, 5, (2,)), "less than 'to'"),
        (lambda: torch.normal(0.0, -1.0, (2,)), "std"),
        (lambda: torch.bernoulli(torch.tensor([2.0])), "p_in"),
        (lambda: torch.multinomial(torch.tensor([1.0, 1.0]), 3), "without replacement"),
        (lambda: torch.empty(2).uniform_(3, 1), "from"),
        (lambda: torch.empty(2).exponential_(0), "lambda"),
        (lambda: torch.rand(2, dtype=torch.int64), "not implemented"),
    ],
)
def test_tensors_refuse_them_too(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        call()
