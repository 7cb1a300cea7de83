"""`vmap` beside a live PyTorch: values, changes in place, random numbers, errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
]


def copied(target: Any, x: Any) -> Any:
    return target.copy_(x)


RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
M = RNG.normal(size=(4, 3, 3))
W = RNG.normal(size=(3, 3))
I = np.array([[0, 2], [1, 1], [2, 0], [0, 0]])  # noqa: E741
J = np.array([[1, 2], [0, 2], [2, 1], [1, 0]])


def setting(key: Any) -> Callable[..., Any]:
    """A function that writes b into a copy of a at `key`."""

    def write(T: Any, a: Any, b: Any) -> Any:
        a = a.clone()
        a[key] = b
        return a

    return write


def through_view(T: Any, m: Any, x: Any) -> Any:
    m = m.clone()
    row = m[0]
    row.add_(x)
    m.t()[1].mul_(2)
    return m * row


def chained_views(T: Any, m: Any) -> Any:
    m = m * 1
    flat = m.view(9)
    flat[1:4].mul_(3)
    m.diagonal().zero_()
    m.narrow(0, 0, 1).squeeze(0)[2] = 7.0
    return flat


def fresh(T: Any, x: Any) -> Any:
    out, more, full = T.zeros_like(x), x.new_zeros(2), T.full_like(x, 2.0)
    out[1] = x[0]
    more[0] = x.sum()
    full.sub_(x)
    return T.cat([out, more, full, T.ones_like(x), x.new_ones(1), x.new_full((2,), 3.0)])


def inner_slope(T: Any, x: Any, w: Any) -> Any:
    """A derivative of a function that writes in place."""

    def f(x: Any, w: Any) -> Any:
        y = x * w[0]
        y[1:].mul_(w[1, 1:])
        y[0] = x[1] ** 2
        return (y * y).sum()

    return T.func.grad(f, (0, 1))(x, w)


# name -> function of one example and its arguments
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "set int": (setting(1), (X, X[:, 0]), 0),
    "set slice": (setting(slice(1, None)), (X, Y[:, :2]), 0),
    "set shared": (setting(slice(1, None)), (X, Y[0, :2]), (0, None)),
    "set index": (setting([2, 0]), (M, X), 0),
    "set apart": (setting(([0, 1], slice(None), [1, 2])),
                  (RNG.normal(size=(2, 3, 4, 3)), RNG.normal(size=(2, 2, 4))), 0),
    "set None": (setting((None, 1)), (M, X), 0),
    "read apart": (lambda T, a: a[T.tensor([0, 1]), :, T.tensor([1, 2])],
                   (RNG.normal(size=(2, 3, 4, 3)),), 0),
    "read int apart": (lambda T, a: a[0, :, T.tensor([1, 2])],
                       (RNG.normal(size=(2, 3, 4, 3)),), 0),
    "read mapped index": (lambda T, a, i: a[:, i], (M, I), 0),
    "read mapped pair": (lambda T, a, i, j: a[i, j], (M, I, J), 0),
    "read mapped apart": (lambda T, a, i, j: a[i, :, j],
                          (RNG.normal(size=(4, 3, 2, 3)), I, J), 0),
    "read shared by mapped": (lambda T, a, i, j: a[i, :, j],
                              (RNG.normal(size=(3, 2, 3)), I, J), (None, 0, 0)),
    "read one mapped": (lambda T, a, i, j: a[..., i, :, j],
                        (RNG.normal(size=(4, 2, 3, 2, 3)), I, J[0]), (0, 0, None)),
    "int tensor": (lambda T, a, i: a[i[0]], (M, I), 0),
    "through a view": (through_view, (M, X), 0),
    "through a view, shared": (through_view, (M, X[0]), (0, None)),
    "chained views": (chained_views, (M,), 0),
    "chained views, other dim": (chained_views, (M.transpose(1, 2, 0),), -1),
    "fresh tensors": (fresh, (X,), 0),
    "slope of in-place": (inner_slope, (X, M), 0),
    "slope of in-place, shared": (inner_slope, (X, W), (0, None)),
    "slope of in-place, shared x": (inner_slope, (X[0], M), (None, 0)),
    "index_put_": (lambda T, a, i, b: a.clone().index_put_((i,), b), (X, J[:, :1], X[:, :1]), 0),
    "index_put_ add": (lambda T, a, i, b: a.clone().index_put_((i,), b, accumulate=True),
                       (X, I, X[:, :2]), 0),
    "scatter_": (lambda T, a, i, b: a.clone().scatter_(0, i, b), (X, J, Y[:, :2]), 0),
    "scatter value": (lambda T, a, i: a.scatter(0, i, 5.0), (X, I), 0),
    "scatter_add_": (lambda T, a, i, b: a.clone().scatter_add_(0, i, b), (X, I, Y[:, :2]), 0),
    "scatter shared index": (lambda T, a, i, b: a.scatter(0, i, b),
                             (X, J[0], Y[:, :2]), (0, None, 0)),
    "index_add": (lambda T, a, i, b: a.index_add(0, i, b), (M, I, Y[:, :2, None] + M[:, :2]), 0),
    "index_copy": (lambda T, a, i, b: a.index_copy(1, i, b), (M, J, M[:, :, :2]), 0),
    "index_fill": (lambda T, a, i: a.index_fill(0, i, 2.0), (M, I), 0),
    "index_select": (lambda T, a, i: a.index_select(1, i), (M, I), 0),
    "index_select shared": (lambda T, a, i: a.index_select(1, i), (W, I), (None, 0)),
    "take": (lambda T, a, i: T.take(a, i), (M, I), 0),
    "take_along_dim": (lambda T, a, i: T.take_along_dim(a, i[None], 1), (M, I), 0),
    "gather": (lambda T, a, i: a.gather(0, i), (X, I), 0),
    "embedding": (lambda T, w, i: T.nn.functional.embedding(i, w), (W, I), (None, 0)),
    "masked_fill": (lambda T, a: a.masked_fill(a > 0, 1.0), (X,), 0),
    "masked_fill_": (lambda T, a, b: a.clone().masked_fill_(b > 0, 1.0), (X, Y), 0),
    "copy_": (lambda T, a, b: a.clone().copy_(b), (M, X), 0),
    "fill_ zero_": (lambda T, a: a.clone().fill_(a.sum()) + a.clone().zero_(), (X,), 0),
    "prod of all": (lambda T, a: a.prod(), (M,), 0),
    "argmax of all": (lambda T, a: a.argmax(), (M,), 0),
    "addmm": (lambda T, a, b, c: T.addmm(c, a, b, beta=0.5), (M, W, X), (0, None, 0)),
    "cross_entropy": (lambda T, a, i: T.nn.functional.cross_entropy(a[:2], i), (M, I), 0),
    "sort of": (lambda T, a: a.max(1).values - a.min(0).values, (M,), 0),
    "0-d": (lambda T, a: a * 2 + T.softmax(a, 0) + a.cumsum(0) + a.sum() + a.max(), (X[:, 0],), 0),
    "0-d gather": (lambda T, a, i: a.gather(0, i), (X[:, 0], I * 0), 0),
    "0-d index_select": (lambda T, a, i: a.index_select(0, i), (X[:, 0], I[:, :1] * 0), 0),
    "iterate": (lambda T, a: T.stack([r * k for k, r in enumerate(a)]), (M,), 0),
}  # fmt: skip


# Where PyTorch's own vmap is no loop over the examples: index_put_ with index arrays apart.
LOOPED = {"set apart"}


def mapped(T: Any, name: str, tensors: list[Any]) -> tuple[Any, ...]:
    function, _, dims = PROGRAMS[name]

    def one(*args: Any) -> Any:
        return function(T, *args)

    if T is torch and name in LOOPED:
        found = T.stack([one(*row) for row in zip(*tensors, strict=True)])
    else:
        found = T.vmap(one, dims)(*tensors)
    return found if isinstance(found, tuple) else (found,)


def run(T: Any, name: str) -> list[Any]:
    return [x.numpy() for x in mapped(T, name, [T.tensor(a) for a in PROGRAMS[name][1]])]


def gradients(T: Any, name: str) -> list[Any]:
    """The gradients through vmap of all that is differentiable, with weights."""
    tensors = [T.tensor(a, requires_grad=a.dtype.kind == "f") for a in PROGRAMS[name][1]]
    leaves = [t for t in tensors if t.requires_grad]
    found = mapped(T, name, tensors)
    total = sum((o * T.arange(o.numel()).reshape(o.shape)).sum() for o in found)
    if not total.requires_grad:
        return []
    grads = T.autograd.grad(total, leaves, allow_unused=True)
    return [np.zeros(()) if g is None else g.numpy() for g in grads]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    for got, want in zip(run(pullback, name), run(torch, name), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        assert np.allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_through_vmap(name: str) -> None:
    for got, want in zip(gradients(pullback, name), gradients(torch, name), strict=True):
        assert np.allclose(got, want, rtol=1e-10, atol=1e-12)


# ---------------------------------------------------------------- random numbers
DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "rand": lambda T, x: T.rand(3),
    "randn": lambda T, x: T.randn(2, 2),
    "randint": lambda T, x: T.randint(10, (3,)),
    "randperm": lambda T, x: T.randperm(5),
    "bernoulli": lambda T, x: T.bernoulli(x),
    "bernoulli shared": lambda T, x: T.bernoulli(T.tensor([0.2, 0.5, 0.7])),
    "bernoulli p": lambda T, x: T.bernoulli(x, 0.5),
    "dropout": lambda T, x: T.nn.functional.dropout(x, 0.5),
    "dropout shared": lambda T, x: T.nn.functional.dropout(T.ones(3), 0.5),
    "normal": lambda T, x: T.normal(x, 1.0),
    "normal sizes": lambda T, x: T.normal(0.0, 1.0, (3,)),
    "normal both": lambda T, x: T.normal(x, x),
    "normal shared": lambda T, x: T.normal(T.zeros(3), 2.0),
    "normal std": lambda T, x: T.normal(0.0, x),
    "rand_like": lambda T, x: T.rand_like(x),
    "rand_like shared": lambda T, x: T.rand_like(T.ones(3)),
    "randn_like": lambda T, x: T.randn_like(x),
    "randint_like": lambda T, x: T.randint_like(x, 10),
    "normal_": lambda T, x: x.clone().normal_(),
    "normal_ shared": lambda T, x: T.zeros(3).normal_(),
    "uniform_": lambda T, x: x.clone().uniform_(),
    "bernoulli_": lambda T, x: x.clone().bernoulli_(0.5),
    "bernoulli_ tensor": lambda T, x: x.clone().bernoulli_(T.tensor([0.2, 0.5, 0.7])),
    "bernoulli_ mapped": lambda T, x: x.clone().bernoulli_(x),
    "multinomial": lambda T, x: T.multinomial(x + 1, 2),
    "multinomial shared": lambda T, x: T.multinomial(T.ones(3), 2),
    "exponential_": lambda T, x: x.clone().exponential_(),
    "geometric_": lambda T, x: x.clone().geometric_(0.5),
    "random_": lambda T, x: x.clone().random_(10),
    "cauchy_": lambda T, x: x.clone().cauchy_(),
    "log_normal_": lambda T, x: x.clone().log_normal_(),
    "poisson": lambda T, x: T.poisson(x * 4),
}  # fmt: skip
P = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(4, 3)


def drawn(T: Any, name: str, **options: Any) -> Any:
    T.manual_seed(3)
    try:
        return T.vmap(lambda x: DRAWS[name](T, x), **options)(T.tensor(P)).numpy()
    except RuntimeError as error:
        return str(error)[:40]


@pytest.mark.parametrize("mode", ["same", "different", "error"])
@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers(name: str, mode: str) -> None:
    for more in ({}, {"chunk_size": 2}):
        got = drawn(pullback, name, randomness=mode, **more)
        want = drawn(torch, name, randomness=mode, **more)
        if isinstance(want, str):
            assert got == want
        else:
            assert got.shape == want.shape and np.allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("inner", ["same", "different", "error"])
@pytest.mark.parametrize("outer", ["same", "different", "error"])
def test_random_numbers_nested(outer: str, inner: str) -> None:
    def nested(T: Any) -> Any:
        T.manual_seed(3)
        f = T.vmap(T.vmap(lambda x: T.rand(2) + T.rand_like(x), randomness=inner), randomness=outer)
        try:
            return f(T.zeros(3, 4, 2)).numpy()
        except RuntimeError as error:
            return str(error)[:40]

    got, want = nested(pullback), nested(torch)
    assert got == want if isinstance(want, str) else np.array_equal(got, want)


# ---------------------------------------------------------------- errors
BAD: dict[str, Callable[[Any, Any], Any]] = {
    "in_dims 5": lambda T, x: T.vmap(T.sin, in_dims=5)(x),
    "in_dims None": lambda T, x: T.vmap(T.sin, in_dims=None)(x),
    "in_dims list": lambda T, x: T.vmap(T.mul, in_dims=[0, 0])(x, x),
    "in_dims text": lambda T, x: T.vmap(T.sin, in_dims=("a",))(x),
    "in_dims float": lambda T, x: T.vmap(T.sin, in_dims=(0.5,))(x),
    "in_dims short": lambda T, x: T.vmap(T.mul, in_dims=(0,))(x, x),
    "no input": lambda T, x: T.vmap(lambda: x)(),
    "only keywords": lambda T, x: T.vmap(lambda y: y)(y=x),
    "no tensor": lambda T, x: T.vmap(lambda a: x)(()),
    "number": lambda T, x: T.vmap(T.mul)(x, 3),
    "sizes": lambda T, x: T.vmap(T.mul)(x, x[:2]),
    "0-d": lambda T, x: T.vmap(T.sin)(x[0, 0]),
    "returns number": lambda T, x: T.vmap(lambda a: 3)(x),
    "returns None": lambda T, x: T.vmap(lambda a: None)(x),
    "returns mapped as None": lambda T, x: T.vmap(lambda a: a, out_dims=None)(x),
    "out_dims 5": lambda T, x: T.vmap(T.sin, out_dims=5)(x),
    "out_dims long": lambda T, x: T.vmap(lambda a: (a, a), out_dims=(0, 0, 0))(x),
    "out_dims text": lambda T, x: T.vmap(T.sin, out_dims="a")(x),
    "randomness": lambda T, x: T.vmap(T.sin, randomness="x")(x),
    "chunk 0": lambda T, x: T.vmap(T.sin, chunk_size=0)(x),
    "item": lambda T, x: T.vmap(lambda a: a.sum().item())(x),
    "float": lambda T, x: T.vmap(lambda a: float(a.sum()))(x),
    "slice": lambda T, x: T.vmap(lambda a: x[: a.sum().long()])(x),
    "branch": lambda T, x: T.vmap(lambda a: a if a.sum() > 0 else -a)(x),
    "copy into shared": lambda T, x: T.vmap(functools.partial(copied, T.zeros(3)))(x),
    "leaf": lambda T, x: T.vmap(lambda a: a.add_(1))(x.clone().requires_grad_()),
    "expanded": lambda T, x: T.vmap(lambda a: a[0].expand(3).add_(1))(x.clone()),
    "index out of range": lambda T, x: T.vmap(lambda a, i: a[i])(x, T.tensor([0, 1, 2, 9])),
    "gather out of range": lambda T, x: T.vmap(lambda a, i: a.gather(0, i))(
        x, T.tensor([[0], [1], [2], [-1]])),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors(name: str) -> None:
    with pytest.raises(Exception) as want:
        BAD[name](torch, torch.tensor(X))
    with pytest.raises(Exception) as got:
        BAD[name](pullback, pullback.tensor(X))
    assert issubclass(got.type, want.type)
    words = str(want.value)
    start = words[: 12 if "out of bounds" in words else 30]
    assert str(got.value).startswith(start) or "structure of `" in str(got.value)
