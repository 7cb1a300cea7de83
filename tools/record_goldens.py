"""Record what PyTorch gives for every case of tests/parity/cases.py (needs torch).

    python tools/record_goldens.py

Writes tests/parity/goldens.npz: outputs, first- and second-order gradients in double precision.
"""

from __future__ import annotations

import pathlib
import sys
import warnings

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.parity.cases import CASES  # noqa: E402
from tests.parity.evaluate import evaluate  # noqa: E402


def main() -> None:
    """Evaluate on torch and save."""
    warnings.simplefilter("ignore")
    arrays: dict[str, np.ndarray] = {}
    for case in CASES:
        for key, value in evaluate(torch, case).items():
            arrays[f"{case.name}|{key}"] = value
    path = ROOT / "tests" / "parity" / "goldens.npz"
    np.savez_compressed(path, **arrays)
    print(f"{len(CASES)} cases, {len(arrays)} arrays, torch {torch.__version__} -> {path.name}")


if __name__ == "__main__":
    main()
