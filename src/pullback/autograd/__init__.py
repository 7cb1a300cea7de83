"""`pullback.autograd`: PyTorch's names for derivatives and the modes around them (layer 6)."""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from pullback.api.autograd import backward, grad
from pullback.api.modes import (
    enable_grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from pullback.eager.tensor import Tensor as Variable

if TYPE_CHECKING:
    from pullback.autograd import forward_ad, functional
    from pullback.autograd.gradcheck import gradcheck, gradgradcheck

__all__ = [
    "Variable", "backward", "enable_grad", "forward_ad", "functional", "grad", "gradcheck",
    "gradgradcheck", "is_grad_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip

# what loads on first use: name -> (module, attribute; None for the module itself)
_LAZY: dict[str, tuple[str, str | None]] = {
    "forward_ad": ("pullback.autograd.forward_ad", None),
    "functional": ("pullback.autograd.functional", None),
    "gradcheck": ("pullback.autograd.gradcheck", "gradcheck"),
    "gradgradcheck": ("pullback.autograd.gradcheck", "gradgradcheck"),
}


def __getattr__(name: str) -> Any:
    found = _LAZY.get(name)
    if found is None:
        raise AttributeError(
            f"module 'pullback.autograd' has no attribute {name!r}: it is not built yet"
        )
    module = importlib.import_module(found[0])
    value = module if found[1] is None else getattr(module, found[1])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


class _Package(types.ModuleType):
    """Keeps the function `gradcheck` in place of the module of that name, once it is loaded."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "gradcheck" and isinstance(value, types.ModuleType):
            value = value.gradcheck
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
