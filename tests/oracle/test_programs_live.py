"""Random programs run on PyTorch and on Pullback side by side (`make oracle`)."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.oracle.programs import difference, program, run

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


# What PyTorch refuses and we do, for its meaning is clear.
ALLOWED = {
    268: "a single element changed by itself, seen through views of other strides",
    3346: "a write to a view made before its base came to require grad",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(0, 5000, 500))
def test_programs_agree(start: int) -> None:
    found = {}
    for seed in range(start, start + 500):
        steps = program(seed)
        d = difference(run(torch, steps), run(pullback, steps))
        if d is not None:
            found[seed] = d
    assert found.keys() == {seed for seed in ALLOWED if start <= seed < start + 500}, found


@pytest.mark.filterwarnings("ignore")
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that forgets to tell its base about a write is noticed."""
    from pullback.eager import inplace

    monkeypatch.setattr(inplace, "rebase", lambda view, edge: None)
    wrong: list[Any] = [
        seed
        for seed in range(200)
        if difference(run(torch, program(seed)), run(pullback, program(seed))) is not None
    ]
    assert wrong
