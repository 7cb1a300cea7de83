"""One fused loop beside NumPy and PyTorch: `python -m bench.fused`."""

from __future__ import annotations

import time

from bench.measure import medians, one_core

one_core()

import numpy as np  # noqa: E402
import torch  # noqa: E402

from pullback.native import FusedLoop, Instruction  # noqa: E402

torch.set_num_threads(1)


def main() -> None:
    """exp(x) * x on 10^6 float32."""
    x = np.random.default_rng(0).normal(size=1_000_000).astype(np.float32)
    t = torch.from_numpy(x)
    loop = FusedLoop(1, (Instruction("exp", (0,)), Instruction("mul", (1, 0))), (2,), np.float32)
    start = time.perf_counter()
    loop(x)
    first = time.perf_counter() - start
    found = medians({
        "torch": lambda: torch.exp(t) * t,
        "numpy": lambda: np.exp(x) * x,
        "fused": lambda: loop(x),
    }, target=0.05)  # fmt: skip
    for name, seconds in found.items():
        print(f"{name:<8} {seconds * 1e3:7.3f} ms  {seconds / found['torch']:.2f} of torch")
    small = np.ones(8, np.float32)
    print(f"compiled in {first * 1e3:.0f} ms; one call on 8 elements takes "
          f"{medians({'call': lambda: loop(small)})['call'] * 1e6:.1f} us")  # fmt: skip


if __name__ == "__main__":
    main()
