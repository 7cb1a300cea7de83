"""Values, gradients and second-order gradients equal PyTorch's recorded ones."""

from __future__ import annotations

import pathlib
import warnings

import numpy as np
import pytest

import pullback
from tests.parity.cases import CASES, Case
from tests.parity.compare import differences
from tests.parity.evaluate import evaluate

GOLDENS = dict(np.load(pathlib.Path(__file__).parent / "goldens.npz"))


def test_every_golden_belongs_to_a_case() -> None:
    names = {c.name for c in CASES}
    assert {key.rpartition("|")[0] for key in GOLDENS} == names


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_equals_pytorch(case: Case) -> None:
    want = {
        key.rpartition("|")[2]: value
        for key, value in GOLDENS.items()
        if key.rpartition("|")[0] == case.name
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = evaluate(pullback, case)
    assert differences(case.name, want, got) == []
