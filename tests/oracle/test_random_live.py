"""Random draws against a live PyTorch, for other seeds (`make oracle`)."""

from __future__ import annotations

import pytest

import pullback
from tests.parity.random_cases import all_digests

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.parametrize("seed", [3, 77, 2**40 + 7, 123456789, -1])
@pytest.mark.filterwarnings("ignore")
def test_draws_equal_live_pytorch(seed: int) -> None:
    want, got = all_digests(torch, (seed,)), all_digests(pullback, (seed,))
    assert [k for k in want if want[k] != got[k]] == []


def test_states_cross_over() -> None:
    torch.manual_seed(5)
    torch.randn(5)
    pullback.set_rng_state(torch.get_rng_state().numpy())
    assert (torch.randn(40).numpy() == pullback.randn(40).numpy()).all()
    torch.set_rng_state(torch.from_numpy(pullback.get_rng_state().numpy()))
    assert (torch.randn(3).numpy() == pullback.randn(3).numpy()).all()
