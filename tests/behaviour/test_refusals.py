"""Dtypes and operands that PyTorch refuses, and functions that it has no derivative of."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch

B = torch.tensor([True, False])
I = torch.tensor([1, 2])  # noqa: E741
F = torch.tensor([1.0, 2.0])
C = torch.tensor([1 + 1j, 2.0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: C < C, NotImplementedError, "\"lt_cpu\" not implemented for 'ComplexFloat'"),
        (lambda: torch.maximum(F, C), RuntimeError, "maximum not implemented for complex tensors"),
        (lambda: C.max(), NotImplementedError, "\"max_all\" not implemented"),
        (lambda: C.max(0), RuntimeError, "max\\(\\): does not support complex input"),
        (lambda: C.argmin(), RuntimeError, "argmin\\(\\): does not support complex input"),
        (lambda: C.sort(), RuntimeError, "Sort does not support complex dtypes on CPU"),
        (lambda: C.median(), NotImplementedError, "\"median_cpu\" not implemented"),
        (lambda: C.clamp(0, 1), NotImplementedError, "clamp is not supported for complex types"),
        (lambda: C.floor(), NotImplementedError, "floor is not supported for complex inputs"),
        (lambda: C.sign(), NotImplementedError, "Please use torch.sgn instead"),
        (lambda: C // 2, NotImplementedError, "\"div_floor_cpu\" not implemented"),
        (lambda: C.clone().floor_(), NotImplementedError, "floor is not supported for complex"),
        (lambda: B.relu(), RuntimeError, "Boolean inputs not supported for relu"),
        (lambda: abs(B), NotImplementedError, "\"abs_cpu\" not implemented for 'Bool'"),
        (lambda: -B, RuntimeError, "Negation, the `-` operator, on a bool tensor"),
        (lambda: B - B, RuntimeError, "with two bool tensors is not supported"),
        (lambda: F - B, RuntimeError, "with a bool tensor is not supported. If you are trying to"),
        (lambda: 1 - B, RuntimeError, "with a bool tensor is not supported"),
        (lambda: F - True, RuntimeError, "with a bool tensor is not supported"),
        (lambda: F.clone().sub_(B), RuntimeError, "with a bool tensor is not supported"),
        (lambda: B @ B, NotImplementedError, "\"dot\" not implemented for 'Bool'"),
        (lambda: F & F, NotImplementedError, "\"bitwise_and_cpu\" not implemented for 'Float'"),
        (lambda: ~F, NotImplementedError, "\"bitwise_not_cpu\" not implemented"),
        (lambda: I.hypot(I), NotImplementedError, "\"hypot_cpu\" not implemented for 'Long'"),
        (lambda: torch.maximum(F, 1), TypeError, "argument 'other' .* must be Tensor"),
        (lambda: torch.maximum(1, F), TypeError, "argument 'input' .* must be Tensor"),
        (lambda: torch.fmod(1, F), TypeError, "invalid combination of arguments - got \\(int, T"),
        (lambda: torch.lt(1, F), TypeError, "received an invalid combination of arguments"),
        (lambda: torch.pow(2, 3), TypeError, "received an invalid combination of arguments"),
        (lambda: torch.add(I, I, alpha=0.5), RuntimeError, "must not be a floating point number"),
        (lambda: torch.add(F, F, alpha=True), RuntimeError, "Boolean alpha only supported"),
        (lambda: torch.div(I, 0, rounding_mode="trunc"), RuntimeError, "ZeroDivisionError"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_functions_of_two_numbers() -> None:
    """A few of them give a 0-d tensor, of the dtype that the numbers mean."""
    assert torch.add(1, 2).dtype is torch.int64
    assert torch.add(True, True).dtype is torch.bool
    assert torch.mul(2.0, 3).item() == 6.0
    assert torch.div(3, 2).dtype is torch.float32
    assert torch.floor_divide(7, 2).item() == 3


def test_a_refused_operation_in_place_changes_nothing() -> None:
    x = F.clone()
    with pytest.raises(RuntimeError):
        x -= B
    with pytest.raises(TypeError):
        x.atan2_(1)
    assert x.tolist() == [1.0, 2.0] and x._version == 0
    y = I.clone()
    for method in ("fmod_", "remainder_", "floor_divide_"):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(y, method)(0)
    assert y.tolist() == [1, 2]


def test_numbers_shift_by_a_tensor() -> None:
    assert (1 << I).tolist() == [2, 4] and (8 >> I).tolist() == [4, 2]


def test_functions_without_derivative_are_recorded_and_say_so() -> None:
    """As in PyTorch: a missing gradient is an error, and not silently nothing."""
    x = torch.tensor([3.0, 1.0, 1.0], requires_grad=True)
    for result, name, words in (
        (x // 2, "NotImplemented", "derivative for aten::floor_divide is not implemented"),
        (torch.heaviside(x, x), "NotImplemented", "derivative for aten::heaviside is not"),
        (x.unique(), "Unique2Backward0", "the derivative for '_unique2' is not implemented"),
        (x.unique_consecutive(), "UniqueConsecutiveBackward0", "for 'unique_consecutive' is not"),
        (5.0 % x, "NotImplemented", "derivative for aten::remainder is not implemented"),
    ):
        assert type(result.grad_fn).__name__ == name
        with pytest.raises(RuntimeError, match=words):
            result.sum().backward()
    assert x.grad is None
    with pytest.raises(NotImplementedError, match="Trying to use forward AD with"):
        torch.func.jvp(torch.unique, (x.detach(),), (torch.ones(3),))


def test_a_place_filled_twice_counts_once_in_the_gradient() -> None:
    value = torch.tensor(5.0, requires_grad=True)
    torch.zeros(3).index_fill(0, torch.tensor([2, 0, 2]), value).sum().backward()
    assert value.grad.item() == 2.0


def test_scatter_reduce_in_place_keeps_what_its_gradient_needs() -> None:
    x = torch.tensor([2.0, 5.0], requires_grad=True)
    s = torch.tensor([3.0, 0.0], requires_grad=True)
    y = x.clone().scatter_reduce_(0, torch.tensor([0, 0]), s, "prod")
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0] and s.grad.tolist() == [0.0, 6.0]


# ---------------------------------------------------------------- in place
def test_every_function_has_its_in_place_variant() -> None:
    x = torch.tensor([[1.5, -2.5], [0.5, 3.5]])
    for name in (
        "tril_ triu_ relu_ frac_ round_ nan_to_num_ erf_ erfc_ sinc_ deg2rad_ rad2deg_ "
        "absolute_ negative_ fix_ logical_not_ sign_"
    ).split():
        y = x.clone()
        assert getattr(y, name)() is y and y._version == 1
        want = getattr(torch, name[:-1])(x).to(x.dtype)
        assert y.equal(want), name
    for name in ("cumsum_", "cumprod_"):
        assert getattr(x.clone(), name)(0).equal(getattr(x, name[:-1])(0))
    for name in ("copysign_", "xlogy_", "nextafter_", "hypot_", "subtract_", "divide_", "atan2_"):
        want = getattr(torch, name[:-1])(x, x + 3)
        assert torch.allclose(getattr(x.clone(), name)(x + 3), want, equal_nan=True), name
    n = torch.tensor([6, 9])
    assert n.clone().gcd_(torch.tensor([4, 6])).tolist() == [2, 3]
    n <<= 1
    assert n.tolist() == [12, 18]
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype Float"):
        x.float_power_(2)


def test_gradients_through_in_place_variants() -> None:
    leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    low = torch.tensor([2.0, 2.0, 2.0], requires_grad=True)

    def gradients(change: Any) -> Any:
        y = leaf * 1
        change(y)
        name = type(y.grad_fn).__name__
        return name, [
            None if g is None else g.tolist()
            for g in torch.autograd.grad(y.sum(), (leaf, low), allow_unused=True)
        ]

    assert gradients(lambda y: y.cumsum_(0)) == ("CumsumBackward0", [[3.0, 2.0, 1.0], None])
    assert gradients(lambda y: y.pow_(low))[1][0] == [2.0, 4.0, 6.0]
    assert gradients(lambda y: y.clamp_(low)) == (
        "ClampBackward0", [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])  # fmt: skip
    # a comparison replaces the values by constants
    assert gradients(lambda y: y.gt_(1.5)) == ("GtBackward0", [[0.0, 0.0, 0.0], None])


def test_scatter_reduce_of_zeros_has_second_derivatives() -> None:
    """The product with one zero or two: PyTorch has no second derivative for two."""
    for values in ([0.0, 3.0], [0.0, 0.0], [2.0, 3.0]):
        def product(s: Any) -> Any:
            x = torch.tensor([2.0, 5.0], dtype=torch.float64)
            return x.scatter_reduce(0, torch.tensor([0, 0]), s, "prod").sum()

        s = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        hessian = torch.func.hessian(product)(s.detach())
        assert hessian.tolist() == [[0.0, 2.0], [2.0, 0.0]], values


def test_in_place_functions_are_those_methods() -> None:
    x = torch.tensor([-1.0, 2.0])
    assert torch.relu_(x) is x and x.tolist() == [0.0, 2.0]
    assert "relu_" in dir(torch)


@pytest.mark.parametrize("function", [torch.median, torch.max, torch.nanmedian])
def test_a_gradient_of_nan_goes_to_the_chosen_only(function: Any) -> None:
    x = torch.tensor([1.0, 2.0, 2.0, 0.5, 2.0], requires_grad=True)
    (found,) = torch.autograd.grad(function(x), x, torch.tensor(float("nan")))
    assert found.isnan().tolist() == [False, True, True, False, True] and found[0] == 0


def test_a_gradient_of_nan_does_not_reach_a_constant_spread() -> None:
    x = torch.tensor([2.0, 2.0], requires_grad=True)
    (found,) = torch.autograd.grad(x.std(), x, torch.tensor(float("nan")))
    assert found.tolist() == [0.0, 0.0]
