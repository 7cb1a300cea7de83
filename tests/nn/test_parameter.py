"""Parameters take the fast ways of tensors, with tensors' results."""

from __future__ import annotations

import copy

import pytest

import pullback as torch
from pullback import nn


def test_results_are_tensors_with_the_same_history() -> None:
    t = torch.tensor([1.0, 2.0], requires_grad=True)
    p = nn.Parameter(torch.tensor([1.0, 2.0]))
    x = torch.tensor([3.0, 4.0])
    for f in (
        lambda v: v * x, lambda v: x * v, lambda v: v * v, lambda v: v * 2.0, lambda v: 2 / v,
        lambda v: x - v, lambda v: torch.tanh(v), lambda v: v**2, lambda v: v @ x,
        lambda v: torch.maximum(x, v), lambda v: v[0], lambda v: v.sum(),
    ):  # fmt: skip
        a, b = f(t), f(p)
        assert type(b) is torch.Tensor and torch.equal(a, b)
        assert type(b.grad_fn) is type(a.grad_fn)
        (g,) = torch.autograd.grad(a.sum(), t)
        (h,) = torch.autograd.grad(b.sum(), p)
        assert torch.equal(g, h)


def test_a_changed_parameter_is_noticed() -> None:
    p, x = nn.Parameter(torch.ones(2)), torch.ones(2, requires_grad=True)
    for out in (p * x, x * p, torch.square(p) * x):
        with torch.no_grad():
            p.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()


def test_text_and_copies() -> None:
    p = nn.Parameter(torch.ones(1))
    text = "Parameter containing:\ntensor([1.], requires_grad=True)"
    assert repr(p) == str(p) == f"{p}" == text
    assert isinstance(copy.deepcopy(p), nn.Parameter)
    assert repr(nn.Parameter(torch.ones(1), requires_grad=False))[-12:] == "tensor([1.])"
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        nn.Parameter([1.0])
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        nn.Parameter(torch.tensor([1]))


def test_a_buffer() -> None:
    b = nn.Buffer(torch.ones(2), persistent=False)
    assert isinstance(b, nn.Buffer) and not b.persistent and not b.requires_grad
    assert nn.Buffer(torch.ones(2)).persistent
