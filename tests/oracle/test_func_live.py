"""`func` beside a live PyTorch: grad, jvp and vmap of every parity case, composed up to depth 3.

Each transform turns a function of the case's floating point inputs into another one of the same
inputs, so that any sequence of them can be applied.
"""

from __future__ import annotations

import itertools
import warnings
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


def run(T: Any, case: Case, names: tuple[str, ...]) -> list[Any]:
    leaves = [T.tensor(np.array(a, copy=True)) for a in case.inputs]
    f: Function = lambda *xs: case.function(T, *xs)  # noqa: E731
    for name in reversed(names):
        f = TRANSFORMS[name](T, f, leaves)
    return [y.detach().numpy() for y in flat(T, f(*leaves))]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_compositions(case: Case) -> None:
    if not all(np.asarray(a).dtype.kind in "fc" for a in case.inputs):
        pytest.skip("inputs that have no derivative")
    found = []
    for names in compositions(case.name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want = run(torch, case, names)
            except Exception:  # noqa: BLE001 - what PyTorch cannot do is no yardstick
                continue
            label = " of ".join(names)
            try:
                got = run(pullback, case, names)
            except Exception as error:  # noqa: BLE001 - reported below
                found.append(f"{label}: {type(error).__name__}: {str(error)[:200]}")
                continue
        for k, (w, g) in enumerate(zip(want, got, strict=True)):
            if w.shape != g.shape or w.dtype != g.dtype:
                found.append(f"{label} [{k}]: {w.dtype}{w.shape} became {g.dtype}{g.shape}")
                continue
            scale = float(np.abs(w[np.isfinite(w)]).max(initial=1.0))
            if not np.allclose(w, g, rtol=1e-7, atol=1e-9 * scale, equal_nan=True):
                found.append(f"{label} [{k}]: torch {w.ravel()[:6]}, here {g.ravel()[:6]}")
    assert not found, "\n".join(found)
