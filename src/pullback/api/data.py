"""Arrays from Python data (layer 4): the dtypes and shapes PyTorch infers, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.config import Defaults
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError

PYTHON_NUMBERS = frozenset((bool, int, float, complex))
MAX_DIMS = 64  # NumPy's limit
SUPPORTED = ", ".join(d.name for d in reversed(dtypes.ALL))
# What C calls the types, for the messages about fill values.
C_NAMES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "float16": "c10::Half", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def to_array(data: Any, function: str = "tensor", dtype: Any = None) -> Any:
    """An array with the dtype given, or the one that PyTorch infers.

    Shares the memory of arrays and tensors that need no conversion.
    """
    wanted = None if dtype is None else dtypes.to_numpy(dtype)
    if isinstance(data, Tensor):
        return converted(data._data, wanted)
    if isinstance(data, np.ndarray):
        return converted(check_array(data), wanted)
    if isinstance(data, np.generic):
        inferred = check_array(np.asarray(data))
        return inferred if wanted is None else stored(np.asarray(data.item()), wanted)
    if isinstance(data, (bool, int, float, complex)):
        return number_array(data, wanted)
    if isinstance(data, (list, tuple)):
        return nested(data, wanted)
    if isinstance(data, (str, bytes)):
        raise ArgumentTypeError(with_site(f"new(): invalid data type '{type(data).__name__}'"))
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return converted(check_array(np.asarray(data)), wanted)
    if hasattr(data, "__dlpack__"):
        return converted(check_array(np.from_dlpack(data)), wanted)
    if not is_sequence(data):
        raise no_dtype(data)
    return nested(list(data), wanted)


def no_dtype(value: Any) -> Exception:
    """PyTorch's error for an object that is no number, sequence, array or tensor."""
    return ArgumentRuntimeError(with_site(f"Could not infer dtype of {type(value).__name__}"))


def number_array(value: Any, wanted: Any = None) -> Any:
    """A 0-d array of a Python number."""
    target = dtypes.dtype_of_number(value) if wanted is None else wanted
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        if target.kind in "iu":
            raise too_long()
        value = bool(value) if target.kind == "b" else float_of(value)
    return stored(np.asarray(value), target)


def too_long() -> Exception:
    """PyTorch's error for an int of more than 64 bits."""
    return ArgumentValueError(with_site("Overflow when unpacking long long"))


def float_of(value: Any) -> float:
    """`float(value)`; RuntimeError for an int beyond the largest float."""
    try:
        return float(value)
    except OverflowError as error:
        raise ArgumentRuntimeError(with_site(f"tensor(): {error}")) from None


def check_array(array: Any) -> Any:
    """The array itself, if its dtype is one that tensors have and no stride is negative."""
    if array.dtype in dtypes.FROM_NUMPY:
        if any(s < 0 for s in array.strides):
            raise ArgumentValueError(
                with_site(
                    "At least one stride in the given numpy array is negative, and tensors with "
                    "negative strides are not currently supported. (You can probably work around "
                    "this by making a copy of your array  with array.copy().)"
                )
            )
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
    raise ArgumentTypeError(
        with_site(
            f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. "
            f"The only supported types are: {SUPPORTED}."
        )
    )


def converted(array: Any, wanted: Any) -> Any:
    """An array (or the value of a transform) in a NumPy dtype; complex to real keeps the real part.

    Unlike Python numbers, the elements of arrays wrap around silently, as in PyTorch.
    """
    if wanted is None or array.dtype == wanted:
        return array
    if array.dtype.kind == "c" and wanted.kind not in "cb":
        array = array.real
    with np.errstate(all="ignore"):
        return array.astype(wanted)


# ---------------------------------------------------------------- Python numbers
def stored(array: Any, target: Any) -> Any:
    """Python numbers, which NumPy made an array of, in the dtype `target`.

    Raises TypeError for complex numbers as real ones, RuntimeError for integers that do not fit.
    """
    if array.dtype is target:
        return array
    if array.dtype.kind == "c" and target.kind in "fiu":
        raise ArgumentTypeError(
            with_site(
                "must be real number, not complex" if target.kind == "f"
                else "'complex' object cannot be interpreted as an integer"
            )
        )  # fmt: skip
    if target.kind in "iu":
        check_range(array, target, target.name)
    with np.errstate(all="ignore"):
        if target.itemsize == 2 and target.kind == "f":
            array = array.astype(np.float32)  # as PyTorch rounds: twice
        return array.astype(target)


def check_range(array: Any, target: Any, name: str) -> None:
    """RuntimeError unless every number fits the integer dtype; unsigned ones may wrap from -max."""
    info = np.iinfo(target)
    low = -int(info.max) if info.min == 0 and array.dtype.kind != "f" else int(info.min)
    if array.dtype.kind == "f":
        bad = not ((array >= low) & (array <= int(info.max))).all()
        # 2**63 - 1 is no float: the comparison above was with 2**63
        bad = bad or (target.itemsize == 8 and bool((array >= 2.0**63).any()))
    else:
        bad = bool(array.size) and (int(array.min()) < low or int(array.max()) > int(info.max))
    if bad:
        raise overflow(name)


def overflow(name: str) -> Exception:
    """PyTorch's error for a number that a dtype cannot hold."""
    return ArgumentRuntimeError(
        with_site(f"value cannot be converted to type {name} without overflow")
    )


def fill_value(
    value: Any, target: Any, function: str = "full", position: str = " (position 2)"
) -> Any:
    """A 0-d array of the number that fills a tensor of dtype `target`.

    value: a number, a NumPy scalar, or a 0-d Tensor that requires no grad.
    Raises TypeError for anything else, RuntimeError when the dtype cannot hold it.
    """
    number = plain_number(value)
    if number is None:
        raise ArgumentTypeError(
            with_site(
                f"{function}(): argument 'fill_value'{position} must be Number, not "
                f"{type(value).__name__}"
            )
        )
    name = C_NAMES.get(target.name, target.name)
    if isinstance(number, complex) and target.kind not in "cb":
        if number.imag:
            raise overflow(name)
        number = number.real
    if target.kind in "iu":
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            raise overflow(name)
        check_range(np.asarray(number), target, name)
    elif target.kind in "fc":
        number = float_of(number) if isinstance(number, int) else number
        largest = float(np.finfo(target).max)
        parts = (number.real, number.imag)
        if any(math.isfinite(p) and abs(p) > largest for p in parts):
            raise overflow(name)
    return np.asarray(number).astype(target)


def plain_number(value: Any) -> Any:
    """The Python number that an argument stands for; None when it is none."""
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, Tensor) and value._data.ndim == 0 and not value.requires_grad:
        value = value.item()
    return value if isinstance(value, (bool, int, float, complex)) else None


# ---------------------------------------------------------------- nested sequences
def is_sequence(value: Any) -> bool:
    """What PyTorch takes for a sequence: anything with a length and items, but no dict."""
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (dict, Tensor, np.generic)):
        return False
    return hasattr(value, "__getitem__") and hasattr(value, "__len__")


def nested(data: Any, wanted: Any) -> Any:
    """An array of nested lists and tuples of numbers, tensors and arrays."""
    found: set[type] = set()
    collect_types(data, found)
    if found <= PYTHON_NUMBERS and not (
        # each number is converted by itself: NumPy would make floats of large ints
        wanted is not None and wanted.kind in "iu" and {int, float} <= found
    ):
        array = numbers_array(data, found, wanted)
        if array is not None:
            return array
    elif found == {np.ndarray}:
        first = data[0]
        if isinstance(first, np.ndarray) and first.ndim and all(
            isinstance(d, np.ndarray) and d.shape == first.shape and d.dtype == first.dtype
            for d in data
        ):
            return converted(check_array(np.stack(data)), wanted)
    return element_by_element(data, wanted)


def collect_types(data: Any, found: set[type]) -> None:
    """The types of the elements; an empty list counts as a float."""
    here = set(map(type, data))
    if not here:
        found.add(float)
    elif here <= PYTHON_NUMBERS:
        found |= here
    else:
        for d in data:
            if isinstance(d, (list, tuple)):
                collect_types(d, found)
            else:
                found.add(type(d))


def numbers_array(data: Any, found: set[type], wanted: Any) -> Any:
    """Python numbers by NumPy's own conversion; None where that is not PyTorch's."""
    target = wanted
    if target is None:
        target = dtypes.dtype_of_number(
            1j if complex in found else 1.0 if float in found else 1 if int in found else True
        )
    try:
        array = np.array(data)
        if array.dtype.kind == "O" or (array.dtype.kind in "uf" and float not in found):
            if target.kind in "iu":  # some int has more than 63 bits
                raise too_long()
            wide = {"f": np.float64, "c": np.complex128, "b": np.bool_}[target.kind]
            array = np.array(data, wide)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, ArgumentValueError):
            raise
        return None
    return stored(array, target)


def element_by_element(data: Any, wanted: Any) -> Any:
    """What NumPy would read otherwise: tensors, NumPy scalars, ragged lists."""
    sizes = sizes_of(data)
    inferred = infer_dtype(data)
    target = inferred if wanted is None else wanted
    leaves: list[Any] = []
    if math.prod(sizes):
        collect_leaves(data, sizes, 0, target, leaves)
    array = np.empty(len(leaves), target)
    for i, leaf in enumerate(leaves):
        array[i] = leaf
    return array.reshape(sizes)


def sizes_of(data: Any) -> tuple[int, ...]:
    """The shape, read off the first element at every depth."""
    sizes: list[int] = []
    while is_sequence(data):
        sizes.append(length_of(data))
        if len(sizes) > MAX_DIMS:
            raise ArgumentValueError(
                with_site(f"too many dimensions '{type(data).__name__}'")
            )
        if not sizes[-1]:
            break
        data = data[0]
    return tuple(sizes)


def length_of(data: Any) -> int:
    """`len(data)`, with the user's line in the error for 0-d arrays."""
    try:
        return len(data)
    except TypeError as error:
        raise ArgumentTypeError(with_site(str(error))) from None


def infer_dtype(data: Any) -> Any:
    """The dtype that all elements promote to (dimensions do not count here)."""
    if isinstance(data, Tensor):
        return data._data.dtype
    if isinstance(data, (np.generic, np.ndarray)):
        return check_array(np.asarray(data)).dtype
    if isinstance(data, (bool, int, float, complex)):
        return dtypes.dtype_of_number(data)
    if isinstance(data, (str, bytes)):
        raise ArgumentTypeError(with_site(f"new(): invalid data type '{type(data).__name__}'"))
    if not is_sequence(data):
        raise no_dtype(data)
    found: Any = None
    for d in data:
        mine = infer_dtype(d)
        found = mine if found is None else dtypes.promote_types(found, mine)
    return Defaults.dtype if found is None else found


def collect_leaves(
    data: Any, sizes: tuple[int, ...], dim: int, target: Any, leaves: list[Any]
) -> None:
    """Append the elements of `data`, converted, in order."""
    if dim == len(sizes):
        leaves.append(leaf(data, target))
        return
    if isinstance(data, Tensor) and data.ndim:  # a row beside rows of numbers
        data = list(data)
    if not is_sequence(data):
        raise ArgumentTypeError(with_site("not a sequence"))
    n = length_of(data)
    if n != sizes[dim]:
        raise ArgumentValueError(
            with_site(f"expected sequence of length {sizes[dim]} at dim {dim} (got {n})")
        )
    for d in data:
        collect_leaves(d, sizes, dim + 1, target, leaves)


def leaf(value: Any, target: Any) -> Any:
    """One element as a number that `target` holds."""
    kind = type(value).__name__
    if isinstance(value, Tensor):
        if value._data.size != 1:
            raise ArgumentValueError(
                with_site("only one element tensors can be converted to Python scalars")
            )
        if target.kind in "iu" and value._data.dtype.kind not in "iub":
            raise ArgumentTypeError(
                with_site("only integer tensors of a single element can be converted to an index")
            )
        value = value.item()
        if isinstance(value, complex) and target.kind == "f":
            if value.imag:
                raise overflow("double")
            value = value.real
    elif isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)):
        if target.kind == "b":
            return bool(value)
        raise ArgumentTypeError(
            with_site(
                f"'{kind}' object cannot be interpreted as an integer" if target.kind in "iu"
                else f"must be real number, not {kind}"
            )
        )  # fmt: skip
    return number_array(value, target)
