"""`func.grad`, `grad_and_value` and `vjp`: arguments, structures, what comes out and its history."""

import re

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
    """A value that leaves the inner transform still depends on what the outer one differentiates."""

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
