"""Values, first and second derivatives at awkward points, against a live PyTorch.

Every function is fed zeros of both signs, ties, tails, infinities and NaN.  A second derivative is
the gradient of the weighted sum of the first ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

INF, NAN = math.inf, math.nan
POINTS = [0.0, -0.0, 1, -1, 0.5, 2, 3, 20, -20, 1e-30, 1e30, 90, -90, INF, -INF, NAN]
ROWS = [
    [1.0, 2, 3], [0, 1, 2], [0, 0, 2], [0, 0, 0], [2, 2, 1], [-0.0, 0, 1], [NAN, 1, 2],
    [INF, 0, 1], [INF, INF, 0], [-INF, 0, 1], [-INF, -INF, -INF], [90, -90, 0], [INF, -INF, 0],
]  # fmt: skip

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
    "add sub mul div pow atan2 copysign fmod hypot logaddexp maximum minimum remainder "
    "xlogy clamp_min clamp_max"
).split()
LOSSES = "huber_loss l1_loss mse_loss smooth_l1_loss soft_margin_loss".split()
REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    name: (lambda m, x, name=name: getattr(m, name)(x, 0))
    for name in "amax amin cumprod cumsum logsumexp mean nansum nanmean prod std sum var "
    "softmax log_softmax".split()
}
REDUCTIONS |= {
    name: (lambda m, x, call=call: getattr(m, call)(x))
    for name, call in dict(max="max", min="min", median="median", prod_all="prod").items()
}
REDUCTIONS |= {
    f"norm {p}": (lambda m, x, p=p: m.norm(x, p)) for p in (0, 1, 2, 3, 0.5, INF, -INF)
}

# Where PyTorch's result is no convention but an error: the values that are right
BETTER: dict[tuple[str, str], str] = {}


def evaluate(m: Any, f: Callable[..., Any], arrays: tuple[Any, ...]) -> dict[str, Any]:
    """The value, the gradients, and the gradients of their weighted sum."""
    xs = [m.tensor(a.tolist(), dtype=getattr(m, a.dtype.name), requires_grad=True) for a in arrays]
    out = f(m, *xs)
    found = {"value": out.detach().numpy(force=True)}
    if not out.requires_grad:
        return found
    total = out.real.sum() if out.is_complex() else out.sum()
    first = m.autograd.grad(total, xs, create_graph=True, allow_unused=True)
    second = 0.0
    for i, g in enumerate(first):
        if g is not None:
            found[f"d{i}"] = g.detach().numpy(force=True)
            if g.requires_grad:
                second = second + (g.real if g.is_complex() else g).sum() * (i + 1.0)
    if isinstance(second, float):
        return found
    for i, h in enumerate(m.autograd.grad(second, xs, allow_unused=True)):
        if h is not None:
            found[f"dd{i}"] = h.detach().numpy(force=True)
    return found


def agree(a: Any, b: Any, dtype: Any) -> Any:
    """Where two results agree: rounding aside, and an absent gradient is 0."""
    eps = float(np.finfo(dtype).eps)
    with np.errstate(all="ignore"):
        both = np.isnan(a) & np.isnan(b)
        near = np.abs(a - b) <= 500 * eps * np.maximum(np.abs(a), np.abs(b)) + 10 * eps
    return both | (a == b) | near


def cases() -> Iterator[tuple[str, Callable[..., Any], str]]:
    for name in UNARY:
        yield name, lambda m, x, n=name: getattr(m, n)(x), "unary"
    for name in ACTIVATIONS:
        yield name, lambda m, x, n=name: getattr(m.nn.functional, n)(x), "unary"
    for p in (0, 0.5, 1, 2, 3, -1, -0.5, 2.5):
        yield f"pow {p}", lambda m, x, p=p: x**p, "unary"
    for name in BINARY:
        if name.startswith("clamp_"):
            side = name[6:]
            yield name, lambda m, x, y, s=side: m.clamp(x, **{s: y}), "binary"
        else:
            yield name, lambda m, x, y, n=name: getattr(m, n)(x, y), "binary"
    yield "where", lambda m, x, y: m.where(x > 0, x * y, y), "binary"
    for name in LOSSES:
        yield (
            name,
            lambda m, x, y, n=name: getattr(m.nn.functional, n)(x, y, reduction="none"),
            "binary",
        )
    for name, f in REDUCTIONS.items():
        yield name, f, "rows"


COMPLEX = set(
    "abs acos acosh angle asin asinh atan atanh cos cosh exp log neg reciprocal rsqrt sgn sigmoid "
    "sin sinh sqrt square tan tanh add sub mul div".split()
)


def points(kind: str, dtype: Any) -> list[tuple[Any, ...]]:
    if kind == "rows":
        return [(np.array(r, dtype),) for r in ROWS]
    if kind == "unary":
        return [(np.array(POINTS, dtype),)]
    pairs = list(itertools.product(POINTS, POINTS))
    return [(np.array([a for a, _ in pairs], dtype), np.array([b for _, b in pairs], dtype))]


def compare(name: str, f: Any, kind: str, dtype: Any) -> list[str]:
    wrong = []
    for arrays in points(kind, dtype):
        ours, theirs = evaluate(pullback, f, arrays), evaluate(torch, f, arrays)
        for key in sorted(ours.keys() | theirs.keys()):
            zero = np.zeros_like(arrays[0])
            a, b = ours.get(key, zero), theirs.get(key, zero)
            good = np.broadcast_to(agree(a, b, dtype), a.shape)
            for at in np.argwhere(~good):
                index = tuple(at)
                point = arrays[0].tolist() if kind == "rows" else [x[index] for x in arrays]
                where = f"{key} at {', '.join(map(str, point))}"
                if (name, where) not in BETTER:
                    wrong.append(f"{where}: {a[index]}, PyTorch {b[index]}")
    return wrong


CASES = list(cases())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("name", "f", "kind"), CASES, ids=[c[0] for c in CASES])
def test_equals_live_pytorch(name: str, f: Any, kind: str, dtype: Any) -> None:
    assert compare(name, f, kind, dtype) == []
