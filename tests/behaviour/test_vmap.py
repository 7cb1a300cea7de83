"""`vmap`: arguments, results, randomness, chunks, changes in place, gradients, refusals."""

from __future__ import annotations

import collections
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as torch
from pullback.core.primitive import REGISTRY
from pullback.eager.apply import apply
from pullback.errors import PullbackError
from pullback.func import grad, vmap
from pullback.ops.kinds import general

torch.manual_seed(0)
X = torch.randn(5, 3, dtype=torch.float64)
Y = torch.randn(5, 3, dtype=torch.float64)
M = torch.randn(5, 3, 3, dtype=torch.float64)


class Pair(NamedTuple):
    a: Any
    b: Any


def loop(f: Any, *xs: torch.Tensor) -> torch.Tensor:
    return torch.stack([f(*row) for row in zip(*xs, strict=True)])


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-10, atol=1e-12)


# ---------------------------------------------------------------- arguments and results
def test_one_function_under_three_names() -> None:
    assert torch.vmap is torch.func.vmap is vmap


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_in_and_out_dims(dim: int) -> None:
    f = vmap(lambda m: m.t() * 2, in_dims=dim, out_dims=dim)
    assert close(f(M), torch.stack([m.t() * 2 for m in M.unbind(dim)], dim))


def test_nested_arguments() -> None:
    tree = {"a": X, "b": [Y, (X, Y[0])]}
    dims = {"a": 0, "b": [0, (None, None)]}
    got = vmap(lambda t: t["a"] * t["b"][0] + t["b"][1][0].sum() + t["b"][1][1], (dims,))(tree)
    assert close(got, X * Y + X.sum() + Y[0])
    pair = vmap(lambda p: Pair(p.a + p.b, p), in_dims=(Pair(0, None),))(Pair(X, Y[0]))
    assert type(pair) is Pair and type(pair.b) is Pair
    assert close(pair.a, X + Y[0]) and close(pair.b.b, Y[0].expand(5, 3))
    # one int for a whole container
    assert close(vmap(lambda t: t[0] * t[1], in_dims=(1,))((X.t(), Y.t())), X * Y)


def test_nested_results() -> None:
    got = vmap(lambda x: {"s": x, "t": (x.sum(), [x, x])}, out_dims={"t": (0, -1), "s": 1})(X)
    assert close(got["s"], X.t()) and close(got["t"][0], X.sum(1))
    assert isinstance(got["t"][1], list) and close(got["t"][1][1], X.t())
    assert close(vmap(torch.sin, out_dims=(1,))(X), X.sin().t())


def test_results_that_are_not_mapped() -> None:
    out, note, same = vmap(lambda x: (x, "note", Y), out_dims=(0, None, None))(X)
    assert close(out, X) and note == "note" and same is Y
    assert close(vmap(lambda x: Y)(X), Y.expand(5, 5, 3))
    assert close(vmap(lambda x: Y[0], out_dims=1)(X), Y[0][:, None].expand(3, 5))


def test_keyword_arguments_are_passed_on_whole() -> None:
    assert vmap(lambda x, y, n: x * y * n)(X, y=Y, n=2).shape == (5, 5, 3)


def test_closed_over_and_numbers() -> None:
    assert close(vmap(lambda x, k: x @ M[0] * k, (0, None))(X, 3), X @ M[0] * 3)


def test_it_keeps_the_name_of_the_function() -> None:
    def named(x: torch.Tensor) -> torch.Tensor:
        """Its text."""
        return x

    assert vmap(named).__name__ == "named" and vmap(named).__doc__ == "Its text."


def test_no_examples() -> None:
    empty = torch.zeros(0, 3)
    assert vmap(lambda x: torch.outer(x, x).sum(0))(empty).shape == (0, 3)
    assert vmap(lambda x: x[[0, 0, 1, 2]])(empty).shape == (0, 4)
    assert vmap(torch.sin, chunk_size=2)(empty).shape == (0, 3)
    assert vmap(grad(lambda x: (x**2).sum()))(empty).shape == (0, 3)


def test_three_levels() -> None:
    inner = vmap(lambda a, b, c: a * b - c, (None, None, 0))
    f = vmap(vmap(inner, (None, 0, None)), (0, None, None))
    a, b, c = X[0], X[1], X[2]
    assert close(f(a, b, c), a[:, None, None] * b[:, None] - c)


def test_a_result_that_is_the_argument() -> None:
    assert vmap(lambda x: x)(X) is X


# ---------------------------------------------------------------- chunks
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_chunks_give_the_same(size: int) -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        return torch.outer(x, y), {"s": x.sum()}, "text"

    dims: Any = (-1, {"s": 0}, None)
    got = vmap(f, (0, 1), dims, chunk_size=size)(X, Y.t())
    want = vmap(f, (0, 1), dims)(X, Y.t())
    assert close(got[0], want[0]) and close(got[1]["s"], want[1]["s"]) and got[2] == "text"


def test_chunks_are_differentiable_and_of_the_size_given() -> None:
    x = X.clone().requires_grad_()
    seen = []

    def f(row: torch.Tensor) -> torch.Tensor:
        seen.append(row._data.batch_size)
        return (row**3).sum()

    vmap(f, chunk_size=2)(x).sum().backward()
    assert close(x.grad, 3 * X**2) and seen == [2, 2, 1]


# ---------------------------------------------------------------- randomness
def test_randomness() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 0 + torch.rand(3, dtype=torch.float64)

    torch.manual_seed(1)
    whole = torch.rand(5, 3, dtype=torch.float64)
    torch.manual_seed(1)
    assert close(vmap(f, randomness="different")(X), whole)
    torch.manual_seed(1)
    assert close(vmap(f, randomness="same")(X), whole[0].expand(5, 3))
    torch.manual_seed(1)
    assert close(vmap(f, randomness="same", chunk_size=2)(X), whole[0].expand(5, 3))


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: torch.rand(2), lambda x: torch.randn_like(x), lambda x: torch.randint(3, (2,)),
        lambda x: torch.randperm(3), lambda x: torch.bernoulli(x * 0 + 0.5),
        lambda x: torch.nn.functional.dropout(x), lambda x: torch.normal(x, 1.0),
        lambda x: x.clone().normal_(), lambda x: torch.multinomial(x * 0 + 1, 1),
        lambda x: torch.poisson(x * 0 + 1), lambda x: x.clone().bernoulli_(0.5),
    ],
)  # fmt: skip
def test_random_operations_are_refused_unless_asked_for(draw: Any) -> None:
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        vmap(draw)(X)
    state = torch.get_rng_state()
    got = vmap(draw, randomness="different")(X)
    assert got.shape[0] == 5 and not torch.equal(state, torch.get_rng_state())
    assert not draw(X[0]).requires_grad  # the refusal left nothing behind


def test_dropout_differs_and_is_differentiable() -> None:
    x = torch.ones(200, 4, requires_grad=True)
    out = vmap(lambda r: torch.nn.functional.dropout(r, 0.5), randomness="different")(x)
    out.sum().backward()
    assert torch.equal(x.grad, out) and set(out.unique().tolist()) == {0.0, 2.0}
    assert len({tuple(r) for r in out.tolist()}) > 8
    same = vmap(lambda r: torch.nn.functional.dropout(r, 0.5), randomness="same")(x)
    assert len({tuple(r) for r in same.tolist()}) == 1


# ---------------------------------------------------------------- changes in place
def test_a_view_of_an_example_shows_and_makes_changes() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        first, flat = x[0], x.view(-1)
        first.add_(y)
        x[1:] *= 2
        flat[4] = -1.0
        return torch.cat([first, x.sum(0), flat])

    assert close(vmap(f)(M, X), loop(f, M, X))
    assert close(vmap(f, (-1, None))(M.permute(1, 2, 0), X[0]), loop(lambda m: f(m, X[0]), M))
    two, three = torch.stack([M, M * 2]), torch.stack([X, X + 1])
    both = vmap(vmap(f), (0, 1))(two, three.transpose(0, 1))
    assert close(both, torch.stack([loop(f, M, X), loop(f, M * 2, X + 1)]))


def test_gradients_of_changes_in_place() -> None:
    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = x * w[0]
        y[1:].mul_(w[1, 1:])
        y[0] = x[1] ** 2
        z = torch.zeros_like(y)
        z[[2, 0]] = y[:2] * w[2, :2]
        z.index_add_(0, torch.tensor([1, 1]), y[1:])
        return (y * z).sum()

    slopes = grad(f, (0, 1))
    for g, k in zip(vmap(slopes)(X, M), (0, 1), strict=True):
        assert close(g, loop(lambda x, w, k=k: slopes(x, w)[k], X, M))
    for k in (0, 1):
        around = grad(lambda x, w: vmap(f)(x, w).sum(), k)(X, M)
        assert close(around, loop(lambda x, w, k=k: slopes(x, w)[k], X, M))
    x, w = X.clone().requires_grad_(), M[0].clone().requires_grad_()
    got = torch.autograd.grad(vmap(slopes, (0, None))(x, w)[0].sum(), (x, w))
    rows = torch.stack([slopes(r, w)[0] for r in x])
    want = torch.autograd.grad(rows.sum(), (x, w))
    assert all(close(a, b) for a, b in zip(got, want, strict=True))


def test_a_write_reaches_the_argument_outside() -> None:
    x = X.clone()
    view = x[2]
    out = vmap(lambda r: r.mul_(2))(x)
    assert close(x, 2 * X) and close(view, 2 * X[2]) and close(out, x) and x._version == 1
    leaf = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        vmap(lambda r: r.mul_(2))(leaf)
    assert close(leaf.detach(), X)
    inner = leaf * 1
    vmap(lambda r: r.mul_(3))(inner)
    inner.sum().backward()
    assert close(leaf.grad, torch.full_like(X, 3.0))


def test_a_value_kept_for_backward_and_changed_inside_is_noticed() -> None:
    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    x = X.clone()

    def f(row: torch.Tensor) -> torch.Tensor:
        out = row * w  # keeps row, for the gradient of w
        row.add_(1)
        return out

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        vmap(f)(x).sum().backward()


def test_a_change_of_the_argument_behind_the_back_of_vmap_is_noticed() -> None:
    x = X.clone()

    def f(row: torch.Tensor) -> torch.Tensor:
        w = row.clone().requires_grad_()
        out = (w * row).sum()  # keeps row, which shows the memory of x
        x.add_(1)
        return torch.autograd.grad(out, w)[0]

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        vmap(f)(x)


def test_sorting_finds_its_own_order_for_each_example() -> None:
    for f in (
        lambda m: m.sort(0).values, lambda m: m.sort(-1, descending=True).indices.double(),
        lambda m: m.topk(2, 1).values, lambda m: m.median(), lambda m: m.median(0).values,
        lambda m: m.argsort().double(),
    ):  # fmt: skip
        assert close(vmap(f)(M), loop(f, M))
        assert close(vmap(vmap(f))(torch.stack([M, -M])), torch.stack([loop(f, M), loop(f, -M)]))
    slope = grad(lambda m: (m.sort(0).values * M[0]).sum())
    assert close(vmap(slope)(M), loop(slope, M))


def test_questions_about_an_example() -> None:
    def f(m: torch.Tensor) -> torch.Tensor:
        assert m.stride() == (1, 3) and m.stride(0) == 1 and not m.is_contiguous()
        assert m.shape == (3, 3) and m.dim() == 2 and m.numel() == 9 and len(m) == 3
        assert m.t().is_contiguous()
        return torch.isclose(m, m * (1 + 1e-9)) & torch.isclose(m, m[:, :1]).logical_not()

    want = torch.ones(5, 3, 3, dtype=torch.bool)
    want[:, :, 0] = False
    assert torch.equal(vmap(f)(M.transpose(1, 2)), want)
    hot = vmap(lambda i: torch.nn.functional.one_hot(i, 3))(torch.tensor([[0, 2], [1, 1]]))
    assert torch.equal(hot, torch.nn.functional.one_hot(torch.tensor([[0, 2], [1, 1]])))


def test_graphs_are_freed_at_once() -> None:
    import gc
    import weakref

    def one() -> Any:
        w = X.clone().requires_grad_()

        def f(a: torch.Tensor) -> torch.Tensor:
            b = a * 1
            b[0] = w[0, 0]
            b[1:].mul_(w[0, 1:])
            return grad(lambda c: (torch.tanh(c * b) * w[1]).clone().mul_(c).sum())(a)

        vmap(f)(X).sum().backward()
        return weakref.ref(w)

    gc.collect()
    gc.disable()
    try:
        assert one()() is None
    finally:
        gc.enable()


def test_ints_beside_index_arrays_select_first() -> None:
    t = torch.arange(24).reshape(2, 3, 4)
    assert t[0, :, [1, 2]].shape == (3, 2) and torch.equal(t[0, :, [1, 2]], t[0][:, [1, 2]])
    u = t.clone()
    u[1, :, [0, 3]] = torch.tensor([-1, -2])
    assert torch.equal(u[1, :, 0], torch.full((3,), -1)) and torch.equal(u[0], t[0])
    assert vmap(lambda m: m[0, :, [1, 2]])(t[None]).shape == (1, 3, 2)


def test_tensors_made_like_a_mapped_one_are_mapped() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        made = [
            torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 2.0), x.new_zeros(3),
            x.new_full((3,), 3.0), torch.empty_like(x).zero_(),
        ]  # fmt: skip
        for m in made:
            m[0] += x[1]
        return torch.stack(made)

    assert close(vmap(f)(X), loop(f, X))
    assert vmap(f)(X.float()).dtype == torch.float32


# ---------------------------------------------------------------- gradients
def test_captured_tensors_get_the_sum_over_the_batch() -> None:
    w = M[0].clone().requires_grad_()
    b = X[0].clone().requires_grad_()
    vmap(lambda x: torch.tanh(w @ x + b).sum())(X).sum().backward()
    v, c = M[0].clone().requires_grad_(), X[0].clone().requires_grad_()
    torch.stack([torch.tanh(v @ x + c).sum() for x in X]).sum().backward()
    assert close(w.grad, v.grad) and close(b.grad, c.grad)


def test_autograd_inside_vmap() -> None:
    def slope(x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), x)
        return h

    assert close(vmap(slope)(X), 36 * X**3)


def test_backward_inside_vmap() -> None:
    def slope(x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        (x**2).sum().backward()
        assert x.grad is not None
        return x.grad

    assert close(vmap(slope)(X), 2 * X)


def test_per_example_gradients_of_a_network() -> None:
    w1, w2 = M[0].clone(), M[1].clone()

    def loss(w1: torch.Tensor, w2: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(torch.tanh(x @ w1) @ w2, torch.tensor(1))

    each = vmap(grad(loss, (0, 1)), (None, None, 0))(w1, w2, X)
    for k in (0, 1):
        assert close(each[k], loop(lambda x, k=k: grad(loss, (0, 1))(w1, w2, x)[k], X))


def test_second_derivatives_by_rows() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return (torch.sin(x) * x.prod()).sum()

    def hessian(x: torch.Tensor) -> torch.Tensor:
        rows = torch.eye(3, dtype=torch.float64)
        return vmap(lambda v: grad(lambda y: (grad(f)(y) * v).sum())(x))(rows)

    assert close(vmap(hessian)(X), loop(hessian, X))
    h = hessian(X[0])
    assert close(h, h.t())


# ---------------------------------------------------------------- primitives without a rule
@pytest.fixture
def cube() -> Any:
    primitive = general(
        "cube_of_a_test", lambda x, y: x**3 + y, vjp=dict(x=lambda g, x: g * 3 * x * x),
        jvp=dict(x=lambda t, x: t * 3 * x * x), doc="x cubed plus y",
    )  # fmt: skip
    yield primitive
    del REGISTRY["cube_of_a_test"]


def test_a_primitive_without_a_rule_runs_in_a_loop_and_warns(cube: Any) -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return apply(cube, (x, y), {})

    phrase = "performance drop because we have not yet implemented the batching rule for cube_of_a"
    with pytest.warns(UserWarning, match=phrase) as caught:
        got = vmap(f, (0, None))(X, Y[0])
    assert close(got, X**3 + Y[0]) and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slopes = vmap(grad(lambda x: f(x, Y[0]).sum()))(X)
        assert close(slopes, 3 * X**2)
        with pytest.raises(NotImplementedError, match="no examples"):
            vmap(f, (0, None))(X[:0], Y[0])


# ---------------------------------------------------------------- refusals
BRANCH = "use a Tensor in some data-dependent control flow"
ITEM = "looks like you're calling .item"
SHARED = "inplace arithmetic.self, .extra_args. is not possible because there exists a Tensor"
I64 = torch.tensor([0, 1, 2, 0, 1])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: vmap(torch.sin, in_dims=5)(X), ValueError, "Got in_dim=5 for some input"),
        (lambda: vmap(torch.sin, in_dims=-3)(X), ValueError, "-2 <= in_dim < 2"),
        (lambda: vmap(torch.sin)(torch.tensor(1.0)), ValueError, "dimensionality 0"),
        (lambda: vmap(torch.sin, None)(X), ValueError, "expected `in_dims` to be int or a"),
        (lambda: vmap(torch.mul, [0, 0])(X, X), ValueError, "got: <class 'list'>"),
        (lambda: vmap(torch.mul, (0,))(X, X), ValueError, "not compatible with the structure of"),
        (lambda: vmap(lambda t: t[0], ([0],))((X,)), ValueError, "structure .\\[\\*\\]"),
        (lambda: vmap(lambda t: t["a"], ({"b": 0},))({"a": X}), ValueError, "'b': \\*"),
        (lambda: vmap(torch.sin, (0.5,))(X), ValueError, "must be either an integer dimension"),
        (lambda: vmap(torch.sin, True)(X), TypeError, "must be int or None"),
        (lambda: vmap(torch.mul)(X, 3), ValueError, "Got in_dim=0 for an input but the"),
        (lambda: vmap(torch.mul)(X, X[:2]), ValueError, r"got sizes \[5, 2\]"),
        (lambda: vmap(lambda: X)(), ValueError, "got no inputs"),
        (lambda: vmap(lambda x: x)(()), ValueError, "at least one Tensor"),
        (lambda: vmap(torch.mul, (None, None))(X, X), ValueError, "at least one Tensor"),
        (lambda: vmap(lambda x: 3)(X), ValueError, "must only return Tensors, got type"),
        (lambda: vmap(lambda x: (x, None))(X), ValueError, "got type <class 'NoneType'>"),
        (lambda: vmap(lambda x: x, 0, None)(X), ValueError, "can not return a BatchedTensor when"),
        (lambda: vmap(torch.sin, 0, 2)(X), IndexError, "out of range"),
        (lambda: vmap(torch.sin, 0, "a")(X), ValueError, "`out_dims` must be an int, None or"),
        (lambda: vmap(lambda x: (x, x), 0, (0, 0, 0))(X), ValueError, "structure of `outputs`"),
        (lambda: vmap(torch.sin, 0, 0, "often"), RuntimeError, "Only allowed values for"),
        (lambda: vmap(torch.sin, chunk_size=0), ValueError, "None or greater than 0"),
        (lambda: vmap(torch.sin, chunk_size=2.5), TypeError, "chunk_size must be int"),
        (lambda: vmap(lambda x: x.sum().item())(X), RuntimeError, ITEM),
        (lambda: vmap(lambda x: float(x.sum()))(X), RuntimeError, ITEM),
        (lambda: vmap(lambda x, i: Y[:i])(X, I64), RuntimeError, ITEM),
        (lambda: vmap(lambda x: x if x.sum() > 0 else -x)(X), RuntimeError, BRANCH),
        (lambda: vmap(lambda x: x.numpy())(X), RuntimeError, "inside a transform"),
        (lambda: vmap(lambda x: np.asarray(x))(X), RuntimeError, "inside a transform"),
        (lambda: vmap(lambda x: x if torch.equal(x, Y[0]) else -x)(X), RuntimeError, BRANCH),
        (lambda: vmap(lambda x: x if torch.allclose(x, Y[0]) else -x)(X), RuntimeError, BRANCH),
        (lambda: vmap(torch.unique)(X), RuntimeError, "reads the elements"),
        (lambda: vmap(lambda x: x[x > 0])(X), RuntimeError, "dynamic shape"),
        (lambda: vmap(lambda x: x.nonzero())(X), RuntimeError, "dynamic shape"),
        (lambda: vmap(lambda x: x.masked_select(x > 0))(X), RuntimeError, "dynamic shape"),
        (lambda: vmap(lambda x: M[0].clone().add_(x))(X), RuntimeError, SHARED),
        (lambda: vmap(lambda x: M[0].clone().copy_(x))(X), RuntimeError, SHARED),
        (lambda: vmap(lambda x: M[0].clone().__setitem__(0, x[0]))(X), RuntimeError, SHARED),
        (lambda: vmap(lambda x: M[0].clone().__setitem__([0], x[:1]))(X), RuntimeError, SHARED),
        (lambda: vmap(lambda i: M[0].clone().__setitem__(i, 1.0))(I64), RuntimeError, SHARED),
        (lambda: vmap(vmap(lambda x, y: x.add_(y), (None, 0)))(X.clone(), M), RuntimeError, SHARED),
        (lambda: vmap(lambda x: x[0].expand(3).add_(1))(X), RuntimeError, "single memory location"),
        (lambda: vmap(lambda x, i: x[i])(X, I64 + 1), IndexError, "index 3 is out of bounds"),
        (lambda: vmap(lambda x, i: x.gather(0, i[None]))(X, I64 - 1), RuntimeError, "index -1 is"),
        (lambda: vmap(lambda x: torch.normal(x, 1.0), randomness="same")(X), RuntimeError,
         "does not currently support same randomness with a batched tensor"),
        (lambda: vmap(lambda x: torch.zeros(3).normal_(), randomness="different")(X), RuntimeError,
         "Cannot ask for different inplace randomness on an unbatched tensor"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        call()
    assert isinstance(caught.value, PullbackError)
    assert "tests/behaviour/test_vmap.py:" in str(caught.value)


def test_a_refusal_leaves_everything_as_it_was() -> None:
    shared, x = torch.zeros(3, dtype=torch.float64), X.clone()
    with pytest.raises(RuntimeError):
        vmap(lambda r: shared.add_(r))(x)
    assert close(shared, torch.zeros(3, dtype=torch.float64)) and close(x, X)
    with pytest.raises(ValueError, match="boom"):
        vmap(lambda r: (_ for _ in ()).throw(ValueError("boom")))(x)
    assert torch.rand(2).shape == (2,)  # no level was left running


def test_ordered_dictionaries_come_back_as_dictionaries() -> None:
    got = vmap(lambda d: d["a"])(collections.OrderedDict(a=X))
    assert close(got, X)


def test_the_graph_inside_does_not_reach_into_the_one_outside() -> None:
    w = X.clone().requires_grad_()
    scale = w[0] * 2  # has a history, outside
    nodes = []

    def slope(x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        out = (torch.tanh(x * scale) * scale).sum()
        stack = [out.grad_fn]
        while stack:
            node = stack.pop()
            nodes.append(node)
            stack += [n for n, _ in node.next_functions if n is not None]
        return torch.autograd.grad(out, x)[0]

    got = torch.autograd.grad(vmap(slope)(X).sum(), w)[0]
    assert scale.grad_fn not in nodes
    want = torch.autograd.grad(torch.stack([(1 - torch.tanh(x * w[0] * 2) ** 2) * (w[0] * 2) ** 2
                                            for x in X]).sum(), w)[0]  # fmt: skip
    assert close(got, want)
