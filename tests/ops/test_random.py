"""Random numbers equal PyTorch's, bit for bit (recorded by tools/record_random.py)."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

import pullback as torch
from tests.parity.random_cases import all_digests

RECORDED = json.loads((pathlib.Path(__file__).parent.parent / "parity" / "random.json").read_text())


def test_every_draw_has_the_recorded_bits() -> None:
    got = all_digests(torch, seeds=(0, 42, -3))
    assert got.keys() == RECORDED.keys()
    assert [k for k in got if got[k] != RECORDED[k]] == []


def test_known_numbers() -> None:
    torch.manual_seed(0)
    assert torch.rand(2).tolist() == [0.49625658988952637, 0.7682217955589294]


def test_bernoulli_with_one_probability_has_the_right_mean() -> None:
    torch.manual_seed(1)
    assert abs(torch.empty(20000).bernoulli_(0.3).mean().item() - 0.3) < 0.02


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: torch.randint(5, 5, (2,)), "less than 'to'"),
        (lambda: torch.randint(0, 300, (2,), dtype=torch.uint8), "out of bounds"),
        (lambda: torch.randperm(-1), "non-negative"),
        (lambda: torch.normal(0.0, -1.0, (2,)), "std"),
        (lambda: torch.bernoulli(torch.tensor([2.0])), "p_in"),
        (lambda: torch.multinomial(torch.tensor([0.0, 0.0]), 1), "sum of probabilities"),
        (lambda: torch.multinomial(torch.tensor([1.0, 1.0]), 3), "without replacement"),
        (lambda: torch.multinomial(torch.tensor([-1.0, 1.0]), 1), "element < 0"),
        (lambda: torch.empty(2).uniform_(3, 1), "from"),
        (lambda: torch.empty(2).exponential_(0), "lambda"),
        (lambda: torch.rand(2, dtype=torch.int64), "not implemented"),
    ],
)
def test_bad_arguments_are_refused(call: object, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        call()  # type: ignore[operator]


def test_float16_never_reaches_the_upper_end() -> None:
    torch.manual_seed(0)
    assert torch.rand(200000, dtype=torch.float16).max().item() < 1
    assert np.isfinite(torch.rand(3).numpy()).all()
