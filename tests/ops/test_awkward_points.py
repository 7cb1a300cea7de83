"""Gradients where a function has no plain one (ties, NaN, infinities), as PyTorch gives them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch

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
]


@pytest.mark.parametrize(("name", "f", "inputs", "wanted"), CASES, ids=[c[0] for c in CASES])
def test_gradients(name: str, f: Any, inputs: Any, wanted: Any) -> None:
    xs = [torch.tensor(x, requires_grad=True) for x in inputs]
    f(*xs).sum().backward()
    for x, w in zip(xs, wanted, strict=True):
        np.testing.assert_array_equal(x.grad.numpy(), w, err_msg=name)
