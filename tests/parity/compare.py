"""Comparing a result with PyTorch's, array by array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# Where PyTorch's value is wrong and there is one right value, ours is right.  Key -> reason.
BETTER = {
    "norm zero/0|h0": "the Hessian of a norm at 0 by its subgradient 0: PyTorch gives NaN",
}


def differences(name: str, want: Mapping[str, Any], got: Mapping[str, Any]) -> list[str]:
    """What differs, in words; an absent gradient and a zero one count as the same."""
    found = []
    for key in sorted({*want, *got}):
        if f"{name}|{key}" in BETTER:
            continue
        w, g = want.get(key), got.get(key)
        if w is None or g is None:
            present = g if w is None else w
            assert present is not None
            if np.abs(present).max(initial=0.0) > 1e-12:
                found.append(f"{key}: only one side has it: {present!r}")
        elif w.shape != g.shape or w.dtype != g.dtype:
            found.append(f"{key}: {w.dtype}{list(w.shape)} became {g.dtype}{list(g.shape)}")
        elif not np.allclose(w, g, rtol=1e-9, atol=1e-11, equal_nan=True):
            found.append(f"{key}: torch {w.ravel()[:6]}, here {g.ravel()[:6]}")
    return found
