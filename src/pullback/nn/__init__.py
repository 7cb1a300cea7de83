"""`pullback.nn`: modules, parameters, and the functions of `nn.functional` (layer 6)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pullback.nn import functional, parameter
from pullback.nn.parameter import Buffer, Parameter

# what loads on first use: where it is, and the names there
_PLACES = {
    "pullback.nn.module": "Module",
    "pullback.nn.containers": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
}
_LAZY = {name: place for place, names in _PLACES.items() for name in names.split()}
_MODULES = ("init", "utils")

__all__ = ["Buffer", "Parameter", "functional", "parameter", *_LAZY, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"pullback.nn.{name}")
    if name not in _LAZY:
        raise AttributeError(
            f"module 'pullback.nn' has no attribute {name!r}: it is not built yet"
        )
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})
