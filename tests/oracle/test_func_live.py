"""`func` beside a live PyTorch: grad, jvp and vmap of every parity case, composed up to depth 3.

Each transform turns a function of the case's floating point inputs into another one of the same
inputs, so that any sequence of them can be applied.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from tests.parity.cases import CASES, Case, hash_text

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

Function = Callable[..., Any]


def flat(T: Any, result: Any) -> list[Any]:
    if isinstance(result, T.Tensor):
        return [result]
    return [x for part in result for x in flat(T, part)]


def constant(T: Any, like: Any, seed: int) -> Any:
    """Numbers that depend on the shape only, in the dtype of a tensor."""
    size = int(np.prod(tuple(like.shape)))
    values = np.cos(np.arange(size) * 1.7 + seed).reshape(tuple(like.shape)) + 0.25
    if like.is_complex():
        values = values + 1j * np.sin(np.arange(size) + seed).reshape(values.shape)
    return T.tensor(values).to(like.dtype)


def loss(T: Any, result: Any) -> Any:
    total: Any = 0.0
    for k, y in enumerate(flat(T, result)):
        if y.is_complex():
            total = total + T.real(y * constant(T, y, k)).sum()
        elif y.is_floating_point():
            total = total + (y * constant(T, y, k)).sum()
    return total


def by_grad(T: Any, f: Function, xs: Any) -> Function:
    numbers = tuple(range(len(xs)))
    return lambda *a: T.func.grad(lambda *b: loss(T, f(*b)), numbers)(*a)


def by_jvp(T: Any, f: Function, xs: Any) -> Function:
    along = tuple(constant(T, x, k) for k, x in enumerate(xs))
    return lambda *a: T.func.jvp(f, a, along)[1]


def by_vmap(T: Any, f: Function, xs: Any) -> Function:
    """Over inputs that all differ between the examples."""
    scales = T.tensor([1.0, 0.93, 0.97], dtype=T.float64)
    return lambda *a: T.func.vmap(lambda s: f(*(x * s for x in a)))(scales)


def by_vmap_of_first(T: Any, f: Function, xs: Any) -> Function:
    """Over the first input; the others are the same for every example."""

    def mapped(*a: Any) -> Any:
        dims = (0, *(None,) * (len(a) - 1))
        return T.func.vmap(f, in_dims=dims)(T.stack([a[0], a[0] * 0.95]), *a[1:])

    return mapped


TRANSFORMS = {"grad": by_grad, "jvp": by_jvp, "vmap": by_vmap, "vmap1": by_vmap_of_first}
SHORT = [*itertools.product(TRANSFORMS), *itertools.product(TRANSFORMS, repeat=2)]
LONG = list(itertools.product(("grad", "jvp", "vmap"), repeat=3))


def compositions(name: str) -> list[tuple[str, ...]]:
    """All of depth 1 and 2, and of depth 3 with one kind of vmap in each place."""
    rng = np.random.default_rng(hash_text(name))
    return SHORT + [
        tuple("vmap1" if t == "vmap" and rng.random() < 0.5 else t for t in names)
        for names in LONG
    ]  # fmt: skip


def by_loop(T: Any, f: Function, xs: Any) -> Function:
    """What `by_vmap` is to give."""

    def mapped(*a: Any) -> Any:
        rows = [flat(T, f(*(x * s for x in a))) for s in (1.0, 0.93, 0.97)]
        return [T.stack(list(row)) for row in zip(*rows, strict=True)]

    return mapped


def by_loop_of_first(T: Any, f: Function, xs: Any) -> Function:
    """What `by_vmap_of_first` is to give."""

    def mapped(*a: Any) -> Any:
        rows = [flat(T, f(a[0] * s, *a[1:])) for s in (1.0, 0.95)]
        return [T.stack(list(row)) for row in zip(*rows, strict=True)]

    return mapped


LOOPS = TRANSFORMS | {"vmap": by_loop, "vmap1": by_loop_of_first}


def run(T: Any, case: Case, names: tuple[str, ...], transforms: Any = TRANSFORMS) -> list[Any]:
    leaves = [T.tensor(np.array(a, copy=True)) for a in case.inputs]
    f: Function = lambda *xs: case.function(T, *xs)  # noqa: E731
    for name in reversed(names):
        f = transforms[name](T, f, leaves)
    return [y.detach().numpy() for y in flat(T, f(*leaves))]


# Cases in which PyTorch's derivatives are wrong or undefined, and how ours are shown to be right.
WRONG = "PyTorch's forward mode is wrong; ours is what differences of the values give"
NAN = "PyTorch gives NaN at a point where a subgradient of 0 is the convention of first order"
TIES = "PyTorch's vmap gives the gradient of a tie to one place, without vmap to all"
BETTER = {
    "pow": WRONG,  # a complex base with a real exponent
    "layer_norm": WRONG, "batch_norm": WRONG, "instance_norm": WRONG, "group_norm": WRONG,
    "select_scatter": "PyTorch's gradient of vmap(select_scatter) in a shared source is too large",
    "prod": NAN, "prod dim": NAN, "prod keepdim": NAN, "cumprod": NAN, "abs": NAN,
    "std constant": NAN, "norm zero": NAN,
    "mean": "PyTorch gives NaN for the second derivative of the mean of nothing",
    "max": TIES, "min": TIES, "scatter_reduce prod True": WRONG, "scatter_reduce prod False": WRONG,
    "logcumsumexp": "PyTorch gives NaN for third derivatives",
}  # fmt: skip
# Forward and reverse mode of PyTorch contradict each other: a tangent in the padding row counts, a
# gradient does not.  Here it is nothing in both.
DIFFERENT = {"embedding padding"}


def is_right(case: Case, names: tuple[str, ...], got: list[Any]) -> bool:
    """Whether the outermost transform gives what differences, or a loop, give of the inner one."""
    first, rest = names[0], names[1:]
    points = [np.array(a, copy=True) for a in case.inputs]
    along = [constant(pullback, pullback.tensor(p), k).numpy() for k, p in enumerate(points)]

    def inner(*xs: Any) -> Any:
        f: Function = lambda *ys: case.function(pullback, *ys)  # noqa: E731
        for name in reversed(rest):
            f = TRANSFORMS[name](pullback, f, [pullback.tensor(p) for p in points])
        return flat(pullback, f(*xs))

    def at(step: float) -> list[Any]:
        return inner(*(pullback.tensor(p + step * v) for p, v in zip(points, along, strict=True)))

    h = 1e-5
    if first == "jvp":
        pairs = zip(at(h), at(-h), strict=True)
        want = [((a - b) / (2 * h)).detach().numpy() for a, b in pairs]
    elif first == "grad":
        slope = (loss(pullback, at(h)) - loss(pullback, at(-h))) / (2 * h)
        want = [np.asarray(slope.item())]
        got = [np.asarray(sum(np.vdot(v, g).real for v, g in zip(along, got, strict=True)))]
    elif first == "vmap":
        runs = [inner(*(pullback.tensor(p * s) for p in points)) for s in (1.0, 0.93, 0.97)]
        want = [np.stack([y.detach().numpy() for y in ys]) for ys in zip(*runs, strict=True)]
    else:
        others = [pullback.tensor(p) for p in points[1:]]
        runs = [inner(pullback.tensor(points[0] * s), *others) for s in (1.0, 0.95)]
        want = [np.stack([y.detach().numpy() for y in ys]) for ys in zip(*runs, strict=True)]
    return all(
        w.shape == g.shape and np.allclose(w, g, rtol=1e-4, atol=1e-5 * max(1.0, np.abs(w).max(
            initial=0.0)))
        for w, g in zip(want, got, strict=True)
    )  # fmt: skip


def agrees(want: Any, got: Any) -> bool:
    scale = float(np.abs(want[np.isfinite(want)]).max(initial=1.0))
    return bool(np.allclose(want, got, rtol=1e-7, atol=1e-9 * scale, equal_nan=True))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_compositions(case: Case) -> None:
    if not all(np.asarray(a).dtype.kind in "fc" for a in case.inputs):
        pytest.skip("inputs that have no derivative")
    stem = case.name.rsplit("/", 1)[0]
    if stem in DIFFERENT:
        pytest.skip("by design")
    reason = BETTER.get(stem)
    found = []
    for names in compositions(case.name):
        label = " of ".join(names)
        try:
            want = run(torch, case, names)
        except Exception:  # noqa: BLE001 - what PyTorch cannot do is no yardstick
            continue
        try:
            got = run(pullback, case, names)
        except Exception as error:  # noqa: BLE001 - reported below
            found.append(f"{label}: {type(error).__name__}: {str(error)[:200]}")
            continue
        assert [(w.shape, w.dtype) for w in want] == [(g.shape, g.dtype) for g in got], label
        if all(map(agrees, want, got)):
            continue
        if reason is TIES:
            fine = all(map(agrees, run(torch, case, names, LOOPS), got))
        else:
            fine = reason is not None and is_right(case, names, got)
        if not fine and reason is not None and "NaN" in reason:
            fine = all(
                np.isfinite(g).all() and agrees(w[np.isfinite(w)], g[np.isfinite(w)])
                for w, g in zip(want, got, strict=True)
            )
        if not fine:
            found.append(f"{label}: torch {want}, here {got}")
    assert not found, "\n".join(found)
