"""Derivatives where a function has no plain one (ties, NaN, infinities), as PyTorch gives them.

tests/oracle/test_awkward_live.py compares all functions at all such points with a live PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F

NAN, INF = math.nan, math.inf
CASES: list[tuple[str, Callable[..., Any], list[list[float]], list[list[float]]]] = [
    ("maximum", torch.maximum, [[NAN, 1.0], [1.0, 1.0]], [[1.0, 0.5], [1.0, 0.5]]),
    (
        "clamp",
        lambda x, a, b: torch.clamp(x, a, b),
        [[0.0, 2.0, 5.0], [1.0] * 3, [3.0] * 3],
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    (
        "at most",
        lambda x, b: torch.clamp(x, max=b),
        [[0.0, 3.0, 5.0], [3.0] * 3],
        [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    (
        "at least",
        lambda x, a: torch.clamp(x, min=a),
        [[0.0, 3.0, 5.0], [3.0] * 3],
        [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]],
    ),
    ("atan2", torch.atan2, [[0.0], [0.0]], [[0.0], [0.0]]),
    ("abs", torch.abs, [[NAN, 0.0, -2.0]], [[0.0, 0.0, -1.0]]),
    ("hardtanh", F.hardtanh, [[NAN, -INF, -1.0, 0.5, 1.0]], [[0.0, 0.0, 0.0, 1.0, 0.0]]),
    ("hardswish", F.hardswish, [[NAN, -INF, -3.0, 3.0, INF]], [[1.0, 0.0, 0.0, 1.0, 1.0]]),
    (
        "copysign",
        torch.copysign,
        [[INF, -INF, 0.0], [-1.0, -0.0, -1.0]],
        [[-1.0, 1.0, 0.0], [0.0] * 3],
    ),
    ("nanmedian", torch.nanmedian, [[NAN, 1.0, 2.0, 1.0]], [[0.0, 0.5, 0.0, 0.5]]),
    ("cumprod", lambda x: torch.cumprod(x, 0), [[INF]], [[1.0]]),
    (
        "soft margin",
        lambda x: F.soft_margin_loss(x, torch.tensor([-20.0, 1.0]), reduction="none"),
        [[90.0, -INF]],
        [[20.0, -1.0]],
    ),
    ("std", torch.std, [[1e30, 1.0, -1e30]], [[0.5, 0.0, -0.5]]),
    ("norm", lambda x: torch.norm(x, 1.5), [[0.0, 0.0]], [[0.0, 0.0]]),
]


@pytest.mark.parametrize(("name", "f", "inputs", "wanted"), CASES, ids=[c[0] for c in CASES])
def test_gradients(name: str, f: Any, inputs: Any, wanted: Any) -> None:
    xs = [torch.tensor(x, requires_grad=True) for x in inputs]
    f(*xs).sum().backward()
    for x, w in zip(xs, wanted, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), w, 1e-6, 1e-30, err_msg=name)


SECOND: list[tuple[str, Callable[..., Any], list[float], list[float]]] = [
    ("huber", lambda x: F.huber_loss(x, x.detach() * 0), [1.0, -1.0, NAN], [0.0] * 3),
    ("smooth_l1", lambda x: F.smooth_l1_loss(x, x.detach() * 0), [1.0, -1.0, NAN], [0.0] * 3),
    ("softplus", F.softplus, [20.0, 90.0], [0.0, 0.0]),
    ("logsigmoid", F.logsigmoid, [-25.0, 25.0], [-math.exp(-25) / (1 + math.exp(-25)) ** 2] * 2),
    ("elu", F.elu, [0.0, -INF], [0.0, 0.0]),
    ("hardswish", F.hardswish, [NAN, 0.0, 3.0], [0.0, 1 / 3, 0.0]),
    ("acosh", torch.acosh, [1.0, INF], [-INF, 0.0]),
    ("sinc", torch.sinc, [0.0, 1e-30], [-(math.pi**2) / 3] * 2),
    ("digamma", torch.digamma, [1.0, INF], [-2.4041138063191886, 0.0]),
    ("hypot", lambda x: torch.hypot(x, x.detach() * 0 + 4), [3.0, 0.0], [0.128, 0.25]),
]


@pytest.mark.parametrize(("name", "f", "points", "wanted"), SECOND, ids=[c[0] for c in SECOND])
def test_second_derivatives(name: str, f: Any, points: Any, wanted: Any) -> None:
    for point, w in zip(points, wanted, strict=True):
        x = torch.tensor(point, dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad(f(x), x, create_graph=True)
        (h,) = torch.autograd.grad(g, x)
        np.testing.assert_allclose(h.numpy(), w, 1e-12, err_msg=f"{name}({point})")


def test_the_loss_of_probabilities_has_finite_gradients_at_0_and_1() -> None:
    p = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5], dtype=torch.float64, requires_grad=True)
    t = torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0], dtype=torch.float64)
    loss = F.binary_cross_entropy(p, t, reduction="none")
    assert loss.tolist() == [0.0, 0.0, 100.0, 100.0, math.log(2)]
    loss.sum().backward()
    np.testing.assert_allclose(p.grad.numpy(), [0.0, 0.0, -1e12, 1e12, -2.0], 1e-8)


def test_losses_do_not_overflow() -> None:
    x = torch.tensor([90.0, -90.0])
    assert F.soft_margin_loss(x, torch.tensor([-20.0, 20.0]), reduction="none").tolist() == [
        1800.0, 1800.0]  # fmt: skip
    assert F.logsigmoid(torch.tensor([-1e4])).tolist() == [-1e4]


def test_a_target_below_0_is_no_probability() -> None:
    loss = F.kl_div(torch.zeros(3), torch.tensor([0.0, -1.0, 1.0]), reduction="none")
    np.testing.assert_array_equal(loss.numpy(), [0.0, NAN, 0.0])


def test_standard_deviation_of_numbers_whose_squares_leave_float32() -> None:
    assert torch.std(torch.tensor([1e30, 1.0, -1e30])).item() == pytest.approx(1e30)
    assert torch.std(torch.tensor([1e-30, 0.0, -1e-30])).item() == pytest.approx(1e-30)


def test_whole_powers_of_huge_complex_numbers() -> None:
    z = torch.tensor([1e30 + 0j, 90 + 20j], requires_grad=True)
    out = z**-20
    np.testing.assert_allclose(out.detach().numpy(), [0, (90 + 20j) ** -20], atol=1e-44)
    out.real.sum().backward()
    assert torch.isfinite(z.grad.abs()).all()


@pytest.mark.parametrize(
    "f",
    [torch.relu, F.leaky_relu, F.hardtanh, F.relu6, F.hardshrink, F.softshrink,
     lambda x: F.threshold(x, 0.5, 2.0)],
    ids="relu leaky_relu hardtanh relu6 hardshrink softshrink threshold".split(),
)  # fmt: skip
def test_the_derivative_of_a_constant_slope_is_0_and_not_absent(f: Any) -> None:
    x = torch.tensor([-2.0, 0.25, 3.0], requires_grad=True)
    (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    assert g.requires_grad
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [0.0, 0.0, 0.0]
    other = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(f(x * 1).sum(), other)


@pytest.mark.parametrize("f", [lambda x: x**2, torch.square])
def test_powers_stay_on_the_tape_until_they_are_constant(f: Any) -> None:
    x = torch.tensor(3.0, requires_grad=True)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    (h,) = torch.autograd.grad(g, x, create_graph=True)
    assert (g.item(), h.item()) == (6.0, 2.0)
    assert torch.autograd.grad(h, x)[0].item() == 0.0
