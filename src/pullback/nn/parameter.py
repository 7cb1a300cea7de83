"""`Parameter`: the tensors that a module learns; `Buffer`: those that it keeps (layer 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.api.text import representation
from pullback.config import Defaults
from pullback.core.callsite import with_site
from pullback.eager import apply
from pullback.eager.tensor import Tensor, fill, set_requires_grad
from pullback.errors import ArgumentTypeError


class Parameter(Tensor):
    """A leaf that requires grad (unless told not to) over the memory of a tensor.

    Operations on it give plain tensors; a copy of it is a Parameter.
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        """data: Tensor - its memory is shared; an empty one when not given."""
        if data is None:
            payload: Any = np.empty(0, Defaults.dtype)
        elif isinstance(data, Tensor):
            payload = data._data
        else:
            raise ArgumentTypeError(
                with_site(
                    "Parameter(): argument 'data' must be Tensor, not "
                    f"{type(data).__name__}: give torch.tensor(...)"
                )
            )
        self = object.__new__(cls)
        fill(self, payload)
        if requires_grad:
            set_requires_grad(self, True, "Only Tensors of floating point and complex dtype")
        return self

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"Parameter containing:\n{representation(self)}"

    __str__ = __repr__
    __format__ = object.__format__  # type: ignore[assignment]


apply.PARAMETER = Parameter


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned to an attribute.

    persistent: bool - whether it is part of the module's `state_dict`.
    """

    __slots__ = ()
    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        """data: Tensor - its memory is shared; an empty one when not given."""
        self = object.__new__(cls)
        fill(self, np.empty(0, Defaults.dtype) if data is None else data.detach()._data)
        if data is not None and data.requires_grad:
            set_requires_grad(self, True)
        self.persistent = persistent
        return self
