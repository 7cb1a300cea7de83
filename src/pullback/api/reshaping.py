"""`squeeze_`, `t_` and their like (layer 4): a tensor that becomes a view of what it was."""

from __future__ import annotations

from typing import Any

from pullback.api import movement
from pullback.api.modes import is_grad_enabled
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor, bump_version, gradient_edge, wrap, wrap_with_edge
from pullback.errors import GraphError, UnsupportedError


def _changing(name: str, function: Any) -> Any:
    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        if not self._requires_grad:
            self._data = function(wrap(self._data), *args, **options)._data
            bump_version(self)
            return self
        if self.is_leaf and is_grad_enabled():
            raise GraphError(
                with_site(
                    "a leaf Variable that requires grad is being used in an in-place operation: "
                    f"{name}; use {name[:-1]}()"
                )
            )
        rare = self._rare
        if self.is_leaf or (rare is not None and (rare.base is not None or rare.views)):
            raise UnsupportedError(
                with_site(
                    f"{name}() of a view, a viewed tensor or a leaf that requires grad: use "
                    f"{name[:-1]}()"
                )
            )
        # what came before lives on as another tensor: its node is the new one's input
        before = wrap_with_edge(self._data, gradient_edge(self))
        after = function(before, *args, **options)
        self._data = after._data
        self._edge, self._requires_grad = after._edge, after._requires_grad
        bump_version(self)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name[:-1]}`, of this tensor itself."
    return method


squeeze_ = _changing("squeeze_", movement.squeeze)
unsqueeze_ = _changing("unsqueeze_", movement.unsqueeze)
t_ = _changing("t_", movement.t)
transpose_ = _changing("transpose_", movement.transpose)
