"""`explain` says whether and why a tensor has a gradient, with the lines."""

from __future__ import annotations

import pullback as torch


def text(*args: torch.Tensor) -> str:
    return str(torch.explain(*args))


def test_leaf() -> None:
    x = torch.ones(2, requires_grad=True)
    assert "A leaf" in text(x) and "no backward pass has reached it yet" in text(x)
    (x * 2).sum().backward()
    assert "Its .grad is set" in text(x)


def test_result() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert "made by MulBackward0 at" in text(y) and "y = x * 2" in text(y)
    assert "retain_grad() before backward()" in text(y)
    y.retain_grad()
    assert ".grad is kept" in text(y)
    assert torch.explain(y).facts["leaves"] == [x]


def test_detached_and_what_came_from_it() -> None:
    x = torch.ones(2, requires_grad=True)
    u = x.detach()
    v = u * 3
    for t in (u, v):
        assert "detached at" in text(t) and "u = x.detach()" in text(t)
    assert torch.explain(v).facts["reason"] == "detach"


def test_made_under_no_grad() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = x * 2
    assert "made under no_grad at" in text(y) and "y = x * 2" in text(y)


def test_integer_and_nondifferentiable() -> None:
    x = torch.ones(2, requires_grad=True)
    assert "only floating point and complex" in text(torch.arange(3))
    assert "without a derivative" in text(x.argmax())
    assert torch.explain(x.long()).facts["reason"] == "integer"


def test_plain_constant() -> None:
    assert "requires_grad_()" in text(torch.ones(1))


def test_freed_and_overwritten() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    z = y * y
    y.add_(1)
    assert "backward() will fail" in text(z) and "y.add_(1)" in text(z)
    w = (x * x).sum()
    w.backward()
    assert "freed by an earlier backward()" in text(w)


def test_not_reached_from_the_output() -> None:
    x = torch.ones(2, requires_grad=True)
    u = torch.ones(2, requires_grad=True)
    loss = (x.detach() * u).sum()
    found = torch.explain(x, loss)
    assert found.facts["reached"] is False
    assert "does not depend on it" in str(found) and "x.detach()" in str(found)
    assert "depends on it" in text(u, loss)
    assert "explain(output)" in text(x, torch.ones(1))
