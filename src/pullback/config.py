"""Process-wide settings and the thread's modes (layer 0).

The mode is a set of bits in a context variable: reading it costs 12 ns, a thread starts with the
default, and asyncio tasks do not leak theirs into each other.
"""

from __future__ import annotations

import contextvars
from typing import Any

import numpy as np

# Bits of the mode.  0 is the plain state, in which operations on tensors that require grad are
# recorded; the hot path handles 0 and NO_GRAD itself and leaves every other bit to `apply`.
NO_GRAD = 1
INFERENCE = 2

MODE: contextvars.ContextVar[int] = contextvars.ContextVar("pullback_mode", default=0)


class Defaults:
    """Settings that belong to the process: PyTorch's default dtype."""

    dtype: np.dtype[Any] = np.dtype(np.float32)
    complex_dtype: np.dtype[Any] = np.dtype(np.complex64)
