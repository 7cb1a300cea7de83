"""SciPy's optimisers on functions of Tensors: every method gets the derivatives that it takes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import pullback

optimize = pytest.importorskip("scipy.optimize")

from pullback.optimize import minimize, value_and_grad  # noqa: E402
from pullback.optimize import minimize as _function  # noqa: E402
from pullback.optimize.minimize import Constraint, Objective, Vector  # noqa: E402

assert _function is minimize  # the function, not the module of its name
F64 = pullback.float64
ALL = [
    "Nelder-Mead", "Powell", "CG", "BFGS", "L-BFGS-B", "TNC", "COBYLA", "COBYQA", "SLSQP",
    "Newton-CG", "trust-ncg", "trust-krylov", "trust-constr", "dogleg", "trust-exact",
]  # fmt: skip
EXACT = ALL[9:]


def tensor(value: Any) -> Any:
    return pullback.tensor(value, dtype=F64)


def rosenbrock(x: Any) -> Any:
    x = x.reshape(-1)
    return (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def bowl(x: Any) -> Any:  # convex: dogleg needs that
    return (pullback.exp(x - 1) - x).sum() + 0.1 * ((x - 1) ** 2).sum()


@pytest.mark.parametrize("method", ALL)
def test_every_method_finds_the_minimum(method: str) -> None:
    f = bowl if method == "dogleg" else rosenbrock
    options = {"maxiter": 10_000} if method == "COBYLA" else None
    result = minimize(f, tensor([[0.5, 0.8], [1.3, 0.9]]), method=method, options=options)
    assert isinstance(result.x, pullback.Tensor) and result.x.shape == (2, 2)
    np.testing.assert_allclose(result.x.numpy(), 1, atol=0.05 if method == "COBYLA" else 0.01)
    assert isinstance(result, optimize.OptimizeResult) and isinstance(result.fun, float)


@pytest.mark.parametrize("method", EXACT)
def test_second_order_methods_take_few_gradients(method: str) -> None:
    """With differences instead of Hessians each iteration would take more than one gradient."""
    calls = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return bowl(x)

    result = minimize(counted, tensor(np.linspace(0.5, 1.5, 20)), method=method, tol=1e-8)
    np.testing.assert_allclose(result.x.numpy(), 1, atol=1e-5)
    assert len(calls) < 40


def test_what_scipy_is_given_is_exact() -> None:
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=5), rng.normal(size=5)
    objective = Objective(rosenbrock, Vector(tensor(x)), (), "f")
    value, slope = objective.value_and_gradient(x)
    hessian = objective.hessian(x)
    np.testing.assert_allclose(objective.hessian_product(x, p), hessian @ p)
    h = 1e-6
    for i, e in enumerate(np.eye(5) * h):
        up, down = objective.value_and_gradient(x + e), objective.value_and_gradient(x - e)
        np.testing.assert_allclose((up[0] - down[0]) / (2 * h), slope[i], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose((up[1] - down[1]) / (2 * h), hessian[i], rtol=1e-6, atol=1e-6)
    assert value == rosenbrock(tensor(x)).item()


def test_constraints_are_exact() -> None:
    def circle(x: Any) -> Any:
        return pullback.stack([(x**2).sum(), x[0] * x[1] ** 3])

    x, w, p = np.array([0.3, -0.7]), np.array([2.0, 3.0]), np.array([0.1, 0.2])
    c = Constraint(circle, Vector(tensor(x)), (), "a constraint")
    np.testing.assert_allclose(c.numbers(x), [0.58, 0.3 * -0.343])
    np.testing.assert_allclose(c.jacobian(x), [[0.6, -1.4], [-0.343, 0.3 * 3 * 0.49]])
    hessian = 2.0 * 2 * np.eye(2) + 3.0 * np.array([[0, 3 * 0.49], [3 * 0.49, 6 * 0.3 * -0.7]])
    np.testing.assert_allclose(c.hessian(x, w) @ p, hessian @ p)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", None])
def test_constraints_hold(method: str | None, sparse: bool) -> None:
    if sparse and method != "trust-constr":
        with pytest.raises(ValueError, match="needs method='trust-constr'"):
            minimize(rosenbrock, tensor([0.1, 0.2]), method=method, sparse=True)
        return
    # nearest point to (2, 2) on the unit circle with y <= 0.6
    constraints: Any = [
        {"type": "eq", "fun": lambda x, r: (x**2).sum() - r, "args": (1.0,)},
        {"type": "ineq", "fun": lambda x: 0.6 - x[1:]},
    ]
    if method == "trust-constr":
        constraints = [
            optimize.NonlinearConstraint(lambda x: (x**2).sum(), 1, 1),
            optimize.NonlinearConstraint(lambda x: x[1:], -np.inf, 0.6),
        ]
    result = minimize(lambda x: ((x - 2) ** 2).sum(), tensor([0.5, 0.1]), method=method,
                      constraints=constraints, sparse=sparse)  # fmt: skip
    np.testing.assert_allclose(result.x.numpy(), [0.8, 0.6], atol=1e-4)


def test_a_large_sparse_problem() -> None:
    n = 300

    def curvature(x: Any) -> Any:
        return x[2:] - 2 * x[1:-1] + x[:-2]

    result = minimize(
        lambda x: ((x - 1) ** 2).sum() + (x**4).sum() / 10, pullback.zeros(n, dtype=F64),
        method="trust-constr", sparse=True,
        constraints=optimize.NonlinearConstraint(lambda x: curvature(x) + x[1:-1] ** 3 / 50, 0, 1),
        options={"maxiter": 300},
    )  # fmt: skip
    x = result.x.numpy()
    c = x[2:] - 2 * x[1:-1] + x[:-2] + x[1:-1] ** 3 / 50
    assert c.min() > -1e-6 and result.optimality < 1e-4


def test_trees_dtypes_and_arguments() -> None:
    x0 = {"a": pullback.zeros(2), "b": (pullback.zeros(1, 2, dtype=F64), tensor(0.0))}

    def f(x: Any, shift: float) -> Any:
        assert x["a"].dtype is pullback.float32 and x["b"][0].dtype is F64
        return ((x["a"] - shift) ** 2).sum().double() + ((x["b"][0] - 2) ** 2).sum() + (
            x["b"][1] + 3
        ) ** 2

    result = minimize(f, x0, args=(1.0,), method="L-BFGS-B")
    assert result.x["a"].dtype is pullback.float32 and result.x["b"][0].shape == (1, 2)
    np.testing.assert_allclose(result.x["a"].numpy(), 1, atol=1e-3)
    np.testing.assert_allclose(result.x["b"][0].numpy(), [[2, 2]], atol=1e-3)
    np.testing.assert_allclose(result.x["b"][1].numpy(), -3, atol=1e-3)
    assert x0["a"].tolist() == [0, 0]  # what was given is not changed


def test_bounds_in_the_shape_of_x() -> None:
    upper = np.array([[0.5, 2.0], [2.0, 0.0]])
    result = minimize(lambda x: ((x - 1) ** 2).sum(), pullback.zeros(2, 2, dtype=F64),
                      method="L-BFGS-B", bounds=optimize.Bounds(-1, upper))  # fmt: skip
    np.testing.assert_allclose(result.x.numpy(), [[0.5, 1], [1, 0]], atol=1e-6)


def test_callbacks_get_tensors() -> None:
    seen: list[Any] = []
    minimize(rosenbrock, tensor([0.0, 0.0]), method="BFGS", callback=lambda x: seen.append(x))

    def second(intermediate_result: Any) -> None:
        seen.append(intermediate_result.x)

    minimize(rosenbrock, tensor([0.0, 0.0]), method="BFGS", callback=second)
    minimize(rosenbrock, tensor([0.0, 0.0]), method="trust-constr",
             callback=lambda x, state: seen.append(x))  # fmt: skip
    assert len(seen) > 10 and all(isinstance(x, pullback.Tensor) for x in seen)


def test_under_no_grad_and_a_constant_function() -> None:
    with pullback.no_grad():
        result = minimize(bowl, tensor([0.0, 0.5]))
    np.testing.assert_allclose(result.x.numpy(), 1, atol=1e-4)
    assert minimize(lambda x: tensor(3.0), tensor([1.0])).x.tolist() == [1]


def test_value_and_grad_is_what_scipy_wants() -> None:
    f = value_and_grad(lambda x, k: (x**2).sum() * k)
    x = np.array([[1, 2]])
    value, slope = f(x, 3.0)
    assert type(value) is float and value == 15
    assert slope.dtype == np.float64 and slope.tolist() == [[6, 12]]
    result = optimize.minimize(f, np.ones(3), args=(2.0,), jac=True)
    np.testing.assert_allclose(result.x, 0, atol=1e-5)


def test_scipy_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(NotImplementedError, match="pip install scipy"):
        minimize(bowl, tensor([1.0]))


def test_errors_say_what_was_given() -> None:
    x = tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="return a scalar, got 2 elements"):
        minimize(lambda x: x, x)
    with pytest.raises(TypeError, match="real Tensors, got float"):
        minimize(lambda x: 1.0, x)
    with pytest.raises(TypeError, match="plain Tensors, got ndarray as leaf 0"):
        minimize(bowl, np.ones(2))
    with pytest.raises(TypeError, match="real floating dtype, got torch.int64 as leaf 1"):
        minimize(bowl, (x, pullback.arange(2)))
    with pytest.raises(ValueError, match="leave out hessp, jac"):
        minimize(bowl, x, jac=True, hessp=None)
    with pytest.raises(TypeError, match="constraints to be dicts"):
        minimize(bowl, x, constraints=[3])
