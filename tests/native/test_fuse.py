"""Fused native loops: whole programs, memory, vector code, threads, bad input."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pullback as torch
from pullback.tracing import trace

pytest.importorskip("llvmlite")
from pullback.native import FusedLoop, Instruction  # noqa: E402

pytestmark = pytest.mark.llvm

EXP_TIMES_X = (Instruction("exp", (0,)), Instruction("mul", (1, 0)))


@pytest.mark.parametrize("n", [0, 1, 7, 8, 1000, 1_000_003])
def test_any_length(n: int) -> None:
    x = np.linspace(-3, 3, n).astype(np.float32)
    loop = FusedLoop(1, EXP_TIMES_X, (2,), "float32")
    assert np.allclose(loop(x)[0], np.exp(x) * x, rtol=1e-6, atol=1e-6)


def test_scalars_stand_for_all_elements_and_outputs_are_several() -> None:
    x, a = np.arange(6.0).reshape(2, 3), np.array(2.5)
    program = (Instruction("mul", (0, 1)), Instruction("add", (2, 1.0)))
    loop = FusedLoop(2, program, (2, 3), "float64")
    for _ in range(2):  # the second call goes the quick way
        product, total = loop(x, a)
        assert (product == x * 2.5).all() and (total == x * 2.5 + 1).all()
    product, total = loop(a, x)  # other kinds of inputs, other code
    assert (product == x * 2.5).all() and product.shape == (2, 3)
    product, total = loop(a, a)
    assert product.shape == () and product == 6.25 and total == 7.25
    assert (loop(x, x)[0] == x * x).all()


def test_boolean_inputs() -> None:
    x = np.arange(-50, 50, dtype=np.float32)
    mask = x % 3 == 0
    loop = FusedLoop(2, (Instruction("where", (0, 1, 0.0)),), (2,), "float32")
    for _ in range(2):
        assert (loop(mask, x)[0] == np.where(mask, x, 0)).all()
    assert (loop(np.array(True), x)[0] == x).all()


def test_shapes_are_kept_and_empty_arrays_work() -> None:
    loop = FusedLoop(2, (Instruction("add", (0, 1)),), (2,), "float64")
    for shape in ((2, 3, 4), (0,), (3, 0, 2), (1, 1, 1, 1, 5), ()):
        x = np.ones(shape)
        for _ in range(2):
            result = loop(x, x)[0]
            assert result.shape == shape and (result == 2).all()


def test_value_and_gradient_by_hand() -> None:
    """exp(x) x and its backward exp(x) x g + exp(x) g in one loop."""
    x = np.linspace(-3, 3, 1001)
    g = np.cos(x)
    program = (*[Instruction("exp", (0,)), Instruction("mul", (2, 0))],
               Instruction("mul", (1, 2)), Instruction("mul", (1, 0)),
               Instruction("mul", (5, 2)), Instruction("add", (4, 6)))  # fmt: skip
    value, gradient = FusedLoop(2, program, (3, 7), "float64")(x, g)
    assert np.allclose(value, np.exp(x) * x, rtol=1e-15)
    assert np.allclose(gradient, g * (np.exp(x) * x + np.exp(x)), rtol=1e-14, atol=1e-16)


def test_traced_value_and_gradient_run_as_one_loop() -> None:
    def step(x: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.exp(x) * x + torch.tanh(x) * 2.0 + torch.sin(x) ** 3
        return y, torch.autograd.grad(y, x, g)[0]

    x = torch.linspace(-2, 2, 1001, requires_grad=True)
    g = torch.ones(1001)
    loop = trace(step, x, g).fused()
    got = loop(x.detach().numpy(), g.numpy())
    for a, b in zip(got, step(x, g), strict=True):
        assert np.allclose(a, b.detach().numpy(), rtol=2e-6, atol=2e-6)


# ---------------------------------------------------------------- memory
def test_results_may_replace_an_input() -> None:
    p, g = np.arange(1000.0), np.ones(1000)
    update = (Instruction("mul", (1, -0.5)), Instruction("add", (0, 2)))
    loop = FusedLoop(2, update, (3,), "float64")
    for _ in range(3):
        assert loop(p, g, out=[p])[0] is p
    assert (p == np.arange(1000.0) - 1.5).all()


def test_two_results_may_replace_two_inputs_crosswise() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 7, 64, 1003):
        a, b = rng.normal(size=n), rng.normal(size=n)
        swap = (Instruction("add", (0, 0.0)), Instruction("add", (1, 0.0)))
        wanted = a.copy(), b.copy()
        loop = FusedLoop(2, swap, (3, 2), "float64")
        for _ in range(2):
            loop(a, b, out=(a, b))
            wanted = wanted[::-1]
            assert (a == wanted[0]).all() and (b == wanted[1]).all()


def test_overlapping_memory_is_refused_by_both_ways_in() -> None:
    both = np.ones(20, np.float32)
    loop = FusedLoop(1, EXP_TIMES_X, (2,), "float32")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="out 0 shares memory with array 0"):
            loop(both[:10], out=[both[5:15]])
        loop(both[:10], out=[both[10:]])
    scale = FusedLoop(2, (Instruction("mul", (0, 1)),), (2,), "float32")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="shares memory with array 1"):
            scale(both, both[3:4].reshape(()), out=[both])
    pair = FusedLoop(1, EXP_TIMES_X, (1, 2), "float32")
    with pytest.raises(RuntimeError, match="out 1 shares memory with out 0"):
        pair(np.ones(3, np.float32), out=[both[:3], both[:3]])
    # sin may have to be computed again from its input, which must still be there
    sine = FusedLoop(1, (Instruction("sin", (0,)),), (1,), "float32")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="shares memory"):
            sine(both, out=[both])


def test_both_ways_in_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where array headers cannot be read, loops are called by addresses."""
    from pullback.native import fuse

    x = np.linspace(-2, 2, 1003).astype(np.float32)
    quick = FusedLoop(1, EXP_TIMES_X, (2,), "float32")(x)[0]
    monkeypatch.setattr(fuse, "headers_are_readable", lambda: False)
    monkeypatch.setattr(fuse, "_CACHE", {})
    loop = FusedLoop(1, EXP_TIMES_X, (2,), "float32")
    for _ in range(2):
        assert (loop(x)[0] == quick).all()
    with pytest.raises(RuntimeError, match="not contiguous"):
        loop(x[::2])


def test_subclasses_and_equal_dtypes_are_taken() -> None:
    x = np.ones(5, np.dtype("float32", metadata={"unit": "m"}))  # equal, but another object
    loop = FusedLoop(1, (Instruction("add", (0, 1.0)),), (1,), "float32")
    loop(np.ones(5, np.float32))
    assert (loop(x)[0] == 2).all()

    class Special(np.ndarray):
        pass

    assert (loop(np.ones((2, 2), np.float32).view(Special))[0] == 2).all()


# ---------------------------------------------------------------- code
def test_equal_programs_are_compiled_once() -> None:
    from pullback.native import fuse

    x = np.ones(3, np.float32)
    first, second = (FusedLoop(1, EXP_TIMES_X, (2,), "float32") for _ in range(2))
    first(x)
    count = len(fuse._CACHE)
    second(x)
    assert len(fuse._CACHE) == count


def test_minus_zero_and_zero_are_different_programs() -> None:
    x = np.array([-0.0], np.float32)
    for zero, sign in ((0.0, False), (-0.0, True)):
        loop = FusedLoop(1, (Instruction("add", (0, zero)),), (1,), "float32")
        assert np.signbit(loop(x)[0][0]) == sign


def test_code_can_be_freed() -> None:
    from pullback.native import fuse

    for k in range(4):
        loop = FusedLoop(1, (Instruction("add", (0, k + 0.125)),), (1,), "float32")
        assert loop(np.zeros(3, np.float32))[0].tolist() == [k + 0.125] * 3
        fuse._CACHE.clear()
        del loop


def test_the_loop_uses_vector_instructions() -> None:
    loop = FusedLoop(1, EXP_TIMES_X, (2,), "float32")
    text = loop.assembly().partition("\nentry:")[0]
    assert "call" not in text
    packed = ("vmulps", "mulps", "fmul\tv", "fmul v")
    assert any(word in text for word in packed)
    if "avx2" in platform_features():
        wide = [line for line in text.splitlines() if "vmulps" in line and "mm" in line]
        assert any("ymm" in line or "zmm" in line for line in wide)


def platform_features() -> str:
    import llvmlite.binding as binding

    return ",".join(f for f, on in binding.get_host_cpu_features().items() if on)


def test_threads_run_the_same_loop() -> None:
    from pullback.native import fuse

    inputs = [np.full(20_000, k / 8) for k in range(8)] + [np.array(0.5)]
    for _ in range(5):  # each time, the threads race to compile it
        fuse._CACHE.clear()
        loop = FusedLoop(1, EXP_TIMES_X, (1, 2), "float64")
        with ThreadPoolExecutor(4) as pool:
            for k, (_, result) in enumerate(pool.map(loop, inputs * 10)):
                x = inputs[k % 9]
                assert result.shape == x.shape
                assert np.allclose(result, np.exp(x) * x, rtol=1e-15)


# ---------------------------------------------------------------- errors
def test_programs_that_are_not_elementwise_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="not elementwise"):
        trace(lambda x: x.sum(), torch.ones(3)).fused()
    with pytest.raises(NotImplementedError, match="'cumsum' has no lowering"):
        FusedLoop(1, (Instruction("cumsum", (0,)),), (1,), "float32")
    with pytest.raises(NotImplementedError, match="float32 or float64"):
        FusedLoop(1, (), (0,), "int64")


def test_malformed_programs_are_refused() -> None:
    for program, outputs, words in (
        ((Instruction("exp", (1,)),), (1,), "exp is value 1, but there are only 1"),
        ((Instruction("exp", (-1,)),), (1,), "value -1"),
        ((Instruction("exp", (0,)),), (2,), "an output is value 2"),
        ((Instruction("exp", (0,)),), (), "at least one output"),
        ((Instruction("add", (0,)),), (1,), "add needs 2 operands, got 1"),
        ((Instruction("add", (0, True)),), (1,), "or a constant"),
        ((Instruction("add", (0, "x")),), (1,), "or a constant"),
    ):
        with pytest.raises(TypeError, match=words):
            FusedLoop(1, program, outputs, "float32")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="clamp needs the parameters"):
        FusedLoop(1, (Instruction("clamp", (0,)),), (1,), "float32")


def test_bad_arrays_are_refused() -> None:
    loop = FusedLoop(2, (Instruction("add", (0, 1)),), (2,), "float32")
    x = np.ones((2, 2), np.float32)
    unaligned = np.frombuffer(bytearray(17), np.uint8)[1:].view(np.float32).reshape(2, 2)
    swapped = x.astype(x.dtype.newbyteorder())
    fixed = x.copy()
    fixed.flags.writeable = False
    for _ in range(2):  # refused the careful way, and the quick way too
        for arrays, words in (
            ((x, np.ones(2, np.float32)), "differ"),
            ((x, np.ones((2, 3), np.float32)), "differ"),
            ((x, x.astype(np.float64)), "contiguous float32"), ((x, x.T[:1]), "contiguous"),
            ((x[:, ::2], x[:, ::2]), "not contiguous"), ((x, [1.0]), "got list"),
            (([1.0], x), "got list"), ((x, None), "got NoneType"), ((x, unaligned), "contiguous"),
            ((x, swapped), "contiguous float32"), ((x, np.float32(1)), "got float32"),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match=words):
                loop(*arrays)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="needs 2 arrays"):
            loop(x)
        out = np.empty((2, 2), np.float32)
        assert loop(x, x, out=[out])[0] is out and (out == 2).all()
        for bad in (np.empty(3, np.float32), fixed):
            with pytest.raises(RuntimeError, match="writable array"):
                loop(x, x, out=[bad])
        with pytest.raises(RuntimeError, match="out 0 must be a contiguous float32"):
            loop(x, x, out=[np.empty((2, 2))])
        with pytest.raises(TypeError, match="needs 1 arrays in out, got 2"):
            loop(x, x, out=[out, out])


def test_an_error_names_the_line_of_the_caller() -> None:
    loop = FusedLoop(1, EXP_TIMES_X, (2,), "float32")
    with pytest.raises(RuntimeError, match="test_fuse.py"):
        loop(np.ones(3))


def test_without_llvmlite_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.native import llvm

    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    with pytest.raises(NotImplementedError, match=r"pip install pullback\[compile\]"):
        llvm.bindings.__wrapped__()
