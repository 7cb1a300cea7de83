"""Generators: independent streams, states, copies, threads."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.core.generator import LAYOUT, Generator
from pullback.ops import random as ops


def test_the_words_are_those_of_the_mersenne_twister() -> None:
    # the ten-thousandth word for seed 5489 is fixed by the C++ standard
    assert Generator().manual_seed(5489).draw32(10000)[-1] == 4123659995


def test_64_bits_are_two_words_the_high_one_first() -> None:
    high, low = Generator().manual_seed(3).draw32(2).tolist()
    assert Generator().manual_seed(3).draw64(1).tolist() == [(high << 32) | low]


@pytest.mark.parametrize("before", [0, 1, 623, 624, 625])
def test_peeking_leaves_the_stream_in_place(before: int) -> None:
    g, other = Generator().manual_seed(3), Generator().manual_seed(3)
    g.draw32(before), other.draw32(before)
    seen = g.peek64(400)
    assert (g.get_state_array() == other.get_state_array()).all()
    assert (g.draw64(400) == seen).all()


def test_a_generator_is_a_stream_of_its_own() -> None:
    g = torch.Generator().manual_seed(7)
    first = torch.rand(3, generator=g)
    torch.manual_seed(7)
    assert first.equal(torch.rand(3))
    assert g.initial_seed() == 7
    assert g.device == torch.device("cpu")


@pytest.mark.parametrize(
    ("seed", "initial"), [(-1, 2**64 - 1), (-(2**63), 2**63), (2**64 - 1, 2**64 - 1), (0, 0)]
)
def test_seeds_wrap_at_64_bits_and_the_stream_takes_32(seed: int, initial: int) -> None:
    g = Generator().manual_seed(seed)
    assert g.initial_seed() == initial
    same = Generator().manual_seed(initial % 2**32)
    assert (g.draw32(5) == same.draw32(5)).all()


def test_the_seed_of_a_new_generator() -> None:
    assert Generator().initial_seed() == 67280421310721


def test_the_default_stream_is_another_in_every_process() -> None:
    program = "import pullback; print(pullback.initial_seed())"
    seeds = {subprocess.check_output([sys.executable, "-c", program]) for _ in range(2)}
    assert len(seeds) == 2


def test_seed_starts_an_unpredictable_stream() -> None:
    g = Generator()
    assert g.seed() == g.initial_seed()
    assert g.seed() != g.seed()


def test_seeding_forgets_the_cached_normal() -> None:
    g = Generator().manual_seed(1)
    ops.normal(g, (1,), np.dtype(np.float32))
    assert g.next_normal is not None
    assert g.manual_seed(1).next_normal is None


# ---------------------------------------------------------------- states
@pytest.mark.parametrize("drawn", [0, 5])
def test_a_state_continues_the_stream_with_its_cached_normal(drawn: int) -> None:
    g = torch.Generator().manual_seed(3)
    torch.randn(drawn, generator=g)
    state = g.get_state()
    assert state.shape == (5056,) and state.dtype == torch.uint8
    want = torch.randn(6, generator=g)
    g.set_state(state)
    assert want.equal(torch.randn(6, generator=g))


@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 625, 1248])
def test_a_state_round_trips_byte_for_byte(drawn: int) -> None:
    g = Generator().manual_seed(9)
    g.draw32(drawn)
    state = g.get_state_array()
    other = Generator()
    other.set_state_array(state)
    assert (other.get_state_array() == state).all()
    assert (other.draw32(700) == g.draw32(700)).all()


def test_the_cached_float_normal_is_carried_along() -> None:
    record = np.frombuffer(Generator().manual_seed(1).get_state_array().tobytes(), LAYOUT).copy()
    record["float_normal"], record["float_normal_is_valid"] = 0.25, 1
    state = np.frombuffer(record.tobytes(), np.uint8)
    g = Generator()
    g.set_state_array(state)
    assert g.next_float_normal == 0.25
    assert (g.get_state_array() == state).all()


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)),
              lambda g: g.clone_state()]
)  # fmt: skip
def test_copies_go_on_alike_and_apart(clone: Callable[[Any], Any]) -> None:
    g = torch.Generator().manual_seed(3)
    torch.randn(5, generator=g)
    other = clone(g)
    assert other.initial_seed() == 3
    want = torch.randn(5, generator=g)
    assert want.equal(torch.randn(5, generator=other))


# ---------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Generator().manual_seed(1.5), RuntimeError, "expected a long, but got float"),
        (lambda: Generator().manual_seed(True), RuntimeError, "expected a long, but got bool"),
        (lambda: Generator().manual_seed(2**64), ValueError, "Overflow when unpacking"),
        (lambda: Generator().manual_seed(-(2**63) - 1), ValueError, "Overflow when unpacking"),
        (lambda: Generator().set_state(np.zeros(3, np.uint8)), RuntimeError, "of size 5056 but"),
        (lambda: Generator().set_state(np.zeros(5056, np.uint8)), RuntimeError, "Invalid mt19937"),
        (lambda: Generator().set_state(np.zeros(5056)), TypeError, "must be a torch.ByteTensor"),
        (lambda: Generator().set_state([1]), TypeError, "expected a torch.ByteTensor"),
        (lambda: Generator("cuda:0"), RuntimeError, "Cannot get CUDA generator"),
        (lambda: torch.rand(2, generator=5), TypeError, "Generator"),
        (lambda: torch.set_rng_state(torch.zeros(3, dtype=torch.uint8)), RuntimeError, "size 5056"),
    ],
)
def test_bad_seeds_and_states(
    call: Callable[[], Any], error: type[Exception], words: str
) -> None:  # fmt: skip
    with pytest.raises(error, match=words):
        call()


def test_a_refused_state_changes_nothing() -> None:
    g = Generator().manual_seed(4)
    before = g.get_state_array()
    with pytest.raises(RuntimeError):
        g.set_state_array(np.zeros(5056, np.uint8))
    assert (g.get_state_array() == before).all()


# ---------------------------------------------------------------- threads
@pytest.mark.parametrize("n", [3, 33])
def test_threads_take_whole_arrays_from_a_shared_stream(n: int) -> None:
    """3 normals leave a cached one, 33 are drawn in two steps: neither may be torn apart."""
    single = np.dtype(np.float32)
    g = Generator().manual_seed(0)
    found: list[tuple[float, ...]] = []

    def work() -> None:
        for _ in range(100):
            found.append(tuple(ops.normal(g, (n,), single).tolist()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    alone = Generator().manual_seed(0)
    want = {tuple(ops.normal(alone, (n,), single).tolist()) for _ in range(400)}
    assert set(found) == want
