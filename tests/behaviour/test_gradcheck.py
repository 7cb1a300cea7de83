"""`gradcheck` and `gradgradcheck`: what passes, what is caught, and how it is said."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck
from pullback.autograd.gradcheck import GradcheckError
from pullback.transforms.gradcheck_jacobians import check_gradient

F = torch.nn.functional


# ---------------------------------------------------------------- every group of primitives
def shuffled(values: Any) -> Any:
    """In an order that is the same whichever tests run."""
    return np.random.default_rng(3).permutation(values)


def real(*shape: int, low: float = 0.3, high: float = 1.7) -> torch.Tensor:
    """Distinct values inside the domain of all functions below, away from kinks."""
    values = np.linspace(low, high, max(int(np.prod(shape)), 1))[: int(np.prod(shape))]
    return torch.from_numpy(shuffled(values).reshape(shape)).requires_grad_()


def other(*shape: int) -> torch.Tensor:
    """As `real`, and equal to it nowhere."""
    return real(*shape, low=0.41, high=1.93)


def signed(*shape: int) -> torch.Tensor:
    """Values of both signs, none near zero, no two alike."""
    values = np.linspace(0.3, 1.7, int(np.prod(shape))) * np.where(np.arange(np.prod(shape)) % 2,
                                                                   -1, 1)  # fmt: skip
    return torch.from_numpy(shuffled(values).reshape(shape)).requires_grad_()


def cplx(*shape: int) -> torch.Tensor:
    """Complex values in the first quadrant."""
    rng = np.random.default_rng(3)
    found = rng.uniform(0.3, 1.2, shape) + 1j * rng.uniform(0.3, 1.2, shape)
    return torch.from_numpy(np.asarray(found)).requires_grad_()


def turned(make: Callable[..., torch.Tensor], *shape: int) -> torch.Tensor:
    """A transposed view: not contiguous."""
    return make(*shape[::-1]).detach().permute(*range(len(shape))[::-1]).requires_grad_()


INDEX = torch.tensor([0, 1, 1])
UNARY: dict[str, Callable[..., Any]] = {
    name: getattr(torch, name)
    for name in "exp log sin cos tan tanh sinh sqrt rsqrt reciprocal square neg sigmoid".split()
}
UNARY |= {
    "pow": lambda a: a**2.5, "mul number": lambda a: 3 * a - 1, "rdiv": lambda a: 2 / a,
    "sum": lambda a: a.sum(), "mean": lambda a: a.mean(), "cumsum": lambda a: a.cumsum(-1),
    "clone": lambda a: a.clone() * a, "in-place": lambda a: a.clone().mul_(2).add_(a),
    "flip": lambda a: a.flip(-1) * a, "reshape": lambda a: a.reshape(-1) ** 2,
    "expand": lambda a: a.expand(2, *a.shape) ** 2, "unsqueeze": lambda a: a.unsqueeze(0) * a,
    "where": lambda a: torch.where(a.abs() > 0.8, a * a, a),
    "masked_fill": lambda a: a.masked_fill(a.abs() > 0.8, 0.0) ** 2,
}  # fmt: skip
REAL_ONLY: dict[str, Callable[..., Any]] = {
    name: getattr(torch, name) for name in "log1p expm1 exp2 atan asinh erf abs relu frac".split()
}
REAL_ONLY |= {
    "clamp": lambda a: a.clamp(0.5, 1.2), "softmax": lambda a: a.softmax(-1),
    "log_softmax": lambda a: a.log_softmax(-1), "logsumexp": lambda a: a.logsumexp(-1),
    "gelu": F.gelu, "softplus": F.softplus, "silu": F.silu, "float": lambda a: a * a.sign(),
    "max": lambda a: a.amax(-1), "sort": lambda a: a.sort(-1)[0], "norm": lambda a: a.norm(),
    "cumprod": lambda a: a.cumprod(-1), "prod": lambda a: a.prod(-1), "std": lambda a: a.std(-1),
    "var_mean": lambda a: torch.var_mean(a, -1), "complex": lambda a: torch.complex(a, a * a),
    "median": lambda a: a.median(-1)[0], "polar": lambda a: torch.polar(a, a * a),
}  # fmt: skip
COMPLEX_ONLY: dict[str, Callable[..., Any]] = {
    "conj": lambda a: a.conj() * a * a, "real": lambda a: (a * a).real, "abs": torch.abs,
    "imag": lambda a: (a * a).imag, "angle": torch.angle, "sgn": torch.sgn,
}  # fmt: skip
BINARY: dict[str, Callable[..., Any]] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "cat": lambda a, b: torch.cat([a.reshape(-1), b.reshape(-1)]) ** 2,
}  # fmt: skip
REAL_BINARY: dict[str, Callable[..., Any]] = {
    "atan2": torch.atan2, "maximum": torch.maximum, "hypot": torch.hypot,
    "logaddexp": torch.logaddexp, "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "mse_loss": lambda a, b: F.mse_loss(*torch.broadcast_tensors(a, b)),
}  # fmt: skip
MATRIX: dict[str, Callable[..., Any]] = {
    "matmul": lambda a, b: a @ b, "mv": lambda a, b: a @ b[:, 0],
    "einsum": lambda a, b: torch.einsum("ij,jk->ki", a, b), "outer": lambda a, b: torch.outer(
        a[0], b[0]), "tril": lambda a, b: (a @ b).tril() ** 2, "index": lambda a, b: a[INDEX] @ b,
    "getitem": lambda a, b: a[1:, ::2] * b[0, 0], "diagonal": lambda a, b: (a @ b).diagonal() ** 2,
    "index_add": lambda a, b: (a @ b).index_add(0, INDEX[:2], b[:2]) ** 2,
    "gather": lambda a, b: a.gather(1, INDEX[:2].reshape(2, 1)) * b[0],
    "scatter_add": lambda a, b: a.scatter_add(1, INDEX[None], b[:1]) ** 2,
    "view write": lambda a, b: written(a, b), "stack": lambda a, b: torch.stack([a.t(), b]) ** 2,
    "roll": lambda a, b: a.roll(1, 1) @ b, "repeat": lambda a, b: a.repeat(2, 1) @ b,
    "tuple": lambda a, b: (a @ b, a.sum() * b, b**2),
}  # fmt: skip


def written(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """An in-place change through a view."""
    c = a * 1
    c[0, :2] = b[0, 0] * 2
    c.t()[1].mul_(a[0, 0])
    return c * c


def cases() -> list[Any]:
    """Each function with inputs of each kind: plain, 0-d, empty, broadcast, not contiguous."""
    found = []

    def add(name: str, f: Any, kind: str, *inputs: torch.Tensor) -> None:
        found.append(pytest.param(name, f, inputs, id=f"{name}-{kind}"))

    shapes = {"2d": (2, 3), "0d": (), "empty": (0, 2)}
    for name, f in (UNARY | REAL_ONLY).items():
        for kind, shape in shapes.items():
            reduces = name in ("max", "std", "var_mean", "median")
            if (kind == "0d" and (reduces or name in ("flip", "cumprod"))) or (
                kind == "empty" and name == "norm"
            ):
                continue
            add(name, f, kind, real(*shape))
        add(name, f, "turned", turned(real, 3, 2))
    for name, f in (UNARY | COMPLEX_ONLY).items():
        for kind, shape in shapes.items():
            if not (kind == "0d" and name == "flip"):
                add(name, f, f"complex {kind}", cplx(*shape))
        add(name, f, "complex turned", turned(cplx, 3, 2))
    for name, f in (BINARY | REAL_BINARY).items():
        add(name, f, "2d", real(2, 3), other(2, 3))
        add(name, f, "broadcast", real(2, 1), other(3))
        add(name, f, "0d", real(), other(2))
        if name != "mse_loss":  # the mean of nothing is NaN
            add(name, f, "empty", real(0, 3), real(1, 3))
        add(name, f, "turned", turned(real, 3, 2), turned(other, 3, 2))
    for name, f in BINARY.items():
        add(name, f, "complex", cplx(2, 3), cplx(3))
        add(name, f, "mixed", cplx(2, 1), real(3))
    for name, f in MATRIX.items():
        add(name, f, "2d", real(2, 3), signed(3, 2) if name != "scatter_add" else signed(3, 3))
        add(name, f, "turned", turned(real, 2, 3), turned(signed, 3, 2 + (name == "scatter_add")))
        add(name, f, "complex", cplx(2, 3), cplx(3, 2 + (name == "scatter_add")))
    return found


@pytest.mark.parametrize(("name", "f", "inputs"), cases())
def test_first_and_second_order(name: str, f: Any, inputs: tuple[torch.Tensor, ...]) -> None:
    before = [x.detach().numpy().copy() for x in inputs]
    assert gradcheck(f, inputs, check_grad_dtypes=True, check_batched_grad=True)
    assert gradcheck(f, inputs, fast_mode=True)
    assert gradgradcheck(f, inputs, gen_non_contig_grad_outputs=True)
    assert gradgradcheck(f, inputs, fast_mode=True)
    for x, b in zip(inputs, before, strict=True):
        assert np.array_equal(x.detach().numpy(), b) and x.grad is None


def test_second_order_of_logaddexp_at_a_tie() -> None:
    assert gradgradcheck(torch.logaddexp, (real(3), real(3).detach()))
    a = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(torch.logaddexp, (a, torch.ones(2, dtype=torch.float64)))


# ---------------------------------------------------------------- what is caught
def spoiled(f: Any, spoil: Any) -> Any:
    """`f` with a wrong derivative: `spoil` changes the gradient on its way back."""

    def wrong(*xs: torch.Tensor) -> torch.Tensor:
        out = f(*xs)
        out.register_hook(spoil)
        return out.clone()

    return wrong


def nudge(g: torch.Tensor) -> torch.Tensor:
    """One column in three off by a tenth."""
    return g * torch.tensor([1.0, 1.0, 1.1], dtype=torch.float64)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("make", [real, cplx])
def test_a_wrong_entry_is_named(fast: bool, make: Any) -> None:
    f = spoiled(lambda a: a * a, nudge)
    x = make(2, 3)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(f, (x,), fast_mode=fast)
    text = str(caught.value)
    assert "Jacobian mismatch for output 0 with respect to input 0,\nnumerical:" in text
    assert "\nanalytical:" in text and "2 of 36 entries differ" in text
    assert ", 2] / d input[" in text and "relative 0.1;" in text and "rtol=0.001" in text
    assert "test_gradcheck.py:" in text
    assert ("imaginary part of complex outputs only" in text) == (make is cplx)
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, torch.PullbackError)
    assert gradcheck(f, (x,), fast_mode=fast, raise_exception=False) is False
    assert gradcheck(f, (x,), fast_mode=fast, rtol=0.2)


def test_the_numbers_of_the_pair_are_right() -> None:
    bad = spoiled(lambda a: a * 2, lambda g: g * 1.5)
    a, b = real(2), real(2)
    with pytest.raises(GradcheckError, match="for output 1 with respect to input 1"):
        gradcheck(lambda x, y: (x * y, bad(y) + x), (a, b))
    with pytest.raises(GradcheckError, match="for output 0 with respect to input 0,"):
        gradcheck(lambda k, y: bad(y) * k, (3.0, a))


@pytest.mark.parametrize("fast", [False, True])
def test_the_second_order_is_checked_apart(fast: bool) -> None:
    def cube(a: torch.Tensor) -> torch.Tensor:  # right gradient, whose own derivative is lost
        return a.detach() ** 3 + 3 * a.detach() ** 2 * (a - a.detach())

    x = real(3)
    assert gradcheck(cube, (x,), fast_mode=fast)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(cube, (x,), fast_mode=fast)


def test_both_parts_of_a_complex_gradient_count() -> None:
    z = cplx(2)
    conjugated = spoiled(lambda a: a * a, lambda g: g.conj())
    assert not gradcheck(conjugated, (z,), raise_exception=False)
    assert not gradcheck(conjugated, (z,), raise_exception=False, fast_mode=True)
    x = real(2)
    with pytest.raises(GradcheckError, match="While considering the imaginary part"):
        gradcheck(spoiled(lambda a: torch.complex(a, a * a),
                          lambda g: torch.complex(g.real, g.imag * 0.9)), (x,))  # fmt: skip
    with pytest.raises(GradcheckError, match="While considering the real part"):
        gradcheck(spoiled(lambda a: torch.complex(a, a * a),
                          lambda g: torch.complex(g.real * 0.9, g.imag)), (x,))  # fmt: skip


@pytest.mark.parametrize("fast", [False, True])
def test_passes_that_differ_are_refused(fast: bool) -> None:
    noise = iter(np.linspace(1.0, 1.0 + 1e-6, 100))
    f = spoiled(lambda a: a * 2, lambda g: g * float(next(noise)))
    x = real(2)
    with pytest.raises(GradcheckError, match="not reentrant.*The tolerance for nondeterminism was"):
        gradcheck(f, x, fast_mode=fast)
    assert gradcheck(f, x, nondet_tol=1e-4, fast_mode=fast)


def test_size_and_dtype_of_gradients() -> None:
    """The engine makes gradients fit, so that only a fault of ours could get here."""
    x = real(2)
    with pytest.raises(GradcheckError, match="incorrect size.*\\[2\\].*\\[3\\]"):
        check_gradient(torch.ones(3).double(), x, 0, False)
    with pytest.raises(GradcheckError, match="dtype mismatch: for input 1.*float64.*float32"):
        check_gradient(torch.ones(2), x, 1, True)
    check_gradient(torch.ones(2), x, 1, False)
    assert gradcheck(lambda a: a.float() * 2, x, eps=1e-2, atol=1e-3, check_grad_dtypes=True)


def test_gradients_that_do_not_come_from_the_cotangent() -> None:
    f = spoiled(lambda a: a * 1, lambda g: torch.ones_like(g))
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(f, real(1))


def test_missing_cotangents() -> None:
    """A backward that goes wrong only when one output has no cotangent, and the other zeros."""

    def two_outputs(otherwise: Any) -> Any:
        reached: list[bool] = []

        def first(g: torch.Tensor) -> None:
            reached.append(True)

        def shared(g: torch.Tensor) -> Any:
            good = bool(reached) or bool(g.any())
            reached.clear()
            return None if good else otherwise(g)

        def f(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
            both = a * 2
            both.register_hook(shared)
            out = both * 1
            out.register_hook(first)
            return out, both * 3

        return f

    def refuse(g: torch.Tensor) -> None:
        raise RuntimeError("needs both")

    x = real(2)
    with pytest.raises(GradcheckError, match="handle undefined output grads.*output 0.*needs both"):
        gradcheck(two_outputs(refuse), x)
    with pytest.raises(GradcheckError, match="all input grads to be undefined or zero"):
        gradcheck(two_outputs(torch.ones_like), x)
    for otherwise in (refuse, torch.ones_like):
        assert gradcheck(two_outputs(otherwise), x, check_undefined_grad=False)


def test_functions_without_a_graph() -> None:
    x = real(2)
    assert gradcheck(lambda a: torch.ones(3, dtype=torch.float64), x)
    assert gradcheck(lambda a: a.long(), real(2, low=0.4, high=0.6))
    for fast in (False, True):
        with pytest.raises(GradcheckError, match="gradient for function expected to be zero"):
            gradcheck(lambda a: a.detach() * 2, x, fast_mode=fast)
    with pytest.raises(GradcheckError, match="no gradient to differentiate"):
        gradgradcheck(lambda a: a.detach() * 2, x)
    assert not gradgradcheck(lambda a: a.detach() * 2, x, raise_exception=False)


def test_nan_never_passes() -> None:
    x = torch.tensor([-1.0, 2.0], dtype=torch.float64, requires_grad=True)
    for fast in (False, True):
        assert not gradcheck(torch.sqrt, x, raise_exception=False, fast_mode=fast)
    assert not gradcheck(spoiled(torch.exp, lambda g: g * float("nan")), x, raise_exception=False)


def test_random_functions_fail_and_errors_of_the_function_pass_through() -> None:
    x = real(3)
    assert not gradcheck(lambda a: a * torch.rand(3).double(), x, raise_exception=False)
    with pytest.raises(RuntimeError, match="is invalid for input of size 3"):
        gradcheck(lambda a: a.reshape(2), x, raise_exception=False)
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda a: a / (1 // 0), x)


# ---------------------------------------------------------------- inputs
def test_single_precision_warns_at_the_users_line() -> None:
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double") as seen:
        assert gradcheck(lambda a: a * a, x, eps=1e-2, atol=1e-2)
    assert seen[0].filename.endswith("test_gradcheck.py")
    y = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradcheck(lambda a, b: a * b, (y, torch.tensor([2.0])))  # needs no gradient


def test_overlapping_memory_is_refused() -> None:
    x = real(4).detach()
    stretched = x[:1].expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="0th input has a dimension with stride 0"):
        gradcheck(lambda a: a * a, stretched, raise_exception=False)
    array = np.lib.stride_tricks.as_strided(np.arange(4.0), (2, 2), (8, 8))
    sliding = torch.from_numpy(array).requires_grad_()
    with pytest.raises(RuntimeError, match="non-overlapping"):
        gradcheck(lambda a: a * a, sliding)
    whole = x.clone()
    parts = [whole[:3].requires_grad_(), whole[2:].requires_grad_()]
    with pytest.raises(RuntimeError, match="Inputs 0 and 1 share memory"):
        gradcheck(lambda a, b: a.sum() * b.sum(), parts)
    disjoint = [whole[:2].requires_grad_(), whole[2:].requires_grad_()]
    assert gradcheck(lambda a, b: a.sum() * b.sum(), disjoint)
    y = real(3)
    assert gradcheck(lambda a, b: a * b, (y, y))  # one tensor twice: all gradients are of it


def test_read_only_memory_is_refused() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.from_numpy(array).requires_grad_()
    if x.detach().numpy().flags.writeable:
        pytest.fail("the tensor took a copy: this test tests nothing")
    with pytest.raises(RuntimeError, match="read-only"):
        gradcheck(lambda a: a * a, x)


def test_functions_that_read_the_tensor_itself() -> None:
    w = real(2, 2)
    x = real(2)
    assert gradcheck(lambda *_: w @ x, (w, x))


def test_forms_of_inputs_and_outputs() -> None:
    x = real(2)
    assert gradcheck(lambda a: [a * 2, a], [x])
    assert gradcheck(lambda a, k, s: a * k, (x, 3.0, "text"))
    assert gradcheck(lambda a: a[:0], x)
    assert gradcheck(lambda a, b: a * 2, (x, real(3)))  # the second is not used
    assert gradcheck(lambda a: a, x) and gradcheck(lambda a: (a, a.long()), x)
    assert gradgradcheck(lambda a: a**3, x, torch.ones(2, dtype=torch.float64))
    assert gradgradcheck(lambda a: (a**3, a.sin()), x, (real(2), real(2)))
    with torch.no_grad():
        assert gradcheck(lambda a: a * a, x) and gradgradcheck(lambda a: a**3, x)
    assert gradcheck(lambda a: a * a, x * 2)  # a tensor with a history


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: gradcheck(torch.sin, x.detach()), ValueError, "at least one input tensor"),
        (lambda x: gradcheck(torch.sin, x.detach(), raise_exception=False), ValueError,
         "none of them have requires_grad=True"),
        (lambda x: gradcheck(torch.sin, x, check_backward_ad=False), AssertionError,
         "at least one of check_forward_ad or check_backward_ad"),
        (lambda x: gradcheck(torch.sin, x, check_backward_ad=False, check_forward_ad=True,
                             check_batched_grad=True), AssertionError,
         "check_batched_grad=True requires check_backward_ad"),
        (lambda x: gradcheck(torch.sin, x, check_batched_forward_grad=True), AssertionError,
         "check_batched_forward_grad=True requires check_forward_ad"),
        (lambda x: gradgradcheck(torch.sin, x, check_rev_over_rev=False), AssertionError,
         "at least one of check_fwd_over_rev or check_rev_over_rev"),
        (lambda x: gradgradcheck(torch.sin, x, check_rev_over_rev=False, check_fwd_over_rev=True,
                                 check_batched_grad=True), AssertionError,
         "check_batched_grad=True requires check_rev_over_rev"),
        (lambda x: gradcheck(lambda a: (a, 3), x), TypeError, "output 1 is int"),
        (lambda x: gradcheck(lambda a: None, x), TypeError, "output 0 is NoneType"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        call(real(2))
    assert isinstance(caught.value, torch.PullbackError)
    assert "test_gradcheck.py:" in str(caught.value)


# ---------------------------------------------------------------- batches
def test_batched_gradients_are_compared() -> None:
    x = real(3)

    def bad(g: torch.Tensor) -> torch.Tensor:  # what a batch cannot do
        return g if float(g.sum()) < 1e9 else g * 2

    f = spoiled(lambda a: a * 2, bad)
    assert gradcheck(f, x)
    with pytest.raises(GradcheckError, match="While computing batched gradients, got"):
        gradcheck(f, x, check_batched_grad=True)

    def wrong(g: torch.Tensor) -> torch.Tensor:  # another value in a batch than alone
        return g * (1.0 if type(g._data) is np.ndarray else 2.0)

    with pytest.raises(GradcheckError, match="output 0 and input 0.*batched gradient"):
        gradcheck(spoiled(lambda a: a * 2, wrong), x, check_batched_grad=True)


def test_the_random_stream_is_left_alone() -> None:
    torch.manual_seed(0)
    want = torch.rand(2)
    torch.manual_seed(0)
    gradgradcheck(lambda a: a**3, real(2), check_batched_grad=True, fast_mode=True)
    assert torch.equal(torch.rand(2), want)


# ---------------------------------------------------------------- forward mode
FORWARD_CASES: dict[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
    "cube": (lambda a: a**3, (real(2, 2),)),
    "product": (lambda a, b: (a @ b, a.sin().sum() * b), (real(2, 3), signed(3, 2))),
    "broadcast": (lambda a, b: a / b, (real(2, 1), other(3))),
    "0-d": (torch.exp, (real(),)),
    "empty": (torch.exp, (real(0, 2),)),
    "complex": (lambda z, a: z * z * a, (cplx(3), real(3))),
    "complex to real": (lambda z: z.abs(), (cplx(3),)),
    "real to complex": (lambda a: torch.complex(a, a * a), (real(3),)),
    "unused": (lambda a, b: a * 2, (real(2), other(3))),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", FORWARD_CASES)
def test_forward_mode(name: str, fast: bool) -> None:
    f, inputs = FORWARD_CASES[name]
    assert gradcheck(f, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=fast)
    assert gradcheck(f, inputs, check_forward_ad=True, check_batched_forward_grad=True,
                     fast_mode=fast)  # fmt: skip
    assert gradgradcheck(f, inputs, check_fwd_over_rev=True, fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_wrong_tangents_are_caught(fast: bool) -> None:
    forward = torch.autograd.forward_ad

    def f(a: torch.Tensor) -> torch.Tensor:
        primal, tangent = forward.unpack_dual(a * a)
        return primal if tangent is None else forward.make_dual(primal, tangent * 1.1)

    x = real(3)
    assert gradcheck(f, x, fast_mode=fast)
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch"):
        gradcheck(f, x, check_forward_ad=True, check_backward_ad=False, fast_mode=fast)


# ---------------------------------------------------------------- the names
def test_the_function_stays_at_its_name_in_any_order() -> None:
    code = (
        "import pullback.autograd.gradcheck, pullback.autograd as a, types; "
        "from pullback.autograd.gradcheck import GradcheckError; "
        "assert isinstance(a.gradcheck, types.FunctionType), a.gradcheck; "
        "assert isinstance(a.gradgradcheck, types.FunctionType); "
        "assert {'gradcheck', 'functional'} <= set(dir(a))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    light = "import sys, pullback.autograd; print('pullback.transforms.gradcheck' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", light], check=True, capture_output=True, text=True)
    assert out.stdout.strip() == "False"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = torch.autograd.nothing
    assert importlib.import_module("pullback.autograd.gradcheck").gradcheck is gradcheck
