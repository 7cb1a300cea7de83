"""Making tensors (layer 4): from data, filled, ranges, copies of shape."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.config import Defaults
from pullback.core import dtypes
from pullback.core.callsite import here, with_site
from pullback.core.device import check_device
from pullback.eager.tensor import Tensor, set_requires_grad, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    UnsupportedError,
)


def finish(
    array: Any, requires_grad: bool = False, device: Any = None, layout: Any = None
) -> Tensor:
    """A tensor around a fresh array, with the arguments that all constructors share."""
    check_device(device)
    if layout is not None and str(layout) != "torch.strided":
        raise UnsupportedError(with_site(f"layout {layout}: tensors here are dense (strided)"))
    out = wrap(array)
    if requires_grad:
        set_requires_grad(out, True, "Only Tensors of floating point and complex dtype")
    return out


# ---------------------------------------------------------------- from data
def _unwrap(data: Any) -> Any:
    """Nested lists with the Tensors in them as arrays."""
    if isinstance(data, Tensor):
        if data._data.size != 1 and data.ndim == 0:
            return data._data
        return data._data
    if isinstance(data, (list, tuple)):
        return [_unwrap(d) for d in data]
    return data


def _holds_tensor(data: Any) -> bool:
    return isinstance(data, Tensor) or (
        isinstance(data, (list, tuple)) and any(_holds_tensor(d) for d in data)
    )


def _first_leaf(data: Any) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _ragged(data: Any, depth: int = 0) -> Exception:
    """PyTorch's error for nested lists that do not form a box."""
    length = None
    for d in data:
        mine = len(d) if isinstance(d, (list, tuple)) else None
        if length is None and mine is not None and d is data[0]:
            length = mine
        elif mine != length:
            if mine is None or length is None:
                return ArgumentTypeError(
                    with_site(
                        "tensor(): nested lists mix numbers and sequences at the same depth: "
                        f"got {type(data[0]).__name__} and {type(d).__name__}"
                    )
                )
            return ArgumentValueError(
                with_site(
                    f"expected sequence of length {length} at dim {depth + 1} (got {mine})"
                )
            )
    for d in data:
        if isinstance(d, (list, tuple)):
            found = _ragged(d, depth + 1)
            if not isinstance(found, StopIteration):
                return found
    return StopIteration()


def to_array(data: Any, function: str = "tensor", dtype: Any = None) -> Any:
    """An array with the dtype that PyTorch infers; shares the memory of arrays and tensors.

    With a `dtype` to come, numbers keep all their digits for it.
    """
    if isinstance(data, Tensor):
        return data._data
    if isinstance(data, np.ndarray):
        return check_array(data)
    if isinstance(data, np.generic):
        return check_array(np.asarray(data))
    if isinstance(data, (bool, int, float, complex)):
        return number_array(data) if dtype is None else np.asarray(data)
    if isinstance(data, str):
        raise ArgumentTypeError(with_site(f"new(): invalid data type '{type(data).__name__}'"))
    if not isinstance(data, (list, tuple)):
        if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
            return check_array(np.asarray(data))
        if hasattr(data, "__dlpack__"):
            return check_array(np.from_dlpack(data))
        if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
            raise ArgumentRuntimeError(
                with_site(f"Could not infer dtype of {type(data).__name__}")
            )
        data = list(data)
    if _holds_tensor(data):
        data = _unwrap(data)
    try:
        array = np.array(data)
    except (ValueError, TypeError) as error:
        found = _ragged(data) if isinstance(data, (list, tuple)) else StopIteration()
        if isinstance(found, StopIteration):
            found = ArgumentValueError(with_site(f"{function}(): {error}"))
        raise found from None
    except OverflowError:
        raise ArgumentRuntimeError(with_site("Overflow when unpacking long long")) from None
    if array.dtype.kind in "US":
        raise ArgumentValueError(with_site("too many dimensions 'str'"))
    if array.dtype.kind == "O":
        leaf = _first_leaf(data)
        if isinstance(leaf, int):
            raise ArgumentRuntimeError(with_site("Overflow when unpacking long long"))
        raise ArgumentRuntimeError(with_site(f"Could not infer dtype of {type(leaf).__name__}"))
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        raise ArgumentRuntimeError(with_site("Overflow when unpacking long long"))
    if not array.size and array.dtype.kind == "f":
        return array.astype(Defaults.dtype)
    if dtype is not None:
        return array
    leaf = _first_leaf(data)
    if not isinstance(leaf, (np.generic, np.ndarray)):
        if array.dtype.kind == "f":
            return array.astype(Defaults.dtype, copy=False)
        if array.dtype.kind == "c":
            return array.astype(Defaults.complex_dtype, copy=False)
    return check_array(array)


def number_array(value: Any) -> Any:
    """A 0-d array of the dtype a Python number stands for."""
    try:
        return np.asarray(value, dtypes.dtype_of_number(value))
    except OverflowError:
        raise ArgumentRuntimeError(with_site("Overflow when unpacking long long")) from None


def check_array(array: Any) -> Any:
    """The array itself, if its dtype is one that tensors have."""
    if array.dtype in dtypes.FROM_NUMPY:
        native = dtypes.FROM_NUMPY[array.dtype].numpy
        # numpy has equal dtypes that are not one object; identity is what the hot path tests
        return array if array.dtype is native else array.view(native)
    if array.dtype.newbyteorder("=") in dtypes.FROM_NUMPY:
        raise ArgumentValueError(
            with_site(
                "given numpy array has byte order different from the native byte order. "
                "Conversion between byte orders is currently not supported: use "
                "array.astype(array.dtype.newbyteorder('='))"
            )
        )
    name = "object_" if array.dtype.kind == "O" else array.dtype.name
    raise ArgumentTypeError(
        with_site(
            f"can't convert np.ndarray of type numpy.{name}. "
            f"The only supported types are: {', '.join(d.name for d in reversed(dtypes.ALL))}."
        )
    )


def convert_dtype(array: Any, dtype: Any) -> Any:
    """`array` in a dtype given by the user; complex to real keeps the real part."""
    if dtype is None:
        return array
    numpy = dtypes.to_numpy(dtype)
    if array.dtype == numpy:
        return array
    if array.dtype.kind == "c" and numpy.kind != "c":
        array = array.real
    with np.errstate(all="ignore"):
        return array.astype(numpy)


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`: numbers, nested sequences, arrays, tensors.

    Floats take the default dtype, integers int64; arrays keep theirs.

    Raises ValueError for ragged lists, TypeError for arrays of objects, RuntimeError when
    `requires_grad` is asked of an integer tensor.

    >>> import pullback
    >>> pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    array = convert_dtype(to_array(data, "tensor", dtype), dtype)
    if isinstance(data, Tensor) and type(array) is not np.ndarray:
        raise UnsupportedError(
            with_site("tensor() of a value under transformation: use x.detach().clone()")
        )
    if isinstance(data, Tensor) and data.requires_grad:
        site = here(1)
        warnings.warn_explicit(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), "
            "rather than torch.tensor(sourceTensor).",
            UserWarning, site.file, site.line,
        )  # fmt: skip
    return finish(np.array(array, order="C"), requires_grad, device)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor: the same object, or the same memory, where no copy is needed."""
    check_device(device)
    if isinstance(data, Tensor):
        if dtype is None or data._data.dtype == dtypes.to_numpy(dtype):
            return data
        return data.to(dtype)
    return wrap(convert_dtype(to_array(data, "as_tensor", dtype), dtype))


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`obj` as a tensor; `copy` forces (True) or refuses (False) a copy."""
    check_device(device)
    source = to_array(obj, "asarray", dtype)
    array = convert_dtype(source, dtype)
    shares = array is source and isinstance(obj, (Tensor, np.ndarray))
    if copy is False and not shares:
        raise ArgumentValueError(
            with_site("asarray(): can't alias arbitrary data, or another dtype, with copy=False")
        )
    if isinstance(obj, Tensor) and shares and not copy and not requires_grad:
        return obj
    return finish(np.array(array) if copy else array, requires_grad)


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares the memory of an array.

    Raises TypeError for anything that is no ndarray, ValueError for negative strides.
    """
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentTypeError(
            with_site(f"expected np.ndarray (got {type(ndarray).__name__})")
        )
    array = check_array(np.asarray(ndarray))
    if any(s < 0 for s in array.strides):
        raise ArgumentValueError(
            with_site(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported. (You can probably work around this "
                "by making a copy of your array  with array.copy().)"
            )
        )
    if not array.flags.writeable:
        site = here(1)
        warnings.warn_explicit(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. Writing to this tensor raises an error; copy the array to silence this.",
            UserWarning, site.file, site.line,
        )  # fmt: skip
    return wrap(array)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor that shares the memory of any object with `__dlpack__`."""
    if isinstance(ext_tensor, Tensor):
        return wrap(ext_tensor._data)
    return wrap(check_array(np.from_dlpack(ext_tensor)))


# ---------------------------------------------------------------- filled
def _sized(
    fill: Any, args: tuple[Any, ...], given: Any, dtype: Any, device: Any, layout: Any,
    requires_grad: bool,
) -> Tensor:  # fmt: skip
    shape = arguments.size(args if given is None else (given,))
    for n in shape:
        if n < 0:
            raise ArgumentRuntimeError(
                with_site(
                    f"Trying to create tensor with negative dimension {n}: {list(shape)}"
                )
            )
    numpy = arguments.dtype(dtype, Defaults.dtype)
    return finish(fill(shape, numpy), requires_grad, device, layout)


def zeros(
    *args: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of zeros; sizes one by one or as one sequence."""
    no_out(out, "zeros")
    return _sized(np.zeros, args, size, dtype, device, layout, requires_grad)


def ones(
    *args: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of ones; sizes one by one or as one sequence."""
    no_out(out, "ones")
    return _sized(np.ones, args, size, dtype, device, layout, requires_grad)


def empty(
    *args: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor whose elements are whatever the memory held."""
    no_out(out, "empty")
    return _sized(np.empty, args, size, dtype, device, layout, requires_grad)


def no_out(out: Any, function: str) -> None:
    """`out=` of constructors would only save an allocation."""
    if out is not None:
        raise UnsupportedError(
            with_site(f"{function}(out=...) is not supported: assign the result, or use copy_()")
        )


def full(
    size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor with every element `fill_value`, whose type gives the dtype."""
    no_out(out, "full")
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    numpy = arguments.dtype(dtype, dtypes.dtype_of_number(value))
    shape = arguments.size((size,) if not isinstance(size, int) else (size,))
    with np.errstate(all="ignore"):
        array = np.full(shape, np.asarray(value).astype(numpy))
    return finish(array, requires_grad, device, layout)


def scalar_tensor(
    s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A 0-d tensor; the default dtype unless one is given."""
    return finish(np.asarray(s, arguments.dtype(dtype, Defaults.dtype)), requires_grad, device)


def _like(fill: Any, function: str) -> Any:
    def like(
        input: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,  # noqa: A002
        requires_grad: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        source = arguments.tensor(input, function)
        numpy = arguments.dtype(dtype, source._data.dtype)
        if type(source._data) is not np.ndarray:  # inside a transform: one for all examples
            return finish(fill(tuple(source._data.shape), numpy), requires_grad, device, layout)
        array = np.empty_like(source._data, dtype=numpy)
        if fill is not np.empty:
            array[...] = 0 if fill is np.zeros else 1
        return finish(array, requires_grad, device, layout)

    like.__name__ = like.__qualname__ = function
    like.__doc__ = f"A tensor of the shape and dtype of `input`, filled as by {fill.__name__}."
    return like


zeros_like = _like(np.zeros, "zeros_like")
ones_like = _like(np.ones, "ones_like")
empty_like = _like(np.empty, "empty_like")


def full_like(
    input: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None,  # noqa: A002
    device: Any = None, requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of the shape and dtype of `input` with every element `fill_value`."""
    out = empty_like(input, dtype=dtype, device=device)
    out._data[...] = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    if requires_grad:
        set_requires_grad(out, True, "Only Tensors of floating point and complex dtype")
    return out


# ---------------------------------------------------------------- ranges
def _number(value: Any) -> Any:
    return value.item() if isinstance(value, (Tensor, np.generic)) else value


def arange(
    start: Any, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ... below end (`arange(end)` starts at 0).

    int64 when all arguments are integers, else the default dtype.
    Raises RuntimeError when step is 0 or points away from end.
    """
    no_out(out, "arange")
    if end is None:
        start, end = 0, start
    start, end, step = _number(start), _number(end), _number(step)
    if step == 0:
        raise ArgumentRuntimeError(with_site("step must be nonzero"))
    if not all(math.isfinite(v) for v in (start, end)):
        raise ArgumentRuntimeError(with_site(f"unsupported range: {start} -> {end}"))
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise ArgumentRuntimeError(
            with_site("upper bound and lower bound inconsistent with step sign")
        )
    whole = all(isinstance(v, int) for v in (start, end, step))
    numpy = arguments.dtype(dtype, dtypes.INT64 if whole else Defaults.dtype)
    if whole:
        array = np.arange(start, end, step, dtype=np.int64).astype(numpy)
    else:
        n = math.ceil((end - start) / step)
        array = (start + np.arange(n, dtype=np.float64) * step).astype(numpy)
    return finish(array, requires_grad, device, layout)


def _even(start: Any, end: Any, steps: int, numpy: Any) -> Any:
    """Steps counted from the nearer end, so that both ends are exact (as PyTorch does)."""
    if steps < 0:
        raise ArgumentRuntimeError(with_site("number of steps must be non-negative"))
    if numpy.kind in "iub":
        wide = _even(start, end, steps, dtypes.FLOAT64)
        return np.trunc(wide).astype(numpy)
    kind = numpy.type
    if steps == 1:
        return np.full(1, start, numpy)
    i = np.arange(steps).astype(dtypes.real_of(numpy))
    step = (kind(end) - kind(start)) / kind(max(steps - 1, 1))
    return np.where(
        np.arange(steps) < steps // 2, kind(start) + step * i, kind(end) - step * (steps - i - 1)
    ).astype(numpy)


def linspace(
    start: Any, end: Any, steps: Any, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` numbers from start to end, both included, evenly spaced."""
    no_out(out, "linspace")
    start, end = _number(start), _number(end)
    default = Defaults.complex_dtype if complex in (type(start), type(end)) else Defaults.dtype
    numpy = arguments.dtype(dtype, default)
    n = arguments.integer(steps, "linspace", "steps")
    return finish(_even(start, end, n, numpy), requires_grad, device, layout)


def logspace(
    start: Any, end: Any, steps: Any, base: float = 10.0, *, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` numbers from base**start to base**end, evenly spaced on a log scale."""
    no_out(out, "logspace")
    numpy = arguments.dtype(dtype, Defaults.dtype)
    n = arguments.integer(steps, "logspace", "steps")
    exponents = _even(_number(start), _number(end), n, numpy)
    with np.errstate(all="ignore"):
        array = np.power(np.asarray(base, numpy), exponents).astype(numpy)
    return finish(array, requires_grad, device, layout)


def eye(
    n: Any, m: Any = None, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """(n, m) with ones on the diagonal; square when m is not given."""
    no_out(out, "eye")
    rows = arguments.integer(n, "eye", "n")
    columns = rows if m is None else arguments.integer(m, "eye", "m")
    if rows < 0 or columns < 0:
        raise ArgumentRuntimeError(
            with_site(f"n and m must be greater or equal to 0, got {rows} and {columns}")
        )
    numpy = arguments.dtype(dtype, Defaults.dtype)
    return finish(np.eye(rows, columns, dtype=numpy), requires_grad, device, layout)


# ---------------------------------------------------------------- the default dtype
def set_default_dtype(d: Any) -> None:
    """The dtype that Python floats become; float16, float32 or float64.

    Raises TypeError for a dtype that is not floating point.
    """
    numpy = dtypes.to_numpy(d, "d")
    if numpy.kind != "f":
        raise ArgumentTypeError(
            with_site(
                "only floating-point types are supported as the default type, got "
                f"{dtypes.public(numpy)}"
            )
        )
    Defaults.dtype, Defaults.complex_dtype = numpy, dtypes.complex_of(numpy)


def get_default_dtype() -> dtypes.dtype:
    """The dtype that Python floats become."""
    return dtypes.public(Defaults.dtype)
