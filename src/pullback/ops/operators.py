"""Operators on the values of transforms, bound to primitives (layer 2).

Rules use `+ - * / @ **` and indexing.  On arrays those are NumPy's, on Tensors the tape's; the
values of transforms (`Batched`, `Traced`) inherit them from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.primitive import REGISTRY


def _binary(name: str, swap: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        primitive = REGISTRY[name]
        return primitive(other, self) if swap else primitive(self, other)

    return operator


def _unary(name: str) -> Callable[[Any], Any]:
    return lambda self: REGISTRY[name](self)


class Operators:
    """Python's operators for the values of a transform."""

    __slots__ = ()
    __array_ufunc__ = None

    __add__, __radd__ = _binary("add"), _binary("add", True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", True)
    __matmul__, __rmatmul__ = _binary("matmul"), _binary("matmul", True)
    __neg__ = _unary("neg")
    __lt__, __le__ = _binary("lt"), _binary("le")
    __gt__, __ge__ = _binary("gt"), _binary("ge")
    __eq__ = _binary("eq")  # type: ignore[assignment]
    __ne__ = _binary("ne")  # type: ignore[assignment]
    __hash__ = object.__hash__
    __and__, __or__ = _binary("logical_and"), _binary("logical_or")
    __invert__ = _unary("logical_not")

    def __getitem__(self, key: Any) -> Any:
        return REGISTRY["getitem"](self, key=key)
