"""`pullback.autograd`: PyTorch's names for derivatives and the modes around them (layer 6)."""

from __future__ import annotations

from pullback.api.autograd import backward, grad
from pullback.api.modes import (
    enable_grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from pullback.eager.tensor import Tensor as Variable

__all__ = [
    "Variable", "backward", "enable_grad", "grad", "is_grad_enabled", "no_grad",
    "set_grad_enabled",
]  # fmt: skip
