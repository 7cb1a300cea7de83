"""`pullback.nn`: for now its functional part (layer 6)."""

from __future__ import annotations

from pullback.nn import functional

__all__ = ["functional"]
