"""The founding note's programs and their results."""

from __future__ import annotations

import warnings

import pytest

import pullback as torch
from examples import founding_note


def test_scalar_output() -> None:
    assert founding_note.scalar_output() == [
        None, "tensor([ 0.,  4.,  8., 12.])", "tensor([1., 1., 1., 1.])",
    ]  # fmt: skip


def test_vector_output() -> None:
    first, second, error = founding_note.vector_output()
    assert first == second == "tensor([0., 2., 4., 6.])"
    assert error.startswith("grad can be implicitly created only for scalar outputs")
    assert "founding_note.py:" in error and "(x * x).backward()" in error


def test_detaching() -> None:
    assert founding_note.detaching() == ["tensor([True, True, True, True])", False, True, None]


def test_not_a_leaf() -> None:
    grad, message = founding_note.not_a_leaf()
    assert grad is None
    assert "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed" in message
    assert "y = x * x" in message and "grad = y.grad" in message


def test_twice() -> None:
    (message,) = founding_note.twice()
    assert "Trying to backward through the graph a second time" in message
    assert "Saved intermediate values of the graph are freed" in message
    assert "z = y * x" in message


def test_gradients_accumulate_without_zeroing() -> None:
    x = torch.arange(4.0, requires_grad=True)
    for _ in range(3):
        x.sum().backward()
    assert x.grad.tolist() == [3.0] * 4


def test_detach_shares_memory_and_starts_anew() -> None:
    x = torch.arange(4.0, requires_grad=True)
    y = x * x
    u = y.detach()
    assert u.data_ptr() == y.data_ptr() and not u.requires_grad
    u.requires_grad_(True)
    (u * 2).sum().backward()
    assert u.is_leaf and u.grad.tolist() == [2.0] * 4 and x.grad is None


def test_retain_grad_keeps_the_gradient_of_a_result() -> None:
    x = torch.arange(4.0, requires_grad=True)
    y = x * x
    y.retain_grad()
    y.sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad.tolist() == [1.0] * 4


def test_retain_graph_allows_a_second_pass() -> None:
    x = torch.arange(4.0, requires_grad=True)
    z = x * x * x
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    assert x.grad.tolist() == [0.0, 6.0, 24.0, 54.0]


def test_a_graph_that_saves_nothing_can_be_walked_again() -> None:
    x = torch.arange(4.0, requires_grad=True)
    y = x.sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0] * 4


def test_integer_tensors_cannot_require_grad() -> None:
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can"):
        torch.arange(4).requires_grad_()
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        torch.tensor([1], requires_grad=True)
    x = torch.arange(4)
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype"):
        x.requires_grad = True
    assert not x.requires_grad
