"""Record how PyTorch prints the tensors of tests/parity/printing_cases.py (needs torch).

python tools/record_printing.py
"""

from __future__ import annotations

import json
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.parity.printing_cases import printed, text_of  # noqa: E402

if __name__ == "__main__":
    texts = [text_of(torch, printed(seed)) for seed in range(400)]
    path = ROOT / "tests" / "parity" / "printing.json"
    path.write_text(json.dumps(texts, indent=0) + "\n")
    print(f"{len(texts)} texts -> {path.name}")
