"""Taylor mode of every primitive: nested forward mode, order by order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.func import grad, jvp, taylor, vmap
from tests.conformance.test_batching import same
from tests.conformance.test_forward import by_name, cases

ORDER = 3


def nested(f: Callable[..., Any], x: Any, v: Any, order: int) -> list[Any]:
    """The derivatives along v, each by one more jvp around the last."""
    found = [f(*x)]
    for _ in range(order):
        f = (lambda inner: lambda *y: jvp(inner, y, v)[1])(f)
        found.append(f(*x))
    return found


def close(a: Any, b: Any, message: str = "", scale: float = 1.0) -> None:
    """scale: the size of what may have cancelled; inside, terms 10^6 times it may have (std)."""
    a, b = a.numpy(), b.numpy()
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    single = a.dtype in (np.float32, np.complex64)
    scale = max(scale, largest(b))
    np.testing.assert_allclose(
        a, b, rtol=1e-3 if single else 1e-8, atol=(1e-4 if single else 1e-8) * scale,
        err_msg=message,
    )  # fmt: skip


def largest(x: Any) -> float:
    x = np.asarray(x)
    return float(np.abs(x[np.isfinite(x)]).max(initial=0.0))


@by_name()
def test_it_is_nested_forward_mode(name: str) -> None:
    for case in cases(name):
        found = taylor(case, case.inputs, case.tangents, ORDER)
        expected = nested(case, case.inputs, case.tangents, ORDER)
        scale = 1.0
        for k, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            scale = max([scale, *(largest(b.numpy()) for b in theirs)])
            for a, b in zip(ours, theirs, strict=True):
                close(a, b, f"order {k}, {case.params}", scale)


@by_name()
def test_under_vmap_it_is_a_loop(name: str) -> None:
    for case in cases(name)[:2]:
        many = tuple(torch.stack([t, t * 0.5, -t]) for t in case.tangents)
        found = vmap(lambda *v, c=case: taylor(c, c.inputs, v, 2))(*many)
        for i in range(3):
            one = taylor(case, case.inputs, tuple(t[i] for t in many), 2)
            for ours, theirs in zip(found, one, strict=True):
                for a, b in zip(ours, theirs, strict=True):
                    assert same(a[i], b)


X = torch.tensor([0.3, -0.8, 1.2], dtype=torch.float64)
V = torch.tensor([1.0, 0.5, -2.0], dtype=torch.float64)


def chained(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(torch.sin(x) ** 2 / (2 + x)) * torch.tanh(x).cumsum(0)


def test_reverse_mode_outside_and_inside() -> None:
    outside = grad(lambda x: taylor(lambda y: chained(y).sum(), x, V, 3)[3])(X)
    inside = taylor(grad(lambda y: chained(y).sum()), X, V, 3)[3]
    close(outside, inside)
    close(outside, grad(lambda x: nested(lambda y: chained(y).sum(), (x,), (V,), 3)[3])(X))


def test_forward_mode_outside_inside_and_itself() -> None:
    w = V * V
    three = nested(chained, (X,), (V,), 3)
    close(jvp(lambda x: taylor(chained, x, V, 2)[2], (X,), (V,))[1], three[3])
    close(taylor(lambda x: jvp(chained, (x,), (V,))[1], X, V, 2)[2], three[3])
    mixed = taylor(lambda x: taylor(chained, x, V, 2)[1], X, w, 2)[2]
    close(mixed, taylor(lambda x: taylor(chained, x, w, 2)[2], X, V, 1)[1])


def test_vmap_inside() -> None:
    rows = torch.stack([X, X * 0.5])
    slopes = torch.stack([V, V])
    found = taylor(vmap(chained), rows, slopes, 3)
    for i in range(2):
        for a, b in zip(found, taylor(chained, rows[i], V, 3), strict=True):
            close(a[i], b)


def test_writes_in_place_and_views() -> None:
    def written(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(4, dtype=torch.float64)
        head = out[:2]
        out[1:] = torch.sin(x)
        head += x[1:] * x[0]
        out[3].mul_(x.prod())
        return out

    def pure(x: torch.Tensor) -> torch.Tensor:
        s = torch.sin(x)
        parts = [x[1] * x[0], s[0] + x[2] * x[0], s[1], s[2] * x.prod()]
        return torch.stack(parts)

    for a, b in zip(taylor(written, X, V, 4), taylor(pure, X, V, 4), strict=True):
        close(a, b)


def test_known_series() -> None:
    one = torch.tensor(1.0, dtype=torch.float64)
    zero = one * 0
    for k, d in enumerate(taylor(torch.exp, zero, one, 25)):
        assert d.item() == pytest.approx(1.0, rel=1e-12), k
    geometric = taylor(lambda t: 1 / (1 - t), zero, one, 12)
    assert [d.item() for d in geometric] == pytest.approx([np.prod(range(1, k + 1), initial=1.0)
                                                           for k in range(13)])  # fmt: skip
    sine = [d.item() for d in taylor(torch.sin, zero, one, 9)]
    assert sine == pytest.approx([0, 1, 0, -1, 0, 1, 0, -1, 0, 1], abs=1e-12)


def test_the_cost_is_polynomial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in products of coefficients; nested forward mode needs 2^order evaluations."""
    from pullback.core.primitive import REGISTRY

    def products(order: int) -> int:
        count = 0
        plain = np.multiply

        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            return plain(*args, **kwargs)

        monkeypatch.setattr(REGISTRY["mul"], "forward", counted)
        taylor(chained, X, V, order)
        monkeypatch.undo()
        return count

    few, many = products(8), products(16)
    assert few > 50
    assert many < 6 * few  # 256 times as many if it were exponential


def test_structures_and_constants() -> None:
    point, along = {"a": X, "b": [V]}, {"a": V, "b": [X]}
    found = taylor(lambda d: {"p": d["a"] * d["b"][0], "c": torch.ones(2)}, point, along, 2)
    assert len(found) == 3
    close(found[0]["p"], X * V)
    close(found[1]["p"], X * X + V * V)
    close(found[2]["p"], 2 * X * V)
    assert [f["c"].tolist() for f in found] == [[1, 1], [0, 0], [0, 0]]
    two = taylor(lambda a, b: a * b, (X, V), (V, X), 1)
    close(two[1], X * X + V * V)
    (only,) = taylor(torch.sin, X, V, 0)
    close(only, torch.sin(X))


def test_values_are_values_inside() -> None:
    seen = []

    def branches(x: torch.Tensor) -> torch.Tensor:
        seen.append(x[0].item())
        return x * x if x.sum() > 0 else x

    close(taylor(branches, X, V, 2)[2], 2 * V * V)
    assert seen == [0.3]


def test_nothing_moves_after_the_end() -> None:
    kept = []

    def leaks(x: torch.Tensor) -> torch.Tensor:
        kept.append(x * x)
        return x

    taylor(leaks, X, V, 2)
    close(kept[0] + 1, X * X + 1)
    assert not (kept[0] + 1).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda: taylor(torch.sin, X, V, 1.5), TypeError, "order must be int, got 1.5"),
        (lambda: taylor(torch.sin, X, V, True), TypeError, "order must be int"),
        (lambda: taylor(torch.sin, X, V, -1), ValueError, "order must be at least 0, got -1"),
        (lambda: taylor(torch.sin, X, V[:2], 1), RuntimeError, "different size"),
        (lambda: taylor(torch.sin, (X,), V, 1), RuntimeError, "v must be one"),
        (lambda: taylor(torch.sin, X, (V,), 1), RuntimeError, "same python structure"),
        (lambda: taylor(torch.sin, 1.0, 1.0, 1), RuntimeError, "type float"),
        (lambda: taylor(torch.sin, X.long(), V, 1), TypeError, "floating point or complex"),
        (lambda: taylor(lambda x: 3.0, X, V, 1), RuntimeError, "only tensors.*got float"),
        (lambda: taylor(torch.sin, (), (), 1), RuntimeError, "non-empty tuple"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], phrase: str) -> None:
    with pytest.raises(error, match=phrase) as caught:
        call()
    assert "test_taylor.py" in str(caught.value)
