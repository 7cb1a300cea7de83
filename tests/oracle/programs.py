"""Random programs of views, in-place changes, hooks and modes, for any torch-like module.

A program is a list of steps; a run gives a log of what each step did (error type, or the result's
requires_grad, shape and grad_fn) and the final values and gradients.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Step(NamedTuple):
    """One operation; numbers in [0, 1) choose its operands and its variant."""

    name: str
    first: float
    second: float
    variant: float


def _iadd(T: Any, v: Any, u: Any, c: float) -> Any:
    v += u * 0.5
    return v


def _imul(T: Any, v: Any, u: Any, c: float) -> Any:
    v *= u if c < 0.5 else 2.0
    return v


def _set_slice(T: Any, v: Any, u: Any, c: float) -> Any:
    v[int(c * 2) :] = u[int(c * 2) :] * 2
    return v


def _set_index(T: Any, v: Any, u: Any, c: float) -> Any:
    v[0] = c if c < 0.5 else u[0]
    return v


def _set_mask(T: Any, v: Any, u: Any, c: float) -> Any:
    v[v > 0.5] = c
    return v


def _through_view(T: Any, v: Any, u: Any, c: float) -> Any:
    q = v[:1]
    q -= u[:1]
    return q


def _set_list(T: Any, v: Any, u: Any, c: float) -> Any:
    v[[-1, 0], int(c * 2)] = u[0] * 1 if c < 0.5 else c  # no view: PyTorch reads as it writes
    return v


def _neg_strided(T: Any, v: Any, u: Any, c: float) -> Any:
    return (v[..., ::2] if c < 0.5 else v.t()[::2]).neg_()


def _nan(T: Any, v: Any, u: Any, c: float) -> Any:
    return T.where(v > c, v, float("nan")) if c < 0.7 else T.nan_to_num(v, c)


def _scatter(T: Any, v: Any, u: Any, c: float) -> Any:
    index = T.tensor([1, 0, 1] if v.ndim == 1 else [[1, 0, 1]])
    return v.scatter_add(0, index, u.reshape(-1)[:3].reshape(index.shape))


def _no_grad(T: Any, v: Any, u: Any, c: float) -> Any:
    with T.no_grad():
        return v * 2 if c < 0.5 else v.mul_(2)


def _retain(T: Any, v: Any, u: Any, c: float) -> Any:
    v.retain_grad()
    return v


def _hook(T: Any, v: Any, u: Any, c: float) -> Any:
    if not v._is_view():  # PyTorch 2.13 crashes on a hook of some views
        v.register_hook(lambda g: g * 2 if c < 0.5 else None)
    return v


OPERATIONS: dict[str, Callable[[Any, Any, Any, float], Any]] = {
    "mul": lambda T, v, u, c: v * u, "add": lambda T, v, u, c: v + u,
    "sin": lambda T, v, u, c: T.sin(v), "div": lambda T, v, u, c: v / (u * u + 1),
    "pow": lambda T, v, u, c: (v * v + 1) ** (c * 3), "rsub": lambda T, v, u, c: 1 - v,
    "view": lambda T, v, u, c: v.view(-1), "slice": lambda T, v, u, c: v[int(c * 2) :],
    "select": lambda T, v, u, c: v[int(c * 3) - 1], "t": lambda T, v, u, c: v.t(),
    "iadd": _iadd, "imul": _imul, "sin_": lambda T, v, u, c: v.sin_(), "set slice": _set_slice,
    "set index": _set_index, "set mask": _set_mask, "through view": _through_view,
    "copy": lambda T, v, u, c: v.copy_(u), "cat": lambda T, v, u, c: T.cat([v, u]),
    "stack": lambda T, v, u, c: T.stack([v, u], -1), "index": lambda T, v, u, c: v[[0, 0]],
    "sum": lambda T, v, u, c: v.sum(0) if c < 0.5 else v.mean(-1, keepdim=True),
    "clone": lambda T, v, u, c: v.clone(), "detach": lambda T, v, u, c: v.detach(),
    "no_grad": _no_grad, "zero": lambda T, v, u, c: v.zero_(),
    "clamp": lambda T, v, u, c: v.clamp(-0.5, 1), "flatten": lambda T, v, u, c: v.flatten(),
    "max": lambda T, v, u, c: v.max(-1)[0] if c < 0.5 else v.amax(), "retain": _retain,
    "where": lambda T, v, u, c: T.where(v > 0, v, u), "hook": _hook,
    "diagonal": lambda T, v, u, c: v.diagonal() if v.ndim == 2 else v,
    "index list": lambda T, v, u, c: v[0, [1, 0, 1]] if c < 0.5 else v[[0, 1], int(c * 3)],
    "set list": _set_list, "neg_ strided": _neg_strided, "nan": _nan,
    "neg_": lambda T, v, u, c: v.neg_(), "cumprod": lambda T, v, u, c: v.cumprod(-1),
    "tril_": lambda T, v, u, c: v.tril_(int(c * 3) - 1), "relu_": lambda T, v, u, c: v.relu_(),
    "maximum": lambda T, v, u, c: T.maximum(v, u),
    "sort": lambda T, v, u, c: v.sort(-1, c < 0.5)[0],
    "median": lambda T, v, u, c: v.median() if c < 0.5 else v.nanmedian(0)[0],
    "eq_": lambda T, v, u, c: v.gt_(c), "std": lambda T, v, u, c: v.std(0, correction=int(c * 2)),
    "clamp_": lambda T, v, u, c: v.clamp_(-c, c), "fmod": lambda T, v, u, c: T.fmod(v, u + 2),
    "scatter": _scatter,
    "norm": lambda T, v, u, c: v.norm(2 if c < 0.5 else 1, -1), "cumsum_": lambda T, v, u, c:
        v.cumsum_(0),
}  # fmt: skip


def program(seed: int) -> list[Step]:
    """The program of that number."""
    choose = random.Random(seed)
    names = list(OPERATIONS)
    return [
        Step(choose.choice(names), choose.random(), choose.random(), choose.random())
        for _ in range(choose.randint(3, 12))
    ]


def builtin_name(error: Exception) -> str:
    """The builtin that an exception is."""
    return next(t.__name__ for t in type(error).__mro__ if t.__module__ == "builtins")


def described(z: Any) -> tuple[Any, ...]:
    """What is compared of a result."""
    name = None if z.grad_fn is None else type(z.grad_fn).__name__
    return z.requires_grad, tuple(z.shape), z._version, z.is_leaf, name


def run(T: Any, steps: list[Step]) -> tuple[list[Any], list[Any]]:
    """The log, and the final values and gradients."""
    log: list[Any] = []
    start = [[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]]
    x = T.tensor(start, dtype=T.float64, requires_grad=True)
    w = T.tensor([1.0, 2.0, 3.0], dtype=T.float64, requires_grad=True)
    values = [x * 1.0, w * 1.0, x, w]
    for step in steps:
        v = values[int(step.first * len(values))]
        u = values[int(step.second * len(values))]
        try:
            z = OPERATIONS[step.name](T, v, u, step.variant)
            values.append(z)
            log.append((step.name, *described(z)))
        except Exception as error:
            overlap = "single memory location" in str(error)
            log.append((step.name, "overlap" if overlap else builtin_name(error)))
    total = None
    for z in values[2:]:
        if z.requires_grad:
            term = (z * z).sum()
            total = term if total is None else total + term
    found = [np.array(v.detach().numpy()) for v in values]
    try:
        if total is not None:
            total.backward()
        found += [np.zeros(1) if t.grad is None else np.array(t.grad.numpy()) for t in (x, w)]
    except RuntimeError as error:
        log.append(("backward", builtin_name(error), str(error)[:40]))
    return log, found


def difference(want: tuple[list[Any], list[Any]], got: tuple[list[Any], list[Any]]) -> str | None:
    """The first thing that differs between two runs."""
    for a, b in zip(want[0], got[0], strict=False):
        if a != b:
            return f"{a} became {b}"
    if len(want[0]) != len(got[0]):
        return f"{want[0][-1]} became {got[0][-1]}"
    for k, (a, b) in enumerate(zip(want[1], got[1], strict=False)):
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-8, atol=1e-8, equal_nan=True):
            return f"value {k} of {len(want[1])}: {a} became {b}"
    return None
