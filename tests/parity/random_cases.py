"""Random draws, written once for PyTorch and for Pullback; compared bit for bit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

SEEDS = (0, 1, 42, 2**40 + 7, -3)
SHAPES = ((), (3,), (15,), (16,), (17,), (31,), (100,), (7, 9), (1000,), (0,))
DTYPES = ("float32", "float64", "float16", "complex64", "complex128")
RANGES = (
    (0, 10, "int64"), (-5, 2**31, "int64"), (-(2**62), 2**62, "int64"), (0, 2**32 + 5, "int64"),
    (0, 2**28, "int64"), (0, 2**28 - 1, "int64"), (0, 200, "uint8"), (-100, 100, "int8"),
    (0, 9, "float32"), (3, 4, "int32"),
)  # fmt: skip
FILLS = (
    ("uniform_", (2, 5)), ("normal_", (2, 5)), ("random_", ()), ("random_", (7,)),
    ("random_", (3, 7)), ("exponential_", (2.0,)),
)  # fmt: skip


def draws(T: Any, shape: tuple[int, ...]) -> dict[str, Callable[[], Any]]:
    """Name -> a draw of that shape; each is made twice in a row after seeding."""
    found: dict[str, Callable[[], Any]] = {}
    for d in DTYPES:
        found[f"rand {d}"] = lambda d=d: T.rand(shape, dtype=getattr(T, d))
        found[f"randn {d}"] = lambda d=d: T.randn(shape, dtype=getattr(T, d))
    for low, high, d in RANGES:
        found[f"randint {low} {high} {d}"] = lambda low=low, high=high, d=d: T.randint(
            low, high, shape, dtype=getattr(T, d)
        )
    for d in ("float32", "float64"):
        for name, args in FILLS:
            found[f"{name}{args} {d}"] = lambda d=d, name=name, args=args: getattr(
                T.empty(shape, dtype=getattr(T, d)), name
            )(*args)
    found["normal numbers"] = lambda: T.normal(2.0, 3.0, shape)
    return found


def other_draws(T: Any) -> dict[str, Callable[[], Any]]:
    """Draws that have their own shapes."""
    grid = T.arange(40.0).reshape(5, 8)
    found: dict[str, Callable[[], Any]] = {
        f"randperm {n}": lambda n=n: T.randperm(n) for n in (0, 1, 2, 5, 19, 20, 100, 3000)
    }
    found.update({
        "normal tensors": lambda: T.normal(grid, grid + 1),
        "normal mean": lambda: T.normal(grid, 2.0),
        "normal std": lambda: T.normal(1.0, grid + 1),
        "bernoulli": lambda: T.bernoulli(T.rand(50)),
        "bernoulli double": lambda: T.bernoulli(T.rand(50, dtype=T.float64)),
        "multinomial": lambda: T.multinomial(T.rand(5, 7), 9, replacement=True),
        "multinomial without": lambda: T.multinomial(T.rand(5, 7), 3),
        "like": lambda: T.rand_like(grid) + T.randn_like(grid) + T.randint_like(grid, 5),
        "state": lambda: (T.randn(5), T.get_rng_state())[1],
    })  # fmt: skip
    return found


def digest(tensor: Any) -> str:
    """A short name of dtype, shape and bits."""
    array = np.ascontiguousarray(tensor.numpy())
    text = f"{array.dtype}{list(tensor.shape)}".encode() + array.tobytes()
    return hashlib.sha256(text).hexdigest()[:12]


def all_digests(T: Any, seeds: tuple[int, ...] = SEEDS) -> dict[str, str]:
    """Seed, shape and name -> digests of two draws in a row."""
    found = {}
    for seed in seeds:
        sets = [(str(s), draws(T, s)) for s in SHAPES] + [("own", other_draws(T))]
        for shape, functions in sets:
            for name, function in functions.items():
                T.manual_seed(seed)
                found[f"{seed} {shape} {name}"] = digest(function()) + digest(function())
    return found
