"""`pullback.nn.utils`: gradients that are too large, and parameters as one vector (layer 6)."""

from __future__ import annotations

from typing import Any

from pullback.nn.utils.gradients import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from pullback.nn.utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "vector_to_parameters",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'pullback.nn.utils' has no attribute {name!r}: it is not built yet"
    )
