"""Forward mode: dual tensors by hand, and the transforms that are built on them."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as torch
from pullback.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

fw = torch.autograd.forward_ad
X = torch.tensor([1.0, 2.0], dtype=torch.float64)
V = torch.tensor([3.0, 4.0], dtype=torch.float64)


def close(a: Any, b: Any) -> bool:
    return tuple(a.shape) == tuple(b.shape) and torch.allclose(a, b)


# ---------------------------------------------------------------- dual tensors
def test_a_dual_carries_its_tangent_until_the_level_ends() -> None:
    with fw.dual_level():
        d = fw.make_dual(X, V)
        y = d * d
        primal, tangent = fw.unpack_dual(y)
        assert close(primal, X * X) and close(tangent, 2 * X * V)
        assert fw.unpack_dual(X).tangent is None
    assert fw.unpack_dual(y).tangent is None
    assert close(y + 1, X * X + 1) and type((y + 1)._data) is np.ndarray
    assert str(y) == "tensor([1., 4.], dtype=torch.float64)"


def test_printing_shows_the_tangent() -> None:
    with fw.dual_level():
        d = fw.make_dual(torch.tensor([1.0]), torch.tensor([2.0]))
        assert repr(d) == "tensor([1.], tangent=tensor([2.]))"


def test_values_may_be_looked_at() -> None:
    with fw.dual_level():
        d = fw.make_dual(X, V)
        assert d[0].item() == 1 and d.tolist() == [1, 2] and bool(d[1] > 1) and float(d[0]) == 1
        y = d * 2 if d.sum() > 0 else d
        assert close(fw.unpack_dual(y).tangent, 2 * V)


def test_detach_and_data_drop_the_tangent() -> None:
    with fw.dual_level():
        d = fw.make_dual(X, V)
        assert fw.unpack_dual(d.detach()).tangent is None
        assert fw.unpack_dual(d.data).tangent is None


def test_tangents_flow_under_no_grad() -> None:
    with torch.no_grad(), fw.dual_level():
        assert close(fw.unpack_dual(fw.make_dual(X, V).exp()).tangent, X.exp() * V)


def test_levels_nest() -> None:
    with fw.dual_level():
        a = fw.make_dual(X, V)
        with fw.dual_level():
            b = fw.make_dual(a, torch.ones_like(X))
            inner = fw.unpack_dual(b**3).tangent  # 3 x^2
            assert close(fw.unpack_dual(b**3, level=0).tangent.detach(), 3 * X**2 * V)
        assert close(fw.unpack_dual(inner).tangent, 6 * X * V)


def test_forward_over_reverse() -> None:
    w = X.clone().requires_grad_()
    with fw.dual_level():
        d = fw.make_dual(w, V)
        assert d.requires_grad and not d.is_leaf
        (g,) = torch.autograd.grad((d**3).sum(), w, create_graph=True)
        primal, tangent = fw.unpack_dual(g)
        assert close(primal, 3 * w**2) and close(tangent, 6 * w * V)
        (d**3).sum().backward()
    assert close(w.grad, 3 * X**2) and type(w.grad._data) is np.ndarray


def test_parameters_beside_a_dual_get_their_gradients() -> None:
    w = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    with fw.dual_level():
        y = (fw.make_dual(X, V) * w).sum()
        assert y.requires_grad
        y.backward()
        assert close(w.grad, X)
        tangent = fw.unpack_dual((fw.make_dual(X, V) * w).sum()).tangent
        (g,) = torch.autograd.grad(tangent, w)
        assert close(g, V)


# ---------------------------------------------------------------- in place, and views
def test_writing_into_a_plain_tensor_gives_it_a_tangent() -> None:
    with fw.dual_level():
        b = torch.zeros(3, dtype=torch.float64)
        view = b[:2]
        late = b[1:]
        view.copy_(fw.make_dual(X, V))
        assert close(fw.unpack_dual(b).tangent, torch.tensor([3.0, 4.0, 0.0], dtype=torch.float64))
        assert close(fw.unpack_dual(view).tangent, V)
        assert close(fw.unpack_dual(late).tangent, torch.tensor([4.0, 0.0], dtype=torch.float64))
    b += 1
    assert b.tolist() == [2, 3, 1]


def test_views_of_a_dual_see_writes() -> None:
    with fw.dual_level():
        d = fw.make_dual(torch.ones(2), torch.tensor([3.0, 4.0]))
        s = d[:1]
        d.mul_(2)
        assert fw.unpack_dual(s).tangent.tolist() == [6]
        s.zero_()
        assert d.tolist() == [0, 2] and fw.unpack_dual(d).tangent.tolist() == [0, 8]
        d[1] = 5.0
        assert fw.unpack_dual(d).tangent.tolist() == [0, 0]


def test_index_assignment_of_a_dual() -> None:
    def f(x: Any) -> Any:
        out = torch.zeros(3, dtype=torch.float64)
        out[1] = x[0] * x[1]
        out[0] += x[1]
        return out

    y, t = jvp(f, (X,), (V,))
    assert y.tolist() == [2, 2, 0] and t.tolist() == [4, 3 * 2 + 4 * 1, 0]


def test_only_values_are_kept_when_a_level_ends() -> None:
    tangent = torch.ones(1000)
    gone = weakref.ref(tangent)
    with fw.dual_level():
        y = fw.make_dual(torch.ones(1000), tangent) * 2
    del tangent
    gc.collect()
    assert gone() is None and y.sum().item() == 2000


# ---------------------------------------------------------------- bad input
BAD = [
    (lambda: fw.make_dual(X, torch.ones(3)), RuntimeError, "different size"),
    (lambda: fw.make_dual(torch.tensor([1, 2]), V), ValueError, "Expected primal"),
    (lambda: fw.make_dual(X, torch.tensor([1, 2])), ValueError, "Expected tangent"),
    (lambda: fw.make_dual(fw.make_dual(X, V), V), RuntimeError, "already has a forward gradient"),
    (lambda: fw.make_dual(X, V, level=3), RuntimeError, "Invalid level"),
    (lambda: fw.make_dual(X, None), TypeError, "tangent must be Tensor"),
    (lambda: fw.unpack_dual(3.0), TypeError, "must be Tensor, not float"),
    (lambda: fw.exit_dual_level(level=5), RuntimeError, "not the last one that was created"),
]


@pytest.mark.parametrize(("call", "kind", "phrase"), BAD)
def test_refusals(call: Any, kind: type, phrase: str) -> None:
    with fw.dual_level():
        with pytest.raises(kind, match=phrase) as caught:
            call()
        assert "test_forward_mode.py" in str(caught.value)


def test_without_a_level() -> None:
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(X, V)
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()


# ---------------------------------------------------------------- transforms
def g(x: Any) -> Any:
    return (x**3).sum() * x.prod() + x.sin().sum()


def test_jacobians_agree() -> None:
    def f(x: Any) -> Any:
        return torch.stack([x[0] * x[1], x.sin().sum(), x.prod() ** 2])

    assert close(jacfwd(f)(X), jacrev(f)(X))
    want = hessian(g)(X)
    for outer in (jacfwd, jacrev):
        for inner in (jacfwd, jacrev):
            assert close(outer(inner(g))(X), want)
    assert close(want, want.T)


class Pair(NamedTuple):
    a: Any
    b: Any


def test_trees_and_argnums() -> None:
    def f(p: Any, c: Any) -> Any:
        return {"y": p.a * c, "z": [(p.b * p.a).sum()]}

    p = Pair(X, V)
    for jacobian in (jacfwd, jacrev):
        found = jacobian(f)(p, X)
        assert isinstance(found["y"], Pair)
        assert close(found["y"].a, torch.diag(X)) and not found["y"].b.any()
        assert close(found["z"][0].a, V) and close(found["z"][0].b, X)
        both = jacobian(f, (0, 1))(p, X)
        assert isinstance(both["y"], tuple) and close(both["y"][1], torch.diag(X))
    out, pull = vjp(f, p, X)
    (gp, gc_) = pull({"y": torch.ones_like(X), "z": [torch.tensor(1.0, dtype=torch.float64)]})
    assert close(out["y"], X * X) and close(gp.a, X + V) and close(gc_, X)


def test_auxiliary_results() -> None:
    def f(x: Any) -> Any:
        return x * x, x + 1

    y, t, aux = jvp(f, (X,), (V,), has_aux=True)
    assert close(t, 2 * X * V) and close(aux, X + 1) and close(y, X * X)
    y, pull, aux = vjp(f, X, has_aux=True)
    assert close(pull(V)[0], 2 * X * V) and close(aux, X + 1) and not aux.requires_grad
    for jacobian in (jacfwd, jacrev):
        found, aux = jacobian(f, has_aux=True)(X)
        assert close(found, torch.diag(2 * X))


def test_linearize_is_a_linear_map() -> None:
    y, f = linearize(lambda a, b: a * b, X, V)
    assert close(y, X * V) and close(f(V, X), V * V + X * X)


def test_perturbations_do_not_mix() -> None:
    """d/dx (x * d/dy (x + y)) at 1 is 1: what a confusion of levels would make 2."""
    one = torch.tensor(1.0)

    def derivative(f: Any) -> Any:
        return lambda x: jvp(f, (x,), (torch.ones_like(x),))[1]

    assert derivative(lambda x: x * derivative(lambda y: x + y)(one))(one).item() == 1


def test_reverse_over_forward_reaches_what_the_function_captures() -> None:
    w = X.clone().requires_grad_()
    jvp(lambda x: x * x * w, (X,), (V,))[1].sum().backward()
    assert close(w.grad, 2 * X * V)


def test_mixed_with_vmap_in_every_order() -> None:
    rows = torch.stack([X, X + 1])
    want = torch.stack([jvp(g, (r,), (V,))[1] for r in rows])
    assert close(vmap(lambda r: jvp(g, (r,), (V,))[1])(rows), want)
    assert close(jvp(lambda x: vmap(g)(x), (rows,), (torch.stack([V, V]),))[1], want)
    hvp = torch.stack([jvp(grad(g), (r,), (V,))[1] for r in rows])
    assert close(vmap(lambda r: jvp(grad(g), (r,), (V,))[1])(rows), hvp)
    assert close(vmap(grad(lambda r: jvp(g, (r,), (V,))[1]))(rows), hvp)
    assert close(jvp(vmap(grad(g)), (rows,), (torch.stack([V, V]),))[1], hvp)


def test_duals_of_one_level_made_inside_and_outside_of_vmap() -> None:
    with fw.dual_level():
        outside = fw.make_dual(X, V)

        def f(t: Any) -> Any:
            inside = fw.make_dual(X, t)
            return fw.unpack_dual(inside * outside).tangent

        found = vmap(f)(torch.eye(2, dtype=torch.float64))
    assert close(found, torch.diag(X) + X * V)


TRANSFORM_ERRORS = [
    (lambda: jvp(g, X, (V,)), RuntimeError, "Expected primals to be a tuple"),
    (lambda: jvp(g, (X,), (V, V)), RuntimeError, "same python structure"),
    (lambda: jvp(g, (X,), (torch.ones(3),)), RuntimeError, "different size"),
    (lambda: jvp(lambda x: 1.0, (X,), (V,)), RuntimeError, "only tensors"),
    (lambda: jvp(lambda x: V, (X,), (V,), strict=True), RuntimeError, "independent"),
    (lambda: jvp(lambda x: x, (X,), (V,), has_aux=True), RuntimeError, "should be a tuple"),
    (lambda: vjp(lambda x: 1.0, X), RuntimeError, "only tensors"),
    (lambda: vjp(g, X)[1]((X, X)), RuntimeError, "Expected pytree structure"),
    (lambda: jacrev(g, 2)(X), RuntimeError, "Got argnum=2, but only 1 positional inputs"),
    (lambda: jacfwd(g, ())(X), RuntimeError, "must be non-empty"),
    (lambda: jacfwd(g, (0, 0))(X), RuntimeError, "must be unique"),
    (lambda: jacfwd(g, "x")(X), RuntimeError, "must be int or a tuple of ints"),
    (lambda: jacrev(g, chunk_size=0), ValueError, "greater than 0"),
    (lambda: linearize(g), RuntimeError, "at least one primal"),
]


@pytest.mark.parametrize(("call", "kind", "phrase"), TRANSFORM_ERRORS)
def test_refusals_of_transforms(call: Any, kind: type, phrase: str) -> None:
    with pytest.raises(kind, match=phrase) as caught:
        call()
    assert "test_forward_mode.py" in str(caught.value)


def test_eight_threads_of_nested_transforms() -> None:
    def work(x: Any) -> Any:
        return jvp(grad(g), (x,), (V,))[1], hessian(g)(x), vmap(grad(g))(torch.stack([x, x]))

    want = [work(X + i) for i in range(8)]
    wrong: list[int] = []

    def run(i: int) -> None:
        for _ in range(20):
            found = work(X + i)
            if not all(torch.equal(a, b) for a, b in zip(found, want[i], strict=True)):
                wrong.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
