"""Random draws against a live PyTorch, for other seeds (`make oracle`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.core.generator import LAYOUT, Generator
from pullback.ops import random as ops
from tests.ops.test_random import FLOATS, fill, fill_cases, rates
from tests.parity.random_cases import all_digests

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*is out of bounds"),
    pytest.mark.filterwarnings("ignore:.*not writable"),
]

Draw = Callable[[], Any]


def check(name: str, seed: int, theirs: Draw, ours: Callable[[Generator], Any]) -> None:
    """Both draw from one seed: same dtype, same bits, and the same state afterwards."""
    torch.manual_seed(seed)
    g = Generator().manual_seed(seed)
    want, got = theirs().numpy(), ours(g)
    assert want.dtype == got.dtype and want.shape == got.shape, name
    assert want.tobytes() == got.tobytes(), name
    assert (torch.get_rng_state().numpy() == g.get_state_array()).all(), f"{name}: state"


@pytest.mark.parametrize("seed", [3, 77, 2**40 + 7, 123456789, -1])
@pytest.mark.filterwarnings("ignore")
def test_draws_of_tensors(seed: int) -> None:
    want, got = all_digests(torch, (seed,)), all_digests(pullback, (seed,))
    assert [k for k in want if want[k] != got[k]] == []


@pytest.mark.parametrize(("method", "dtype", "args"), fill_cases())
def test_fills(method: str, dtype: str, args: tuple[Any, ...]) -> None:
    for seed in (1, 2, 2**33 + 1):
        for n in (1, 2, 15, 16, 17, 31, 100, 5003):
            check(
                f"{seed} {n}", seed,
                lambda n=n: getattr(torch.empty(n, dtype=getattr(torch, dtype)), method)(*args),
                lambda g, n=n: fill(g, method, n, dtype, args),
            )  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("mean", "std"), [(0, 1), (0.3, 1.7), (-2, 0.05)])
def test_a_million_normals(dtype: str, mean: float, std: float) -> None:
    check(
        dtype, 5, lambda: torch.empty(10**6 + 3, dtype=getattr(torch, dtype)).normal_(mean, std),
        lambda g: ops.normal(g, (10**6 + 3,), np.dtype(dtype), mean, std),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [3, 8, 9, 100])
def test_complex(dtype: str, n: int) -> None:
    numpy, theirs = np.dtype(dtype), getattr(torch, dtype)
    check("normal", 1, lambda: torch.empty(n, dtype=theirs).normal_(2, 5),
          lambda g: ops.normal(g, (n,), numpy, 2, 5))  # fmt: skip
    check("uniform", 1, lambda: torch.empty(n, dtype=theirs).uniform_(1, 3),
          lambda g: ops.uniform(g, (n,), numpy, 1, 3))  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_over_narrow_intervals(dtype: str) -> None:
    """Where many samples round to the upper end."""
    numpy = np.dtype(dtype)
    rng = np.random.default_rng(0)
    for seed in range(100):
        low = float(rng.normal() * 10.0 ** rng.integers(-3, 4))
        high = low + abs(low) * 2.0 ** -float(rng.integers(0, np.finfo(numpy).nmant + 1))
        check(
            f"{low} {high}", seed,
            lambda low=low, high=high: torch.empty(64, dtype=getattr(torch, dtype)).uniform_(
                low, high
            ),
            lambda g, low=low, high=high: ops.uniform(g, (64,), numpy, low, high),
        )  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 2, 999, 1000, 1001, 65537, 10**6])
def test_randperm(n: int) -> None:
    for seed in range(3):
        check(f"{seed}", seed, lambda: torch.randperm(n),
              lambda g: ops.randperm(g, n, np.dtype(np.int64)))  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_poisson(dtype: str) -> None:
    for seed in range(10):
        x = rates(dtype)
        check(f"{seed}", seed, lambda x=x: torch.poisson(torch.from_numpy(x)),
              lambda g, x=x: ops.poisson(g, x))  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [0.0, 0.1, 0.3, 0.77, 1.0])
def test_dropout(dtype: str, p: float) -> None:
    for seed in range(5):
        ones = torch.ones(37, 5, dtype=getattr(torch, dtype))
        check(f"{seed}", seed, lambda ones=ones: torch.nn.functional.dropout(ones, p),
              lambda g: ops.dropout_mask(g, (37, 5), p, np.dtype(dtype)))  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("output", [*FLOATS, "bool", "int64"])
def test_bernoulli_with_an_array(dtype: str, output: str) -> None:
    p = np.linspace(0, 1, 101).astype(dtype)
    for seed in range(5):
        check(
            f"{seed}", seed,
            lambda: torch.empty(101, dtype=getattr(torch, output)).bernoulli_(torch.from_numpy(p)),
            lambda g: ops.bernoulli(g, p, np.dtype(output)),
        )  # fmt: skip


@pytest.mark.parametrize("mean", [0.3, *FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("std", [0.7, "float32", "float64"])
@pytest.mark.parametrize("n", [5, 40])
def test_normal_like(mean: Any, std: Any, n: int) -> None:
    if isinstance(mean, float) and isinstance(std, float):
        return
    m = (np.arange(n) * 0.37).astype(mean)[:, None] if isinstance(mean, str) else mean
    s = (np.arange(n) * 1.1 + 0.1).astype(std) if isinstance(std, str) else std

    def tensor(x: Any) -> Any:
        return torch.from_numpy(x) if isinstance(x, np.ndarray) else x

    for seed in range(3):
        check(f"{seed}", seed, lambda: torch.normal(tensor(m), tensor(s)),
              lambda g: ops.normal_like(g, m, s))  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial(dtype: str, replacement: bool) -> None:
    for seed in range(10):
        for shape in ((5, 17), (3, 200), (4,)):
            w = np.random.default_rng(seed).random(shape).astype(dtype)
            for n in (1, 2, 4):
                check(
                    f"{seed} {shape} {n}", seed,
                    lambda w=w, n=n: torch.multinomial(torch.from_numpy(w), n, replacement),
                    lambda g, w=w, n=n: ops.multinomial(g, w, n, replacement),
                )  # fmt: skip


def test_multinomial_with_more_samples_than_weights_agrees_on_those_there_are() -> None:
    w = np.array([0.5, 0, 0.2, 0, 0, 0.9])
    torch.manual_seed(0)
    want = torch.multinomial(torch.from_numpy(w), 6).numpy()
    assert (want[:3] == ops.multinomial(Generator().manual_seed(0), w, 6, False)[:3]).all()


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda dtype: torch.zeros(4, 6, dtype=dtype).t(),
    "permuted": lambda dtype: torch.zeros(3, 4, 5, dtype=dtype).permute(2, 0, 1),
    "stepped": lambda dtype: torch.zeros(6, 10, dtype=dtype)[:, ::2],
    "both": lambda dtype: torch.zeros(6, 10, dtype=dtype)[:, ::2].t(),
    "channels last": lambda dtype: torch.zeros(2, 3, 4, 5, dtype=dtype).contiguous(
        memory_format=torch.channels_last
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_fills_follow_the_memory(layout: str, dtype: str) -> None:
    def target() -> Any:
        return LAYOUTS[layout](getattr(torch, dtype))

    x, numpy = target().numpy(), np.dtype(dtype)
    p = np.linspace(0, 1, x.size).reshape(x.shape)
    dense = list(x.strides) == sorted(x.strides, reverse=True)

    def ours(draw: Callable[..., Any], *operands: Any) -> Callable[[Generator], Any]:
        return lambda g: ops.in_memory_order(x, lambda *a: draw(g, *a), *operands)

    check("uniform_", 1, lambda: target().uniform_(1, 2),
          ours(lambda g, shape: ops.uniform(g, shape, numpy, 1, 2)))  # fmt: skip
    check("normal_", 1, lambda: target().normal_(1, 2),
          ours(lambda g, shape: ops.normal(g, shape, numpy, 1, 2, contiguous=False)))  # fmt: skip
    check("randn_like", 1, lambda: torch.randn_like(target()),
          ours(lambda g, shape: ops.normal(g, shape, numpy, contiguous=dense)))  # fmt: skip
    if numpy.kind == "f":
        check("dropout", 1, lambda: torch.nn.functional.dropout(target() + 1, 0.3),
              ours(lambda g, shape: ops.dropout_mask(g, shape, 0.3, numpy)))  # fmt: skip
        check("bernoulli_", 1, lambda: target().bernoulli_(torch.from_numpy(p)),
              ours(lambda g, shape, q: ops.bernoulli(g, q, numpy, shape), p))  # fmt: skip


def test_multinomial_scores_follow_the_memory() -> None:
    w = np.random.default_rng(0).random((7, 5)).T
    check("multinomial", 1, lambda: torch.multinomial(torch.from_numpy(w), 3),
          lambda g: ops.multinomial(g, w, 3, False))  # fmt: skip


# ---------------------------------------------------------------- generators
def test_states_cross_over() -> None:
    torch.manual_seed(5)
    torch.randn(5)
    pullback.set_rng_state(torch.get_rng_state().numpy())
    assert (torch.randn(40).numpy() == pullback.randn(40).numpy()).all()
    torch.set_rng_state(torch.from_numpy(pullback.get_rng_state().numpy()))
    assert (torch.randn(3).numpy() == pullback.randn(3).numpy()).all()


@pytest.mark.parametrize("seed", [0, -1, 2**63, 2**64 - 1])
def test_states_are_the_same_bytes_after_any_number_of_draws(seed: int) -> None:
    theirs, g = torch.Generator().manual_seed(seed), Generator().manual_seed(seed)
    assert theirs.initial_seed() == g.initial_seed()
    for n in (0, 1, 622, 1, 1, 623, 624, 5000):
        torch.empty(n, dtype=torch.int32).random_(generator=theirs)
        g.draw32(n)
        assert (theirs.get_state().numpy() == g.get_state_array()).all()


@pytest.mark.parametrize(
    ("field", "values"),
    [("left", (0, 1, 2, 624, 625)), ("seeded", (0, 1)), ("next", (0, 624, 625)),
     ("float_normal_is_valid", (0, 1)), ("normal_is_valid", (0, 1))],
)  # fmt: skip
def test_the_same_states_are_refused(field: str, values: tuple[int, ...]) -> None:
    for value in values:
        record = np.frombuffer(Generator().get_state_array().tobytes(), LAYOUT).copy()
        record[field] = value
        state = np.frombuffer(record.tobytes(), np.uint8).copy()
        outcomes = []
        theirs, ours = (torch.Generator(), torch.from_numpy(state)), (Generator(), state)
        for generator, given in (theirs, ours):
            try:
                generator.set_state(given)
                outcomes.append("taken")
            except RuntimeError as error:
                outcomes.append(str(error).split("\n")[0])
        assert outcomes[0] == outcomes[1], (field, value)
