"""Each lowering against exact values, its NumPy forward, and the special cases of IEEE 754."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pullback.core.primitive import REGISTRY

pytest.importorskip("llvmlite")
from pullback.native import FusedLoop, Instruction  # noqa: E402
from pullback.native.builder import ACCURACY  # noqa: E402

pytestmark = pytest.mark.llvm

DTYPES = ["float32", "float64"]
PARAMS: dict[str, list[tuple[tuple[str, Any], ...]]] = {
    "round": [(("decimals", d),) for d in (0, 2, -1)],
    "clamp": [(("min", a), ("max", b)) for a, b in ((-1.0, 2), (None, 0.5), (0.0, None), (2, 1))],
    "elu": [
        (("alpha", a), ("scale", s), ("rate", r)) for a, s, r in ((1.0, 1.0, 1.0), (1.7, 1.1, 0.5))
    ],
    "huber": [(("delta", d),) for d in (1.0, 0.3)],
}
SELECT = ("where", "gated")
LOWERED = sorted(n for n, p in REGISTRY.items() if p.lower is not None and n not in SELECT)
CASES = [(n, p) for n in LOWERED for p in PARAMS.get(n, [()])]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, 2.5, -2.5, math.pi, 1e-3,
           np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -1e30, 88.72, 88.73, 89.5, -87.4, -103.9,
           -104.1, 128.0, -126.0, -149.0, -150.5, 709.78, 709.79, 710.5, -708.4, -745.1, -745.2,
           1024.0, -1022.0, -1074.0, 1e5, 1e5 + 1, 2.0**24 + 2, 2.0**53, 1e-310, 5e-324, -5e-324,
           1e-40, -1e-40, 3.4028235e38, 1.7976931348623157e308]  # fmt: skip


def wide(dtype: str) -> type:
    """A type that is more exact; long double has more bits than double on x86 only."""
    return np.float64 if dtype == "float32" else np.longdouble


def call(name: str, params: tuple, dtype: str, *inputs: np.ndarray) -> np.ndarray:
    n = len(inputs)
    loop = FusedLoop(n, (Instruction(name, tuple(range(n)), params),), (n,), dtype)
    return loop(*inputs)[0]


def forward(name: str, params: tuple, *inputs: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(REGISTRY[name].forward(*inputs, **dict(params)))


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    """The largest error in units in the last place of `got`'s dtype."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
    assert (np.isnan(got) == np.isnan(rounded)).all()
    both = np.isfinite(rounded) & np.isfinite(got)
    # a value within half a unit of the overflow threshold may round either way
    assert (got[~both] == rounded[~both])[~np.isnan(got[~both])].all()
    size = np.maximum(np.abs(want[both]), info.smallest_normal)
    unit = np.exp2(np.floor(np.log2(size)) - info.nmant)
    return float((np.abs(got[both] - want[both]) / unit).max(initial=0))


def samples(dtype: str, n: int = 100_000) -> np.ndarray:
    rng = np.random.default_rng(0)
    many = np.concatenate([
        rng.normal(size=n) * 10.0 ** rng.integers(-6, 3, size=n),
        rng.uniform(-20, 20, n), rng.uniform(-750, 750, n), 1 + rng.normal(size=n) / 10,
        np.arange(-1000, 1000) * math.pi / 2, np.exp(rng.uniform(-80, 80, n)),
    ])  # fmt: skip
    with np.errstate(all="ignore"):
        return np.concatenate([many, SPECIAL, np.negative(SPECIAL)]).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, params", CASES)
def test_accuracy(name: str, params: tuple, dtype: str) -> None:
    x = samples(dtype)
    if name in ("sin", "cos", "tan"):  # beyond, NumPy itself does the work
        x = x[~(np.abs(x) > 2.0**20)]
    inputs = [x, np.random.default_rng(1).permutation(x)][: len(REGISTRY[name].inputs)]
    got = call(name, params, dtype, *inputs)
    if got.dtype == np.bool_:
        assert (got == forward(name, params, *inputs)).all()
    elif name in ("mul", "square", "add", "sub", "div", "round"):
        same = forward(name, params, *inputs)
        assert ((got == same) | (np.isnan(got) & np.isnan(same))).all()
    else:
        want = forward(name, params, *[i.astype(wide(dtype)) for i in inputs])
        assert ulps(got, want) <= ACCURACY.get(name, 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, params", CASES)
def test_special_values_equal_numpy(name: str, params: tuple, dtype: str) -> None:
    with np.errstate(over="ignore"):
        special = np.array(SPECIAL).astype(dtype)
    inputs = [special]
    if len(REGISTRY[name].inputs) == 2:
        inputs = [np.ascontiguousarray(m.ravel()) for m in np.meshgrid(special, special)]
    got, want = call(name, params, dtype, *inputs), forward(name, params, *inputs)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    tolerance = 8 * np.finfo(dtype).eps
    with np.errstate(all="ignore"):
        close = np.abs(got - want * 1.0) <= tolerance * np.abs(want) + np.finfo(dtype).tiny * 1e-3
    assert (same | (close & np.isfinite(want))).all()
    if got.dtype != np.bool_ and name not in ("maximum", "minimum", "sign", "sgn", "clamp"):
        zero = (got == 0) & (want == 0)
        assert (np.signbit(got) == np.signbit(want))[zero].all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 4.0, 2.5, -7.0])
def test_constant_exponents(exponent: float, dtype: str) -> None:
    x = np.concatenate([np.geomspace(1e-4, 1e4, 5001), [0.0, 1.0, np.inf, np.nan], -np.arange(9.0)])
    x = x.astype(dtype)
    got = FusedLoop(1, (Instruction("pow", (0, exponent)),), (1,), dtype)(x)[0]
    with np.errstate(all="ignore"):
        if exponent == -0.5:  # as 1 / sqrt: C's pow differs at -0.0 and -inf, PyTorch's does not
            want = 1 / np.sqrt(x.astype(wide(dtype)))
        else:
            want = np.power(x.astype(wide(dtype)), wide(dtype)(exponent))
        assert ulps(got, want) <= 2.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles_are_left_to_numpy(name: str, dtype: str) -> None:
    x = np.array([0.5, 2.0**20, 2.0**21, 1e30, -1e30, np.inf], dtype)
    got, want = call(name, (), dtype, x), forward(name, (), x)
    assert np.isnan(got[-1])
    assert np.allclose(got[:-1], want[:-1], rtol=8 * np.finfo(dtype).eps, atol=0)
    # nothing is lost when only a few elements are huge
    many = np.linspace(-3, 3, 1001).astype(dtype)
    many[500] = 1e10
    assert np.allclose(call(name, (), dtype, many), forward(name, (), many), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("select", SELECT)
def test_conditions_select(select: str, dtype: str) -> None:
    x = samples(dtype, 1000)
    y = np.random.default_rng(2).permutation(x)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        program = (Instruction(name, (0, 1)), Instruction(select, (2, 0, -1.0)))
        got = FusedLoop(2, program, (3,), dtype)(x, y)[0]
        want = np.where(REGISTRY[name].forward(x, y), x, np.array(-1, dtype))
        assert ((got == want) | (np.isnan(got) & np.isnan(want))).all()


def test_conditions_combine() -> None:
    x = samples("float64", 1000)
    a, b = x >= -1, x <= 1
    for name in ("logical_and", "logical_or", "logical_xor"):
        program = (Instruction("ge", (0, -1.0)), Instruction("le", (0, 1.0)),
                   Instruction(name, (1, 2)), Instruction("logical_not", (3,)))  # fmt: skip
        got, inverse = FusedLoop(1, program, (3, 4), "float64")(x)
        assert got.dtype == inverse.dtype == np.bool_
        want = REGISTRY[name].forward(a, b)
        assert (got == want).all() and (inverse == ~want).all()


def test_a_condition_beside_a_number_counts_as_0_or_1() -> None:
    x = np.array([-1.0, 2.0, np.nan], np.float32)
    program = (Instruction("gt", (0, 0.0)), Instruction("mul", (1, 3.0)))
    assert FusedLoop(1, program, (2,), "float32")(x)[0].tolist() == [0.0, 3.0, 0.0]
    program = (Instruction("gt", (0, 0.0)), Instruction("exp", (1,)))
    with pytest.raises(NotImplementedError, match="arithmetic on booleans alone"):
        FusedLoop(1, program, (2,), "float32")(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, params", CASES + [(n, ()) for n in SELECT])
def test_each_lowering_is_vectorised(name: str, params: tuple, dtype: str) -> None:
    """No call is left, and the loop has instructions on vectors of the loop's type."""
    n = len(REGISTRY[name].inputs)
    program: tuple[Instruction, ...] = (Instruction(name, tuple(range(n)), params),)
    if name in SELECT:
        program = (Instruction("gt", (0, 0.0)), Instruction(name, (3, 1, 2)))
    loop = FusedLoop(n, program, (n + len(program) - 1,), dtype)
    text = loop.assembly().partition("\nentry:")[0]  # the loop comes first
    assert "call" not in text
    if "%rdi" in text:  # x86 with AVX: only packed work puts ymm registers to use
        assert "ymm" in text or "zmm" in text
