"""Hooks of modules: before and after forward, and around the backward pass."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.func import functional_call, grad, jvp, vmap


class Scale(nn.Module):
    def forward(self, x: Any, by: float = 2.0) -> Any:
        return x * by


class Broken(nn.Module):
    def forward(self, x: Any) -> Any:
        raise ValueError("broken")


def test_arguments_and_results_are_replaced() -> None:
    m = Scale()
    m.register_forward_pre_hook(lambda m, args: args[0] + 1)
    m.register_forward_pre_hook(lambda m, a, k: (a, {"by": 10.0}), with_kwargs=True)
    m.register_forward_hook(lambda m, a, k, out: out + k["by"], with_kwargs=True)
    assert m(torch.tensor(1.0)).item() == 30.0
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        Scale.__call__(with_hook(lambda m, a, k: 3), torch.ones(1))


def with_hook(hook: Any) -> Scale:
    m = Scale()
    m.register_forward_pre_hook(hook, with_kwargs=True)
    return m


def test_order_and_removal() -> None:
    m, log = Scale(), []
    m.register_forward_hook(lambda *a: log.append("second"))
    first = m.register_forward_hook(lambda *a: log.append("first"), prepend=True)
    m(torch.ones(1))
    first.remove()
    m(torch.ones(1))
    assert log == ["first", "second", "second"]


def test_hooks_that_are_always_called() -> None:
    m, log = Broken(), []
    m.register_forward_hook(lambda m, a, out: log.append(out), always_call=True)
    m.register_forward_hook(lambda m, a, out: log.append("never"))
    with pytest.raises(ValueError, match="broken"):
        m(torch.ones(1))
    assert log == [None]
    m.register_forward_hook(lambda m, a, out: 1 / 0, always_call=True)
    with pytest.warns(UserWarning, match="silenced"), pytest.raises(ValueError, match="broken"):
        m(torch.ones(1))


def test_gradients_are_seen_and_replaced() -> None:
    m, log = Scale(), []
    m.register_full_backward_pre_hook(lambda m, g: (g[0] * 3,))
    m.register_full_backward_hook(lambda m, gi, go: log.append((gi[0].item(), go[0].item())))
    m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 5,))
    x = torch.tensor(1.0, requires_grad=True)
    y = m(x)
    assert type(y.grad_fn).__name__ == "BackwardHookFunctionBackward"
    y.backward()
    assert log == [(6.0, 3.0)] and x.grad.item() == 30.0


def test_no_input_requires_grad() -> None:
    m, log = nn.Linear(2, 1), []
    m.register_full_backward_hook(lambda m, gi, go: log.append((gi, go[0].shape)))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        m(torch.ones(3, 2)).sum().backward()
    assert log == [((None,), (3, 1))] and m.weight.grad.tolist() == [[3.0, 3.0]]
    with torch.no_grad():
        assert m(torch.ones(3, 2)).grad_fn is None


def test_wrong_numbers_of_gradients() -> None:
    x = torch.ones(2, requires_grad=True)
    m = Scale()
    m.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        m(x).sum().backward()
    m = Scale()
    m.register_full_backward_pre_hook(lambda m, go: ())
    with pytest.raises(RuntimeError, match="invalid number of grad_output, got 0"):
        m(x).sum().backward()
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        hooked = Scale()
        hooked.register_full_backward_hook(lambda *a: None)
        hooked.register_backward_hook(lambda *a: None)


def test_the_older_hooks_are_on_the_last_node() -> None:
    m, log = Scale(), []
    m.register_backward_hook(lambda m, gi, go: log.append((len(gi), go[0].tolist())))
    x = torch.ones(2, requires_grad=True)
    m(x).sum().backward()
    assert log == [(2, [1.0, 1.0])]


HOOKED = (
    "Output 0 of BackwardHookFunctionBackward is a view and is being modified inplace. "
    "This view was created inside a custom Function"
)


def test_results_are_not_written_past_the_hooks() -> None:
    m = Scale()
    m.register_full_backward_hook(lambda *a: None)
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=HOOKED):
        m(x).add_(1)
    m = nn.ReLU(inplace=True)
    m.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="modified inplace"):
        m(x * 1)


def test_second_derivatives_and_transforms_pass_hooks() -> None:
    class Cube(nn.Module):
        def forward(self, x: Any) -> Any:
            return x**3

    m, count = Cube(), []
    m.register_full_backward_hook(lambda m, gi, go: count.append(1))
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(m(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert first.item() == 12.0 and second.item() == 12.0 and count
    xs = torch.tensor([1.0, 2.0], dtype=torch.float64)
    each = vmap(grad(lambda v: functional_call(m, {}, (v,))))(xs)
    assert each.tolist() == [3.0, 12.0]
    _, slope = jvp(m, (x.detach(),), (torch.ones((), dtype=torch.float64),))
    assert slope.item() == 12.0
    leaf = xs.clone().requires_grad_()
    vmap(m)(leaf).sum().backward()
    assert leaf.grad.tolist() == [3.0, 12.0]


def test_hooks_follow_a_module_into_copies() -> None:
    m = Scale()
    m.register_forward_hook(lambda m, a, out: out + 1)
    assert copy.deepcopy(m)(torch.tensor(1.0)).item() == 3.0
