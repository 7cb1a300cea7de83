"""Thin slices of the transforms: `vmap` nested with `grad`, and traces that print and replay."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.func import grad, grad_and_value, vmap
from pullback.tracing import trace

torch.manual_seed(0)
X = torch.randn(5, 3, dtype=torch.float64)
W = torch.randn(3, 3, dtype=torch.float64)

# one function per primitive, of one vector
ONE = {
    "add": lambda x: x + x, "sub": lambda x: 1 - x, "mul": lambda x: x * x,
    "div": lambda x: x / (x * x + 1), "neg": lambda x: -x, "exp": torch.exp,
    "log": lambda x: torch.log(x * x + 1), "sin": torch.sin, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid, "sqrt": lambda x: torch.sqrt(x * x + 1), "pow": lambda x: x**3,
    "sum": lambda x: x.sum(0, keepdim=True) * x, "mean": lambda x: x.mean() * x,
    "amax": lambda x: x.amax() * x, "logsumexp": lambda x: x.logsumexp(0) * x,
    "reshape": lambda x: x.reshape(3, 1) * x, "expand": lambda x: x.expand(2, 3) * x,
    "permute": lambda x: torch.outer(x, x).t() * x, "matmul": lambda x: W @ torch.outer(x, x),
    "mv": lambda x: W @ x, "dot": lambda x: torch.dot(x, x) * x, "where": lambda x: torch.where(
        x > 0, x * x, x), "relu": torch.relu, "cat": lambda x: torch.cat([x, x * x]),
    "stack": lambda x: torch.stack([x, x * 2]) ** 2, "getitem": lambda x: x[1:] * x[0],
    "index": lambda x: x[[0, 0, 2]] ** 2, "softmax": lambda x: x.softmax(0),
    "cumsum": lambda x: x.cumsum(0) ** 2, "cumprod": lambda x: x.cumprod(0),
    "flip": lambda x: x.flip(0) * x, "gather": lambda x: x.gather(0, torch.tensor([2, 0])) ** 2,
    "einsum": lambda x: torch.einsum("ij,j->i", W, x) * x, "prod": lambda x: x.prod() * x,
    "split": lambda x: x.split(2)[0] ** 2, "max": lambda x: x.max(0).values * x,
    "linear": lambda x: torch.nn.functional.linear(x, W, x), "norm": lambda x: x.norm() * x,
    "var": lambda x: x.var() * x, "clamp": lambda x: x.clamp(-0.5, 0.5) * x,
    "tril": lambda x: torch.outer(x, x).tril(), "diagonal": lambda x: torch.outer(x, x).diagonal(),
    "abs": lambda x: x.abs() * x, "atan2": lambda x: torch.atan2(x, x * x + 1),
    "maximum": lambda x: torch.maximum(x, x * x), "repeat": lambda x: x.repeat(2) ** 2,
    "roll": lambda x: x.roll(1, 0) * x,
}  # fmt: skip


def loop(f, xs):  # type: ignore[no-untyped-def]
    return torch.stack([f(x) for x in xs])


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ONE)
def test_vmap_equals_a_loop(name: str) -> None:
    assert close(vmap(ONE[name])(X), loop(ONE[name], X))


@pytest.mark.parametrize("name", ONE)
def test_vmap_of_grad_and_grad_of_vmap(name: str) -> None:
    f = ONE[name]

    def scalar(x: torch.Tensor) -> torch.Tensor:
        return (f(x) ** 2).sum()

    want = loop(grad(scalar), X)
    assert close(vmap(grad(scalar))(X), want)
    assert close(grad(lambda xs: vmap(scalar)(xs).sum())(X), want)


@pytest.mark.parametrize("name", ONE)
def test_second_order_under_vmap(name: str) -> None:
    f = ONE[name]

    def slope(x: torch.Tensor) -> torch.Tensor:
        return (grad(lambda y: (f(y) ** 2).sum())(x) ** 2).sum()

    assert close(vmap(grad(slope))(X), loop(grad(slope), X))


@pytest.mark.parametrize("name", ONE)
def test_a_trace_with_backward_replays(name: str) -> None:
    f = ONE[name]

    def step(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        loss = (f(x) ** 2).sum()
        return loss, torch.autograd.grad(loss, x)[0]

    x = X[0].clone().requires_grad_()
    program = trace(step, x)
    assert "return" in str(program) and "test_vmap_and_trace.py" in str(program)
    other = X[1].clone().requires_grad_()
    if name in ("max", "cumprod", "prod"):
        other = x  # the trace holds which element was the largest
    got = program.replay(other.detach().numpy())
    for a, b in zip(got, step(other), strict=True):
        assert np.allclose(a, b.detach().numpy(), rtol=1e-12)


def test_in_and_out_dims() -> None:
    f = vmap(lambda x, y: x * y, in_dims=(1, None), out_dims=1)
    assert close(f(X.t(), X[0]), (X * X[0]).t())
    g = vmap(lambda d: {"s": d["a"] + d["b"][0]}, in_dims=({"a": 0, "b": (None,)},))
    assert close(g({"a": X, "b": (X[0],)})["s"], X + X[0])


def test_unmapped_argument_inside_grad_keeps_its_per_example_gradient() -> None:
    per_example = vmap(grad(lambda w, x: (w @ x).sum()), in_dims=(None, 0))(W, X)
    assert close(per_example, loop(lambda x: x.expand(3, 3), X))


def test_captured_tensor_gets_its_gradient_through_vmap() -> None:
    w = W.clone().requires_grad_()
    vmap(lambda x: (w @ x).sum())(X).sum().backward()
    assert close(w.grad, X.sum(0).expand(3, 3))


def test_nested_vmap() -> None:
    table = vmap(vmap(lambda a, b: torch.sin(a) * b, (None, 0)), (0, None))(X[0], X[1])
    assert close(table, torch.outer(torch.sin(X[0]), X[1]))


def test_grad_forms() -> None:
    x = X[0]
    value_grad, value = grad_and_value(lambda a: (a**2).sum())(x)
    assert close(value_grad, 2 * x) and value.item() == (x**2).sum().item()
    (ga, gb), aux = grad(lambda a, b: ((a * b).sum(), "aux"), (0, 1), has_aux=True)(x, X[1])
    assert close(ga, X[1]) and close(gb, x) and aux == "aux"
    tree = grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": X[1]})
    assert close(tree["a"], X[1])
    assert not grad(lambda a: a.sum())(x).requires_grad
    outer = x.clone().requires_grad_()
    grad(lambda a: (a**3).sum())(outer).sum().backward()
    assert close(outer.grad, 6 * x)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: vmap(torch.sin, in_dims=5)(X), ValueError, "Got in_dim=5"),
        (lambda: vmap(torch.mul)(X, X[:2]), ValueError, "same size in the mapped dimension"),
        (lambda: vmap(torch.sin, in_dims=None)(X), ValueError, "at least one argument"),
        (lambda: vmap(torch.mul, in_dims=(0,))(X, X), ValueError, "not compatible"),
        (lambda: vmap(lambda x: 3)(X), ValueError, "must only return Tensors"),
        (lambda: vmap(lambda x: x.item())(X[:, 0]), RuntimeError, "inside a transform"),
        (lambda: vmap(lambda x: x if x.sum() > 0 else -x)(X), RuntimeError, "torch.where"),
        (lambda: vmap(lambda x: x[x > 0])(X), NotImplementedError, "torch.where"),
        (lambda: grad(torch.sin)(X), RuntimeError, "scalar tensor"),
        (lambda: grad(lambda x: 1.0)(X), RuntimeError, "single tensor"),
        (lambda: grad(lambda x: x.sum(), 3)(X), RuntimeError, "only 1 positional"),
        (lambda: trace(lambda x: x if x.sum() > 0 else -x, X), RuntimeError, "torch.where"),
        (lambda: trace(lambda x: x, 3), TypeError, "plain Tensor"),
        (lambda: trace(lambda x: x * 2, X).replay(np.ones(2)), RuntimeError, "trace again"),
    ],
)
def test_refusals(call, error: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call()
