"""`autograd.functional` and `gradcheck` against PyTorch itself (`make oracle`).

Each call is made on both libraries: values, structure, dtype, shape and `requires_grad` must be the
same, or the error's type and the beginning of its message.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.autograd.functional
from pullback.autograd.gradcheck import GradcheckError

torch = pytest.importorskip("torch")
functional = pytest.importorskip("torch.autograd.functional")

pytestmark = pytest.mark.torch
BOTH = (torch, pullback)
HAS_FORWARD = importlib.util.find_spec("pullback.autograd.forward_ad") is not None


class Kit:
    """One library with the tensors of the tests."""

    def __init__(self, T: Any) -> None:
        self.T = T
        self.F = T.autograd.functional
        self.a = T.tensor([-1.0, 0.25, 1.5], dtype=T.float64)
        self.b = T.tensor([0.5, -2.0], dtype=T.float64)
        self.r = self.a.clone().requires_grad_()
        self.s = T.tensor(0.7, dtype=T.float64)
        self.z = T.tensor([1 + 2j, -0.5 + 1j], dtype=T.complex128)


def outcome(call: Callable[[], Any], T: Any) -> str:
    """What a call gave, in a form that can be compared between the libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return describe(call(), T)
        except Exception as error:
            builtin = next(b for b in type(error).__mro__ if b.__module__ == "builtins")
            start = re.split(r"[.:;\n]", str(error))[0][:60]
            return f"{builtin.__name__}: {start}"


def describe(value: Any, T: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(describe(v, T) for v in value)})"
    if not isinstance(value, T.Tensor):
        return repr(value)
    numbers = np.round(value.numpy(force=True), 6) + 0.0  # no negative zeros
    return (
        f"{tuple(value.shape)} {value.dtype} {value.requires_grad} {numbers.tolist()}"
    )


FUNCTIONS: dict[str, Callable[[Kit], tuple[Any, Any]]] = {
    "cube": lambda k: (lambda x: x**3, k.a),
    "tracked": lambda k: (lambda x: x**3, k.r),
    "two": lambda k: (lambda x, y: (x * y.sum(), y**3), (k.a, k.b)),
    "linear": lambda k: (lambda x: x * 2, k.a),
    "constant": lambda k: (lambda x: k.T.ones(3).double(), k.a),
    "identity": lambda k: (lambda x: x, k.a),
    "ignored": lambda k: (lambda x, y: x**3, (k.a, k.b)),
    "0-d": lambda k: (lambda x: x.sin(), k.s),
    "tuple of one": lambda k: (lambda x: (x**3,), (k.a,)),
    "float out": lambda k: (lambda x: (x.float(), x**3), k.a),
    "real of complex": lambda k: (lambda z: (z * z.conj()).real ** 2, k.z),
    "complex": lambda k: (lambda z: z**3, k.z),
    "number out": lambda k: (lambda x: 3.0, k.a),
    "number in": lambda k: (lambda x: x, 3.0),
    "list in": lambda k: (lambda x: x, [k.a]),
    "none in a tuple": lambda k: (lambda x, y: x, (k.a, None)),
    "integers": lambda k: (lambda x: x * 2, k.T.arange(3)),
}
SCALARS: dict[str, Callable[[Kit], tuple[Any, Any]]] = {
    "cubes": lambda k: (lambda x: (x**3).sum(), k.a),
    "tracked": lambda k: (lambda x: (x**3).sum(), k.r),
    "two": lambda k: (lambda x, y: (x**3).sum() * (y**3).sum(), (k.a, k.b)),
    "tuple of one": lambda k: (lambda x: (x**3).sum(), (k.a,)),
    "1 by 1": lambda k: (lambda x: (x**3).sum().reshape(1, 1), k.a),
    "linear": lambda k: (lambda x: x.sum(), k.a),
    "constant": lambda k: (lambda x: k.T.ones((), dtype=k.T.float64), k.a),
    "ignored": lambda k: (lambda x, y: (x**3).sum(), (k.a, k.b)),
    "0-d": lambda k: (lambda x: x.sin(), k.s),
    "complex": lambda k: (lambda z: (z**3).real.sum() + (z * z.conj()).real.sum(), k.z),
    "vector": lambda k: (lambda x: x**3, k.a),
    "pair": lambda k: (lambda x: (x.sum(), x.sum()), k.a),
    "number out": lambda k: (lambda x: 1.0, k.a),
}


def switches(*names: str) -> list[dict[str, Any]]:
    return [dict(zip(names, v, strict=True)) for v in
            itertools.product([False, True], repeat=len(names))]  # fmt: skip


@pytest.mark.parametrize("options", switches("create_graph", "strict", "vectorize"), ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian(name: str, options: dict[str, Any]) -> None:
    torchs, ours = (
        outcome(lambda k=k: k.F.jacobian(*FUNCTIONS[name](k), **options), k.T)
        for k in map(Kit, BOTH)
    )
    assert ours == torchs


@pytest.mark.parametrize("options", switches("create_graph", "strict", "vectorize"), ids=str)
@pytest.mark.parametrize("name", SCALARS)
def test_hessian(name: str, options: dict[str, Any]) -> None:
    torchs, ours = (
        outcome(lambda k=k: k.F.hessian(*SCALARS[name](k), **options), k.T)
        for k in map(Kit, BOTH)
    )
    assert ours == torchs


def vectors(k: Kit, like: Any, kind: str) -> Any:
    """The `v` of a product."""
    if kind == "none":
        return None
    if kind == "tracked":
        return k.r
    if kind == "short":
        return k.b[:1]
    if kind == "float":
        return 1.0
    if isinstance(like, tuple):
        return tuple(vectors(k, x, kind) for x in like)
    if kind == "single":
        return k.a
    if not isinstance(like, k.T.Tensor):
        return k.a
    return like.detach() * 2 - 1 if like.is_floating_point() or like.is_complex() else k.a


@pytest.mark.parametrize("options", switches("create_graph", "strict"), ids=str)
@pytest.mark.parametrize("kind", ["fitting", "none", "tracked", "short", "float", "single"])
@pytest.mark.parametrize("product", ["vjp", "jvp"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_products(name: str, product: str, kind: str, options: dict[str, Any]) -> None:
    found = []
    for k in map(Kit, BOTH):
        f, xs = FUNCTIONS[name](k)
        call = getattr(k.F, product)
        found.append(outcome(lambda c=call, f=f, x=xs, k=k: c(f, x, vectors(k, x, kind), **options),
                             k.T))  # fmt: skip
    assert found[1] == found[0]


@pytest.mark.parametrize("options", switches("create_graph", "strict"), ids=str)
@pytest.mark.parametrize("kind", ["fitting", "none", "tracked", "short", "float"])
@pytest.mark.parametrize("product", ["vhp", "hvp"])
@pytest.mark.parametrize("name", SCALARS)
def test_hessian_products(name: str, product: str, kind: str, options: dict[str, Any]) -> None:
    found = []
    for k in map(Kit, BOTH):
        f, xs = SCALARS[name](k)
        call = getattr(k.F, product)
        found.append(outcome(lambda c=call, f=f, x=xs, k=k: c(f, x, vectors(k, x, kind), **options),
                             k.T))  # fmt: skip
    assert found[1] == found[0]


@pytest.mark.skipif(not HAS_FORWARD, reason="forward mode has not landed")
@pytest.mark.parametrize("options", switches("create_graph", "strict", "vectorize"), ids=str)
# PyTorch stops at an internal assertion, and names the function None
@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"real of complex", "number out"}))
def test_forward_jacobian(name: str, options: dict[str, Any]) -> None:
    torchs, ours = (
        outcome(
            lambda k=k: k.F.jacobian(*FUNCTIONS[name](k), strategy="forward-mode", **options), k.T
        )
        for k in map(Kit, BOTH)
    )
    assert ours == torchs


@pytest.mark.skipif(not HAS_FORWARD, reason="forward mode has not landed")
# an internal error in PyTorch
@pytest.mark.parametrize("name", sorted(SCALARS.keys() - {"complex"}))
def test_forward_over_reverse_hessian(name: str) -> None:
    torchs, ours = (
        outcome(
            lambda k=k: k.F.hessian(*SCALARS[name](k), vectorize=True,
                                    outer_jacobian_strategy="forward-mode"), k.T
        )  # fmt: skip
        for k in map(Kit, BOTH)
    )
    if name != "tracked":  # PyTorch's results require grad through tensors that nobody can reach
        torchs, ours = (re.sub(" (True|False) ", " ", text) for text in (torchs, ours))
    assert ours == torchs


# ---------------------------------------------------------------- gradcheck
def spoiled(f: Any, spoil: Any) -> Any:
    """`f` with a gradient that is changed on its way back."""

    def wrong(*xs: Any) -> Any:
        out = f(*xs)
        out.register_hook(spoil)
        return out.clone()

    return wrong


CHECKS: dict[str, Callable[[Kit], tuple[Any, Any]]] = {
    "right": lambda k: (lambda x: x**3, k.r),
    "list": lambda k: (lambda x: [x**3, x], [k.r]),
    "number": lambda k: (lambda x, n: x * n, (k.r, 3.0)),
    "unused": lambda k: (lambda x, y: x * 2, (k.r, k.b.requires_grad_())),
    "complex": lambda k: (lambda z: z**3, k.z.requires_grad_()),
    "complex to real": lambda k: (lambda z: z.abs(), k.z.requires_grad_()),
    "real to complex": lambda k: (lambda x: k.T.complex(x, x * x), k.r),
    "wrong": lambda k: (spoiled(lambda x: x**2, lambda g: g * 1.1), k.r),
    "wrong complex": lambda k: (spoiled(lambda z: z**2, lambda g: g.conj()), k.z.requires_grad_()),
    "wrong second output": lambda k: (
        lambda x, y: (x * y[0], spoiled(lambda v: v * 2, lambda g: g * 2)(y)),
        (k.r, k.b.requires_grad_())),
    "no input": lambda k: (lambda x: x, k.a),
    "no graph": lambda k: (lambda x: x.detach() * 2, k.r),
    "really constant": lambda k: (lambda x: k.T.ones(2).double(), k.r),
    "stride 0": lambda k: (lambda x: x * 2, k.a[:1].expand(3).requires_grad_()),
    "not linear": lambda k: (spoiled(lambda x: x * 1, lambda g: k.T.ones_like(g)),
                             k.a[:1].detach().requires_grad_()),
    "nan": lambda k: (lambda x: x.sqrt(), k.r),
    "kink": lambda k: (lambda x: x.abs(), k.T.zeros(2, dtype=k.T.float64).requires_grad_()),
    "nothing": lambda k: (lambda x: x * 2, k.T.zeros(0, 2).double().requires_grad_()),
    "own error": lambda k: (lambda x: x.reshape(2), k.r),
}  # fmt: skip


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("name", CHECKS)
def test_gradcheck(name: str, raises: bool, fast: bool) -> None:
    torchs, ours = (
        outcome(
            lambda k=k: k.T.autograd.gradcheck(
                *CHECKS[name](k), raise_exception=raises, fast_mode=fast
            ),
            k.T,
        )
        for k in map(Kit, BOTH)
    )
    assert ours == torchs


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    "name", [n for n in CHECKS if n not in ("no graph", "really constant", "kink", "nan")]
)
def test_gradgradcheck(name: str, fast: bool) -> None:
    torchs, ours = (
        outcome(
            lambda k=k: k.T.autograd.gradgradcheck(
                *CHECKS[name](k), raise_exception=False, fast_mode=fast
            ),
            k.T,
        )
        for k in map(Kit, BOTH)
    )
    assert ours == torchs


def test_the_jacobians_in_the_message_are_pytorchs() -> None:
    texts = []
    for k in map(Kit, BOTH):
        f, xs = CHECKS["wrong complex"](k)
        with pytest.raises(RuntimeError) as caught:
            k.T.autograd.gradcheck(f, xs)
        texts.append(str(caught.value).split("(a row")[0])
    assert isinstance(caught.value, GradcheckError)
    numbers = [re.findall(r"-?\d+\.\d*[ ]*[+-][ ]*\d+\.\d*", t.replace("dtype", "")) for t in texts]

    def values(found: list[str]) -> list[complex]:
        return [complex(n.replace(" ", "") + "j") for n in found]

    assert len(numbers[0]) == 8
    assert np.allclose(values(numbers[1]), values(numbers[0]), atol=1e-3)
