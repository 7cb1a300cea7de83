"""Generators: independent streams, states, copies."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

import pullback as torch


def test_a_generator_is_a_stream_of_its_own() -> None:
    g = torch.Generator().manual_seed(7)
    first = torch.rand(3, generator=g)
    torch.manual_seed(7)
    assert first.equal(torch.rand(3))
    assert g.initial_seed() == 7


def test_state_continues_the_stream_with_its_cached_normal() -> None:
    g = torch.Generator().manual_seed(3)
    torch.randn(5, generator=g)
    state = g.get_state()
    assert state.shape == (5056,) and state.dtype == torch.uint8
    want = torch.randn(6, generator=g)
    g.set_state(state)
    assert want.equal(torch.randn(6, generator=g))


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g)),
                                   lambda g: g.clone_state()])  # fmt: skip
def test_copies_go_on_alike(clone: object) -> None:
    g = torch.Generator().manual_seed(3)
    torch.randn(5, generator=g)
    other = clone(g)  # type: ignore[operator]
    assert torch.randn(5, generator=g).equal(torch.randn(5, generator=other))


def test_a_fresh_state_round_trips() -> None:
    g = torch.Generator().manual_seed(9)
    g.set_state(g.get_state())
    other = torch.Generator().manual_seed(9)
    assert torch.rand(3, generator=g).equal(torch.rand(3, generator=other))


def test_seed_changes_the_stream() -> None:
    g = torch.Generator()
    assert g.seed() == g.initial_seed()


def test_bad_seeds_and_states() -> None:
    with pytest.raises(TypeError, match="long"):
        torch.manual_seed(1.5)
    with pytest.raises(RuntimeError, match="Overflow"):
        torch.manual_seed(2**70)
    with pytest.raises(RuntimeError, match="wrong size"):
        torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(TypeError, match="Generator"):
        torch.rand(2, generator=5)


def test_threads_share_a_stream_without_losing_draws() -> None:
    g = torch.Generator().manual_seed(0)
    found: list[float] = []

    def work() -> None:
        for _ in range(200):
            found.extend(torch.rand(4, generator=g).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    alone = torch.rand(3200, generator=torch.Generator().manual_seed(0)).tolist()
    assert sorted(found) == sorted(alone)
