"""The parity cases against PyTorch itself (`make oracle`)."""

from __future__ import annotations

import pytest

import pullback
from tests.parity.cases import CASES, Case
from tests.parity.compare import differences
from tests.parity.evaluate import evaluate

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_equals_live_pytorch(case: Case) -> None:
    assert differences(case.name, evaluate(torch, case), evaluate(pullback, case)) == []
