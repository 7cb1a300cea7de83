"""`pullback.nn`: parameters, and the functions of `nn.functional` (layer 6)."""

from __future__ import annotations

from pullback.nn import functional, parameter
from pullback.nn.parameter import Parameter

__all__ = ["Parameter", "functional", "parameter"]
