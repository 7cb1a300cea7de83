"""`func.implicit`: derivatives through solvers, of any order, by the implicit function theorem."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.errors import GraphError

optimize = pytest.importorskip("scipy.optimize")

from pullback.transforms.implicit import Problem, implicit  # noqa: E402

F64 = pullback.float64


def tensor(value: Any) -> Any:
    return pullback.tensor(value, dtype=F64)


def newton(a: Any) -> Any:
    x = a.clone()
    for _ in range(60):
        x = (x + a / x) / 2
    return x


root = implicit(newton, lambda x, a: x * x - a)


def scipy_solver(p: Any, q: Any) -> Any:
    """x with x^3 + p x + q sum(x) = 1 + q, elementwise in p: a coupled system."""
    p, q = p.numpy(), q.numpy()

    def f(x: Any) -> Any:
        return x**3 + p * x + q * x.sum() - 1 - q

    return pullback.from_numpy(optimize.root(f, np.ones_like(p), tol=1e-14).x)


def coupled(x: Any, p: Any, q: Any) -> Any:
    return x**3 + p * x + q * x.sum() - 1 - q


def differences(f: Any, a: Any, h: float = 1e-5) -> Any:
    """The Jacobian of f: array -> array by central differences of fourth order."""
    columns = []
    for i in range(a.size):
        e = np.zeros(a.size)
        e[i] = h
        e = e.reshape(a.shape)
        slope = (8 * (f(a + e) - f(a - e)) - (f(a + 2 * e) - f(a - 2 * e))) / (12 * h)
        columns.append(np.asarray(slope).reshape(-1))
    return np.stack(columns, 1)


# ---------------------------------------------------------------- reverse mode, any order
def test_backward_fills_grad() -> None:
    a = tensor([4.0, 9.0]).requires_grad_()
    root(a).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), [1 / 4, 1 / 6], rtol=1e-12)


def test_orders_one_to_four() -> None:
    a = tensor([4.0, 9.0]).requires_grad_()
    y = root(a)
    factor, power = 1.0, 0.5
    for _ in range(4):
        (y,) = pullback.autograd.grad(y.sum(), a, create_graph=True)
        factor, power = factor * power, power - 1
        np.testing.assert_allclose(
            y.detach().numpy(), factor * np.array([4.0, 9.0]) ** power, rtol=1e-9
        )


@pytest.mark.parametrize("method", ["gmres", "bicgstab"])
def test_a_coupled_system_against_differences(method: str) -> None:
    solve = implicit(scipy_solver, coupled, method=method)
    p, q = tensor([1.0, 2.0, 0.5]), tensor(0.3)

    def gradient(p_: Any, q_: Any, create: bool = False) -> Any:
        x = solve(p_, q_)
        return pullback.autograd.grad((x**2 * tensor([1.0, 2.0, 3.0])).sum(), [p_, q_],
                                      create_graph=create)  # fmt: skip

    def value(v: Any) -> Any:
        x = scipy_solver(tensor(v[:3]), tensor(v[3])).numpy()
        return (x**2 * [1, 2, 3]).sum()

    def flat_gradient(v: Any) -> Any:
        g = gradient(tensor(v[:3]).requires_grad_(), tensor(v[3]).requires_grad_())
        return np.append(g[0].numpy(), g[1].numpy())

    at = np.array([1.0, 2.0, 0.5, 0.3])
    np.testing.assert_allclose(flat_gradient(at), differences(value, at)[0], rtol=1e-8)
    p.requires_grad_(), q.requires_grad_()
    g = gradient(p, q, create=True)
    second = differences(flat_gradient, at)
    for i, e in enumerate([*g[0], g[1]]):
        row = pullback.autograd.grad(e, [p, q], retain_graph=True)
        np.testing.assert_allclose(np.append(row[0].numpy(), row[1].numpy()), second[i], rtol=1e-6,
                                   atol=1e-9)  # fmt: skip


def linear_solver(A: Any, b: Any) -> Any:
    return pullback.from_numpy(np.linalg.solve(A.numpy(), b.numpy()))


@pytest.mark.parametrize("method", ["gmres", "bicgstab", "cg", "own"])
def test_a_linear_system_in_its_matrix(method: str) -> None:
    rng = np.random.default_rng(0)
    square = rng.normal(size=(6, 6))
    A = tensor(square @ square.T + 6 * np.eye(6)).requires_grad_()
    b = tensor(rng.normal(size=6)).requires_grad_()
    g = rng.normal(size=6)
    calls = []

    def own(operator: Any, right: Any) -> Any:
        calls.append(operator.shape)
        return np.linalg.solve(operator @ np.eye(6), right)

    chosen: Any = own if method == "own" else method
    x = implicit(linear_solver, lambda x, A, b: A @ x - b, method=chosen)(A, b)
    dA, db = pullback.autograd.grad(x, [A, b], tensor(g))
    w = np.linalg.solve(A.detach().numpy().T, g)
    np.testing.assert_allclose(db.numpy(), w, rtol=1e-8)
    np.testing.assert_allclose(dA.numpy(), -np.outer(w, x.detach().numpy()), rtol=1e-8)
    assert calls == ([(6, 6)] if method == "own" else [])


def test_only_what_requires_grad_is_differentiated() -> None:
    A, b = tensor(np.diag([1.0, 2.0])), tensor([1.0, 1.0]).requires_grad_()
    x = implicit(linear_solver, lambda x, A, b: A @ x - b)(A, b)
    x.sum().backward()
    np.testing.assert_allclose(b.grad.numpy(), [1, 0.5])
    assert A.grad is None


def test_integer_and_python_arguments() -> None:
    def solver(a: Any, power: int, index: Any) -> Any:
        return a[index] ** (1 / power)

    def optimality(x: Any, a: Any, power: int, index: Any) -> Any:
        return x**power - a[index]

    a = tensor([4.0, 27.0]).requires_grad_()
    x = implicit(solver, optimality)(a, 3, pullback.tensor([1]))
    assert x.shape == (1,)
    x.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), [0, 1 / 27])


def test_pytrees_of_arguments_and_solutions() -> None:
    def solver(data: Any) -> Any:
        return {"u": data["a"] / data["b"][0], "v": (data["b"][0] * 2).reshape(1)}

    def optimality(x: Any, data: Any) -> Any:
        return {"u": x["u"] * data["b"][0] - data["a"], "v": (x["v"] - 2 * data["b"][0])}

    a, b = tensor([[1.0, 2.0]]).requires_grad_(), tensor(4.0).requires_grad_()
    x = implicit(solver, optimality)({"a": a, "b": (b,)})
    assert x["u"].shape == (1, 2) and x["v"].shape == (1,)
    (x["u"].sum() * x["v"].sum()).backward()  # (sum(a) / b) * 2 b = 2 sum(a)
    np.testing.assert_allclose(a.grad.numpy(), [[2, 2]])
    np.testing.assert_allclose(b.grad.numpy(), 0, atol=1e-12)


def test_inside_a_larger_graph() -> None:
    a = tensor([4.0, 9.0]).requires_grad_()
    (root(a**2).sum() * 3).backward()  # root of the square: a itself
    np.testing.assert_allclose(a.grad.numpy(), [3, 3])


def test_float32() -> None:
    a = pullback.tensor([4.0, 9.0], requires_grad=True)
    root(a).sum().backward()
    assert a.grad.dtype is pullback.float32
    np.testing.assert_allclose(a.grad.numpy(), [1 / 4, 1 / 6], rtol=1e-5)


def test_the_solver_may_use_derivatives_even_under_no_grad() -> None:
    def descent(a: Any) -> Any:
        x = pullback.ones_like(a)
        for _ in range(200):
            x = x.detach().requires_grad_()
            (g,) = pullback.autograd.grad(((x - a) ** 2).sum(), x)
            x = x - 0.3 * g
        return x

    nearest = implicit(descent, lambda x, a: x - a)
    a = tensor([1.0, 5.0]).requires_grad_()
    nearest(a).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), [1, 1])
    with pullback.no_grad():
        out = nearest(a)
    assert not out.requires_grad
    np.testing.assert_allclose(out.numpy(), [1, 5], rtol=1e-10)


# ---------------------------------------------------------------- other transforms
def test_vmap_of_grad_and_grad_of_vmap() -> None:
    a = tensor([[4.0, 9.0], [16.0, 25.0]])
    expected = 0.5 * a.numpy() ** -0.5
    found = pullback.vmap(pullback.func.grad(lambda a: root(a).sum()))(a)
    np.testing.assert_allclose(found.numpy(), expected)
    found = pullback.func.grad(lambda a: pullback.vmap(root)(a).sum())(a)
    np.testing.assert_allclose(found.numpy(), expected)


def test_vmap_with_an_argument_that_is_shared() -> None:
    p, q = tensor([[1.0, 2.0], [0.5, 3.0]]), tensor(0.3)
    solve = implicit(scipy_solver, coupled)

    def loss(p: Any, q: Any) -> Any:
        return (solve(p, q) ** 2).sum()

    found = pullback.vmap(pullback.func.grad(loss, (0, 1)), in_dims=(0, None))(p, q)
    for i in range(2):
        one = pullback.func.grad(loss, (0, 1))(p[i], q)
        np.testing.assert_allclose(found[0][i].numpy(), one[0].numpy(), rtol=1e-9)
        np.testing.assert_allclose(found[1][i].numpy(), one[1].numpy(), rtol=1e-9)


def test_batched_cotangents() -> None:
    a = tensor([4.0, 9.0]).requires_grad_()
    (found,) = pullback.autograd.grad(root(a), a, pullback.eye(2, dtype=F64),
                                      is_grads_batched=True)  # fmt: skip
    np.testing.assert_allclose(found.numpy(), np.diag([1 / 4, 1 / 6]), atol=1e-12)


def test_second_order_by_nested_grad() -> None:
    second = pullback.func.grad(pullback.func.grad(root))
    np.testing.assert_allclose(second(tensor(4.0)).numpy(), -1 / 32, rtol=1e-10)


# ---------------------------------------------------------------- forward mode
def test_the_tangent_of_a_solution_and_its_derivatives() -> None:
    """The rule for tangents, on arrays and on Tensors: J t, and the gradient of J t."""
    p, q = tensor([1.0, 2.0, 0.5]).requires_grad_(), tensor(0.3).requires_grad_()
    solve = implicit(scipy_solver, coupled)
    x = solve(p, q)
    node = x.grad_fn  # the reshape to the shape of x
    node = node.next_functions[0][0] if node.name() != "ImplicitBackward" else node
    rule, params = node.plan.primitive.jvp, {"problem": node.saved[-2]}
    assert isinstance(params["problem"], Problem)
    t, s = np.array([0.3, -0.2, 0.5]), np.array(0.7)

    def moved(h: float) -> Any:
        a, b = p.detach().numpy() + h * t, q.detach().numpy() + h * s
        return scipy_solver(tensor(a), tensor(b)).numpy()

    expected = (8 * (moved(1e-4) - moved(-1e-4)) - moved(2e-4) + moved(-2e-4)) / 12e-4
    arrays = [v.detach().numpy() for v in (p, q, x)]
    found = rule((t, s), tuple(arrays[:2]), params, arrays[2])
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    partly = rule((None, s), tuple(arrays[:2]), params, arrays[2])
    rows = pullback.autograd.grad(x, q, pullback.eye(3, dtype=F64), retain_graph=True,
                                  is_grads_batched=True)[0]  # fmt: skip
    np.testing.assert_allclose(partly, rows.numpy() * 0.7, rtol=1e-9)

    out = solve(p, q)
    along = rule((tensor(t), tensor(s)), (p, q), params, out)
    np.testing.assert_allclose(along.detach().numpy(), expected, rtol=1e-8)
    twice = pullback.autograd.grad(along.sum(), p)[0].numpy()

    def total(v: Any) -> Any:
        both = tensor(v).requires_grad_(), tensor(0.3).requires_grad_()
        g, h = pullback.autograd.grad(solve(*both).sum(), both)
        return (g.numpy() * t).sum() + h.numpy() * s

    np.testing.assert_allclose(twice, differences(total, p.detach().numpy())[0], rtol=1e-6)


# ---------------------------------------------------------------- errors
def test_a_tensor_that_is_no_argument_is_refused() -> None:
    hidden = tensor(2.0).requires_grad_()
    solve = implicit(lambda a: a / 2, lambda x, a: hidden * x - a)
    with pytest.raises(GraphError, match="requires grad and is no argument"):
        solve(tensor([1.0]).requires_grad_())


def test_a_singular_equation_is_an_error_and_no_number() -> None:
    a = tensor([1.0, 2.0]).requires_grad_()
    x = implicit(lambda a: a * 0, lambda x, a: x * 0 + (a - a))(a)
    with pytest.raises(GraphError, match="gmres did not solve the linear system of 2 unknowns"):
        x.sum().backward()
    y = implicit(linear_solver, lambda x, A, b: A @ x - b, method="cg")(
        tensor([[1.0, 5.0], [-5.0, 1.0]]), a
    )
    with pytest.raises(GraphError, match="cg did not solve"):
        y.sum().backward()


def test_scipy_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    a = tensor([4.0]).requires_grad_()
    y = root(a)  # the solver itself needs none
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(NotImplementedError, match="pip install scipy"):
        y.sum().backward()


def test_results_that_do_not_fit() -> None:
    a = tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="structure and shapes of the solution"):
        implicit(lambda a: a, lambda x, a: x.sum())(a)
    with pytest.raises(TypeError, match="one real floating dtype"):
        implicit(lambda a: (a, a.float()), lambda x, a: x)(a)
    with pytest.raises(RuntimeError, match="not finite"):
        implicit(lambda a: a, lambda x, a: x / 0)(a)
    with pytest.raises(ValueError, match="method to be one of"):
        implicit(lambda a: a, lambda x, a: x, method="lu")


# ---------------------------------------------------------------- the example
def test_the_differential_equation_of_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    from examples import implicit_ode

    found = implicit_ode.main()
    assert found["gradient"] < 1e-6 and found["fit"] < 0.02
    assert "hares at 0" in capsys.readouterr().out
