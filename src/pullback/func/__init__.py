"""`pullback.func`: function transforms under PyTorch's names (layer 6)."""

from __future__ import annotations

import importlib
from typing import Any

from pullback.transforms.forward import jvp, linearize
from pullback.transforms.grad import grad, grad_and_value
from pullback.transforms.jacobian import hessian, jacfwd, jacrev
from pullback.transforms.reverse import vjp
from pullback.transforms.vmap import vmap

__all__ = [
    "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap",
]

# what loads when first used, among it all that goes beyond PyTorch: name -> module
_LAZY = {
    "functional_call": "pullback.func.stateful",
    "functionalize": "pullback.func.stateful",
    "stack_module_state": "pullback.func.stateful",
    "implicit": "pullback.transforms.implicit",
    "sparse_hessian": "pullback.transforms.sparse",
    "sparse_jacobian": "pullback.transforms.sparse",
    "taylor": "pullback.transforms.taylor",
}
__all__ += list(_LAZY)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(
            f"module 'pullback.func' has no attribute {name!r}: it is not built yet"
        )
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
