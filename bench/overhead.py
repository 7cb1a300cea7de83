"""Eager overhead beside PyTorch: `make bench`, or `python -m bench.overhead`.

Prints, for each workload, PyTorch's time and ours over PyTorch's (below 1 is faster), and the bound
that the project set itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from bench.measure import medians, one_core

one_core()

import numpy as np  # noqa: E402
import torch  # noqa: E402

import pullback  # noqa: E402

torch.set_num_threads(1)
Work = Callable[[Any], Callable[[], object]]


def dot(T: Any) -> Callable[[], object]:
    x = T.arange(4.0, requires_grad=True)

    def run() -> None:
        x.grad = None
        (2 * T.dot(x, x)).backward()

    return run


def chain(T: Any, backward: bool, tensor: bool) -> Callable[[], object]:
    x = T.ones(4, requires_grad=True)
    factor = T.full((4,), 1.01) if tensor else 1.01
    seed = T.ones(4)

    def run() -> None:
        y = x
        for _ in range(100):
            y = y * factor
        if backward:
            x.grad = None
            y.backward(seed)

    return run


def unary_chain(T: Any) -> Callable[[], object]:
    x, seed = T.ones(4, requires_grad=True), T.ones(4)

    def run() -> None:
        y = x
        for _ in range(50):
            y = T.tanh(T.sin(y))
        x.grad = None
        y.backward(seed)

    return run


def one_op(build: Callable[[Any, Any], Any], shape: tuple[int, ...], seeded: bool = True) -> Work:
    def work(T: Any) -> Callable[[], object]:
        x = T.ones(*shape, requires_grad=True)
        seed = T.ones(tuple(build(T, x).shape)) if seeded else None

        def run() -> None:
            x.grad = None
            build(T, x).backward(seed)

        return run

    return work


def network(T: Any) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    F = T.nn.functional
    sizes = (784, 512, 512, 10)
    layers = []
    for n, m in zip(sizes, sizes[1:], strict=False):
        w = T.from_numpy((rng.normal(size=(m, n)) / np.sqrt(n)).astype(np.float32))
        layers.append((w.requires_grad_(), T.zeros(m, requires_grad=True)))
    x = T.from_numpy(rng.normal(size=(128, 784)).astype(np.float32))
    y = T.from_numpy(rng.integers(0, 10, 128))
    parameters = [p for layer in layers for p in layer]

    def run() -> None:
        h = x
        for w, b in layers[:-1]:
            h = T.relu(F.linear(h, w, b))
        loss = F.cross_entropy(F.linear(h, *layers[-1]), y)
        for p in parameters:
            p.grad = None
        loss.backward()
        with T.no_grad():
            for p in parameters:
                p.sub_(p.grad, alpha=0.01)

    return run


WORKLOADS: list[tuple[str, Work, float]] = [
    ("2*dot(x,x) n=4, forward+backward", dot, 0.4),
    ("100 x (y * 1.01), forward", lambda T: chain(T, False, False), 0.5),
    ("100 x (y * 1.01), forward+backward", lambda T: chain(T, True, False), 0.6),
    ("100 x (y * tensor), forward", lambda T: chain(T, False, True), 0.0),
    ("100 x (y * tensor), forward+backward", lambda T: chain(T, True, True), 0.0),
    ("100 x tanh, sin, forward+backward", unary_chain, 0.0),
    ("x[1], forward+backward", one_op(lambda T, x: x[1], (4,)), 0.6),
    ("x[1:3], forward+backward", one_op(lambda T, x: x[1:3], (4,)), 0.6),
    ("x + x, forward+backward", one_op(lambda T, x: x + x, (4,)), 0.6),
    ("x.sum(), forward+backward", one_op(lambda T, x: x.sum(), (4,), False), 0.6),
    ("x @ x 4x4, forward+backward", one_op(lambda T, x: x @ x, (4, 4)), 0.6),
    ("MLP 784-512-512-10 b128, SGD step", network, 1.0),
]


def import_seconds(module: str) -> float:
    """Import time over that of NumPy, in a fresh interpreter: the least of several."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    code = ("import time, numpy; t = time.perf_counter(); "
            f"import {module}; print(time.perf_counter() - t)")  # fmt: skip
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             env=environment,
                             check=True).stdout)
        for _ in range(7)
    ]  # fmt: skip
    return min(runs)


def main() -> None:
    """Print the table."""
    print(f"{'workload':<40} {'torch':>10} {'ratio':>7} {'bound':>6}")
    for name, work, bound in WORKLOADS:
        rounds = 15 if "MLP" in name else 31
        found = medians({"torch": work(torch), "pullback": work(pullback)}, rounds)
        ratio = found["pullback"] / found["torch"]
        goal = f"{bound:.1f}" if bound else "-"
        print(f"{name:<40} {found['torch'] * 1e6:8.1f}us {ratio:7.3f} {goal:>6}", flush=True)
    ours, theirs = import_seconds("pullback"), import_seconds("torch")
    print(f"import over NumPy: pullback {ours:.3f} s, torch {theirs:.3f} s")


if __name__ == "__main__":
    main()
