"""`pullback.autograd.gradcheck`: gradients against difference quotients (layer 6)."""

from __future__ import annotations

from pullback.transforms.gradcheck import gradcheck, gradgradcheck
from pullback.transforms.gradcheck_jacobians import GradcheckError

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
