"""The objectives of ADBench: their derivatives against numerical ones, and their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from bench.adbench import ba, gmm, hand, lstm

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "gmm": (gmm, {}), "gmm wide": (gmm, {"n": 7, "d": 5, "k": 2}), "gmm d=1": (gmm, {"d": 1}),
    "ba": (ba, {}), "ba many": (ba, {"cameras": 5, "points": 9, "observations": 30}),
    "hand": (hand, {}), "hand free": (hand, {"free": True}),
    "lstm": (lstm, {}), "lstm deep": (lstm, {"layers": 3, "size": 4, "length": 9}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives_against_differences(name: str) -> None:
    module, sizes = CASES[name]
    problem = module.problem(pullback, module.instance(np.random.default_rng(5), **sizes))
    found = problem.dense(problem.derivative())
    flat = np.concatenate([x.numpy().reshape(-1) for x in problem.inputs])

    def value(v: Any) -> Any:
        inputs, start = [], 0
        for x in problem.inputs:
            part = v[start : start + x.numel()].reshape(tuple(x.shape))
            inputs.append(pullback.from_numpy(part.copy()))
            start += x.numel()
        return problem.value(*inputs).numpy().reshape(-1)

    h = 1e-4  # differences of fourth order: errors near 1e-12 of the derivatives
    expected = np.empty((value(flat).size, flat.size))
    for i in range(flat.size):
        e = np.zeros_like(flat)
        e[i] = h
        expected[:, i] = (
            8 * (value(flat + e) - value(flat - e)) - (value(flat + 2 * e) - value(flat - 2 * e))
        ) / (12 * h)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_the_sparse_jacobian_of_bundle_adjustment() -> None:
    """The general way: pattern by a trace, few products, all entries."""
    pytest.importorskip("scipy")
    data = ba.instance(np.random.default_rng(1), cameras=20, points=60, observations=200)
    problem = ba.problem(pullback, data)
    shapes = [tuple(x.shape) for x in problem.inputs]
    sizes = [x.numel() for x in problem.inputs]
    vector = pullback.cat([x.reshape(-1) for x in problem.inputs])

    def value(v: Any) -> Any:
        parts = pullback.split(v, sizes)
        return problem.value(*(p.reshape(s) for p, s in zip(parts, shapes, strict=True)))

    jacobian = pullback.func.sparse_jacobian(value)
    matrix = jacobian(vector)
    np.testing.assert_allclose(matrix.toarray(), problem.dense(problem.derivative()), atol=1e-12)
    # two errors in 15 parameters, but each coordinate of the principal point moves only one
    assert matrix.nnz == 200 * (2 * (15 - 1) + 1)
    assert jacobian.plan(vector).products < 60


def test_the_mixture_is_a_density() -> None:
    """Without its prior, exp(log p) of one point integrates to 1 over the line."""
    data = gmm.instance(np.random.default_rng(2), n=1, d=1, k=3)
    grid = np.linspace(-40, 40, 40_001)

    def likelihood(points: Any) -> float:
        problem = gmm.problem(pullback, {**data, "x": points.reshape(-1, 1)})
        return problem.value(*problem.inputs).item()

    # the prior does not depend on the points: take it out by two points less one
    a, b = np.array([0.3]), np.array([-0.7])
    prior = likelihood(a) + likelihood(b) - likelihood(np.concatenate([a, b]))
    density = np.exp([likelihood(g[None]) - prior for g in grid[::20]])
    assert abs(density.sum() * (grid[20] - grid[0]) - 1) < 1e-6


def test_the_wishart_prior_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    data = gmm.instance(np.random.default_rng(3), n=2, d=3, k=1)
    both = gmm.problem(pullback, data)
    one, other = (
        gmm.problem(pullback, {**data, "x": data["x"][i : i + 1]}) for i in range(2)
    )
    prior = sum(p.value(*p.inputs).item() for p in (one, other)) - both.value(*both.inputs).item()
    factor = np.append([0.0], np.append(np.exp(data["q"][0]), data["l"][0]))[gmm.places(3)]
    expected = stats.wishart.logpdf(
        factor.T @ factor, df=3 + data["m"] + 1, scale=np.eye(3) / data["gamma"] ** 2
    )
    assert abs(prior - expected) < 1e-10


def test_rotations_are_rotations() -> None:
    rng = np.random.default_rng(4)
    r, v = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    found = ba.rotated(pullback, pullback.from_numpy(r), pullback.from_numpy(v)).numpy()
    rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    np.testing.assert_allclose(found, rotation.from_rotvec(r).apply(v), rtol=1e-12)
    turns = hand.bone_rotation(
        pullback, pullback.from_numpy(r[:, 0].copy()), pullback.from_numpy(r[:, 1].copy())
    ).numpy()
    expected = rotation.from_euler("xz", r[:, :2]).as_matrix()
    np.testing.assert_allclose(turns[:, :3, :3], expected, atol=1e-12)


def test_a_hand_at_rest_stays_where_it_is() -> None:
    data = hand.instance(np.random.default_rng(6))
    data["pose"] = np.zeros(26)
    data["pose"][0] = 1e-12  # a rotation vector must not vanish
    data["weights"][:] = data["weights"] / data["weights"].sum(0)
    problem = hand.problem(pullback, data)
    moved = data["measured"] - problem.value(*problem.inputs).numpy()
    np.testing.assert_allclose(moved, data["vertices"][data["corners"][:, 0]], atol=1e-10)
