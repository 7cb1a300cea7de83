"""`pullback.autograd.functional`: Jacobians, Hessians and products with them (layer 6)."""

from __future__ import annotations

from pullback.transforms.functional import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
