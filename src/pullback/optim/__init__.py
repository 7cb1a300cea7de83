"""`pullback.optim`: optimisers under PyTorch's names (layer 6)."""

from __future__ import annotations

from typing import Any

from pullback.optim.adam import Adam, AdamW
from pullback.optim.optimizer import Optimizer
from pullback.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'pullback.optim' has no attribute {name!r}: it is not built yet")
