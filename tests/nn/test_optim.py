"""Optimisers: their formulas, groups, state, closures and errors."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback import nn, optim
from pullback.optim.adam import BLOCK


def parameter(*values: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor(values or (1.0, -2.0), dtype=torch.float64))


def stepped(opt: Any, p: Any, steps: int = 3) -> list[float]:
    """After steps whose gradients are the squares of the parameter."""
    for _ in range(steps):
        p.grad = p.detach() ** 2
        opt.step()
    return list(p.detach().numpy())


def by_hand_sgd(x: Any, lr: float, m: float, damp: float, wd: float, nesterov: bool) -> Any:
    last = None
    for _ in range(3):
        g = x**2 + wd * x
        last = g if last is None else m * last + (1 - damp) * g
        x = x - lr * (g + m * last if nesterov else last if m else g)
    return x


@pytest.mark.parametrize(
    ("m", "damp", "wd", "nesterov"),
    [(0, 0, 0, False), (0.9, 0, 0, False), (0.5, 0.1, 0.01, False), (0.9, 0, 0.1, True)],
)
def test_sgd(m: float, damp: float, wd: float, nesterov: bool) -> None:
    p = parameter()
    opt = optim.SGD([p], 0.1, m, damp, wd, nesterov)
    want = by_hand_sgd(np.array([1.0, -2.0]), 0.1, m, damp, wd, nesterov)
    np.testing.assert_allclose(stepped(opt, p), want, rtol=1e-14)


def by_hand_adam(x: Any, wd: float, decoupled: bool, amsgrad: bool) -> Any:
    m, v, top = 0 * x, 0 * x, 0 * x
    for t in range(1, 4):
        g = x**2
        if decoupled:
            x = x * (1 - 0.1 * wd)
        else:
            g = g + wd * x
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        top = np.maximum(top, v)
        size = np.sqrt(top if amsgrad else v) / math.sqrt(1 - 0.999**t) + 1e-8
        x = x - 0.1 / (1 - 0.9**t) * m / size
    return x


@pytest.mark.parametrize(
    ("wd", "decoupled", "amsgrad"), [(0, False, False), (0.1, False, True), (0.1, True, False)]
)
def test_adam(wd: float, decoupled: bool, amsgrad: bool) -> None:
    cls: Any = optim.AdamW if decoupled else optim.Adam
    p = parameter()
    opt = cls([p], 0.1, weight_decay=wd, amsgrad=amsgrad)
    want = by_hand_adam(np.array([1.0, -2.0]), wd, decoupled, amsgrad)
    np.testing.assert_allclose(stepped(opt, p), want, rtol=1e-13)
    assert opt.state[p]["step"].item() == 3


def test_blocks_and_strides_give_what_elements_do() -> None:
    n = BLOCK + 7
    start = np.linspace(-2, 2, 2 * n).reshape(2, n)
    alike = nn.Parameter(torch.tensor(start))
    turned = nn.Parameter(torch.tensor(np.asfortranarray(start)).t().contiguous().t())
    few = parameter(*start[1, :3])
    for p in (alike, turned, few):
        stepped(optim.Adam([p], 0.1, weight_decay=0.1), p)
    assert torch.equal(alike, turned) and torch.equal(alike[1, :3], few)


def test_scalars_and_empty_parameters() -> None:
    scalar, empty = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.empty(0))
    for cls in (optim.SGD, optim.Adam):
        opt = cls([scalar, empty], lr=0.5)
        scalar.grad, empty.grad = torch.tensor(1.0), torch.empty(0)
        opt.step()
    assert scalar.item() == pytest.approx(1.0)


def test_maximizing_is_the_opposite() -> None:
    for cls in (optim.SGD, optim.Adam, optim.AdamW):
        p, q = parameter(), parameter()
        a, b = cls([p], lr=0.1, maximize=True), cls([q], lr=0.1)
        p.grad, q.grad = torch.ones(2).double(), -torch.ones(2).double()
        a.step(), b.step()
        assert torch.equal(p, q)


def test_steps_are_not_recorded_and_count_as_changes() -> None:
    for cls in (optim.SGD, optim.Adam):
        p = parameter()
        loss = (p * p).sum()
        loss.backward(retain_graph=True)
        cls([p], lr=0.1).step()
        assert p.is_leaf and p.grad_fn is None
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_what_has_no_gradient_stays() -> None:
    p, q = parameter(), parameter()
    opt = optim.Adam([p, q], 0.1)
    p.grad = torch.ones(2).double()
    opt.step()
    assert q.tolist() == [1.0, -2.0] and q not in opt.state


def test_groups() -> None:
    p, q, r = parameter(1.0), parameter(1.0), parameter(1.0)
    opt = optim.SGD([{"params": p, "lr": 1.0}, {"params": [q]}], lr=0.1)
    opt.add_param_group({"params": r, "momentum": 0.5, "name": "r"})
    for x in (p, q, r):
        x.grad = torch.ones(1).double()
    opt.step()
    assert [p.item(), q.item(), r.item()] == [0.0, 0.9, 0.9]
    opt.param_groups[1]["lr"] = 0.9
    opt.step()
    assert q.item() == pytest.approx(0.0)
    opt.zero_grad()
    assert p.grad is None
    named = optim.SGD(nn.Linear(1, 1).named_parameters(), 0.1)
    assert named.param_groups[0]["param_names"] == ["weight", "bias"]


@pytest.mark.parametrize("cls", [optim.SGD, optim.Adam, optim.AdamW])
def test_state_continues_where_it_was(cls: Any) -> None:
    options = {"momentum": 0.9} if cls is optim.SGD else {"amsgrad": True}
    p, q = parameter(), parameter()
    a, b = cls([p], lr=0.1, **options), cls([q], lr=0.7)
    stepped(a, p)
    with torch.no_grad():
        q.copy_(p)
    b.load_state_dict(pickle.loads(pickle.dumps(a.state_dict())))
    assert b.param_groups[0]["lr"] == 0.1
    np.testing.assert_array_equal(stepped(a, p), stepped(b, q))
    other = copy.deepcopy(a)
    (r,) = other.param_groups[0]["params"]
    assert r is not p and r in other.state
    np.testing.assert_array_equal(stepped(a, p), stepped(other, r))


def test_state_in_the_dtype_of_its_parameter() -> None:
    p, q = parameter(), nn.Parameter(torch.ones(2))
    a, b = optim.Adam([p]), optim.Adam([q])
    stepped(a, p)
    b.load_state_dict(a.state_dict())
    assert b.state[q]["exp_avg"].dtype == torch.float32 == b.state[q]["step"].dtype
    with pytest.raises(ValueError, match="different number of parameter groups"):
        b.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size"):
        b.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})


def test_closures_record() -> None:
    p = parameter()
    opt = optim.SGD([p], 0.1)

    def closure() -> Any:
        opt.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        loss = opt.step(closure)
    assert loss.item() == 5.0 and p.tolist() == [0.8, -1.6]


def test_hooks_around_steps() -> None:
    p = parameter()
    opt, log = optim.SGD([p], 0.1), []
    before = opt.register_step_pre_hook(lambda o, args, kwargs: log.append(o is args[0] is opt))
    opt.register_step_post_hook(lambda o, args, kwargs: log.append("after"))
    opt.step()
    before.remove()
    opt.step()
    assert log == [True, "after", "after"]


def test_an_optimiser_of_ones_own() -> None:
    class Sign(optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    self.state[p]["seen"] = self.state[p].get("seen", 0) + 1
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    p = parameter()
    opt, log = Sign([p], 0.5), []
    opt.register_step_post_hook(lambda *a: log.append(1))
    assert stepped(opt, p, 2) == [0.0, -3.0] and log == [1, 1]
    assert opt.state_dict()["state"] == {0: {"seen": 2}}
    assert repr(opt) == "Sign (\nParameter Group 0\n    lr: 0.5\n)"


def test_errors_leave_the_groups_as_they_were() -> None:
    p = parameter()
    for params, kind, words in (
        ([], ValueError, "empty parameter list"), (p, TypeError, "should be an iterable"),
        ([3], TypeError, "one of the params is int"), ([p * 2], ValueError, "non-leaf"),
        ([{"params": {p}}], TypeError, "ordered collections"),
        ([("a", p), p], ValueError, "with/without names"),
    ):  # fmt: skip
        with pytest.raises(kind, match=words):
            optim.SGD(params, 0.1)
    opt = optim.SGD([p], 0.1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        opt.add_param_group({"params": [parameter(), p]})
    assert len(opt.param_groups) == 1
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([p, p], 0.1)
    for options, words in (
        ({"lr": -1}, "Invalid learning rate: -1"), ({"momentum": -1}, "Invalid momentum"),
        ({"nesterov": True}, "requires a momentum"), ({"weight_decay": -1}, "weight_decay"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            optim.SGD([p], **options)
    for options, words in (
        ({"betas": (0.9, 1.0)}, "at index 1: 1.0"), ({"eps": -1}, "Invalid epsilon value: -1"),
        ({"lr": torch.ones(2)}, "must be 1-element"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            optim.Adam([p], **options)
    with pytest.raises(RuntimeError, match="cannot be `True` together"):
        optim.Adam([p], fused=True, foreach=True)


def test_a_step_that_is_recorded() -> None:
    """`differentiable=True`: the gradient of a loss after a step, in the rate of learning."""
    for cls in (optim.SGD, optim.Adam):
        w = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
        p = w.clone()
        p.retain_grad()
        opt = cls([p], lr=0.1, differentiable=True)
        p.grad = w**2
        opt.step()
        p.sum().backward()
        assert w.grad is not None and (w.grad != 1).any()


def test_what_is_not_built_says_so() -> None:
    with pytest.raises(AttributeError, match="'LBFGS': it is not built yet"):
        _ = optim.LBFGS
