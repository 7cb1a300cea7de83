"""`nn.utils`: clipping, and parameters as one vector."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn
from pullback.nn import utils


def with_gradients() -> list[nn.Parameter]:
    found = [nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))]
    found[0].grad, found[1].grad = torch.tensor([3.0, 0.0]), torch.tensor([-4.0])
    return found


def test_clipping_by_the_norm_of_all() -> None:
    p = with_gradients()
    assert utils.clip_grad_norm_(iter(p), 1.0).item() == 5.0
    assert p[0].grad.tolist() == pytest.approx([0.6, 0.0]) and p[2].grad is None
    before = p[1].grad.tolist()
    assert utils.clip_grad_norm_(p, 10.0).item() == pytest.approx(1.0)
    assert p[1].grad.tolist() == before
    assert utils.clip_grad_norm_(with_gradients(), 1.0, float("inf")).item() == 4.0
    assert utils.clip_grad_norm_(with_gradients()[0], 1.0, 1).item() == 3.0
    assert utils.clip_grad_norm_([], 1.0).item() == 0.0


def test_norms_that_are_not_finite() -> None:
    p = with_gradients()
    p[0].grad[0] = float("nan")
    with pytest.raises(RuntimeError, match="order 2.0 for gradients from `parameters` is non-fin"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert p[1].grad.tolist() == [-4.0]
    utils.clip_grad_norm_(p, 1.0)
    assert p[1].grad.isnan().all()


def test_clipping_by_value() -> None:
    p = with_gradients()
    utils.clip_grad_value_(p, 2)
    assert p[0].grad.tolist() == [2.0, 0.0] and p[1].grad.tolist() == [-2.0]


def test_a_vector_and_back() -> None:
    m = nn.Linear(2, 1)
    vector = utils.parameters_to_vector(m.parameters())
    (vector * torch.arange(3.0)).sum().backward()
    assert m.weight.grad.tolist() == [[0.0, 1.0]] and m.bias.grad.tolist() == [2.0]
    new = torch.tensor([5.0, 6.0, 7.0])
    utils.vector_to_parameters(new, m.parameters())
    assert m.weight.tolist() == [[5.0, 6.0]] and m.weight.requires_grad
    new[2] = 8  # the memory is shared
    assert m.bias.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="invalid for input of size 0"):
        utils.vector_to_parameters(torch.ones(2), m.parameters())
    assert m.weight.tolist() == [[5.0, 6.0]]
    with pytest.raises(TypeError, match="expected torch.Tensor, but got: list"):
        utils.vector_to_parameters([1.0], m.parameters())
