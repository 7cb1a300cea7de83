"""Tensors print as PyTorch prints them."""

from __future__ import annotations

import json
import pathlib

import pytest

import pullback as torch
from tests.parity.printing_cases import printed, text_of

TEXTS = json.loads(
    (pathlib.Path(__file__).parent.parent / "parity" / "printing.json").read_text()
)


@pytest.mark.parametrize("seed", range(len(TEXTS)))
def test_prints_as_pytorch(seed: int) -> None:
    assert text_of(torch, printed(seed)) == TEXTS[seed]


def test_options_are_kept_by_the_context_manager() -> None:
    from pullback.core.printing import get_printoptions, printoptions

    before = get_printoptions()
    with printoptions(precision=2):
        assert repr(torch.tensor([1.23456])) == "tensor([1.23])"
    assert get_printoptions() == before


def test_unknown_profile_is_refused() -> None:
    with pytest.raises(ValueError, match="profile must be one of"):
        torch.set_printoptions(profile="huge")


def test_format_of_a_number_and_of_a_vector() -> None:
    assert f"{torch.tensor(1.5):.3f}" == "1.500"
    assert f"{torch.tensor(1.5)}" == "1.5"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(torch.ones(2), ".2f")


def test_grad_fn_and_flags_in_the_text() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"
    assert repr((x * 2).sum()) == "tensor(6., grad_fn=<SumBackward0>)"
