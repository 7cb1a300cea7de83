"""`autograd.functional`: values, structures, what stays differentiable, and the refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import functional as F

T = torch.Tensor
X = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
Y = torch.tensor([3.0, 0.25], dtype=torch.float64)
Z = torch.tensor([1 + 2j, -0.5j], dtype=torch.complex128)
MODES = [{}, {"vectorize": True}]


def cube(x: T) -> T:
    return x**3


def two(x: T, y: T) -> tuple[T, T]:
    return x * y.sum(), torch.outer(x, y * y)


def scalar(x: T, y: T) -> T:
    return (x**2).sum() * (y**3).sum()


def close(a: T, b: Any) -> bool:
    want = b if isinstance(b, T) else torch.tensor(b, dtype=torch.float64)
    return a.shape == want.shape and torch.allclose(a.detach(), want, rtol=1e-12, atol=1e-12)


def by_differences(f: Any, xs: tuple[T, ...], i: int) -> Any:
    """The Jacobian of `f` in `xs[i]` by central differences, `output.shape + input.shape`."""
    x = xs[i].numpy()
    columns = []
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        up, down = (
            f(*(torch.from_numpy(x + s) if k == i else v for k, v in enumerate(xs))).numpy()
            for s in (step, -step)
        )
        columns.append((up - down) / 2e-6)
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


# ---------------------------------------------------------------- values and structures
@pytest.mark.parametrize("mode", MODES)
def test_jacobian_against_differences(mode: dict[str, Any]) -> None:
    found = F.jacobian(two, (X, Y), **mode)
    assert isinstance(found, tuple) and all(isinstance(row, tuple) for row in found)
    for k, i in itertools.product(range(2), range(2)):
        want = by_differences(lambda *xs, k=k: two(*xs)[k], (X, Y), i)
        assert found[k][i].shape == want.shape
        assert np.allclose(found[k][i].numpy(), want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_jacobian_has_the_structure_of_its_arguments(mode: dict[str, Any]) -> None:
    single = F.jacobian(cube, X, **mode)
    assert close(single, torch.diag(3 * X**2))
    assert isinstance(F.jacobian(cube, (X,), **mode), tuple)
    assert close(F.jacobian(cube, (X,), **mode)[0], single)
    assert close(F.jacobian(lambda x: (x**3,), X, **mode)[0], single)
    assert close(F.jacobian(lambda x: (x**3,), (X,), **mode)[0][0], single)
    assert F.jacobian(lambda x: x.sum(), X.reshape(1, 3, 1), **mode).shape == (1, 3, 1)
    assert F.jacobian(lambda x: x.sum().reshape(1, 1), X, **mode).shape == (1, 1, 3)
    assert close(F.jacobian(cube, torch.tensor(2.0).double(), **mode), 12.0)
    assert close(F.jacobian(lambda x: x, X, **mode), torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("mode", MODES)
def test_jacobians_of_nothing(mode: dict[str, Any]) -> None:
    empty = torch.zeros(0, 2, dtype=torch.float64)
    assert F.jacobian(cube, empty, **mode).shape == (0, 2, 0, 2)
    assert F.jacobian(lambda x: x[:0], X, **mode).shape == (0, 3)
    (aa, ab), (ba, bb) = F.jacobian(lambda a, b: (a * 2, b * b), (empty, Y), **mode)
    assert (aa.shape, ab.shape, ba.shape) == ((0, 2, 0, 2), (0, 2, 2), (2, 0, 2))
    assert close(bb, torch.diag(2 * Y))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_reached_is_zero(mode: dict[str, Any]) -> None:
    found = F.jacobian(lambda x, y: (x * 2, torch.ones(2), x.long()), (X, Y), **mode)
    assert close(found[0][0], 2 * torch.eye(3, dtype=torch.float64))
    for k, i in ((0, 1), (1, 0), (1, 1), (2, 0), (2, 1)):
        assert not found[k][i].any() and found[k][i].dtype == torch.float64
    assert found[1][0].shape == (2, 3) and found[2][1].shape == (3, 2)


@pytest.mark.parametrize("mode", MODES)
def test_dtypes_follow_the_inputs(mode: dict[str, Any]) -> None:
    found = F.jacobian(lambda x: x.double() * 2, torch.ones(2), **mode)
    assert found.dtype == torch.float32
    real_out = F.jacobian(lambda z: (z * z.conj()).real, Z, **mode)
    assert real_out.dtype == torch.complex128 and close(real_out, torch.diag(2 * Z))


def test_complex_outputs() -> None:
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        F.jacobian(lambda z: z * z, Z)
    rows = F.jacobian(lambda z: z * z, Z, vectorize=True)
    assert close(rows, torch.diag(2 * Z).conj())  # what a backward from each output gives
    _, product = F.jvp(lambda z: z * z, Z, Z.conj())
    assert close(product, 2 * Z * Z.conj())
    _, product = F.vjp(lambda z: z * z, Z, Z)
    assert close(product, Z * (2 * Z).conj())


@pytest.mark.parametrize("mode", MODES)
def test_hessian(mode: dict[str, Any]) -> None:
    single = F.hessian(lambda x: (x**3).sum(), X, **mode)
    assert close(single, torch.diag(6 * X))
    assert close(F.hessian(lambda x: (x**3).sum().reshape(1, 1), X, **mode), single)
    assert close(F.hessian(lambda x: (x**3).sum(), (X,), **mode)[0][0], single)
    (xx, xy), (yx, yy) = F.hessian(scalar, (X, Y), **mode)
    assert close(xx, 2 * (Y**3).sum() * torch.eye(3, dtype=torch.float64))
    assert close(xy, torch.outer(2 * X, 3 * Y**2)) and close(yx, xy.t())
    assert close(yy, (X**2).sum() * torch.diag(6 * Y))
    assert not F.hessian(lambda x: x.sum(), X, **mode).any()
    assert F.hessian(lambda x: torch.ones(()), X, **mode).shape == (3, 3)


def test_products_agree_with_the_matrices() -> None:
    v, w = torch.tensor([0.5, 2.0, -1.0]).double(), torch.tensor([1.5, -1.0]).double()
    u = (v, torch.outer(v, w))
    matrix = F.jacobian(two, (X, Y))
    outputs, products = F.vjp(two, (X, Y), u)
    assert all(close(a, b) for a, b in zip(outputs, two(X, Y), strict=True))
    for i in range(2):
        want = sum((m[i] * c.reshape(*c.shape, 1)).reshape(-1, m[i].shape[-1]).sum(0)
                   for m, c in zip(matrix, u, strict=True))  # fmt: skip
        assert close(products[i], want)
    _, products = F.jvp(two, (X, Y), (v, w))
    for k in range(2):
        assert close(products[k], matrix[k][0] @ v + matrix[k][1] @ w)
    h = F.hessian(scalar, (X, Y))
    for product in (F.vhp, F.hvp):
        value, found = product(scalar, (X, Y), (v, w))
        assert close(value, scalar(X, Y))
        assert close(found[0], h[0][0] @ v + h[0][1] @ w)
        assert close(found[1], h[1][0] @ v + h[1][1] @ w)


def test_structures_of_products() -> None:
    one = torch.tensor([2.0]).double()
    value, product = F.vjp(lambda x: (x**2).sum(), X)  # v is 1
    assert close(value, (X**2).sum()) and close(product, 2 * X)
    assert isinstance(F.vjp(cube, (X,), X)[1], tuple)
    assert isinstance(F.jvp(lambda x: (x, x), X, X)[1], tuple)
    assert isinstance(F.jvp(cube, (X,), (X,))[1], T)
    assert close(F.jvp(cube, one)[1], [12.0])
    for product_of in (F.vhp, F.hvp):
        assert close(product_of(lambda x: (x**3).sum(), one)[1], [12.0])
        assert isinstance(product_of(lambda x: (x**3).sum(), (X,), (X,))[1], tuple)
    assert close(F.jvp(lambda x: (x * x, x.long()), X, X)[1][0], 2 * X * X)
    assert F.jvp(lambda x: (x * x, x.long()), X, X)[1][1].tolist() == [0, 0, 0]


def test_hessian_products_of_complex_inputs() -> None:
    def f(z: T) -> T:
        return (z * z * z).real.sum() + (z * z.conj()).real.sum()

    v = torch.tensor([1 - 1j, 2j], dtype=torch.complex128)
    want = 6 * Z.conj() * v.conj() + 2 * v
    numeric = (torch.func.grad(f)(Z + 1e-6 * v) - torch.func.grad(f)(Z - 1e-6 * v)) / 2e-6
    assert torch.allclose(numeric, want, rtol=1e-6)
    # real-linear maps of complex vectors: both products are with the symmetric real Hessian
    for product in (F.vhp, F.hvp):
        assert torch.allclose(product(f, Z, v)[1], numeric, rtol=1e-6)


# ---------------------------------------------------------------- what stays differentiable
@pytest.mark.parametrize("mode", MODES)
def test_results_are_cut_unless_the_graph_is_asked_for(mode: dict[str, Any]) -> None:
    x = X.clone().requires_grad_()
    assert not F.jacobian(cube, x, **mode).requires_grad
    assert not F.hessian(lambda a: (a**3).sum(), x, **mode).requires_grad
    j = F.jacobian(cube, x, create_graph=True, **mode)
    (g,) = torch.autograd.grad(j.sum(), x)
    assert close(g, 6 * X) and x.grad is None
    h = F.hessian(lambda a: (a**4).sum(), x, create_graph=True, **mode)
    (g,) = torch.autograd.grad(h.sum(), x)
    assert close(g, 24 * X)
    w = Y.clone().requires_grad_()  # a tensor that the function captures
    F.jacobian(lambda a: a * w.sum() ** 2, X, create_graph=True, **mode).sum().backward()
    assert close(w.grad, 3 * 2 * w.detach().sum() * torch.ones(2).double())


@pytest.mark.parametrize("product", [F.vjp, F.jvp, F.vhp, F.hvp])
def test_products_are_cut_unless_the_graph_is_asked_for(product: Any) -> None:
    x, v = X.clone().requires_grad_(), X.clone().requires_grad_()
    f = cube if product in (F.vjp, F.jvp) else lambda a: (a**3).sum()
    value, found = product(f, x, v)
    assert not value.requires_grad and not found.requires_grad
    value, found = product(f, x, v, create_graph=True)
    assert value.requires_grad and found.requires_grad
    gx, gv = torch.autograd.grad(found.sum(), (x, v))
    if product in (F.vjp, F.jvp):
        assert close(gx, 6 * X * X) and close(gv, 3 * X * X)
    else:
        assert close(gx, 6 * X) and close(gv, 6 * X)


def test_no_grad_outside_changes_nothing() -> None:
    with torch.no_grad():
        assert close(F.jacobian(cube, X), torch.diag(3 * X**2))
        assert close(F.hvp(lambda x: (x**3).sum(), X, X)[1], 6 * X * X)


def test_inside_vmap_and_nested() -> None:
    batch = torch.stack([X, 2 * X])
    found = torch.vmap(lambda x: F.jacobian(cube, x))(batch)
    assert close(found, torch.stack([torch.diag(3 * x**2) for x in batch]))
    third = F.jacobian(lambda x: F.hessian(lambda a: (a**4).sum(), x, create_graph=True), X)
    assert third.shape == (3, 3, 3) and close(third[0, 0, 0], 24 * X[0])


# ---------------------------------------------------------------- strict mode
def lin(x: T) -> T:
    return x * 2


def ignores(x: T, y: T) -> T:
    return x * x


STRICT = {"strict": True}
GRAPH = {"strict": True, "create_graph": True}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: F.jacobian(ignores, (X, Y), **STRICT),
         "Output 0 of the user-provided function is independent of input 1"),
        (lambda: F.jacobian(lambda x, y: (x * y[0], y), (X, Y), **STRICT),
         "Output 1 of the user-provided function is independent of input 0"),
        (lambda: F.jacobian(lambda x: (x, X), X, **STRICT),
         "Output 1 of the user-provided function does not require gradients"),
        (lambda: F.jacobian(lin, X, **GRAPH),
         "jacobian of the user-provided function is independent of input 0.*create_graph=True"),
        (lambda: F.vjp(ignores, (X, X), X, **STRICT), "is independent of input 1"),
        (lambda: F.vjp(lin, X, X, **GRAPH), "independent of input 0.*when create_graph=True"),
        (lambda: F.jvp(ignores, (X, X), (X, X), **STRICT), "is independent of input 1"),
        (lambda: F.jvp(lambda x: X, X, X, **STRICT), "does not require gradients"),
        (lambda: F.hessian(lambda x: x.sum(), X, **STRICT),
         "While computing the hessian.*independent"),
        (lambda: F.hessian(lambda x: torch.ones(()), X, **STRICT), "does not require gradients"),
        (lambda: F.vhp(lambda x: x.sum(), X, X, **STRICT), "While computing the hessian"),
        (lambda: F.hvp(lambda x, y: (x**2).sum(), (X, Y), (X, Y), **STRICT),
         "independent of input 1"),
        (lambda: F.jacobian(cube, X, strict=True, vectorize=True),
         "`strict=True` and `vectorized=True` are not supported together"),
    ],
)  # fmt: skip
def test_strict_mode_refuses_silent_zeros(call: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words) as caught:
        call()
    assert isinstance(caught.value, torch.PullbackError)
    assert "test_functional.py:" in str(caught.value)


def test_strict_mode_passes_what_depends() -> None:
    assert close(F.jacobian(cube, X, **STRICT), torch.diag(3 * X**2))
    assert F.jacobian(cube, X, **GRAPH).requires_grad
    assert close(F.hessian(lambda x: (x**3).sum(), X, **STRICT), torch.diag(6 * X))
    for f, product in ((cube, F.vjp), (cube, F.jvp), (lambda x: (x**3).sum(), F.vhp),
                       (lambda x: (x**3).sum(), F.hvp)):  # fmt: skip
        assert product(f, X, X, **STRICT)[1].shape == (3,)


# ---------------------------------------------------------------- refusals
def total(x: T) -> T:
    return (x**3).sum()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.jacobian(cube, 3.0), TypeError,
         "inputs given to jacobian must be either a Tensor or a tuple of Tensors but the given "
         "inputs has type <class 'float'>"),
        (lambda: F.jacobian(cube, [X]), TypeError, "has type <class 'list'>"),
        (lambda: F.jacobian(cube, (X, 3)), TypeError, "value at index 1 has type <class 'int'>"),
        (lambda: F.jacobian(cube, ()), IndexError, "empty tuple"),
        (lambda: F.jacobian(lambda x: 3, X), TypeError, "outputs of the user-provided function"),
        (lambda: F.jacobian(lambda x: (x, None), X), TypeError, "value at index 1"),
        (lambda: F.jacobian(cube, torch.arange(3)), RuntimeError, "can require gradients"),
        (lambda: F.jacobian(cube, X, strategy="x"), AssertionError, "Expected strategy to be"),
        (lambda: F.hessian(total, X, outer_jacobian_strategy="x"), AssertionError, "Expected stra"),
        (lambda: F.jacobian(cube, X, strategy="forward-mode"), NotImplementedError,
         "only implemented for `vectorize=True`"),
        (lambda: F.jacobian(cube, X, True, vectorize=True, strategy="forward-mode"),
         NotImplementedError, "`create_graph=True` and `strategy=\"forward-mode\"` are not supp"),
        (lambda: F.jacobian(cube, X, strict=True, strategy="forward-mode"), RuntimeError,
         "`strict=True` and `strategy=\"forward-mode\"` are not supported"),
        (lambda: F.hessian(cube, X), RuntimeError, "should contain a single element"),
        (lambda: F.hessian(lambda x: (total(x),), X), RuntimeError, "should return a single Ten"),
        (lambda: F.hessian(lambda x: 1.0, X), TypeError, "given to hessian"),
        (lambda: F.vhp(cube, X, X), RuntimeError, "given to vhp should contain a single element"),
        (lambda: F.hvp(lambda x: (x, x), X, X), RuntimeError, "given to hvp should return a sing"),
        (lambda: F.vjp(cube, X), RuntimeError, "v can only be None if the user-provided function"),
        (lambda: F.jvp(cube, X), RuntimeError, "v can only be None if the input to the user-pro"),
        (lambda: F.vhp(scalar, (X, Y)), RuntimeError, "v can only be None if the input"),
        (lambda: F.hvp(total, X), RuntimeError, "v can only be None if the input"),
        (lambda: F.vjp(cube, X, Y), RuntimeError, "v has invalid size"),
        (lambda: F.vjp(two, (X, Y), (X, Y)), RuntimeError, "Entry 1 in v has invalid size"),
        (lambda: F.vjp(two, (X, Y), X), RuntimeError, "tuple of invalid length: should be 2"),
        (lambda: F.vjp(cube, X, (X, X)), RuntimeError, "v should contain a single Tensor"),
        (lambda: F.jvp(cube, X, 1.0), TypeError, "v given to jvp must be"),
        (lambda: F.hvp(total, X, Y), RuntimeError, "v has invalid size"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        call()
    assert isinstance(caught.value, torch.PullbackError)
    assert "test_functional.py:" in str(caught.value)


# ---------------------------------------------------------------- forward mode
FORWARD = {"vectorize": True, "strategy": "forward-mode"}


def test_forward_jacobian_equals_reverse() -> None:
    assert close(F.jacobian(cube, X, **FORWARD), F.jacobian(cube, X))
    found, want = F.jacobian(two, (X, Y), **FORWARD), F.jacobian(two, (X, Y))
    for k, i in itertools.product(range(2), range(2)):
        assert close(found[k][i], want[k][i])
    assert close(F.jacobian(lambda z: z * z, Z, **FORWARD), torch.diag(2 * Z))
    empty = torch.zeros(0, 2, dtype=torch.float64)
    assert F.jacobian(cube, empty, **FORWARD).shape == (0, 2, 0, 2)
    assert not F.jacobian(lambda x: torch.ones(2), X, **FORWARD).any()


def test_forward_over_reverse_hessian() -> None:
    outer = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
    assert close(F.hessian(total, X, **outer), torch.diag(6 * X))
    found, want = F.hessian(scalar, (X, Y), **outer), F.hessian(scalar, (X, Y))
    for i, j in itertools.product(range(2), range(2)):
        assert close(found[i][j], want[i][j])
    assert not X.requires_grad  # the caller's tensors are as before
