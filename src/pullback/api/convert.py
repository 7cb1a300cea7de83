"""Leaving the tensor world, and changing dtype (layer 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.device import check_device, device
from pullback.eager.apply import apply
from pullback.eager.batched import CONTROL_FLOW, Batched, Shared
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    GraphError,
    TracingError,
    UnsupportedError,
)
from pullback.ops.broadcast import cast


def to(x: Tensor, *args: Any, **options: Any) -> Tensor:
    """`x` in another dtype: `to(dtype)`, `to(device, dtype)`, `to(other)`; x itself if the same."""
    wanted, copy = options.pop("dtype", None), options.pop("copy", False)
    check_device(options.pop("device", None))
    options.pop("non_blocking", None), options.pop("memory_format", None)
    other = options.pop("other", None)
    if options:
        raise ArgumentTypeError(
            with_site(
                "to() received an invalid combination of arguments: unexpected keyword "
                f"{next(iter(options))!r}"
            )
        )
    given: set[str] = set()
    for a in args if other is None else (other, *args):
        if isinstance(a, bool):  # non_blocking, copy
            continue
        kind = "device" if isinstance(a, (str, device, int)) else "dtype"
        if a is not None and kind in given:
            raise ArgumentTypeError(
                with_site(
                    f"to() received an invalid combination of arguments: two that name a {kind}"
                )
            )
        given.add(kind)
        if kind == "device":
            check_device(a)
        elif isinstance(a, Tensor):
            wanted = a._data.dtype
        elif a is not None:
            wanted = a
    if wanted is None:
        return x.clone() if copy else x
    numpy = dtypes.to_numpy(wanted)
    if x._data.dtype == numpy:
        return x.clone() if copy else x
    return apply(cast, (x,), {"dtype": numpy})


def cuda(x: Tensor, device: Any = None, **options: Any) -> Tensor:
    """Refused: AssertionError, as PyTorch without a GPU."""
    check_device("cuda" if device is None else device)
    return x


def typed(name: str) -> Any:
    """A method that converts to one dtype (`x.double()`)."""
    numpy = dtypes.FROM_NAME[name].numpy

    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        if self._data.dtype is numpy:
            return self
        return apply(cast, (self,), {"dtype": numpy})

    method.__doc__ = f"The tensor as {name}; itself when it is."
    return method


def view_dtype(x: Tensor, dtype: Any) -> Tensor:
    """The bytes of x read as another dtype; not differentiable."""
    numpy = dtypes.to_numpy(dtype)
    if x.requires_grad and numpy != x._data.dtype:
        raise UnsupportedError(
            with_site("view(dtype) of a tensor that requires grad: detach it first")
        )
    try:
        return wrap(x._data.view(numpy))
    except (ValueError, TypeError) as error:
        raise ArgumentRuntimeError(with_site(f"view(dtype): {error}")) from None


# ---------------------------------------------------------------- Python values
_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor (or use it as a Python number). Inside "
    "a transform it is not one number: use tensor operations instead, or call it outside of vmap"
)
_UNDER_VMAP = {
    **dict.fromkeys((".item()", "an index", "float()", "int()", "complex()"), _ITEM),
    "bool()": CONTROL_FLOW,
}


def concrete(x: Tensor, what: str) -> Any:
    """The array of a tensor; an error inside a transform, where there is none."""
    data = x._data
    if type(data) is np.ndarray:
        return data
    if type(data) is Shared or hasattr(data, "primal"):  # one value counts
        return concrete(data.value, what)
    if type(data) is Batched and what in _UNDER_VMAP:
        raise TracingError(with_site(_UNDER_VMAP[what]))
    raise TracingError(
        with_site(
            f"{what} needs the value of a tensor inside a transform ({type(data).__name__}), "
            "where it is not one value: use tensor operations (torch.where) instead, or compute "
            "it outside"
        )
    )


def item(x: Tensor) -> Any:
    """The value of a tensor with one element, as a Python number.

    Raises RuntimeError for more or fewer elements.
    """
    data = concrete(x, ".item()")
    if data.size != 1:
        raise ArgumentRuntimeError(
            with_site(f"a Tensor with {data.size} elements cannot be converted to Scalar")
        )
    return data.item()


def tolist(x: Tensor) -> Any:
    """Nested Python lists; a number for a 0-d tensor."""
    return concrete(x, ".tolist()").tolist()


def truth(x: Tensor) -> bool:
    """`bool(x)`: only of one element."""
    data = concrete(x, "bool()")
    if data.size != 1:
        word = "no values" if not data.size else "more than one value"
        raise ArgumentRuntimeError(
            with_site(f"Boolean value of Tensor with {word} is ambiguous")
        )
    return bool(data.reshape(-1)[0])


def number(kind: type) -> Any:
    """`float(x)`, `int(x)`, `complex(x)`.

    Raises ValueError unless there is one element, RuntimeError for an imaginary part.
    """

    def convert(self: Tensor) -> Any:
        data = concrete(self, f"{kind.__name__}()")
        if data.size != 1:
            raise ArgumentValueError(
                with_site(
                    "only one element tensors can be converted to Python scalars: this one has "
                    f"{data.size}"
                )
            )
        value = data.item()
        if isinstance(value, complex) and kind is not complex:
            if value.imag:
                name = "int64_t" if kind is int else "double"
                raise ArgumentRuntimeError(
                    with_site(f"value cannot be converted to type {name} without overflow")
                )
            value = value.real
        return kind(value)

    return convert


def index(x: Tensor) -> int:
    """`operator.index(x)`: an integer tensor with one element."""
    data = concrete(x, "an index")
    if data.size != 1 or data.dtype.kind not in "iub":
        raise ArgumentTypeError(
            with_site("only integer tensors of a single element can be converted to an index")
        )
    return int(data.reshape(-1)[0])


def length(x: Tensor) -> int:
    """`len(x)`: the size of the first dim."""
    if not x._data.ndim:
        raise ArgumentTypeError(with_site("len() of a 0-d tensor"))
    return int(x._data.shape[0])


def numpy(x: Tensor, *, force: bool = False) -> Any:
    """The array itself: no copy.  `force=True` detaches first.

    Raises RuntimeError for a tensor that requires grad.
    """
    data = concrete(x, ".numpy()")
    if x._requires_grad and not force:
        raise GraphError(
            with_site(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        )
    return data


def array(x: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """`np.asarray(x)`."""
    data = numpy(x)
    if dtype is not None and data.dtype != dtype:
        if copy is False:
            raise ArgumentValueError(with_site("a conversion of dtype needs a copy"))
        return data.astype(dtype)
    return data.copy() if copy else data


def dlpack(x: Tensor, **options: Any) -> Any:
    """`__dlpack__`: the memory, for other libraries."""
    if x._requires_grad:
        raise GraphError(
            with_site("Can't export tensors that require gradient, use tensor.detach()")
        )
    return concrete(x, "__dlpack__").__dlpack__(**options)


def stride(x: Tensor, dim: int | None = None) -> Any:
    """Steps between elements, counted in elements (not bytes)."""
    data = x._data if type(x._data) is Batched else concrete(x, ".stride()")
    # NumPy leaves the strides of size-1 dims as they come; so do we
    steps = tuple(s // data.dtype.itemsize for s in data.strides)
    return steps if dim is None else steps[arguments.dim(dim, x.ndim)]


def data_ptr(x: Tensor) -> int:
    """The address of the first element, in bytes."""
    return int(concrete(x, ".data_ptr()").__array_interface__["data"][0])


def type_name(x: Tensor, dtype: Any = None) -> Any:
    """`x.type()` is PyTorch's class name; `x.type(dtype)` converts.

    dtype: a dtype, a class such as `torch.DoubleTensor`, or its name; ValueError for others.
    """
    if dtype is None:
        return f"torch.{arguments.PYTORCH_NAMES[x._data.dtype.name]}Tensor"
    if isinstance(dtype, dtypes.dtype):
        return to(x, dtype)
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", repr(dtype))
    short = name.removeprefix("torch.").removesuffix("Tensor")
    for numpy_name, c_name in arguments.PYTORCH_NAMES.items():
        if short == c_name and name.endswith("Tensor"):
            return to(x, dtypes.FROM_NAME[numpy_name])
    raise ArgumentValueError(with_site(f"invalid type: '{name}'"))
