"""`func.grad`, `grad_and_value`, `vjp`: arguments, structures, what comes out, its history."""

import re

import numpy as np
import pytest

import pullback as torch
from pullback import func

x = torch.tensor([1.0, 2.0])
y = torch.tensor([3.0, 4.0])


def product(a, b):
    return (a * b).sum()


ALL = (func.grad, func.grad_and_value, func.jacrev, func.jacfwd, func.hessian)


@pytest.mark.parametrize("transform", ALL)
@pytest.mark.parametrize(
    ("argnums", "phrase"),
    [
        ((0, 0), "argnums elements must be unique, got (0, 0)"),
        ((0, -2), "argnums elements must be unique"),
        ((), "argnums must be non-empty"),
        (1.5, "argnums must be int or Tuple[int, ...], got: <class 'float'>"),
        ([0], "argnums must be int or Tuple[int, ...], got: <class 'list'>"),
        ((0, "b"), "got: <class 'str'>"),
        (2, "Got argnum=2, but only 2 positional inputs"),
        (-3, "Got argnum=-3, but only 2 positional inputs"),
    ],
)
def test_wrong_argnums(transform, argnums, phrase):
    with pytest.raises(RuntimeError, match=re.escape(phrase)) as caught:
        transform(product, argnums)(x, y)
    assert "test_transforms.py" in str(caught.value)


@pytest.mark.parametrize("transform", ALL)
def test_what_is_no_tensor_is_named(transform):
    with pytest.raises(ValueError, match="must be Tensor, got <class 'float'>"):
        transform(lambda a: a["w"].sum())({"w": x, "scale": 2.0})


def test_integers_have_no_derivative():
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype"):
        func.grad(lambda a: a.sum())(torch.tensor([1, 2]))
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype"):
        func.vjp(lambda a: a.sum(), torch.tensor([1, 2]))


@pytest.mark.parametrize("result", [x.sum(), (x.sum(),), (x.sum(), 1, 2), [x.sum(), 1]])
def test_has_aux_needs_a_pair(result):
    phrase = re.escape("should be a tuple: (output, aux) if has_aux is True")
    for call in (
        lambda: func.grad(lambda a: result, has_aux=True)(x),
        lambda: func.vjp(lambda a: result, x, has_aux=True),
        lambda: func.jvp(lambda a: result, (x,), (y,), has_aux=True),
        lambda: func.jacrev(lambda a: result, has_aux=True)(x),
        lambda: func.jacfwd(lambda a: result, has_aux=True)(x),
    ):
        with pytest.raises(RuntimeError, match=phrase):
            call()


def test_negative_argnums_and_structures():
    point = {"w": x, "b": (y, [x * 2])}
    found = func.grad(lambda c, p: c * (p["w"] * p["b"][0] * p["b"][1][0]).sum(), -1)(2.0, point)
    assert found["w"].equal(2 * y * x * 2)
    assert found["b"][0].equal(2 * x * x * 2)
    assert found["b"][1][0].equal(2 * x * y)
    both = func.grad(product, (1, 0))(x, y)
    assert both[0].equal(x)
    assert both[1].equal(y)


def test_values_and_aux_carry_outer_tangents():
    """A value that leaves the inner transform depends on what the outer one differentiates."""

    def value(a):
        return func.grad_and_value(lambda b: (b**3).sum())(a)[1]

    assert func.jvp(value, (x,), (y,))[1] == (3 * x**2 * y).sum()

    def aside(a):
        return func.grad(lambda b: (b.sum(), b**3), has_aux=True)(a)[1]

    assert func.jvp(aside, (x,), (y,))[1].equal(3 * x**2 * y)
    assert func.jacrev(aside)(x).equal(torch.diag(3 * x**2))

    def output(a, number):
        return func.vjp(lambda b: (b**2, b**3), a, has_aux=True)[number]

    for number, slope in ((0, 2 * x * y), (2, 3 * x**2 * y)):
        assert func.jvp(lambda a, n=number: output(a, n), (x,), (y,))[1].equal(slope)
        assert func.jacrev(lambda a, n=number: output(a, n))(x).sum(0).equal(slope / y)


def test_results_leave_without_the_inner_history():
    value, aux = func.grad_and_value(lambda a: (a.sum(), a * 2), has_aux=True)(x)[1]
    assert not value.requires_grad
    assert not aux.requires_grad
    out, _, aside = func.vjp(lambda a: (a * 3, {"twice": a * 2}), x, has_aux=True)
    assert not out.requires_grad
    assert not aside["twice"].requires_grad


def test_aux_of_outer_variables_keeps_their_history():
    w = torch.tensor([5.0, 6.0], requires_grad=True)
    _, aux = func.grad(lambda a: (a.sum(), w * 2), has_aux=True)(x)
    aux.sum().backward()
    assert w.grad.equal(torch.tensor([2.0, 2.0]))


def test_a_change_of_the_output_is_seen_by_the_pullback():
    out, pull = func.vjp(torch.exp, x)
    out.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pull(y)


# ---------------------------------------------------------------- writes in place
def _filled(t):
    out = torch.zeros(3)
    out[1] = t[0] * t[1]
    out[0] += t[1] ** 2
    return out


def _filled_pure(t):
    return torch.stack([t[1] ** 2, t[0] * t[1], torch.zeros_like(t[0])])


def _view_first(t):
    out = torch.empty(2, 2)
    row, corner = out[0], out[1:, 1:]
    out.copy_(torch.ones(2, 2))
    row.mul_(t)
    corner.add_(t.prod())
    row[:1].mul_(t[1])
    return out.reshape(-1)


def _view_first_pure(t):
    one = torch.ones_like(t[0])
    return torch.stack([t[0] * t[1], t[1], one, one + t.prod()])


def _like(t):
    out = torch.zeros_like(t)
    out.copy_(t * t)
    out[0].mul_(t[1])
    return out


def _like_pure(t):
    return torch.stack([t[0] ** 2 * t[1], t[1] ** 2])


def _accumulated(t):
    out = t * 1
    for k in range(2):
        out *= 1 + t[k]
    out += t
    out[:1] *= t[1]
    return out


def _accumulated_pure(t):
    out = t * (1 + t[0]) * (1 + t[1]) + t
    return out * torch.stack([t[1], torch.ones_like(t[0])])


WRITERS = [
    (_filled, _filled_pure), (_view_first, _view_first_pure), (_like, _like_pure),
    (_accumulated, _accumulated_pure),
]  # fmt: skip
POINTS = torch.tensor([[0.5, 2.0], [1.5, -1.0], [3.0, 0.25]], dtype=torch.float64)


def _square(f):
    return lambda t: (f(t) ** 2).sum()


COMPOSITIONS = {
    "vmap": lambda f: func.vmap(f)(POINTS),
    "jacfwd": lambda f: func.jacfwd(f)(POINTS[0]),
    "jacrev": lambda f: func.jacrev(f)(POINTS[0]),
    "hessian": lambda f: func.hessian(_square(f))(POINTS[0]),
    "forward twice": lambda f: func.jacfwd(func.jacfwd(_square(f)))(POINTS[0]),
    "reverse twice": lambda f: func.jacrev(func.jacrev(_square(f)))(POINTS[0]),
    "reverse over forward": lambda f: func.jacrev(func.jacfwd(_square(f)))(POINTS[0]),
    "jvp in vmap": lambda f: func.vmap(lambda t: func.jvp(f, (t,), (POINTS[1],))[1])(POINTS),
    "grad in vmap": lambda f: func.vmap(func.grad(_square(f)))(POINTS),
    "hessian in vmap": lambda f: func.vmap(func.hessian(_square(f)))(POINTS),
    "vmap in grad": lambda f: func.grad(lambda p: (func.vmap(f)(p) ** 2).sum())(POINTS),
    "vmap in jvp": lambda f: func.jvp(func.vmap(f), (POINTS,), (POINTS + 1,))[1],
    "vmap in hessian": lambda f: func.hessian(lambda p: (func.vmap(f)(p) ** 2).sum())(POINTS),
    "vmap in vmap": lambda f: func.vmap(func.vmap(f))(torch.stack([POINTS, POINTS + 1])),
    "linearize": lambda f: func.linearize(f, POINTS[0])[1](POINTS[1]),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.parametrize("writer", WRITERS, ids=lambda pair: pair[0].__name__)
def test_writes_in_place_under_transforms(name, writer):
    """Index assignment, copy_ and arithmetic in place, also through views made before the write."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        found, expected = (COMPOSITIONS[name](f) for f in writer)
    finally:
        torch.set_default_dtype(previous)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_a_captured_tensor_is_not_written_by_one_example():
    outside = torch.zeros(2)

    def write(t):
        outside.add_(t)
        return outside

    for call in (
        lambda: func.vmap(write)(torch.stack([x, y])),
        lambda: func.vmap(lambda t: func.jvp(write, (t,), (y,)))(torch.stack([x, y])),
        lambda: func.vmap(lambda t: func.vmap(lambda s: write(t * s))(x))(torch.stack([x, y])),
    ):
        with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
            call()
        assert outside.equal(torch.zeros(2))


def test_made_between_two_vmaps_it_belongs_to_the_outer():
    def per_row(row):
        out = torch.zeros(2)
        out += row  # mapped by the outer one: allowed

        def per_element(e):
            with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
                out.mul_(e)
            return e

        func.vmap(per_element)(row)
        return out

    assert func.vmap(per_row)(torch.stack([x, y])).equal(torch.stack([x, y]))


def test_a_value_kept_for_the_derivative_of_a_tangent_is_noticed_when_it_changes():
    scale = torch.tensor([2.0, 3.0])

    def pushed(v):
        found = func.jvp(lambda t: t * scale, (x,), (v,))[1]  # keeps scale, for the gradient of v
        scale.add_(1)
        return found.sum()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        func.grad(pushed)(y)
