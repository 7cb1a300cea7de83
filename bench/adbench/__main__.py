"""Times of ADBench's objectives beside PyTorch: `python -m bench.adbench`.

Prints, for each objective and size, PyTorch's time for the derivative and ours over PyTorch's
(below 1 is faster), the same for the value alone, and the derivative over the value for both.
One core, interleaved medians (bench/measure.py).
"""

from __future__ import annotations

import sys
from typing import Any

from bench.measure import medians, one_core

one_core()

import numpy as np  # noqa: E402
import torch  # noqa: E402

import pullback  # noqa: E402
from bench.adbench import ba, gmm, hand, lstm  # noqa: E402

torch.set_num_threads(1)
CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("gmm n=100 d=2 k=5", gmm, {"n": 100, "d": 2, "k": 5}),
    ("gmm n=1000 d=10 k=25", gmm, {"n": 1000, "d": 10, "k": 25}),
    ("gmm n=1000 d=32 k=50", gmm, {"n": 1000, "d": 32, "k": 50}),
    ("ba 21 cameras, 36k seen", ba, {"cameras": 21, "points": 11_315, "observations": 36_455}),
    ("ba 5 cameras, 100 seen", ba, {"cameras": 5, "points": 40, "observations": 100}),
    ("hand 100 points", hand, {"points": 100, "vertices": 544}),
    ("hand 100 points, free", hand, {"points": 100, "vertices": 544, "free": True}),
    ("lstm l=2 length=128", lstm, {"layers": 2, "size": 14, "length": 128}),
    ("lstm l=4 length=512", lstm, {"layers": 4, "size": 14, "length": 512}),
]  # fmt: skip


def main(rounds: int = 11) -> None:
    """Print the table."""
    head = f"{'objective':<26}{'torch ms':>10}{'ours/torch':>12}{'value only':>12}"
    print(head + f"{'deriv/value: torch':>20}{'ours':>8}")
    for name, module, sizes in CASES:
        data = module.instance(np.random.default_rng(0), **sizes)
        problems = {"torch": module.problem(torch, data), "ours": module.problem(pullback, data)}
        derivative = medians({k: p.derivative for k, p in problems.items()}, rounds)
        value = medians(
            {k: lambda p=p: p.value(*p.inputs) for k, p in problems.items()}, rounds
        )
        print(
            f"{name:<26}{derivative['torch'] * 1e3:>10.2f}"
            f"{derivative['ours'] / derivative['torch']:>12.2f}"
            f"{value['ours'] / value['torch']:>12.2f}"
            f"{derivative['torch'] / value['torch']:>20.1f}"
            f"{derivative['ours'] / value['ours']:>8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 11)
