"""Random tensors print as a live PyTorch prints them (`make oracle`)."""

from __future__ import annotations

import pytest

import pullback
from tests.parity.printing_cases import printed, text_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.parametrize("start", range(1000, 6000, 500))
def test_prints_as_live_pytorch(start: int) -> None:
    for seed in range(start, start + 500):
        case = printed(seed)
        assert text_of(pullback, case) == text_of(torch, case), seed
