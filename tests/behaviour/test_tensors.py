"""Constructors, conversion, dtypes and promotion, operators, copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import pullback as torch


# ---------------------------------------------------------------- constructors
@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, torch.int64), (1.0, torch.float32), (True, torch.bool), (1j, torch.complex64),
        ([1, 2.0], torch.float32), ([True, 2], torch.int64), ([], torch.float32),
        (np.float64(1), torch.float64), (np.ones(2), torch.float64),
        (np.ones(2, np.int32), torch.int32), ([np.float64(1)], torch.float64),
        ([[1, 2], [3, 4]], torch.int64), (range(3), torch.int64),
    ],
)  # fmt: skip
def test_inferred_dtypes(data: object, dtype: torch.dtype) -> None:
    assert torch.tensor(data).dtype == dtype


def test_numbers_keep_their_digits_for_a_wider_dtype() -> None:
    assert torch.tensor(0.1, dtype=torch.float64).item() == 0.1
    assert torch.tensor([0.1, 0.2], dtype=torch.float64).tolist() == [0.1, 0.2]
    assert torch.as_tensor([0.1], dtype=torch.float64).tolist() == [0.1]
    assert torch.tensor([2**40 + 1], dtype=torch.float64).item() == 2**40 + 1
    assert torch.tensor([1.7, -1.7], dtype=torch.int64).tolist() == [1, -1]


def test_tensor_copies_and_as_tensor_shares() -> None:
    a = np.zeros(2, np.float32)
    t, s, f = torch.tensor(a), torch.as_tensor(a), torch.from_numpy(a)
    a[0] = 1
    assert t.tolist() == [0.0, 0.0] and s.tolist() == f.tolist() == [1.0, 0.0]
    x = torch.ones(2)
    assert torch.as_tensor(x) is x and torch.asarray(x) is x


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1"),
        ([[1, 2], 3], TypeError, "not a sequence"),
        (np.array([object()]), TypeError, "can't convert np.ndarray of type numpy.object_"),
        (["a"], ValueError, "too many dimensions 'str'"),
        ("a", TypeError, "invalid data type 'str'"),
        ([None], RuntimeError, "Could not infer dtype of NoneType"),
        (object(), RuntimeError, "Could not infer dtype of object"),
        (2**70, ValueError, "Overflow when unpacking long"),
        ([2**70], ValueError, "Overflow when unpacking long"),
    ],
)
def test_bad_data(data: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        torch.tensor(data)


def test_ranges_and_fills() -> None:
    assert torch.arange(3).tolist() == [0, 1, 2]
    assert torch.arange(1, 2, 0.25).tolist() == [1.0, 1.25, 1.5, 1.75]
    assert torch.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert torch.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert torch.logspace(0, 2, 3).tolist() == [1.0, 10.0, 100.0]
    assert torch.eye(2, 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert torch.full((2,), 7).dtype == torch.int64 and torch.full((2,), 7.0).tolist() == [7.0, 7.0]
    assert torch.zeros(2, 3).shape == torch.ones((2, 3)).shape == torch.empty([2, 3]).shape
    x = torch.ones(2, dtype=torch.float64)
    assert torch.zeros_like(x).dtype == x.new_zeros(3).dtype == torch.float64
    assert torch.full_like(x, 3).tolist() == [3.0, 3.0] and x.new_tensor([1]).dtype == torch.float64
    assert torch.tensor(2.0).shape == () and torch.scalar_tensor(1).dtype == torch.float32


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: torch.zeros(-1), "negative dimension"),
        (lambda: torch.arange(0, 5, 0), "step must be nonzero"),
        (lambda: torch.arange(0, 5, -1), "inconsistent with step sign"),
        (lambda: torch.linspace(0, 1, -1), "non-negative"),
        (lambda: torch.eye(-1), "greater or equal to 0"),
    ],
)
def test_bad_sizes(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RuntimeError, match=words):
        call()


def test_from_numpy_refuses_and_warns() -> None:
    with pytest.raises(TypeError, match="expected np.ndarray"):
        torch.from_numpy([1])
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.arange(3)[::-1])
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        torch.from_numpy(frozen)


def test_default_dtype_switch() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.0).dtype == torch.zeros(1).dtype == torch.float64
        assert repr(torch.ones(1)) == "tensor([1.])"
        assert torch.tensor(1j).dtype == torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        torch.set_default_dtype(torch.int64)


# ---------------------------------------------------------------- leaving
def test_conversion_to_python_and_numpy() -> None:
    x = torch.tensor([[1.5, 2.5]])
    assert x.tolist() == [[1.5, 2.5]] and x[0, 0].item() == 1.5 and float(x[0, 1]) == 2.5
    assert x.numpy().base is None or x.numpy() is x._data
    assert np.asarray(x).dtype == np.float32 and np.from_dlpack(x).tolist() == x.tolist()
    assert int(torch.tensor(3)) == 3 and bool(torch.tensor(0.0)) is False
    assert list(range(5))[torch.tensor(2)] == 2 and len(torch.ones(4, 2)) == 4
    assert [r.tolist() for r in torch.eye(2)] == [[1.0, 0.0], [0.0, 1.0]]
    assert 1.5 in x and 9 not in x


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.ones(2).item(), RuntimeError, "cannot be converted to Scalar"),
        (lambda: bool(torch.ones(2)), RuntimeError, "Boolean value of Tensor with more than one"),
        (lambda: bool(torch.ones(0)), RuntimeError, "no values"),
        (lambda: len(torch.tensor(1)), TypeError, "len\\(\\) of a 0-d tensor"),
        (lambda: list(torch.tensor(1)), TypeError, "iteration over a 0-d tensor"),
        (lambda: torch.ones(2, requires_grad=True).numpy(), RuntimeError, "Can't call numpy"),
        (lambda: [1][torch.tensor(0.0)], TypeError, "only integer tensors"),
    ],
)
def test_conversions_that_are_refused(call, error: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call()


def test_shapes_and_strides() -> None:
    x = torch.zeros(2, 3)
    assert x.size() == torch.Size([2, 3]) and x.size(-1) == 3 and x.numel() == 6 and x.dim() == 2
    assert x.stride() == (3, 1) and x.t().stride() == (1, 3) and not x.t().is_contiguous()
    assert x.t().contiguous().is_contiguous() and x.element_size() == 4
    assert repr(x.shape) == "torch.Size([2, 3])" and x.shape.numel() == 6
    assert repr(x.dtype) == "torch.float32" and x.dtype.is_floating_point
    assert str(x.device) == "cpu" and x.device.type == "cpu"
    assert x[1].storage_offset() == 3 and x.nbytes == 24


def test_copies_and_pickle() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    x.note = "kept"
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.tolist() == x.tolist() and other.requires_grad and other.is_leaf
        assert other.grad.tolist() == x.grad.tolist() and other.note == "kept"
        assert other.data_ptr() != x.data_ptr()
    assert copy.copy(x).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="created explicitly by the user"):
        copy.deepcopy(x * 2)


# ---------------------------------------------------------------- dtypes
def test_promotion_follows_dimension_classes() -> None:
    f, i = torch.ones(2), torch.ones(2, dtype=torch.int64)
    d0 = torch.tensor(1.0, dtype=torch.float64)
    assert (f + i).dtype == torch.float32 and (f + d0).dtype == torch.float32
    assert (i + 1.5).dtype == torch.float32 and (i / i).dtype == torch.float32
    assert (i + d0).dtype == torch.float64 and (f + 1j).dtype == torch.complex64
    assert (torch.ones(2, dtype=torch.uint8) + torch.ones(2, dtype=torch.int8)).dtype == torch.int16
    assert (torch.ones(2, dtype=torch.bool) + 1).dtype == torch.int64
    assert (torch.ones(2, dtype=torch.float16) * 2.5).dtype == torch.float16
    assert torch.result_type(i, 1.0) == torch.float32
    assert torch.promote_types(torch.int32, torch.float16) == torch.float16
    assert torch.can_cast(torch.int64, torch.float32)
    assert not torch.can_cast(torch.float32, torch.int64)


def test_integer_functions_give_floats() -> None:
    i = torch.tensor([1, 4])
    assert torch.sqrt(i).dtype == torch.exp(i).dtype == torch.float32
    assert i.sum().dtype == torch.int64 and torch.tensor([True, True]).sum().item() == 2
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        i.mean()


def test_conversion_methods() -> None:
    x = torch.ones(2)
    assert x.double().dtype == x.to(torch.float64).dtype == x.type(torch.float64).dtype
    assert x.float() is x and x.to("cpu") is x and x.type() == "torch.FloatTensor"
    assert x.long().dtype == torch.int64 and x.half().dtype == torch.float16
    assert x.to(torch.zeros(1, dtype=torch.int32)).dtype == torch.int32


# ---------------------------------------------------------------- operators
def test_arithmetic_operators() -> None:
    x = torch.tensor([7.0, -7.0])
    assert (x + 1).tolist() == (1 + x).tolist() == [8.0, -6.0]
    assert (1 - x).tolist() == [-6.0, 8.0] and (2 / torch.tensor([4.0])).tolist() == [0.5]
    assert (x // 2).tolist() == [3.0, -4.0] and (x % 4).tolist() == [3.0, 1.0]
    assert (x**2).tolist() == [49.0, 49.0] and (2 ** torch.tensor([3.0])).tolist() == [8.0]
    assert (-x).tolist() == [-7.0, 7.0] and abs(x).tolist() == [7.0, 7.0]
    assert (x > 0).tolist() == [True, False] and (x == 7).tolist() == [True, False]
    assert (~(x > 0)).tolist() == [False, True]
    assert ((x > 0) | (x < 0)).tolist() == [True, True]
    assert (np.float64(2) * x).tolist() == [14.0, -14.0]
    assert (np.array([1.0, 2.0]) + x.double()).tolist() == [8.0, -5.0]
    a = torch.arange(4.0).reshape(2, 2)
    assert (a @ a).tolist() == [[2.0, 3.0], [6.0, 11.0]] and (a @ x).tolist() == [-7.0, -7.0]


def test_inplace_operators() -> None:
    x = torch.tensor([6.0, 8.0])
    y = x
    x += 1
    x -= torch.tensor(1.0)
    x *= 2
    x /= 4
    x **= 2
    x //= 2
    x %= 3
    assert y is x and x.tolist() == [1.0, 2.0]


def test_unknown_operands_are_python_errors() -> None:
    with pytest.raises(TypeError):
        torch.ones(1) + "a"
    assert (torch.ones(1) == "a") is False
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with two bool tensors"):
        torch.tensor([True]) - torch.tensor([True])
    with pytest.raises(RuntimeError, match="negative integer powers"):
        torch.tensor([2]) ** -1


def test_numbers_beyond_the_dtype() -> None:
    assert torch.isinf(torch.ones(1) * 1e300).all()
    assert (torch.tensor([1.0]) * -0.0).tolist() == [-0.0]
    assert str((torch.tensor([1.0]) * -0.0).item()) == "-0.0"
    assert torch.isnan(torch.ones(1) + float("nan")).all()


def test_special_values_do_not_warn() -> None:
    x = torch.tensor([0.0, -1.0, float("inf")], requires_grad=True)
    y = x.log() + x.sqrt() + 1 / x + x**-2
    y.sum().backward()
    assert x.grad.shape == (3,)


def test_numpy_error_state_is_the_users() -> None:
    with np.errstate(all="raise"):
        torch.tensor([0.0]).log()
        assert np.geterr()["divide"] == "raise"


def test_limits_of_dtypes() -> None:
    assert torch.finfo(torch.float32).eps == 2.0**-23 and torch.finfo().bits == 32
    assert torch.iinfo(torch.int8).max == 127 and torch.iinfo(torch.uint8).min == 0
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"


def test_grids_in_both_orders() -> None:
    a, b = torch.arange(2), torch.arange(3)
    x, y = torch.meshgrid(a, b, indexing="xy")
    assert x.tolist() == [[0, 1]] * 3 and y.tolist() == [[0, 0], [1, 1], [2, 2]]
    x, y = torch.meshgrid(a, b)
    assert x.tolist() == [[0] * 3, [1] * 3] and y.tolist() == [[0, 1, 2]] * 2
