"""Data, arguments and copies: what PyTorch infers, converts and refuses, case by case."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch

D = torch.float64
T = torch.tensor


# ---------------------------------------------------------------- data
@pytest.mark.parametrize(
    ("data", "dtype", "values"),
    [
        ([T(1.0, dtype=D), T(2.0)], D, [1.0, 2.0]),
        ([T(1), 2.5], torch.float32, [1.0, 2.5]),
        ([T(1.0, dtype=torch.float16), 2], torch.float16, [1.0, 2.0]),
        ([2.5, T(1.0, dtype=D)], D, [2.5, 1.0]),
        ([T(1j), 2.5], torch.complex64, [1j, 2.5]),
        ([T(True), 2], torch.int64, [1, 2]),
        ([torch.ones(1), torch.ones(1, 1)], torch.float32, [1.0, 1.0]),
        ([[torch.ones(1)], [torch.ones(1, dtype=D)]], D, [[1.0], [1.0]]),
        ([1, torch.ones(1)], torch.float32, [1.0, 1.0]),
        ([[1, 2], torch.ones(2)], torch.float32, [[1.0, 2.0], [1.0, 1.0]]),
        ([1, np.float64(1)], D, [1.0, 1.0]),
        ([np.float32(1), 1.5], torch.float32, [1.0, 1.5]),
        ([[], [1]], torch.float32, [[], []]),
        ([1.5, 2**70], torch.float32, [1.5, float(2**70)]),
        ([np.ones(2), np.zeros(2)], D, [[1.0, 1.0], [0.0, 0.0]]),
    ],
)  # fmt: skip
def test_lists_promote_element_by_element(data: Any, dtype: Any, values: Any) -> None:
    found = torch.tensor(data)
    assert found.dtype == dtype and found.tolist() == values


@pytest.mark.parametrize(
    ("data", "dtype", "error", "words"),
    [
        ([torch.ones(2)], None, ValueError, "only one element tensors can be converted"),
        ([1, torch.ones(2)], None, ValueError, "only one element tensors can be converted"),
        ([1.0, T(1.0)], torch.int64, TypeError, "only integer tensors of a single element"),
        (float("nan"), torch.uint8, RuntimeError, "type uint8 without overflow"),
        ([300], torch.uint8, RuntimeError, "type uint8 without overflow"),
        (-256, torch.uint8, RuntimeError, "type uint8 without overflow"),
        (-0.5, torch.uint8, RuntimeError, "type uint8 without overflow"),
        (127.9, torch.int8, RuntimeError, "type int8 without overflow"),
        (float("inf"), torch.int64, RuntimeError, "type int64 without overflow"),
        (2.0**63, torch.int64, RuntimeError, "type int64 without overflow"),
        (np.int64(300), torch.uint8, RuntimeError, "type uint8 without overflow"),
        ([1j], torch.float32, TypeError, "must be real number, not complex"),
        (1j, torch.int64, TypeError, "cannot be interpreted as an integer"),
        ({}, None, RuntimeError, "Could not infer dtype of dict"),
        ([{}], None, RuntimeError, "Could not infer dtype of dict"),
        (set(), None, RuntimeError, "Could not infer dtype of set"),
        ([1, None], None, RuntimeError, "Could not infer dtype of NoneType"),
        (b"a", None, TypeError, "invalid data type 'bytes'"),
        ([1, "a"], None, TypeError, "invalid data type 'str'"),
        ([["a"]], None, ValueError, "too many dimensions 'str'"),
        (2**63, None, ValueError, "Overflow when unpacking long long"),
        ([1, 2**63], None, ValueError, "Overflow when unpacking long long"),
        ([[1], [2, 3]], None, ValueError, r"expected sequence of length 1 at dim 1 \(got 2\)"),
        ([[[1, 2]], [[3]]], None, ValueError, r"expected sequence of length 2 at dim 2 \(got 1\)"),
        ([1, [2, 3]], None, TypeError, "'list' object cannot be interpreted as an integer"),
        ([1.0, [2.0]], None, TypeError, "must be real number, not list"),
        ([np.array(1)], None, TypeError, "len"),
        (np.arange(4)[::-1], None, ValueError, "At least one stride"),
    ],
)  # fmt: skip
def test_data_that_is_refused(data: Any, dtype: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        torch.tensor(data, dtype=dtype)


def test_numbers_wrap_only_where_pytorch_lets_them() -> None:
    assert T(-255, dtype=torch.uint8).item() == 1
    assert T(np.array([300.0]), dtype=torch.uint8).tolist() == [44]
    assert T(1j, dtype=torch.bool).item() is True
    assert T(2**63, dtype=D).item() == 2.0**63
    assert T([2**62 + 1, 1.5], dtype=torch.int64).tolist() == [2**62 + 1, 1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.full((2,), 300, dtype=torch.uint8), RuntimeError, "type uint8_t without"),
        (lambda: torch.full((2,), 1e300, dtype=torch.float32), RuntimeError, "type float without"),
        (lambda: torch.full((2,), 1j, dtype=torch.float32), RuntimeError, "type float without"),
        (lambda: torch.full_like(torch.ones(2).byte(), 300), RuntimeError, "uint8_t without"),
        (lambda: torch.full((2,), "a"), TypeError, "must be Number, not str"),
        (lambda: torch.full((2,), torch.ones(1)), TypeError, "must be Number, not Tensor"),
        (lambda: torch.full(3, 1), TypeError, "must be tuple of ints, not int"),
        (lambda: torch.zeros(True), TypeError, "must be tuple of ints, not bool"),
        (lambda: torch.zeros((True, 2)), TypeError, "found element of type bool at pos 0"),
        (lambda: torch.ones(2, 3.0), TypeError, "pos 2 .*got float"),
        (lambda: torch.ones(T(2.0)), TypeError, "must be tuple of ints, not Tensor"),
        (lambda: torch.ones(np.array([2])), TypeError, "not numpy.ndarray"),
        (lambda: torch.zeros(), TypeError, 'missing 1 required positional arguments: "size"'),
        (lambda: torch.zeros(-1), RuntimeError, "Dimension size must be non-negative"),
        (lambda: torch.full((-1,), 1), RuntimeError, "negative dimension -1"),
        (lambda: torch.zeros(2**40, 2**40), RuntimeError, "Storage size calculation overflowed"),
        (lambda: torch.ones(2, dtype="float32"), TypeError, "must be torch.dtype, not str"),
        (lambda: torch.ones(2, requires_grad=1), TypeError, "must be bool, not int"),
        (lambda: torch.eye(True), TypeError, "must be int, not bool"),
        (lambda: torch.eye(2, -1), RuntimeError, "m must be greater or equal to 0"),
        (lambda: torch.arange("a"), TypeError, "must be Number, not str"),
        (lambda: torch.arange(3, dtype=torch.bool), NotImplementedError, "not implemented for 'B"),
        (lambda: torch.arange(2**63), RuntimeError, "type int64_t without overflow"),
        (lambda: torch.linspace(0, 1j, 3, dtype=D), RuntimeError, "can't be safely"),
        (lambda: torch.set_default_dtype("float32"), TypeError, "only floating-point types"),
        (lambda: torch.ones(2, device="foo"), RuntimeError, "Expected one of cpu, cuda"),
        (lambda: torch.ones(2, device="cpu:x"), RuntimeError, "Invalid device string"),
        (lambda: torch.device(""), RuntimeError, "must not be empty"),
        (lambda: torch.ones(2).cuda(), AssertionError, "not compiled with CUDA"),
        (lambda: torch.ones(2).to(0), RuntimeError, "Cannot access accelerator"),
        (lambda: torch.ones(2).to(D, D), TypeError, "invalid combination of arguments"),
        (lambda: torch.ones(2).type("foo"), ValueError, "invalid type: 'foo'"),
    ],
)  # fmt: skip
def test_arguments_that_are_refused(
    call: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        call()


def test_constructors_take_what_pytorch_takes() -> None:
    assert torch.full((2,), np.int32(1)).dtype == torch.int64
    assert torch.full((2,), 1 + 0j, dtype=torch.int64).tolist() == [1, 1]
    assert torch.full_like(torch.ones(1).byte(), -1).tolist() == [255]
    assert torch.zeros(T(2), 3).shape == (2, 3) and torch.arange(end=2).tolist() == [0, 1]
    out = torch.ones(2)
    assert torch.zeros(2, out=out) is out and out.tolist() == [0.0, 0.0]
    assert torch.device("cuda").type == "cuda"  # a name may be held, not used
    assert torch.ones(2).type("torch.DoubleTensor").dtype == D
    assert torch.ones(2).to(other=torch.ones(1, dtype=D)).dtype == D


# ---------------------------------------------------------------- conversions
@pytest.mark.parametrize("kind", [int, float, complex])
@pytest.mark.parametrize("size", [0, 2])
def test_only_one_element_is_a_number(kind: type, size: int) -> None:
    with pytest.raises(ValueError, match="only one element tensors can be converted"):
        kind(torch.ones(size))


def test_complex_to_real_numbers() -> None:
    assert float(T(2 + 0j)) == 2.0 and int(T(2 + 0j)) == 2 and complex(T(1j)) == 1j
    with pytest.raises(RuntimeError, match="type double without overflow"):
        float(T(1j))
    with pytest.raises(RuntimeError, match="type int64_t without overflow"):
        int(T(1j))


def test_containers() -> None:
    t = T([1.0, 2.0])
    for bad in ("a", None, [1]):
        with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
            bad in t  # noqa: B015
    with pytest.raises(TypeError, match="does not support deleting items"):
        del t[0]
    assert 2 in t and reversed(t).tolist() == [2.0, 1.0]


def test_products_with_arrays_promote() -> None:
    t = T([1.0, 2.0], requires_grad=True)
    for product in (t @ np.ones(2), np.ones(2) @ t):
        assert product.dtype == D and product.item() == 3.0
    assert torch.mul(np.float64(2), t).dtype == torch.float32


# ---------------------------------------------------------------- copies
def test_deepcopy_keeps_shared_memory_and_strides() -> None:
    base = torch.arange(6.0)
    parts = [base, base[1:3], base.reshape(2, 3).t(), base[::2], base[:1].expand(4), base.detach()]
    copies = copy.deepcopy(parts)
    assert [c.stride() for c in copies] == [p.stride() for p in parts]
    assert [c.storage_offset() for c in copies] == [p.storage_offset() for p in parts]
    copies[1][0] = 50.0
    assert copies[0][1] == 50.0 and copies[2][1, 0] == 50.0 and base[1] == 1.0
    again = copy.deepcopy(base)
    again[0] = 9.0
    assert copies[0][0] == 0.0 and base[0] == 0.0


def test_deepcopy_of_complex_and_strange_memory() -> None:
    z = T([1 + 1j, 2j])
    whole, real = copy.deepcopy((z, z.real))
    real[0] = 5.0
    assert whole[0] == 5 + 1j and z[0] == 1 + 1j
    for array in (np.zeros((0, 3)), np.asfortranarray(np.ones((2, 3))), np.frombuffer(
            bytearray(b"\x00" * 16)).reshape(2, 1)):  # fmt: skip
        a = torch.from_numpy(array)
        b = copy.deepcopy(a)
        assert b.shape == a.shape and b.stride() == a.stride() and torch.equal(a, b)
        assert not np.may_share_memory(b.numpy(), array)


def test_copies_share_versions_as_the_originals_do() -> None:
    p = torch.ones(2, requires_grad=True)
    q, detached = copy.deepcopy([p, p.detach()])
    y = q * q
    detached[0] = 3.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_copies_and_pickles_keep_grad_and_become_leaves() -> None:
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.full((2,), 3.0)
    y = p * 2
    for make in (copy.copy, lambda t: pickle.loads(pickle.dumps(t))):
        assert make(p).grad.tolist() == [3.0, 3.0]
        found = make(y)
        assert found.is_leaf and found.requires_grad and found.tolist() == [2.0, 2.0]
    turned = torch.arange(6.0).reshape(2, 3).t()
    loaded = pickle.loads(pickle.dumps(turned))
    assert loaded.stride() == (1, 3) and torch.equal(loaded, turned)
    cube = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    loaded = pickle.loads(pickle.dumps(cube))
    assert loaded.stride() == cube.stride() and torch.equal(loaded, cube)


# ---------------------------------------------------------------- functions
M, S = torch.ones(2, 3), T(1.5)
F = torch.nn.functional


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.softmax(M), TypeError, 'missing 1 required positional arguments: "dim"'),
        (lambda: M.log_softmax(), TypeError, 'missing 1 required positional arguments: "dim"'),
        (lambda: torch.cat([M, M], True), TypeError, "must be int, not bool"),
        (lambda: torch.hstack([]), RuntimeError, "expects a non-empty TensorList"),
        (lambda: S.narrow(0, 0, 1), RuntimeError, "narrow\\(\\) cannot be applied to a 0-dim"),
        (lambda: M.narrow(0, -3, 1), IndexError, "start out of range"),
        (lambda: M.narrow(0, 1, -1), RuntimeError, "length must be non-negative"),
        (lambda: M.narrow(0, 1, 2), RuntimeError, "exceeds dimension size"),
        (lambda: M[0].expand(-1, 3), RuntimeError, "isn't allowed in a leading, non-existing dim"),
        (lambda: M.expand(), TypeError, "missing 1 required positional"),
        (lambda: M.reshape(True, 6), TypeError, "found element of type bool"),
        (lambda: M.flip(0, 0), RuntimeError, "appears multiple times"),
        (lambda: M.movedim((0, 0), (0, 1)), RuntimeError, "repeated dim in `source`"),
        (lambda: M.unflatten(1, (2, 2)), RuntimeError, "don't multiply up to the size of dim 1"),
        (lambda: M.split([1, 1.0]), TypeError, "got float"),
        (lambda: M.roll((1, 2)), RuntimeError, "shifts and dimensions must align"),
        (lambda: M.repeat_interleave(T([1, 2, 3]), 0), RuntimeError, "same size as input along"),
        (lambda: M.repeat_interleave(-1), RuntimeError, "must be non-negative"),
        (lambda: torch.tril(M[0]), RuntimeError, "must have at least 2 dimensions"),
        (lambda: torch.meshgrid(M), RuntimeError, "Expected 0D or 1D tensor"),
        (lambda: torch.hsplit(M, 2), RuntimeError, "not divisible by the split_size"),
        (lambda: M.unfold(0, 3, 1), RuntimeError, "maximum size for tensor at dimension 0"),
        (lambda: torch.select_scatter(M, M[0], 1, 0), RuntimeError, "equal to the slice"),
        (lambda: torch.masked_scatter(M, M > 0, M[0]), RuntimeError, "Number of elements of"),
        (lambda: torch.scatter_reduce(M, 0, T([[0]]), M, "foo"), RuntimeError, "either sum"),
        (lambda: torch.inner(M, M[0, :2]), RuntimeError, "last dimension must match"),
        (lambda: torch.cross(M, M[:, :2], dim=1), RuntimeError, "size|length"),
        (lambda: torch.cdist(M, torch.ones(2, 2)), RuntimeError, "same number of columns"),
        (lambda: torch.quantile(M, 2.0), RuntimeError, "range \\[0, 1\\]"),
        (lambda: torch.quantile(M.long(), 0.5), RuntimeError, "either float or double"),
        (lambda: torch.kthvalue(M, 4), RuntimeError, "selected number k out of range"),
        (lambda: torch.gcd(M, M), NotImplementedError, "not implemented for 'Float'"),
        (lambda: torch.numel(1), TypeError, "must be Tensor, not int"),
        (lambda: torch.set_grad_enabled(1), TypeError, "must be bool, not int"),
        (lambda: torch.set_num_threads(0), RuntimeError, "expects a positive integer"),
        (lambda: torch.FloatTensor(2.5), TypeError, "data must be a sequence"),
        (lambda: torch.FloatTensor("a"), TypeError, "invalid data type 'str'"),
        (lambda: torch.nn.Parameter(M.long()), RuntimeError, "Only Tensors of floating point"),
        (lambda: F.cross_entropy(M, T([0, 1]), label_smoothing=2.0), RuntimeError, "between 0.0"),
        (lambda: F.binary_cross_entropy(M, M[0]), ValueError, "Using a target size"),
        (lambda: F.binary_cross_entropy(M * 2, M), RuntimeError, "between 0 and 1"),
        (lambda: F.binary_cross_entropy_with_logits(M, M[0]), ValueError, "must be the same as"),
        (lambda: F.mse_loss(M, M, reduction="foo"), ValueError, "not a valid value for reduction"),
        (lambda: F.batch_norm(M[:1], None, None, training=True), ValueError, "more than 1 value"),
        (lambda: F.batch_norm(M, None, None), RuntimeError, "must be defined in evaluation mode"),
        (lambda: F.group_norm(M, 2), RuntimeError, "divisible by num_groups"),
        (lambda: F.layer_norm(M, (2,)), RuntimeError, "expected input with shape"),
        (lambda: F.glu(M), RuntimeError, "Halving dimension must be even"),
        (lambda: F.prelu(M, torch.ones(2)), RuntimeError, "Mismatch of parameter numbers"),
        (lambda: F.embedding(T([5]), M), IndexError, "index out of range in self"),
        (lambda: F.embedding(T([1.0]), M), RuntimeError, "scalar types: Long, Int"),
        (lambda: F.one_hot(T([-1])), RuntimeError, "must be non-negative"),
        (lambda: F.one_hot(torch.ones(0).long()), RuntimeError, "Can not infer total number"),
        (lambda: F.hardswish(M.long()), NotImplementedError, "not implemented for 'Long'"),
        (lambda: F.elu(M.long()), NotImplementedError, "not implemented for 'Long'"),
        (lambda: F.layer_norm(M, (3,), torch.ones(2)), RuntimeError, "same shape as normalized"),
        (lambda: F.instance_norm(M), ValueError, "more than 1 spatial element"),
        (lambda: F.bilinear(M, M, torch.ones(4, 3, 2)), RuntimeError, "input2 size does not match"),
        (lambda: torch.aminmax(torch.ones(0)), RuntimeError, "no identity"),
        (lambda: F.one_hot(T([1.0])), RuntimeError, "index tensor of type LongTensor"),
        (lambda: F.hardtanh(M, 2.0, 1.0), ValueError, "min_val cannot be greater"),
    ],
)  # fmt: skip
def test_calls_that_are_refused(
    call: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        call()


def test_guesses_and_broadcasts_warn() -> None:
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        assert torch.equal(F.softmax(M), torch.softmax(M, 1))
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(M, M[0])


def directional(function: Callable[[Any], Any], x: Any, direction: Any) -> tuple[float, float]:
    """A derivative by backward, and by a central difference."""
    leaf = T(x, requires_grad=True)
    function(leaf).sum().backward()
    h = 1e-6
    up, down = (function(T(x + s * h * direction)).sum().item() for s in (1, -1))
    return float((leaf.grad.numpy() * direction).sum()), (up - down) / (2 * h)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: torch.cdist(a, a[:1] + 1.0, 1.0), lambda a: torch.cdist(a, a[1:] * 2.0),
        lambda a: torch.cdist(a, a[:1] + 1.0, 3.0), lambda a: torch.vander(a[0], 4),
        lambda a: F.hardsigmoid(a * 3) * a,
    ],
)  # fmt: skip
def test_derivatives_that_pytorch_cannot_take_twice(function: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(3)
    x, direction = rng.uniform(-2, 2, (3, 4)), rng.normal(size=(3, 4))
    got, want = directional(function, x, direction)
    assert got == pytest.approx(want, rel=1e-6) and abs(want) > 1e-3


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (F.hardswish, [0.0, 1.0]), (F.hardsigmoid, [0.0, 0.0]), (F.hardtanh, [0.0, 0.0]),
        (F.celu, [0.0, 1.0]), (F.softshrink, [1.0, 1.0]), (F.hardshrink, [1.0, 1.0]),
        (lambda x: F.smooth_l1_loss(x, torch.zeros(2), reduction="none"), [-1.0, 1.0]),
        (lambda x: F.huber_loss(x, torch.zeros(2), reduction="none"), [-1.0, 1.0]),
        (lambda x: F.prelu(x, T([0.25])), [0.25, 1.0]),
    ],
)  # fmt: skip
def test_gradients_at_infinity(function: Callable[[Any], Any], want: list[float]) -> None:
    x = T([-np.inf, np.inf], requires_grad=True)
    function(x).sum().backward()
    assert x.grad.tolist() == want


@pytest.mark.parametrize("name", ["hardswish", "celu", "elu", "selu", "softshrink", "hardshrink",
                                  "hardtanh", "hardsigmoid", "mish", "prelu"])  # fmt: skip
def test_nan_stays_nan(name: str) -> None:
    x = T([float("nan"), 1.0])
    found = getattr(F, name)(x, T([0.5])) if name == "prelu" else getattr(F, name)(x)
    assert found.isnan().tolist() == [True, False]


def test_the_weight_of_prelu_sees_no_infinity() -> None:
    w = T([0.25], requires_grad=True)
    F.prelu(T([np.inf, -2.0]), w).sum().backward()
    assert w.grad.tolist() == [-2.0]


def test_signs_of_zeros() -> None:
    assert torch.copysign(M[0], T([-0.0, 1.0, -1.0])).tolist() == [-1.0, 1.0, -1.0]
    x = torch.zeros(4)
    assert x.masked_scatter_(T([True, False] * 2), T([5.0, 6.0])).tolist() == [5.0, 0.0, 6.0, 0.0]
    assert x.scatter_reduce_(0, T([1, 1]), T([3.0, 4.0]), "sum").tolist() == [5.0, 7.0, 6.0, 0.0]


def test_functions_without_gradients() -> None:
    assert torch.searchsorted(T([1, 5]), T([1, 5]), right=True).tolist() == [1, 2]
    assert torch.searchsorted(T([[1, 5], [2, 3]]), T([[1], [4]])).tolist() == [[0], [2]]
    assert torch.bucketize(T([1, 5, 9]), T([1, 5])).tolist() == [0, 1, 2]
    assert torch.histc(T([1.0, 2.0, 3.0]), 3).tolist() == [1.0, 1.0, 1.0]
    assert torch.isin(T([1, 2]), 2).tolist() == [False, True]
    assert torch.gcd(T([4, 6]), T([6, 9])).tolist() == [2, 3]
    assert torch.heaviside(T([-1.0, 0.0, 2.0]), T([0.5])).tolist() == [0.0, 0.5, 1.0]
    assert torch.tril_indices(2, 2).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert torch.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    assert torch.scatter_reduce(T([1, 2]), 0, T([0, 0]), T([3, 4]), "prod").tolist() == [12, 2]
    assert torch.quantile(T([1.0, float("nan")]), 0.5).isnan()
    assert torch.nanquantile(T([1.0, float("nan"), 3.0]), 0.5).item() == 2.0
    assert torch.nanmedian(T([1.0, float("nan"), 3.0])).item() == 1.0
    values, places = torch.mode(T([3.0, 1.0, 3.0, 1.0]))
    assert values.item() == 1.0 and places.item() == 3


def test_windows_are_views() -> None:
    x = torch.arange(4.0)
    w = x.unfold(0, 2, 1)
    x[1] = 9.0
    assert w.tolist() == [[0.0, 9.0], [9.0, 2.0], [2.0, 3.0]]
    mapped = torch.vmap(lambda a: a.unfold(0, 2, 2).sum(1))(torch.arange(8.0).reshape(2, 4))
    assert mapped.tolist() == [[1.0, 5.0], [9.0, 13.0]]


def test_tensors_that_turn_into_views_of_themselves() -> None:
    x = torch.ones(2, 3)
    assert x.t_() is x and x.shape == (3, 2) and x._version == 1
    leaf = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.t_()
    y = leaf * 2
    y.unsqueeze_(0).transpose_(0, 1)
    assert y.shape == (2, 1, 3)
    (y * torch.arange(6.0).reshape(2, 1, 3)).sum().backward()
    assert leaf.grad.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    y[0].squeeze_()  # a view of what it was, no change in memory
    assert y.shape == (2, 1, 3)


def test_running_statistics_move() -> None:
    mean, var = torch.zeros(3), torch.ones(3)
    x = torch.arange(6.0).reshape(2, 3)
    x.requires_grad_()
    F.batch_norm(x, mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [0.75, 1.25, 1.75] and var.tolist() == [2.75] * 3
    assert not mean.requires_grad


def test_parameters() -> None:
    t = torch.ones(2)
    p = torch.nn.Parameter(t)
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert p.is_leaf and isinstance(p, torch.Tensor) and type(p * 2) is torch.Tensor
    t[0] = 5.0
    assert p[0] == 5.0  # the same memory
    (p * p).sum().backward()
    assert p.grad.tolist() == [10.0, 2.0]
    for found in (copy.deepcopy(p), copy.copy(p), pickle.loads(pickle.dumps(p))):
        assert type(found) is torch.nn.Parameter and found.grad.tolist() == [10.0, 2.0]
    assert torch.nn.Parameter(p * 2).is_leaf and torch.nn.Parameter().shape == (0,)


def test_older_constructors() -> None:
    assert torch.LongTensor([1.5, 2]).tolist() == [1, 2]
    assert torch.FloatTensor(2, 3).shape == (2, 3) and torch.DoubleTensor().dtype == D
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert not isinstance(torch.ones(1), torch.DoubleTensor)
    assert torch.ones(1).type(torch.DoubleTensor).dtype == D
    assert torch.get_num_threads() > 0 and torch.cuda.is_available() is False
