"""Gradients against differences of the function itself, for every parity case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from tests.parity.cases import CASES, Case, hash_text

# Samples on a kink, where a difference quotient is not the chosen subgradient; the mean of nothing.
KINKS = {
    "abs/6", "abs/7", "maximum/7", "minimum/7", "relu/4", "clamp/4", "norm zero/0",
    "pow zero base/0",
    "max/3", "min/3", "amax/3", "amin/3", "amax dims/2", "amin dims/2", "max/4", "min/4", "amax/4",
    "amin/4", "max dim/3", "min dim/3", "max dim/4", "min dim/4", "std constant/0",
    "mode/2", "embedding padding/0",  # a tie; a row whose gradient is left out on purpose
    "double cast/0", "double cast/1", "sgn/4", "sgn/5", "mean/5",
}  # fmt: skip


def value(case: Case, arrays: list[Any], weights: Any) -> float:
    with torch.no_grad():
        out = case.function(torch, *(torch.tensor(a) for a in arrays)).numpy()
    return float((weights.conj() * out).real.sum())


SMOOTH = [c for c in CASES if c.name not in KINKS]


def test_every_kink_is_a_case() -> None:
    assert KINKS <= {c.name for c in CASES}


@pytest.mark.parametrize("case", SMOOTH, ids=lambda c: c.name)
def test_directional_derivative(case: Case) -> None:
    rng = np.random.default_rng(hash_text(case.name))
    leaves = [torch.tensor(a, requires_grad=True) for a in case.inputs]
    out = case.function(torch, *leaves)
    weights = rng.uniform(0.5, 1.5, out.shape)
    if out.is_complex():
        weights = weights + 1j * rng.uniform(0.5, 1.5, out.shape)
    weights = np.asarray(weights).astype(out.numpy(force=True).dtype)
    if out.requires_grad:
        grads = torch.autograd.grad(out, leaves, torch.from_numpy(weights), allow_unused=True)
    else:
        grads = (None,) * len(leaves)
    h = 1e-6
    directions = []
    for a in case.inputs:
        d = rng.normal(size=a.shape)
        directions.append(d + 1j * rng.normal(size=a.shape) if a.dtype.kind == "c" else d)
    up = [a + h * d for a, d in zip(case.inputs, directions, strict=True)]
    down = [a - h * d for a, d in zip(case.inputs, directions, strict=True)]
    want = (value(case, up, weights) - value(case, down, weights)) / (2 * h)
    got = sum(
        float((g.numpy().conj() * d).real.sum())
        for g, d in zip(grads, directions, strict=True)
        if g is not None
    )
    assert got == pytest.approx(want, rel=2e-5, abs=2e-6)
