"""Modules as functions: `functional_call`, `stack_module_state`, `functionalize`."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.func import (
    functional_call,
    functionalize,
    grad,
    hessian,
    jvp,
    stack_module_state,
    vmap,
)


class Counter(nn.Module):
    """Counts its calls; two names for one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.tied = self.w
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any, by: float = 1.0) -> Any:
        self.calls = self.calls + 1
        return (x * by * self.w + self.tied).sum()


def test_other_tensors_for_one_call() -> None:
    m = Counter()
    w, calls = m.w, m.calls
    given = {"w": torch.zeros(2), "calls": torch.tensor(5.0)}
    assert functional_call(m, given, torch.ones(2)).item() == 0.0
    assert given["calls"].item() == 6.0, "what the module assigns goes into the dict"
    assert m.w is w and m.calls is calls and m.tied is w
    assert functional_call(m, {}, (torch.ones(2),), {"by": 3.0}).item() == 8.0
    assert functional_call(m, {}, kwargs={"x": torch.ones(2)}).item() == 4.0


def test_tied_weights() -> None:
    m, z = Counter(), torch.zeros(2)
    assert functional_call(m, {"tied": z}, torch.ones(2)).item() == 0.0
    assert functional_call(m, {"tied": z}, torch.ones(2), tie_weights=False).item() == 2.0
    assert functional_call(m, {"tied": z, "w": z}, torch.ones(2)).item() == 0.0
    with pytest.raises(ValueError, match=r"multiple values for keys \['tied', 'w'\]"):
        functional_call(m, {"tied": z, "w": torch.ones(2)}, torch.ones(2))


def test_the_module_is_as_before_after_an_error() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(1))
            self.register_buffer("b", torch.ones(1))

        def forward(self) -> None:
            del self.b
            self.w = nn.Parameter(torch.zeros(1))
            raise ValueError("broken")

    m = Broken()
    w, b = m.w, m.b
    with pytest.raises(ValueError, match="broken"):
        functional_call(m, {"w": torch.zeros(1), "b": torch.zeros(1), "new": torch.zeros(1)}, ())
    assert m.w is w and m.b is b and not hasattr(m, "new")


def test_what_is_refused() -> None:
    m, x = nn.Sequential(nn.Linear(1, 1)), torch.ones(1)
    for given, kind, words in (
        (3, ValueError, "to be a dict, or a list/tuple of dicts"),
        (({"a": x}, {"a": x}), ValueError, "appeared in multiple dictionaries"),
        (({"a": x}, 3), ValueError, "to be dictionaries"),
        ({"0.weight": 3}, TypeError, "3 is not an instance of torch.Tensor"),
        ({"7.weight": x}, AttributeError, "has no attribute `7`"),
        ({"": x}, KeyError, "empty string"),
    ):  # fmt: skip
        with pytest.raises(kind, match=words):
            functional_call(m, given, x)
    with pytest.raises(RuntimeError, match="Unexpected key") as error:
        functional_call(m, {"new": x}, x, strict=True)
    assert "Missing key(s): '0.bias', '0.weight'." in str(error.value)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()


def test_gradients_of_each_example_are_those_of_a_loop() -> None:
    m = network()
    x = torch.randn(5, 3, dtype=torch.float64)
    parameters = {k: p.detach() for k, p in m.named_parameters()}

    def loss(parameters: Any, example: Any) -> Any:
        return functional_call(m, parameters, (example,)).square().sum()

    each = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    for i in range(5):
        m.zero_grad()
        m(x[i]).square().sum().backward()
        for name, p in m.named_parameters():
            assert torch.allclose(each[name][i], p.grad, rtol=1e-12)
    assert vmap(grad(loss), in_dims=(None, 0), chunk_size=2)(parameters, x)["0.bias"].allclose(
        each["0.bias"]
    )


def test_other_transforms_of_a_module() -> None:
    m = network()
    parameters = {k: p.detach() for k, p in m.named_parameters()}
    x = torch.randn(3, dtype=torch.float64)

    def of_bias(bias: Any) -> Any:
        return functional_call(m, {**parameters, "0.bias": bias}, (x,)).square().sum()

    h = hessian(of_bias)(parameters["0.bias"])
    assert torch.allclose(h, h.T) and h.shape == (4, 4)
    t = torch.ones(4, dtype=torch.float64)
    _, slope = jvp(of_bias, (parameters["0.bias"],), (t,))
    assert torch.allclose(slope, (grad(of_bias)(parameters["0.bias"]) * t).sum())


def test_an_ensemble_is_its_models() -> None:
    models = []
    for seed in range(5):
        torch.manual_seed(seed)
        models.append(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU()).eval())
    parameters, buffers = stack_module_state(models)
    assert parameters["0.weight"].shape == (5, 4, 3) and parameters["0.weight"].is_leaf
    assert parameters["0.weight"].requires_grad and list(buffers)[0] == "1.running_mean"
    x = torch.randn(6, 3)
    out = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))(
        parameters, buffers, x
    )
    assert torch.allclose(out, torch.stack([m(x) for m in models]), atol=1e-6)
    out.sum().backward()
    models[3](x).sum().backward()
    assert torch.allclose(parameters["0.weight"].grad[3], models[3][0].weight.grad, atol=1e-5)


def test_models_that_do_not_stack() -> None:
    a, b = nn.Linear(1, 1), nn.Linear(1, 1)
    for models, words in (
        ([], "at least one model, got 0"), ([a, nn.ReLU()], "of the same class"),
        ([a, nn.Linear(1, 1).eval()], "same training/eval mode"),
        ([a, b.requires_grad_(False)], "same .requires_grad"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            stack_module_state(models)


def test_functionalize() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y.view(-1).add_(1)
        return y

    x = torch.ones(2)
    assert functionalize(f)(x).tolist() == [3.0, 3.0] == vmap(functionalize(f))(x).tolist()
    assert functionalize(grad(lambda v: f(v).sum()))(x).tolist() == [2.0, 2.0]
    assert functionalize(f).__name__ == "f"
    with pytest.raises(RuntimeError, match="received invalid argument for remove=views"):
        functionalize(f, remove="views")


def test_functionalize_shows_changes_of_arguments_and_returns_copies() -> None:
    x = torch.ones(2)
    out = functionalize(lambda v: v.add_(1))(x)
    assert x.tolist() == [2.0, 2.0] and out is not x
    out.add_(1)
    assert x.tolist() == [2.0, 2.0]
    same = functionalize(lambda v: v, remove="mutations_and_views")(x)
    assert same is x
