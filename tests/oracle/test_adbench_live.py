"""The objectives of ADBench on PyTorch and on Pullback side by side (`make oracle`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from bench.adbench import ba, gmm, hand, lstm

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

CASES: list[tuple[Any, dict[str, Any]]] = [
    (gmm, {"n": 50, "d": 6, "k": 5}), (gmm, {"n": 3, "d": 1, "k": 1}),
    (ba, {"cameras": 6, "points": 20, "observations": 70}),
    (hand, {"points": 12}), (hand, {"points": 12, "free": True}),
    (lstm, {"layers": 2, "size": 14, "length": 30}), (lstm, {"layers": 3}),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", range(len(CASES)))
def test_jacobians_are_those_of_pytorch(case: int, seed: int) -> None:
    module, sizes = CASES[case]
    data = module.instance(np.random.default_rng(seed), **sizes)
    ours, theirs = module.problem(pullback, data), module.problem(torch, data)
    value = ours.value(*ours.inputs).numpy(), theirs.value(*theirs.inputs).numpy()
    np.testing.assert_allclose(*value, rtol=1e-12, atol=1e-12)
    found, expected = ours.dense(ours.derivative()), theirs.dense(theirs.derivative())
    assert found.dtype == expected.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_sparse_derivatives_are_those_of_pytorch(seed: int) -> None:
    """The compressed ways against PyTorch's dense ones."""
    data = lstm.instance(np.random.default_rng(seed))
    ours, theirs = lstm.problem(pullback, data), lstm.problem(torch, data)
    ends = pullback.from_numpy(data["ends"])
    found = pullback.func.sparse_hessian(lambda e: ours.value(ours.inputs[0], e), ends)
    expected = torch.autograd.functional.hessian(
        lambda e: theirs.value(theirs.inputs[0], e), theirs.inputs[1]
    )
    size = ends.numel()
    np.testing.assert_allclose(found.toarray(), expected.numpy().reshape(size, size), atol=1e-10)

    data = hand.instance(np.random.default_rng(seed), free=True)
    ours, theirs = hand.problem(pullback, data), hand.problem(torch, data)
    place = ours.inputs[1]
    jacobian = pullback.func.sparse_jacobian(lambda p: ours.value(ours.inputs[0], p))
    expected = torch.func.jacrev(lambda p: theirs.value(theirs.inputs[0], p))(theirs.inputs[1])
    rows = ours.value(*ours.inputs).numel()
    np.testing.assert_allclose(
        jacobian(place).toarray(), expected.numpy().reshape(rows, -1), atol=1e-10
    )
    assert jacobian.plan(place).products == 2
