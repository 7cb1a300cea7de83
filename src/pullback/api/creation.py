"""Making tensors (layer 4): from data, filled, ranges, copies of shape."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pullback.api import arguments, data
from pullback.api.data import check_array, to_array
from pullback.config import Defaults
from pullback.core import dtypes
from pullback.core.callsite import here, with_site
from pullback.core.device import check_device
from pullback.eager.batched import LEVELS, mapped_like
from pullback.eager.tensor import Tensor, rare_of, set_requires_grad, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    UnsupportedError,
)


def finish(
    array: Any, requires_grad: Any = False, device: Any = None, layout: Any = None
) -> Tensor:
    """A tensor around a fresh array, with the arguments that all constructors share."""
    check_device(device)
    if requires_grad is not None and type(requires_grad) is not bool:
        raise ArgumentTypeError(
            with_site(
                f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}"
            )
        )
    if layout is not None and str(layout) != "torch.strided":
        raise UnsupportedError(with_site(f"layout {layout}: tensors here are dense (strided)"))
    out = wrap(array)
    levels = LEVELS.get()
    if levels:
        rare_of(out).born = levels[-1].number
    if requires_grad:
        set_requires_grad(out, True, "Only Tensors of floating point and complex dtype")
    return out


# ---------------------------------------------------------------- from data
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`: numbers, nested sequences, arrays, tensors.

    Floats take the default dtype, integers int64; arrays keep theirs, and lists of tensors and
    NumPy scalars promote.

    Raises ValueError for ragged lists, for tensors of several elements in lists, and for ints of
    more than 64 bits; TypeError for arrays of objects and for complex numbers in a real dtype;
    RuntimeError for numbers beyond an integer dtype, for objects that are no numbers, and when
    `requires_grad` is asked of an integer tensor.

    >>> import pullback
    >>> pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    array = to_array(data, "tensor", dtype)
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
    return wrap(to_array(data, "as_tensor", dtype))


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
    array = to_array(obj, "asarray", dtype)
    given = obj._data if isinstance(obj, Tensor) else obj
    shares = isinstance(obj, (Tensor, np.ndarray)) and array.dtype == given.dtype
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
    function: str, fill: Any, args: tuple[Any, ...], given: Any, out: Any, dtype: Any, device: Any,
    layout: Any, requires_grad: Any,
) -> Tensor:  # fmt: skip
    if not args and given is arguments.UNSET:
        raise ArgumentTypeError(
            with_site(f'{function}() missing 1 required positional arguments: "size"')
        )
    shape = arguments.sizes(args, function) if args else arguments.one_size(given, function)
    numpy = arguments.dtype(dtype, Defaults.dtype, function)
    array = allocated(fill, shape, numpy)
    if out is None:
        return finish(array, requires_grad, device, layout)
    from pullback.api.inplace import write_out

    return write_out(out, finish(array if dtype is not None else array.astype(out._data.dtype)))


def allocated(fill: Any, shape: tuple[int, ...], numpy: Any) -> Any:
    """`fill(shape, dtype)`; RuntimeError for negative sizes and for more than memory can hold."""
    for n in shape:
        if n < 0:
            raise ArgumentRuntimeError(
                with_site(
                    f"Trying to create tensor with negative dimension {n}: {list(shape)}. "
                    "Dimension size must be non-negative."
                )
            )
    if math.prod(n for n in shape if n) * numpy.itemsize >= 2**63:
        raise ArgumentRuntimeError(
            with_site(f"Storage size calculation overflowed with sizes={list(shape)}")
        )
    return fill(shape, numpy)


def zeros(
    *args: Any, size: Any = arguments.UNSET, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of zeros; sizes one by one or as one sequence."""
    return _sized(
        "zeros", np.zeros, args, size, out, dtype, device, layout, requires_grad
    )


def ones(
    *args: Any, size: Any = arguments.UNSET, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of ones; sizes one by one or as one sequence."""
    return _sized(
        "ones", np.ones, args, size, out, dtype, device, layout, requires_grad
    )


def empty(
    *args: Any, size: Any = arguments.UNSET, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor whose elements are whatever the memory held."""
    return _sized(
        "empty", np.empty, args, size, out, dtype, device, layout, requires_grad
    )


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
    number = data.plain_number(fill_value)
    inferred = Defaults.dtype if number is None else dtypes.dtype_of_number(number)
    numpy = arguments.dtype(dtype, inferred, "full")
    value = data.fill_value(fill_value, numpy)
    array = allocated(np.empty, arguments.one_size(size, "full"), numpy)
    array[...] = value
    return finish(array, requires_grad, device, layout)


def scalar_tensor(
    s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A 0-d tensor; the default dtype unless one is given."""
    numpy = arguments.dtype(dtype, Defaults.dtype, "scalar_tensor")
    return finish(data.fill_value(s, numpy, "scalar_tensor", ""), requires_grad, device)


def _like(fill: Any, function: str) -> Any:
    def like(
        input: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,  # noqa: A002
        requires_grad: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        source = arguments.tensor(input, function)
        numpy = arguments.dtype(dtype, source._data.dtype, function)
        if type(source._data) is not np.ndarray:  # inside a transform
            out = finish(fill(tuple(source._data.shape), numpy), False, device, layout)
            return finish(mapped_like(source, out)._data, requires_grad)
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
    filled = data.fill_value(fill_value, out._data.dtype, "full_like")
    if type(out._data) is np.ndarray:
        out._data[...] = filled
    else:
        out = mapped_like(input, finish(np.full(tuple(out.shape), filled, filled.dtype)))
    if requires_grad:
        set_requires_grad(out, True, "Only Tensors of floating point and complex dtype")
    return out


# ---------------------------------------------------------------- ranges
def _number(value: Any) -> Any:
    """A bound of `linspace`: a number or a 0-d tensor."""
    if isinstance(value, Tensor) and value.ndim:
        raise ArgumentRuntimeError(
            with_site(
                "linspace only supports 0-dimensional start and end tensors, but got one with "
                f"{value.ndim} dimension(s)."
            )
        )
    number = value.item() if isinstance(value, (Tensor, np.generic)) else value
    if not isinstance(number, (bool, int, float, complex)):
        raise ArgumentTypeError(
            with_site(f"a bound must be Number or Tensor, not {arguments.kind(value)}")
        )
    return number


def arange(
    start: Any = arguments.UNSET, end: Any = arguments.UNSET, step: Any = 1, *, out: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ... below end (`arange(end)` starts at 0).

    int64 when all arguments are integers, else the default dtype.
    Raises RuntimeError when step is 0 or points away from end, TypeError for what is no number.
    """
    no_out(out, "arange")
    if end is arguments.UNSET:
        start, end = 0, start
    if start is arguments.UNSET:
        start = 0
    start, end, step = (
        _real_number(v, "arange", n)
        for v, n in ((start, "start"), (end, "end"), (step, "step"))
    )
    if step == 0:
        raise ArgumentRuntimeError(with_site("step must be nonzero"))
    if not all(math.isfinite(v) for v in (start, end)):
        raise ArgumentRuntimeError(with_site(f"unsupported range: {start} -> {end}"))
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise ArgumentRuntimeError(
            with_site("upper bound and lower bound inconsistent with step sign")
        )
    whole = all(isinstance(v, int) for v in (start, end, step))
    numpy = arguments.dtype(dtype, dtypes.INT64 if whole else Defaults.dtype, "arange")
    refuse_kinds(numpy, "bc", "arange_cpu")
    if whole:
        for v in (start, end, step):
            if not -(2**63) <= v < 2**63:
                raise data.overflow("int64_t")
        array = np.arange(start, end, step, dtype=np.int64).astype(numpy)
    else:
        n = math.ceil((end - start) / step)
        array = (start + np.arange(n, dtype=np.float64) * step).astype(numpy)
    return finish(array, requires_grad, device, layout)


def _real_number(value: Any, function: str, argument: str) -> Any:
    """A bound of a range: TypeError for no number, RuntimeError for a complex one."""
    number = data.plain_number(value)
    if number is None:
        raise ArgumentTypeError(
            with_site(
                f"{function}(): argument '{argument}' must be Number, not "
                f"{'NoneType' if value is arguments.UNSET else arguments.kind(value)}"
            )
        )
    if isinstance(number, complex):
        if number.imag:
            raise data.overflow("double")
        number = number.real
    return number


def refuse_kinds(numpy: Any, kinds: str, name: str) -> None:
    """PyTorch's error for dtypes that a function is not written for."""
    if numpy.kind in kinds:
        raise UnsupportedError(
            with_site(
                f"\"{name}\" not implemented for '{dtypes.PYTORCH_NAMES[numpy.name]}'"
            )
        )


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
    numpy = arguments.dtype(dtype, default, "linspace")
    refuse_kinds(numpy, "b", "linspace_cpu")
    if default.kind == "c" and numpy.kind != "c":
        raise ArgumentRuntimeError(
            with_site(
                f"torch.linspace(): inferred dtype {data.C_NAMES[default.name]} can't be safely "
                f"cast to passed dtype {dtypes.PYTORCH_NAMES[numpy.name]}"
            )
        )
    n = arguments.integer(steps, "linspace", "steps")
    return finish(_even(start, end, n, numpy), requires_grad, device, layout)


def logspace(
    start: Any, end: Any, steps: Any, base: float = 10.0, *, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` numbers from base**start to base**end, evenly spaced on a log scale."""
    no_out(out, "logspace")
    numpy = arguments.dtype(dtype, Defaults.dtype, "logspace")
    n = arguments.integer(steps, "logspace", "steps")
    base = _number(base)
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
    for name, value in (("n", rows), ("m", columns)):
        if value < 0:
            raise ArgumentRuntimeError(
                with_site(f"{name} must be greater or equal to 0, got {value}")
            )
    numpy = arguments.dtype(dtype, Defaults.dtype, "eye")
    return finish(np.eye(rows, columns, dtype=numpy), requires_grad, device, layout)


# ---------------------------------------------------------------- the default dtype
def set_default_dtype(d: Any) -> None:
    """The dtype that Python floats become; float16, float32 or float64.

    Raises TypeError for a dtype that is not floating point.
    """
    numpy = d.numpy if isinstance(d, dtypes.dtype) else None
    if numpy is None or numpy.kind != "f":
        raise ArgumentTypeError(
            with_site(f"only floating-point types are supported as the default type, got {d!r}")
        )
    Defaults.dtype, Defaults.complex_dtype = numpy, dtypes.complex_of(numpy)


def get_default_dtype() -> dtypes.dtype:
    """The dtype that Python floats become."""
    return dtypes.public(Defaults.dtype)
