"""Record PyTorch's random draws as digests of their bits (needs torch).

python tools/record_random.py
"""

from __future__ import annotations

import json
import pathlib
import sys
import warnings
from typing import Any

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.ops.test_random import (  # noqa: E402
    FILL_SEED,
    FLOATS,
    RECORDED_FILE,
    draw_digest,
    fill_digests,
    rates,
)
from tests.parity.random_cases import all_digests  # noqa: E402


def torch_fill(method: str, n: int, dtype: str, args: tuple[Any, ...], seed: int) -> Any:
    """One fill by PyTorch, and the state it leaves."""
    torch.manual_seed(seed)
    tensor = torch.empty(n, dtype=getattr(torch, dtype))
    return getattr(tensor, method)(*args).numpy(), torch.get_rng_state().numpy()


def array_digests() -> dict[str, str]:
    """Poisson counts and dropout masks, which are not methods."""
    found = {}
    for dtype in FLOATS:
        torch.manual_seed(FILL_SEED)
        counts = torch.poisson(torch.from_numpy(rates(dtype))).numpy()
        found[f"array poisson {dtype}"] = draw_digest(counts, torch.get_rng_state().numpy())
        for p in (0.0, 0.1, 0.3, 1.0):
            torch.manual_seed(FILL_SEED)
            ones = torch.ones(50, dtype=getattr(torch, dtype))
            mask = torch.nn.functional.dropout(ones, p).numpy()
            found[f"array dropout {p} {dtype}"] = draw_digest(mask, torch.get_rng_state().numpy())
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # bounds that floating dtypes round: they are cases
    found = all_digests(torch, seeds=(0, 42, -3))
    found |= fill_digests(torch_fill, FILL_SEED) | array_digests()
    RECORDED_FILE.write_text(json.dumps(found, indent=0) + "\n")
    print(f"{len(found)} draws -> {RECORDED_FILE.name}")
