"""How tensors print (layer 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.config import Defaults
from pullback.core import printing
from pullback.eager.apply import settled
from pullback.eager.dual import Dual
from pullback.eager.tensor import Tensor
from pullback.errors import GraphError


class Layout:
    """`torch.strided`: the only layout there is."""

    def __repr__(self) -> str:
        return "torch.strided"


STRIDED = Layout()


def representation(self: Tensor, *, tensor_contents: Any = None) -> str:
    """The text of a tensor, as PyTorch prints it."""
    data = settled(self)
    tangent = None
    if type(data) is Dual:
        tangent, data = data.tangent, data.primal._data
    if type(data) is not np.ndarray:
        return repr(self._data)
    try:
        node = self.grad_fn
        grad_fn = None if node is None else type(node).__name__
    except GraphError:  # a view that may not be used any more can still be looked at
        grad_fn = "Invalid"
    return printing.tensor_text(
        data,
        requires_grad=self._requires_grad and grad_fn is None,
        grad_fn=grad_fn,
        default_dtype=Defaults.dtype,
        tangent=None if tangent is None else repr(tangent),
    )


def formatted(self: Tensor, spec: str) -> str:
    """`format(x, spec)`: of a 0-d tensor, the number's."""
    data = self._data
    if type(data) is not np.ndarray or (data.ndim and not spec):
        return repr(self)
    return printing.scalar_format(data, spec)


def storage_offset(self: Tensor) -> int:
    """The position of the first element in the memory it shares, in elements."""
    base = self._data
    while isinstance(base.base, np.ndarray):
        base = base.base
    start = self._data.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return int(start // self._data.dtype.itemsize)
