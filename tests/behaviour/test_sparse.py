"""Sparse Jacobians and Hessians: the pattern holds every derivative, and the entries are right."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pullback
from pullback.errors import GraphError
from tests.parity.cases import CASES, Case

sparse = pytest.importorskip("scipy.sparse")

from pullback.tracing import trace  # noqa: E402
from pullback.transforms import sparse as module  # noqa: E402
from pullback.transforms.colouring import colour_columns, recovery, star_colour  # noqa: E402
from pullback.transforms.sparsity import dependence  # noqa: E402

sparse_jacobian, sparse_hessian = module.sparse_jacobian, module.sparse_hessian
F64 = pullback.float64
REAL = [
    c for c in CASES
    if c.inputs and all(a.dtype.kind == "f" and a.size for a in c.inputs)
]  # fmt: skip


def of_one_vector(case: Case) -> tuple[Callable[[Any], Any], Any]:
    """The case as a function of one vector that holds all of its inputs."""
    sizes = [a.size for a in case.inputs]
    x = pullback.tensor(np.concatenate([a.reshape(-1) for a in case.inputs]))

    def function(x: Any) -> Any:
        parts = pullback.split(x, sizes)
        shaped = [p.reshape(a.shape) for p, a in zip(parts, case.inputs, strict=True)]
        return case.function(pullback, *shaped)

    return function, x


def dense_jacobian(function: Callable[[Any], Any], x: Any) -> Any:
    """One backward pass for each output."""
    x = x.detach().requires_grad_()
    y = function(x).reshape(-1)
    if not y.requires_grad:
        return np.zeros((y.numel(), x.numel()))
    rows = [
        pullback.autograd.grad(e, x, retain_graph=True, materialize_grads=True)[0].reshape(-1)
        for e in y
    ]
    return np.array([r.numpy() for r in rows]).reshape(y.numel(), x.numel())


def traces(case: Case) -> bool:
    """Some cases look at values, or return no real floats: a trace refuses those."""
    function, x = of_one_vector(case)
    try:
        return function(x)._data.dtype.kind == "f" and bool(trace(function, x))
    except Exception:  # noqa: BLE001  whatever it says: it does not give a program
        return False


def test_most_cases_can_be_traced() -> None:
    assert len(REAL) > 200
    refused = [c.name for c in REAL if not traces(c)]
    assert len(refused) < 0.15 * len(REAL), refused


@pytest.mark.parametrize("case", REAL, ids=lambda c: c.name)
def test_the_jacobian_of_every_case(case: Case) -> None:
    if not traces(case):
        return
    function, x = of_one_vector(case)
    expected = dense_jacobian(function, x)
    for mode in ("forward", "reverse"):
        found = sparse_jacobian(function, x, mode=mode)
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", REAL, ids=lambda c: c.name)
def test_the_hessian_of_every_case(case: Case) -> None:
    if not traces(case):
        return
    function, x = of_one_vector(case)

    def scalar(x: Any) -> Any:
        y = function(x).reshape(-1)
        return (y * y * pullback.arange(1.0, y.numel() + 1, dtype=y.dtype)).sum()

    def gradient(x: Any) -> Any:
        leaf = x if x.requires_grad else x.detach().requires_grad_()
        value = scalar(leaf)
        if not value.requires_grad:
            return pullback.zeros_like(leaf)
        return pullback.autograd.grad(value, leaf, create_graph=True, materialize_grads=True)[0]

    expected = dense_jacobian(gradient, x)
    found = sparse_hessian(scalar, x)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-8, atol=1e-8)


# ---------------------------------------------------------------- compositions
def constant(x: Any, seed: int) -> Any:
    """A tensor of the shape of x that does not depend on it; some elements are 0."""
    rng = np.random.default_rng(seed)
    shape = tuple(x.shape)
    return pullback.from_numpy(rng.normal(size=shape) * (rng.random(shape) < 0.7))


def positions(n: int, seed: int) -> Any:
    return pullback.from_numpy(np.random.default_rng(seed).integers(-n, n, 4))


# each maps a matrix to a matrix; k is a number to draw constants with
STEPS: list[Callable[[Any, int], Any]] = [
    lambda x, k: x.sin(), lambda x, k: x * (x * x + 1).reciprocal(), lambda x, k: x.t(),
    lambda x, k: x[positions(x.shape[0], k)], lambda x, k: x[:, positions(x.shape[1], k)],
    lambda x, k: x[1:] if x.shape[0] > 1 else x, lambda x, k: x[:, ::2] + x[:, :1],
    lambda x, k: pullback.cat([x, constant(x, k), x * 2], k % 2),
    lambda x, k: pullback.where(constant(x, k) > 0, x, x**2),
    lambda x, k: pullback.cumsum(x, k % 2), lambda x, k: pullback.softmax(x, k % 2),
    lambda x, k: x @ constant(x, k).t(), lambda x, k: constant(x, k).t() @ x,
    lambda x, k: x @ x.t() * 0.1, lambda x, k: x.sum(k % 2, keepdim=True) * constant(x, k),
    lambda x, k: x.amax(k % 2, keepdim=True) - x, lambda x, k: x.reshape(-1, 1).flip(0),
    lambda x, k: pullback.tril(x) + pullback.diagonal(x)[:1], lambda x, k: x.roll(k % 3, k % 2),
    lambda x, k: x.index_add(0, pullback.tensor([0, 0]), x[:1].expand(2, x.shape[1])),
    lambda x, k: pullback.stack([x, constant(x, k)], 1).reshape(x.shape[0], -1),
    lambda x, k: pullback.einsum("ij,ik->kj", x, constant(x, k)),
    lambda x, k: x.clone().index_fill_(0, pullback.tensor([k % x.shape[0]]), 0.5) + x,
    lambda x, k: pullback.linalg.vector_norm(x + 3, dim=k % 2, keepdim=True) * x
    if hasattr(pullback, "linalg") else x,
]  # fmt: skip


@settings(deadline=None, max_examples=150)
@example([(4, 2), (4, 7), (15, 1)])  # the maximum of one element, less itself: nothing but rounding
@given(st.lists(st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 50)), min_size=1,
                max_size=6))  # fmt: skip
def test_random_compositions(steps: list[tuple[int, int]]) -> None:
    def function(x: Any) -> Any:
        x = x.reshape(2, 3)
        for which, k in steps:
            x = STEPS[which](x, k)
            if x.numel() > 60:
                x = x[:5, :5]
        return x

    def scalar(x: Any) -> Any:
        return (function(x) ** 2).sum()

    def gradient(x: Any) -> Any:
        leaf = x if x.requires_grad else x.detach().requires_grad_()
        return pullback.autograd.grad(scalar(leaf), leaf, create_graph=True)[0]

    x = pullback.tensor(np.random.default_rng(len(steps)).normal(size=6))
    expected = dense_jacobian(function, x)
    for mode in ("forward", "reverse"):
        found = sparse_jacobian(function, x, mode=mode).toarray()
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    if scalar(x.requires_grad_()).requires_grad:
        x = x.detach()
        scale = np.abs(gradient(x).detach().numpy()).max() + 1
        np.testing.assert_allclose(
            sparse_hessian(scalar, x).toarray(), dense_jacobian(gradient, x), rtol=1e-7,
            atol=1e-9 * scale,
        )


# ---------------------------------------------------------------- patterns are as small as can be
W = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 3.0, 0.0], [0.0, 4.0, 0.0, 0.0]])
MIXED = pullback.tensor(W)
TIGHT: list[tuple[str, Any, tuple[int, ...]]] = [
    ("slices", lambda x: x[2:] * x[:-2], (6,)),
    ("select rows and columns", lambda x: x[1] * x[:, 1], (3, 3)),
    ("gather", lambda x: x[pullback.tensor([3, 0, 0, -1])], (5,)),
    ("index two", lambda x: x[pullback.tensor([0, 1]), pullback.tensor([2, 0])], (3, 3)),
    ("cat and stack", lambda x: pullback.stack([pullback.cat([x, x.exp()]), x.repeat(2)]), (3,)),
    ("broadcast", lambda x: x[:, None] * x[None, :], (3,)),
    ("reduce", lambda x: (x * x).sum(1) + x.amax(1), (3, 4)),
    ("keepdims", lambda x: x - x.mean(0, keepdim=True), (3, 4)),
    ("cumsum", lambda x: pullback.cumsum(x * x, 1), (2, 4)),
    ("softmax", lambda x: pullback.softmax(x, 1), (3, 4)),
    ("constant matrix, vector", lambda x: MIXED @ x.exp(), (4,)),
    ("constant matrix, matrix", lambda x: MIXED @ x.exp(), (4, 2)),
    ("matrix, constant matrix", lambda x: x.exp() @ MIXED, (2, 3)),
    ("linear", lambda x: pullback.nn.functional.linear(x, MIXED, x.sum() * 0 + 1), (2, 4)),
    ("constant dot", lambda x: pullback.dot(MIXED[0], x), (4,)),
    ("variable product", lambda x: x @ x.t(), (3, 2)),
    ("einsum", lambda x: pullback.einsum("ij,kj->ik", x, x), (3, 2)),
    ("transpose, flip, roll", lambda x: x.t().flip(0).roll(1, 1) * x.t(), (3, 2)),
    ("diagonal", lambda x: pullback.diagonal(x) * pullback.diagonal(x, 1, 0, 1)[0], (3, 4)),
    ("triangle", lambda x: pullback.tril(x).sum(0), (3, 3)),
    ("flat", lambda x: pullback.floor(x) + pullback.sign(x) + (x > 0) * 2.0, (3,)),
    ("unfold", lambda x: x.unfold(1, 2, 1) ** 2, (2, 4)),
    ("classes", lambda x: pullback.nn.functional.nll_loss(
        x, pullback.tensor([1, 0, 3]), reduction="none"), (3, 4)),
    ("summed classes", lambda x: pullback.nn.functional.nll_loss(
        x, pullback.tensor([1, 0, 3])), (3, 4)),
    ("scatter_add", lambda x: pullback.zeros(3, dtype=x.dtype).scatter_add(
        0, pullback.tensor([0, 2, 2]), x), (3,)),
    ("index_put", lambda x: pullback.index_put(
        x.exp(), (pullback.tensor([1]),), x[:1]), (4,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function", "shape"), TIGHT, ids=[t[0] for t in TIGHT])
def test_patterns_are_tight(name: str, function: Any, shape: tuple[int, ...]) -> None:
    """Every entry of the pattern is a derivative somewhere, and every derivative is an entry."""
    rng = np.random.default_rng(1)
    seen: Any = 0
    for _ in range(12):
        x = pullback.tensor(rng.normal(size=shape))
        seen = seen + (dense_jacobian(function, x) != 0)
    pattern = sparse_jacobian(function).pattern(x).toarray()
    if name == "linear":  # the bias depends on x with a derivative of 0
        assert (pattern >= (seen > 0)).all()
    else:
        np.testing.assert_array_equal(pattern, seen > 0)


def test_the_hessian_of_windows_is_a_band() -> None:
    hessian = sparse_hessian(lambda x: (x.unfold(0, 3, 1).sum(1) ** 2).sum())
    x = pullback.ones(40, dtype=F64)
    expected = sum(np.outer(e, e) for e in (np.eye(40)[:, i : i + 3].sum(1) for i in range(38)))
    np.testing.assert_allclose(hessian(x).toarray(), 2 * expected)
    assert hessian.plan(x).products <= 6 and hessian(x).nnz == 40 + 2 * (39 + 38)


def test_positions_that_depend_on_values_count_as_dense() -> None:
    def function(x: Any) -> Any:
        return x[pullback.argmax(x)] * x

    x = pullback.tensor([1.0, 3.0, 2.0], dtype=pullback.float64)
    jacobian = sparse_jacobian(function)
    assert jacobian.pattern(x).nnz == 9
    for y in (x, x.flip(0), x.roll(1, 0)):
        np.testing.assert_allclose(jacobian(y).toarray(), dense_jacobian(function, y))


# ---------------------------------------------------------------- colourings
def random_pattern(seed: int, m: int, n: int, density: float) -> Any:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.random((m, n)) < density)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12), st.floats(0.0, 0.6))
def test_colours_of_columns_never_meet(seed: int, m: int, n: int, density: float) -> None:
    pattern = random_pattern(seed, m, n, density)
    colours = colour_columns(pattern)
    for row in pattern.toarray():
        mine = colours[row]
        assert len(set(mine)) == len(mine)


@settings(deadline=None, max_examples=120)
@given(st.integers(0, 10**6), st.integers(1, 14), st.floats(0.0, 0.7))
def test_star_colourings_are_star_colourings(seed: int, n: int, density: float) -> None:
    full = random_pattern(seed, n, n, density).toarray()
    full |= full.T
    colours = star_colour(sparse.csr_array(full))
    for i, j in itertools.combinations(range(n), 2):
        assert not full[i, j] or colours[i] != colours[j]
    for path in itertools.permutations(range(n), 4) if n <= 8 else ():
        if all(full[a, b] for a, b in itertools.pairwise(path)):
            assert len(set(colours[list(path)])) > 2
    # and the entries come back from the products
    matrix = np.random.default_rng(seed).normal(size=(n, n)) * full
    matrix = matrix + matrix.T
    pattern = sparse.csr_array(full)
    seeds = np.zeros((n, colours.max() + 1))
    seeds[np.arange(n), colours] = 1
    position, colour = recovery(pattern, colours)
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    found = (matrix @ seeds)[position, colour]
    np.testing.assert_allclose(found, matrix[rows, pattern.indices], rtol=0, atol=1e-12)


def test_arrow_needs_two_colours_and_linear_time() -> None:
    n = 100_000
    edge = np.arange(1, n)
    hub = np.zeros(n - 1, int)
    rows, columns = np.concatenate([edge, hub, [0]]), np.concatenate([hub, edge, [0]])
    pattern = sparse.coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(n, n)).tocsr()
    assert star_colour(pattern).max() + 1 == 2


# ---------------------------------------------------------------- large and cheap
def band(x: Any) -> Any:
    y = x**2
    return pullback.cat([y[:1], y[1:-1] * x[:-2] + pullback.sin(x[2:]), y[-1:] * x[-2:-1]])


def test_a_band_of_a_hundred_thousand_takes_three_products() -> None:
    n = 100_000
    x = pullback.tensor(np.random.default_rng(0).normal(size=n))
    jacobian = sparse_jacobian(band)
    matrix = jacobian(x)
    assert jacobian.plan(x).products == 3
    a = x.numpy()
    assert matrix.shape == (n, n) and matrix.nnz == 3 * n - 3  # the corners: 1 and 2 entries
    np.testing.assert_allclose(matrix.diagonal()[1:-1], 2 * a[1:-1] * a[:-2])
    np.testing.assert_allclose(matrix.diagonal(-1)[:-1], a[1:-1] ** 2)
    np.testing.assert_allclose(matrix.diagonal(1)[1:], np.cos(a[2:]))


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_the_hessian_of_a_chain_of_a_hundred_thousand_takes_three_products() -> None:
    n = 100_000
    x = pullback.tensor(np.random.default_rng(0).normal(size=n))
    hessian = sparse_hessian(rosenbrock)
    matrix = hessian(x)
    assert hessian.plan(x).products == 3
    a = x.numpy()
    diagonal = np.zeros(n)
    diagonal[:-1] += 1200 * a[:-1] ** 2 - 400 * a[1:] + 2
    diagonal[1:] += 200
    np.testing.assert_allclose(matrix.diagonal(), diagonal)
    np.testing.assert_allclose(matrix.diagonal(1), -400 * a[:-1])
    assert abs(matrix - matrix.T).max() == 0


def test_rows_are_coloured_where_that_is_cheaper() -> None:
    jacobian = sparse_jacobian(lambda x: pullback.stack([x.sum(), (x[::2] ** 2).sum()]))
    x = pullback.arange(50.0)
    assert jacobian(x).shape == (2, 50)
    assert jacobian.plan(x).rows and jacobian.plan(x).products == 2
    assert sparse_jacobian(lambda x: x.sum(), mode="forward").plan(x).products == 50


def test_a_scalar_through_dense_values_is_no_obstacle() -> None:
    x = pullback.tensor(np.arange(20_000.0))
    matrix = sparse_jacobian(lambda x: ((x - x.mean()) ** 2).sum(), x)
    np.testing.assert_allclose(matrix.toarray()[0], 2 * (x - x.mean()).numpy())


def test_chunks_give_the_same() -> None:
    x = pullback.tensor(np.linspace(0, 1, 30))
    whole = sparse_jacobian(lambda x: x.outer(x).sum(0) * x, x)
    parts = sparse_jacobian(lambda x: x.outer(x).sum(0) * x, x, chunk_size=7)
    assert abs(whole - parts).max() == 0 and whole.nnz == 900


# ---------------------------------------------------------------- reuse, edges and errors
def test_plans_are_made_once_for_each_shape_and_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(module, "dependence", lambda p: made.append(p) or dependence(p))
    jacobian = sparse_jacobian(lambda x: x**2)
    for x in (pullback.ones(3), pullback.zeros(3), pullback.ones(4),
              pullback.ones(3, dtype=pullback.float64)):  # fmt: skip
        np.testing.assert_allclose(jacobian(x).toarray(), 2 * np.diag(x.numpy()))
        assert jacobian(x).dtype == x.numpy().dtype
    assert len(made) == 3


def test_a_function_that_changed_since_it_was_traced_is_found_out() -> None:
    weight = pullback.tensor(np.eye(4))
    for derivative in (
        sparse_jacobian(lambda x: weight @ x**2),
        sparse_hessian(lambda x: ((weight @ x) ** 2).sum()),
        sparse_jacobian(lambda x: weight @ x**2, mode="reverse"),
    ):
        weight[0, 3] = 0
        x = pullback.arange(1.0, 5.0, dtype=pullback.float64)
        derivative(x)
        weight[0, 3] = 1e-3
        with pytest.raises(GraphError, match="does not fit the function any more"):
            derivative(x)


@pytest.mark.parametrize("seed", range(20))
def test_rounding_raises_no_alarm(seed: int) -> None:
    """Derivatives that cancel to nothing, or are large beside what is left of them."""
    rng = np.random.default_rng(seed)
    x = pullback.tensor(rng.normal(size=20).astype("f4"))
    weights = [pullback.tensor(rng.normal(size=(20, 20)).astype("f4")) / 4 for _ in range(5)]

    def layers(x: Any) -> Any:
        for w in weights:
            x = pullback.tanh(w @ x)
        return x

    sparse_jacobian(layers, x), sparse_hessian(lambda x: layers(x).sum(), x)
    sparse_hessian(lambda x: ((x / (x * x).sum().sqrt()) ** 2).sum(), x)
    sparse_hessian(lambda x: (x.softmax(0).sum()) ** 2 + pullback.logsumexp(50 * x, 0), x)
    sparse_jacobian(lambda x: (x[2:] - 2 * x[1:-1] + x[:-2]) * 1e6 + x[1:-1] ** 3, x)
    sparse_jacobian(lambda x: (x.exp() * 1e-20).log() + x.softmax(0) * 1e-15, x)


def test_scipy_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    for derivative in (sparse_jacobian, sparse_hessian):
        with pytest.raises(NotImplementedError, match="pip install scipy"):
            derivative(lambda x: x)


def test_edges() -> None:
    nothing = pullback.zeros(0, dtype=pullback.float64)
    assert sparse_jacobian(lambda x: x * 2, nothing).shape == (0, 0)
    assert sparse_hessian(lambda x: (x * 2).sum(), nothing).shape == (0, 0)
    x = pullback.ones(3)
    assert sparse_jacobian(lambda x: pullback.ones(2), x).nnz == 0
    assert sparse_jacobian(lambda x: x.detach() * 2, x).toarray().any() == False  # noqa: E712
    assert sparse_hessian(lambda x: x.sum(), x).nnz == 0
    assert sparse_jacobian(lambda x: x[0] * x, pullback.tensor([[2.0, 3.0]])).shape == (2, 2)
    assert sparse_jacobian(lambda x: x**2, pullback.tensor(3.0)).toarray() == 6
    with pullback.no_grad():
        assert sparse_jacobian(lambda x: x**2, pullback.tensor(3.0)).toarray() == 6
    infinite = sparse_jacobian(lambda x: pullback.sqrt(x), pullback.tensor([0.0, 4.0])).toarray()
    np.testing.assert_array_equal(infinite, [[np.inf, 0], [0, 0.25]])


def test_errors_say_what_was_given() -> None:
    x = pullback.ones(3)
    with pytest.raises(RuntimeError, match=r"(?s)value of a tensor.*x if x\[0\] > 0"):
        sparse_jacobian(lambda x: x if x[0] > 0 else x * 2, x)
    with pytest.raises(TypeError, match="plain Tensor, got list"):
        sparse_jacobian(lambda x: x, [1.0])
    with pytest.raises(TypeError, match="one Tensor, got tuple"):
        sparse_jacobian(lambda x: (x, x), x)
    with pytest.raises(RuntimeError, match="real floating dtype, got"):
        sparse_jacobian(lambda x: x, pullback.arange(3))
    with pytest.raises(RuntimeError, match="to be a scalar, got shape"):
        sparse_hessian(lambda x: x, x)
    with pytest.raises(ValueError, match="mode to be one of"):
        sparse_jacobian(lambda x: x, x, mode="both")
    with pytest.raises(ValueError, match="chunk_size of at least 1"):
        sparse_jacobian(lambda x: x, x, chunk_size=0)
    with pytest.raises(NotImplementedError, match="is not sparse"):
        sparse_jacobian(lambda x: x * x.sum(), pullback.ones(30_000))
