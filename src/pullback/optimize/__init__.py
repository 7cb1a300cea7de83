"""`pullback.optimize`: SciPy's optimisers with exact derivatives (layer 6).  Needs SciPy."""

from __future__ import annotations

from pullback.optimize.minimize import minimize, value_and_grad

__all__ = ["minimize", "value_and_grad"]
