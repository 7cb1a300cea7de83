"""Random calls that sort and choose on PyTorch and on Pullback side by side (`make oracle`)."""

from __future__ import annotations

import pytest

import pullback
from tests.oracle.orders import call, run, same

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def test_orders_agree() -> None:
    found = []
    good = 0
    for seed in range(6_000):
        c = call(seed)
        want, got = run(torch, c), run(pullback, c)
        good += not isinstance(want, str)
        if not same(want, got, c):
            found.append((seed, c, want, got))
    assert not found, found[:2]
    assert good > 4_000
