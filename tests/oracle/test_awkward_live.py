"""Values, first and second derivatives at awkward points, against a live PyTorch.

Every function is fed zeros of both signs, ties, tails, infinities and NaN.  Where PyTorch has a
convention, Pullback has it too.  Where its result is an accident (a NaN in a limit that is unique
and finite), `BETTER` names the value that is right, and it is this one that Pullback must give.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

INF, NAN = math.inf, math.nan
POINTS = [0.0, -0.0, 1, -1, 0.5, 2, 3, 20, -20, 1e-30, 1e30, 90, -90, INF, -INF, NAN]
PARTS = [0.0, -0.0, 1, -1, 0.5, 2, 20, -20, 1e-30, -1e-30, 1e30, 90]
TRIPLES = [0.0, -0.0, 1, -1, 2, INF, NAN]
ROWS = [
    [1.0, 2, 3], [0, 1, 2], [0, 0, 2], [0, 0, 0], [2, 2, 1], [-0.0, 0, 1], [NAN, 1, 2],
    [INF, 0, 1], [INF, INF, 0], [-INF, 0, 1], [-INF, -INF, 0], [-INF, -INF, -INF], [90, -90, 0],
    [INF, -INF, 0], [INF, NAN, 0], [1e30, 1, -1e30], [1e-30, 0, 1e-30], [1, -1, 1],
]  # fmt: skip
ONES = [[2.0], [0.0], [INF], [-INF], [NAN]]

UNARY = (
    "abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc exp exp2 "
    "expm1 floor frac lgamma log log10 log1p log2 logit nan_to_num neg rad2deg reciprocal relu "
    "round rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc"
).split()
ACTIVATIONS = (
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 "
    "selu silu softplus softshrink softsign tanhshrink"
).split()
BINARY = (
    "add sub mul div pow float_power atan2 copysign fmod hypot ldexp logaddexp maximum minimum "
    "remainder xlogy"
).split()
LOSSES = (
    "huber_loss l1_loss mse_loss smooth_l1_loss kl_div poisson_nll_loss "
    "binary_cross_entropy_with_logits"
).split()
COMPLEX_UNARY = (
    "abs acos acosh angle asin asinh atan atanh conj cos cosh exp expm1 imag log log10 log1p log2 "
    "neg real reciprocal rsqrt sgn sigmoid sin sinh sqrt square tan tanh"
).split()
COMPLEX_BINARY = "add sub mul div pow".split()


def _named(name: str, *args: Any, **params: Any) -> Callable[..., Any]:
    return lambda m, *xs: getattr(m, name)(*xs, *args, **params)


def _functional(name: str, *args: Any, **params: Any) -> Callable[..., Any]:
    return lambda m, *xs: getattr(m.nn.functional, name)(*xs, *args, **params)


def _first(f: Callable[..., Any]) -> Callable[..., Any]:
    """The values of a function that gives (values, indices)."""
    return lambda m, *xs: f(m, *xs)[0]


_UNARY: dict[str, Callable[..., Any]] = {
    **{n: _named(n) for n in UNARY},
    **{n: _functional(n) for n in ACTIVATIONS},
    **{f"pow {p}": lambda m, x, p=p: x**p for p in (0, 0.5, 1, 2, 3, -1, -0.5, 2.5, -2)},
    **{f"base {p}": lambda m, x, p=p: p**x for p in (0.0, 1.0, 2.0, -1.0)},
    **{f"polygamma {n}": lambda m, x, n=n: m.polygamma(n, x) for n in (1, 2)},
    "clamp": _named("clamp", -1, 2),
    "clamp min": _named("clamp", min=1),
    "clamp max": _named("clamp", max=1),
    "clamp crossed": _named("clamp", 2, 1),
    "logit eps": _named("logit", 0.25),
    "nan_to_num 1": _named("nan_to_num", 1.0, 2.0, 3.0),
    "gelu tanh": _functional("gelu", approximate="tanh"),
    "elu 0.5": _functional("elu", 0.5),
    "celu 2": _functional("celu", 2.0),
    "hardtanh 0 2": _functional("hardtanh", 0.0, 2.0),
    "softplus 2": _functional("softplus", 2, 3),
    "threshold": _functional("threshold", 1.0, 5.0),
    "fmod 0": lambda m, x: m.fmod(x, 0),
    "fmod 2": lambda m, x: m.fmod(x, 2),
    "remainder 2": lambda m, x: m.remainder(x, -2),
    "xlogy 0": lambda m, x: m.xlogy(0.0, x),
    "where nan": lambda m, x: m.where(x > 0, x, NAN),
    "masked_fill": lambda m, x: x.masked_fill(x <= 0, -INF),
}
_BINARY: dict[str, Callable[..., Any]] = {
    **{n: _named(n) for n in BINARY},
    **{n: _functional(n, reduction="none") for n in LOSSES},
    **{f"div {r}": _named("div", rounding_mode=r) for r in ("trunc", "floor")},
    "clamp min t": lambda m, x, y: m.clamp(x, min=y),
    "clamp max t": lambda m, x, y: m.clamp(x, max=y),
    "kl_div log": _functional("kl_div", reduction="none", log_target=True),
    "poisson_nll rate": _functional("poisson_nll_loss", log_input=False, reduction="none"),
    "poisson_nll full": _functional("poisson_nll_loss", full=True, reduction="none"),
    "smooth_l1 0": _functional("smooth_l1_loss", reduction="none", beta=0),
    "smooth_l1 2": _functional("smooth_l1_loss", reduction="none", beta=2.0),
    "huber 2": _functional("huber_loss", reduction="none", delta=2.0),
    "where": lambda m, x, y: m.where(x > 0, x * y, y),
    "prelu": lambda m, x, y: m.where(x > 0, x, x * y),
    "dist": lambda m, x, y: ((x - y) ** 2).sqrt(),
}
_TARGETED: dict[str, Callable[..., Any]] = {  # PyTorch has no gradient of the target
    "soft_margin_loss": lambda m, x, y: m.nn.functional.soft_margin_loss(
        x, y.detach(), reduction="none"),
    "hinge_embedding_loss": lambda m, x, y: m.nn.functional.hinge_embedding_loss(
        x, y.detach(), reduction="none"),
}  # fmt: skip
_UNIT = {"binary_cross_entropy": _functional("binary_cross_entropy", reduction="none")}
_TERNARY: dict[str, Callable[..., Any]] = {
    "addcmul": _named("addcmul"),
    "addcdiv": _named("addcdiv"),
    "lerp": _named("lerp"),
    "clamp t t": _named("clamp"),
}
_ROWS: dict[str, Callable[..., Any]] = {
    **{
        n: _named(n, 0)
        for n in (
            "amax amin cumprod cumsum logsumexp mean nansum nanmean prod std sum var softmax "
            "log_softmax"
        ).split()
    },
    **{n: _first(_named(n, 0)) for n in "max min median nanmedian sort mode".split()},
    **{f"{n} all": _named(n) for n in "max min median nanmedian prod std var".split()},
    **{f"norm {p}": _named("norm", p) for p in (0, 1, 2, 3, 0.5, 1.5, -1, INF, -INF)},
    **{f"{n} 0": _named(n, 0, correction=0) for n in ("var", "std")},
    "softmin": _functional("softmin", 0),
    "quantile": _named("quantile", 0.5),
    "nanquantile": _named("nanquantile", 0.25),
    "normalize": _functional("normalize", dim=0),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, x.shape),
    "rms_norm": lambda m, x: m.nn.functional.rms_norm(x, x.shape, eps=1e-6),
    "masked softmax": lambda m, x: x.masked_fill(x <= 1, -INF).softmax(0),
    "cross_entropy": lambda m, x: m.nn.functional.cross_entropy(x, m.tensor(0)),
    "product of two": lambda m, x: (x * x.flip(0)).prod(),
    "aminmax": lambda m, x: m.aminmax(x)[0] + 2 * m.aminmax(x)[1],
    "cov": _named("cov"),
}  # fmt: skip


class Better(NamedTuple):
    """Where PyTorch's result is no convention: which results at which points, and the right one."""

    name: str
    keys: str
    at: Callable[..., bool]
    truth: Callable[..., Any]
    reason: str


def _trigamma(x: float) -> float:
    import mpmath

    return INF if x <= 0 and x == int(x) else float(mpmath.polygamma(1, x))


def _sigmoid(x: Any) -> Any:
    """In double precision, exact in both tails."""
    with np.errstate(all="ignore"):
        e = np.exp(-np.abs(np.float64(x)))
    return (1 if x >= 0 else e) / (1 + e)


def _others(*row: float) -> list[float]:
    """The weighted sums of second derivatives of a product."""
    return [
        sum(
            (i + 1) * math.prod(v for j, v in enumerate(row) if j not in (i, k))
            for i in range(len(row)) if i != k
        )
        for k in range(len(row))
    ]  # fmt: skip


W = 1 + 0.5j  # the weight of real and imaginary parts in `evaluate`


def _acosh_slope(z: complex) -> Any:
    z = np.complex128(z)
    return 1 / (np.sqrt(z - 1) * np.sqrt(z + 1))


def _always(*point: Any) -> bool:
    return True


WHY = dict(
    tails="the limit is unique and finite; PyTorch multiplies infinity by 0",
    constant="the function is constant around; PyTorch multiplies infinity by 0",
    zero="at 0 the first derivative is 0 by choice, so its own is 0: as for abs",
    length="PyTorch's own answer depends on the length of the tensor",
)
BETTER = [
    Better("acosh", "d00", math.isinf, lambda x: 0.0, WHY["tails"]),
    Better("digamma", "d0", math.isfinite, _trigamma, "PyTorch's trigamma has 10 digits"),
    Better("lgamma", "d00", math.isfinite, _trigamma, "PyTorch's trigamma has 10 digits"),
    Better("polygamma 1", "value", math.isfinite, _trigamma, "PyTorch's has 10 digits"),
    Better("digamma", "d00", lambda x: x == INF, lambda x: 0.0, WHY["tails"]),
    Better("polygamma 1", "d0 d00", lambda x: x == INF, lambda x: 0.0, WHY["tails"]),
    Better("polygamma 2", "value d0 d00", lambda x: x == INF, lambda x: 0.0, WHY["tails"]),
    Better("sinc", "d00", lambda x: abs(x) < 1e-20, lambda x: -math.pi**2 / 3,
           "the Taylor series; PyTorch cancels"),
    Better("hardshrink, softshrink, hardswish", "d0", math.isnan, lambda x: 1.0,
           WHY["length"]),
    Better("hardswish", "value", lambda x: x == -INF, lambda x: 0.0, WHY["constant"]),
    Better("hardsigmoid", "d0", lambda x: abs(x) < 3, lambda x: 1 / 6,
           "PyTorch rounds 1/6 to float32"),
    Better("mish, gelu", "d00", lambda x: x >= 90, lambda x: 0.0, WHY["tails"]),
    Better("base 0.0", "d00", lambda x: x > 0, lambda x: 0.0, WHY["constant"]),
    Better("logit eps", "d00", lambda x: not 0.25 <= x <= 0.75, lambda x: 0.0,
           WHY["constant"]),
    Better("pow, float_power", "d01", lambda x, y: x > 0 and y == 0, lambda x, y: 1 / x,
           "b a^(b-1) has the derivative 1 / a there; PyTorch takes the 0 for constant"),
    Better("pow, float_power", "d10 d11", lambda x, y: x == 0 and y > 1, lambda x, y: 0.0,
           WHY["tails"]),
    Better("copysign", "d0", lambda x, y: math.isinf(x),
           lambda x, y: math.copysign(1, x) * math.copysign(1, y), WHY["tails"]),
    Better("copysign", "d00", lambda x, y: x == 0 or math.isinf(x), lambda x, y: 0.0,
           WHY["zero"]),
    Better("logaddexp", "d00 d11", _always, lambda x, y: _sigmoid(x - y) * _sigmoid(y - x),
           WHY["tails"]),
    Better("logaddexp", "d01 d10", _always, lambda x, y: -_sigmoid(x - y) * _sigmoid(y - x),
           WHY["tails"]),
    Better("fmod, remainder", "value", lambda x, y: abs(x) > 1e20 and y > 0, math.fmod,
           "exact in IEEE 754; PyTorch's quotient overflows"),
    Better("soft_margin_loss", "value", lambda x, y: x * y < -20, lambda x, y: -x * y,
           "PyTorch's exp overflows"),
    Better("soft_margin_loss", "d0", lambda x, y: x * y < -20, lambda x, y: -np.float64(y),
           "PyTorch's exp overflows"),
    Better("soft_margin_loss", "d00", _always,
           lambda x, y: _sigmoid(x * y) * _sigmoid(-x * y) * y * y, "PyTorch's exp overflows"),
    Better("binary_cross_entropy", "d0", lambda x, y: x in (0, 1) or x < 1e-20,
           lambda x, y: (x - y) / 1e-12, "PyTorch rounds its 1e-12 to float32"),
    Better("addcdiv", "d22", lambda c, a, b: b in (0, INF),
           lambda c, a, b: 2 * a / np.float64(b) / b / b, "as a / b has it, in PyTorch too"),
    Better("nanmean", "d0", math.isnan, lambda x: 0.0, "a NaN has no part in the mean"),
    Better("prod, prod all", "d00", _always, _others, "a product without NaN or 0 * inf"),
    Better("mode", "value", lambda *row: row[0] != row[0], lambda *row: 1.0,
           "PyTorch's answer depends on the order of the elements"),
    Better("mode", "d0", lambda *row: row[0] != row[0], lambda *row: [0.0, 1.0, 0.0],
           "PyTorch's answer depends on the order of the elements"),
    Better("var all", "d0 d00", lambda *row: len(row) == 1, lambda *row: NAN,
           "0 / 0, as over the dim (in PyTorch too)"),
    Better("norm 2", "d00", lambda *row: not any(row), lambda *row: [0.0] * len(row),
           WHY["zero"]),
    Better("norm 0.5, norm -1", "d00", lambda *row: 0 in row,
           lambda *row: [0.0] * len(row), WHY["zero"]),
    Better("normalize", "d00", lambda *row: max(row) < 1e-12, lambda *row: [0.0] * len(row),
           "x / 1e-12 is linear there"),
    # complex functions
    Better("complex acosh", "d0", lambda z: z.imag == 0, lambda z: np.conj(_acosh_slope(z)) * W,
           "on this side of the cut; PyTorch's value is, its derivative is not"),
    Better("complex acosh", "d00", lambda z: z.imag == 0,
           lambda z: np.conj(-z * _acosh_slope(z) ** 3) * abs(W) ** 2,
           "on this side of the cut; PyTorch's value is, its derivative is not"),
    Better("complex angle", "d0", lambda z: 0 < abs(z) < 1e-20, lambda z: 1j * z / abs(z) ** 2,
           "PyTorch's square of |z| underflows"),
    Better("complex angle, complex sgn", "d00", lambda z: z == 0, lambda z: 0.0, WHY["zero"]),
    Better("complex atanh", "d0 d00", lambda z: abs(z) > 1e20, lambda z: 0.0,
           "PyTorch's square overflows"),
    Better("complex pow", "value", lambda a, b: a == 0 and b == 0, lambda a, b: 1.0,
           "as for real numbers"),
    Better("complex pow", "d0", lambda a, b: a == 0 and b == 1, lambda a, b: W,
           "the slope of z is 1"),
    Better("complex pow", "d00", lambda a, b: a == 0 and b == 2, lambda a, b: 2 * abs(W) ** 2,
           "the second derivative of z^2 is 2"),
    Better("complex pow", "d01", lambda a, b: a != 0 and b == 0,
           lambda a, b: np.conj(1 / a) * abs(W) ** 2,
           "b a^(b-1) has the derivative 1 / a there; PyTorch takes the 0 for constant"),
    Better("complex pow", "d01", lambda a, b: a == 0 and b == 1, lambda a, b: abs(W) ** 2,
           "as for real numbers"),
    Better("complex pow", "d10 d11", lambda a, b: a == 0 and b.imag == 0 and b.real > 1,
           lambda a, b: 0.0, "as for real numbers"),
]  # fmt: skip



def _wide(*row: float) -> bool:
    return any(1e20 < abs(v) < INF or 0 < abs(v) < 1e-20 for v in row)


# What neither has right: intermediate results leave the range of float32, or are 0 * inf
LEFT: dict[str, tuple[str, Callable[..., bool]]] = {
    **dict.fromkeys(
        ["norm 2", "norm 3", "norm 0.5", "norm 1.5", "norm -1", "layer_norm"], ("float32", _wide)
    ),
    "cumprod": ("float32 float64", lambda *row: any(map(math.isinf, row)) and 0 in row),
}


def evaluate(m: Any, f: Callable[..., Any], arrays: tuple[Any, ...], apart: bool) -> dict[str, Any]:
    """The value, its gradients `d0`.., and theirs: `d01`.. each (apart), or `dd` of all of them.

    Sums that are not apart are weighted, so that what adds up to 0 is seen.
    """
    xs = [m.tensor(a.tolist(), dtype=getattr(m, a.dtype.name), requires_grad=True) for a in arrays]

    def total(y: Any) -> Any:
        real = y.real if y.is_complex() else y
        both = real + 0.5 * y.imag if y.is_complex() else y
        if apart:
            return both.sum()
        return (both * m.arange(1, max(y.numel(), 1) + 1).reshape(y.shape)).sum()

    def gradients(y: Any, key: str, graph: bool) -> dict[str, Any]:
        found = m.autograd.grad(
            total(y), xs, create_graph=graph, retain_graph=True, allow_unused=True
        )
        return {f"{key}{i}": g for i, g in enumerate(found) if g is not None}

    out = f(m, *xs)
    found = {"value": out}
    if out.requires_grad:
        first = gradients(out, "d", True)
        found |= first
        for key, g in first.items():
            try:
                if g.requires_grad:
                    found |= gradients(g, key, False)
            except RuntimeError as error:  # hardsigmoid has no second derivative in PyTorch
                if m is not torch or "is not implemented" not in str(error):
                    raise
                found["alone"] = out
                break
    return {k: v.detach().numpy(force=True) for k, v in found.items()}


def agree(a: Any, b: Any, dtype: Any) -> Any:
    """Where two results agree: rounding aside, and complex infinity has many spellings."""
    eps = float(np.finfo(dtype).eps)
    with np.errstate(all="ignore"):
        if np.iscomplexobj(a) or np.iscomplexobj(b):
            beyond = ~np.isfinite(a) & ~np.isfinite(b)
        else:
            beyond = (np.isnan(a) & np.isnan(b)) | (a == b)
        size = np.maximum(np.abs(a), np.abs(b))
        near = (np.abs(a - b) <= 500 * eps * size + 20 * eps) & np.isfinite(size)
    return beyond | near


def cases() -> Iterator[tuple[str, Callable[..., Any], str]]:
    for kind, functions in (
        ("unary", _UNARY), ("binary", _BINARY | _TARGETED), ("ternary", _TERNARY), ("rows", _ROWS),
        ("unit", _UNIT),
    ):  # fmt: skip
        for name, f in functions.items():
            yield name, f, kind


def points(kind: str, dtype: Any) -> list[tuple[Any, ...]]:
    if kind == "rows":
        return [(np.array(r, dtype),) for r in ROWS + ONES]
    if np.dtype(dtype).kind == "c":
        z = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)], dtype)
        if kind == "unary":
            return [(z,)]
        some = z[:: max(len(z) // 24, 1)]
        return [(np.repeat(some, len(some)), np.tile(some, len(some)))]
    unit = [0.0, 1, 0.5, 1e-30, 0.875]
    values = {"unary": POINTS, "binary": POINTS, "ternary": TRIPLES, "unit": unit}[kind]
    number = {"unary": 1, "ternary": 3}.get(kind, 2)
    return [tuple(np.array(list(itertools.product(values, repeat=number)), dtype).T)]


def compare(name: str, f: Any, kind: str, dtype: Any) -> list[str]:
    """What differs from PyTorch and is not in `BETTER`, or is and differs from the truth."""
    wrong = []
    for arrays in points(kind, dtype):
        ours = evaluate(pullback, f, arrays, kind != "rows")
        theirs = evaluate(torch, f, arrays, kind != "rows")
        known = theirs.keys() - {"alone"}
        for key in sorted(known if "alone" in theirs else ours.keys() | known):
            zero = np.zeros_like(arrays[0])  # an absent gradient is 0
            a, b = np.broadcast_arrays(ours.get(key, zero), theirs.get(key, zero))
            good = np.broadcast_to(agree(a, b, dtype), a.shape)
            for at in np.argwhere(~good):
                index = tuple(at)
                point = arrays[0].tolist() if kind == "rows" else [x[index].item() for x in arrays]
                text = f"{key} at {', '.join(map(str, point))}: {a[index]}, PyTorch {b[index]}"
                if name in LEFT and np.dtype(dtype).name in LEFT[name][0] and LEFT[name][1](*point):
                    continue
                entry = better(name, key, point)
                if entry is None:
                    wrong.append(text)
                    continue
                with np.errstate(all="ignore"):
                    truth = np.asarray(entry.truth(*point))
                    right = truth[index] if truth.ndim else truth
                if not agree(np.asarray(a[index]), right.astype(a.dtype), dtype):
                    wrong.append(f"{text}, right {right}")
    return wrong


def better(name: str, key: str, point: Any) -> Better | None:
    """The entry for a result at a point."""
    for entry in BETTER:
        if name in entry.name.split(", ") and key in entry.keys.split() and entry.at(*point):
            return entry
    return None


CASES = list(cases())
COMPLEX_CASES = [(f"complex {n}", _named(n), "unary") for n in COMPLEX_UNARY] + [
    (f"complex {n}", _named(n), "binary") for n in COMPLEX_BINARY
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("name", "f", "kind"), CASES, ids=[c[0] for c in CASES])
def test_equals_live_pytorch(name: str, f: Any, kind: str, dtype: Any) -> None:
    assert compare(name, f, kind, dtype) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=["complex64", "complex128"])
@pytest.mark.parametrize(("name", "f", "kind"), COMPLEX_CASES, ids=[c[0] for c in COMPLEX_CASES])
def test_complex_equals_live_pytorch(name: str, f: Any, kind: str, dtype: Any) -> None:
    assert compare(name, f, kind, dtype) == []
