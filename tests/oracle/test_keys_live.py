"""Random keys on PyTorch and on Pullback side by side (`make oracle`)."""

from __future__ import annotations

from collections import Counter

import pytest

import pullback
from tests.oracle.keys import case, read, write

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("start", range(0, 30_000, 5_000))
def test_keys_agree(start: int) -> None:
    found = []
    errors: Counter[bool] = Counter()
    for seed in range(start, start + 5_000):
        c = case(seed)
        for run in (read, write):
            want, got = run(torch, c), run(pullback, c)
            errors[isinstance(want, str) or isinstance(want[0], str)] += 1
            if want != got:
                found.append((seed, run.__name__, c, want, got))
    assert not found, found[0]
    assert errors[False] > 3_000  # most keys are good ones
