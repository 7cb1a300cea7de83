"""`pullback.func`: function transforms under PyTorch's names (layer 6)."""

from __future__ import annotations

from pullback.transforms.grad import grad, grad_and_value
from pullback.transforms.vmap import vmap

__all__ = ["grad", "grad_and_value", "vmap"]
