"""Interleaved medians: the one way in which the benchmarks measure.

Candidates run in turn, round after round, in one process on one core: what disturbs the machine
disturbs all of them.  Only ratios are worth reading.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable


def one_core() -> None:
    """Pin the process to one core, before NumPy or PyTorch size their thread pools."""
    core = sorted(os.sched_getaffinity(0))[-1]
    os.sched_setaffinity(0, {core})
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"


def medians(candidates: dict[str, Callable[[], object]], rounds: int = 31,
            target: float = 0.004) -> dict[str, float]:  # fmt: skip
    """Seconds per call of each candidate."""
    repeats = {}
    for name, call in candidates.items():
        call()
        start, n = time.perf_counter(), 0
        while time.perf_counter() - start < target:
            call()
            n += 1
        repeats[name] = max(n, 1)
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, call in candidates.items():
            n = repeats[name]
            start = time.perf_counter()
            for _ in range(n):
                call()
            samples[name].append((time.perf_counter() - start) / n)
    return {name: statistics.median(s) for name, s in samples.items()}
