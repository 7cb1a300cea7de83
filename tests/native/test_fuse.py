"""Fused native loops: each lowering against NumPy, whole programs, vector code, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core.primitive import REGISTRY
from pullback.tracing import trace

pytest.importorskip("llvmlite")
from pullback.native import FusedLoop, Instruction  # noqa: E402

pytestmark = pytest.mark.llvm

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -1e30, 88.8, -104.0,
           0.5, -0.5, 1e-3, 3.0, 700.0, -745.0, 1e-310, 5e-324, 1e-40]  # fmt: skip
LOWERED = sorted(n for n, p in REGISTRY.items() if p.lower is not None)
BOOLEAN = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and"}
FLOATING = [n for n in LOWERED if n not in BOOLEAN and n != "where"]


def samples(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=4000) * 10.0 ** rng.integers(-6, 3, size=4000)
    with np.errstate(all="ignore"):
        return np.concatenate([wide, np.linspace(-20, 20, 4001), SPECIAL]).astype(dtype)


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    both = np.isfinite(want) & np.isfinite(got)
    assert (np.isnan(got) == np.isnan(want)).all()
    assert (got[np.isinf(want)] == want[np.isinf(want)]).all()
    spacing = np.maximum(np.spacing(np.abs(want[both])), np.finfo(want.dtype).tiny)
    return float((np.abs(got[both] - want[both]) / spacing).max(initial=0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FLOATING)
def test_each_lowering_equals_numpy(name: str, dtype: str) -> None:
    primitive = REGISTRY[name]
    n = len(primitive.inputs)
    x = samples(dtype)
    inputs = [x, np.random.default_rng(1).permutation(x)][:n]
    loop = FusedLoop(n, (Instruction(name, tuple(range(n))),), (n,), dtype)
    with np.errstate(all="ignore"):
        wide = [i.astype(np.float64) for i in inputs]
        exact = primitive.forward(*wide if dtype == "float32" else inputs).astype(dtype)
    assert ulps(loop(*inputs)[0], exact) <= 4


@pytest.mark.parametrize("name", sorted(BOOLEAN - {"logical_and"}))
def test_conditions_select(name: str) -> None:
    x = samples("float32")
    y = np.random.default_rng(2).permutation(x)
    program = (Instruction(name, (0, 1)), Instruction("where", (2, 1.0, 0.0)))
    got = FusedLoop(2, program, (3,), "float32")(x, y)[0]
    assert (got == REGISTRY[name].forward(x, y)).all()


def test_a_condition_of_two_parts() -> None:
    x = samples("float64")
    program = (Instruction("ge", (0, -1.0)), Instruction("le", (0, 1.0)),
               Instruction("logical_and", (1, 2)), Instruction("where", (3, 1.0, 0.0)))  # fmt: skip
    assert (FusedLoop(1, program, (4,), "float64")(x)[0] == ((x >= -1) & (x <= 1))).all()


@pytest.mark.parametrize("n", [0, 1, 7, 8, 1000, 1_000_003])
def test_any_length(n: int) -> None:
    x = np.linspace(-3, 3, n).astype(np.float32)
    loop = FusedLoop(1, (Instruction("exp", (0,)), Instruction("mul", (1, 0))), (2,), "float32")
    assert np.allclose(loop(x)[0], np.exp(x) * x, rtol=1e-6, atol=1e-6)


def test_scalars_stand_for_all_elements_and_outputs_are_several() -> None:
    x, a = np.arange(6.0).reshape(2, 3), np.array(2.5)
    program = (Instruction("mul", (0, 1)), Instruction("add", (2, 1.0)))
    product, total = FusedLoop(2, program, (2, 3), "float64")(x, a)
    assert (product == x * 2.5).all() and (total == x * 2.5 + 1).all()


def test_traced_value_and_gradient_run_as_one_loop() -> None:
    def step(x: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.exp(x) * x + torch.tanh(x) * 2.0
        return y, torch.autograd.grad(y, x, g)[0]

    x = torch.linspace(-2, 2, 1001, requires_grad=True)
    g = torch.ones(1001)
    loop = trace(step, x, g).fused()
    got = loop(x.detach().numpy(), g.numpy())
    for a, b in zip(got, step(x, g), strict=True):
        assert np.allclose(a, b.detach().numpy(), rtol=2e-6, atol=2e-6)


def test_programs_that_are_not_elementwise_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="not elementwise"):
        trace(lambda x: x.sum(), torch.ones(3)).fused()
    with pytest.raises(NotImplementedError, match="no lowering"):
        FusedLoop(1, (Instruction("cumsum", (0,)),), (1,), "float32")
    with pytest.raises(NotImplementedError, match="float32 or float64"):
        FusedLoop(1, (), (0,), "int64")


def test_the_loop_uses_vector_instructions() -> None:
    loop = FusedLoop(1, (Instruction("exp", (0,)), Instruction("mul", (1, 0))), (2,), "float32")
    text = loop.assembly()
    assert "call" not in text.split(".cfi_endproc")[0]
    assert any(word in text for word in ("vmulps", "mulps", "fmul\tv", "fmul v"))


def test_bad_arrays_are_refused() -> None:
    loop = FusedLoop(2, (Instruction("add", (0, 1)),), (2,), "float32")
    x = np.ones((2, 2), np.float32)
    for arrays, words in (
        ((x, np.ones(2, np.float32)), "differ"), ((x, x.astype(np.float64)), "contiguous float32"),
        ((x, x.T[:1]), "contiguous"), ((x, [1.0]), "contiguous"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            loop(*arrays)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs 2 arrays"):
        loop(x)
    out = np.empty((2, 2), np.float32)
    assert loop(x, x, out=[out])[0] is out and (out == 2).all()
    with pytest.raises(RuntimeError, match="shares memory"):
        loop(x, x, out=[x])
    with pytest.raises(RuntimeError, match="writable array"):
        loop(x, x, out=[np.empty(3, np.float32)])
