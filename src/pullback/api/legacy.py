"""PyTorch's older constructors, one per dtype (layer 4): `torch.FloatTensor` and the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.api.data import is_sequence, to_array
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.size import Size
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentTypeError


class TensorType:
    """`torch.<Name>Tensor`: makes tensors of one dtype, and knows them in `isinstance`.

    Sizes give uninitialised memory; a sequence or an array is copied.
    """

    def __init__(self, name: str, dtype: dtypes.dtype) -> None:
        self.__name__ = self.__qualname__ = name
        self.dtype = dtype
        self.__doc__ = f"A tensor of {dtype.name}: of given sizes (uninitialised), or from data."

    def __call__(self, *args: Any, device: Any = None) -> Tensor:
        numpy = self.dtype.numpy
        first = args[0] if args else ()
        if not args:
            return wrap(np.empty(0, numpy))
        if isinstance(first, int) and not isinstance(first, bool) or isinstance(first, Size):
            return wrap(np.empty(arguments.size(args, "size", "new"), numpy))
        if len(args) > 1:
            raise ArgumentTypeError(
                with_site(
                    f"new() received an invalid combination of arguments: {len(args)} of them"
                )
            )
        if isinstance(first, Tensor):
            if first._data.dtype != numpy:
                raise ArgumentTypeError(
                    with_site(
                        f"expected a tensor of {self.dtype} (got {first.dtype}): convert it with "
                        ".to()"
                    )
                )
            return wrap(first._data)
        if isinstance(first, (str, bytes)) or not is_sequence(first):
            name = type(first).__name__
            text = f"data must be a sequence (got {name})"
            if isinstance(first, (str, bytes)):
                text = f"invalid data type '{name}'"
            raise ArgumentTypeError(with_site(f"new(): {text}"))
        return wrap(np.array(to_array(first, "new", self.dtype)))

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Tensor) and value._data.dtype == self.dtype.numpy

    def __repr__(self) -> str:
        return f"<class 'torch.{self.__name__}'>"


FloatTensor = TensorType("FloatTensor", dtypes.float32)
DoubleTensor = TensorType("DoubleTensor", dtypes.float64)
HalfTensor = TensorType("HalfTensor", dtypes.float16)
LongTensor = TensorType("LongTensor", dtypes.int64)
IntTensor = TensorType("IntTensor", dtypes.int32)
ShortTensor = TensorType("ShortTensor", dtypes.int16)
CharTensor = TensorType("CharTensor", dtypes.int8)
ByteTensor = TensorType("ByteTensor", dtypes.uint8)
BoolTensor = TensorType("BoolTensor", dtypes.bool_)
