"""One fused loop beside NumPy and, if it is installed, PyTorch: `python -m bench.fused`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from bench.measure import medians, one_core

one_core()

import numpy as np  # noqa: E402

from pullback.native import FusedLoop, Instruction, fuse  # noqa: E402

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

SIZE = 1_000_000
VALUE = (Instruction("exp", (0,)), Instruction("mul", (1, 0)))
# of inputs x, g: the value, and g exp(x) x + g exp(x)
GRADIENT = (Instruction("exp", (0,)), Instruction("mul", (2, 0)), Instruction("mul", (1, 0)),
            Instruction("mul", (4, 2)), Instruction("mul", (1, 2)),
            Instruction("add", (5, 6)))  # fmt: skip


def compile_seconds(make: Callable[[], FusedLoop], *examples: np.ndarray) -> float:
    """From program to machine code; the first time also loads LLVM, and is left out."""
    times = []
    for _ in range(6):
        fuse._CACHE.clear()
        loop = make()
        start = time.perf_counter()
        loop(*examples)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def show(title: str, found: dict[str, float]) -> None:
    """One line per candidate: milliseconds, and the ratio to the first peer."""
    peer = "torch" if "torch" in found else "numpy"
    print(title)
    for name, seconds in found.items():
        ratio = seconds / found[peer]
        print(f"  {name:<18} {seconds * 1e3:8.4f} ms   {ratio:.2f} of {peer}")


def value() -> None:
    """exp(x) * x."""
    x = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    loop = FusedLoop(1, VALUE, (2,), np.float32)
    result = loop(x)
    candidates: dict[str, Callable[[], object]] = {}
    if torch is not None:
        t = torch.from_numpy(x)
        candidates["torch"] = lambda: torch.exp(t) * t
    candidates["numpy"] = lambda: np.exp(x) * x
    candidates["fused"] = lambda: loop(x)
    candidates["fused, out given"] = lambda: loop(x, out=result)
    show(f"exp(x) * x on {SIZE} float32", medians(candidates, target=0.05))


def value_and_gradient() -> None:
    """The same with its backward, which frameworks run as separate operations."""
    x = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    g = np.ones_like(x)
    loop = FusedLoop(2, GRADIENT, (3, 7), np.float32)
    results = loop(x, g)
    candidates: dict[str, Callable[[], object]] = {}
    if torch is not None:
        t, u = torch.from_numpy(x).requires_grad_(), torch.from_numpy(g)
        candidates["torch"] = lambda: torch.autograd.grad(torch.exp(t) * t, t, u)
    candidates["fused"] = lambda: loop(x, g)
    candidates["fused, out given"] = lambda: loop(x, g, out=results)
    if torch is not None:
        show("value and gradient", medians(candidates, target=0.05))


def small_calls() -> None:
    """What one call costs when there is nearly nothing to do."""
    x = np.ones(8, np.float32)
    loop = FusedLoop(1, VALUE, (2,), np.float32)
    result = loop(x)
    candidates: dict[str, Callable[[], object]] = {}
    if torch is not None:
        t = torch.from_numpy(x)
        candidates["torch"] = lambda: torch.exp(t) * t
    candidates["numpy"] = lambda: np.exp(x) * x
    candidates["fused"] = lambda: loop(x)
    candidates["fused, out given"] = lambda: loop(x, out=result)
    show("the same on 8 elements", medians(candidates))


def main() -> None:
    """All of it."""
    value()
    value_and_gradient()
    small_calls()
    x = np.ones(8, np.float32)
    for name, make, examples in (
        ("exp(x) * x", lambda: FusedLoop(1, VALUE, (2,), np.float32), (x,)),
        ("value and gradient", lambda: FusedLoop(2, GRADIENT, (3, 7), np.float32), (x, x)),
    ):
        print(f"compiling {name}: {compile_seconds(make, *examples) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
