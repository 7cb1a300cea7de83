"""Record PyTorch's random draws as digests of their bits (needs torch).

python tools/record_random.py
"""

from __future__ import annotations

import json
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.parity.random_cases import all_digests  # noqa: E402

if __name__ == "__main__":
    found = all_digests(torch, seeds=(0, 42, -3))
    path = ROOT / "tests" / "parity" / "random.json"
    path.write_text(json.dumps(found, indent=0) + "\n")
    print(f"{len(found)} draws -> {path.name}")
