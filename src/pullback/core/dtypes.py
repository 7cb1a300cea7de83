"""Dtypes: PyTorch's names for NumPy's dtypes, and PyTorch's promotion rules (layer 1).

Inside the package a dtype is a NumPy dtype; `dtype` objects exist only at the public surface, since
programs read `x.dtype.is_floating_point` and print `torch.float32`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.config import Defaults
from pullback.core.callsite import with_site
from pullback.errors import ArgumentTypeError
from pullback.typing import NumpyDtype


class dtype:  # noqa: N801  PyTorch's name
    """The type of a tensor's elements; compare with `is` or `==`."""

    __slots__ = ("name", "numpy", "is_floating_point", "is_complex", "is_signed", "itemsize")

    def __init__(self, name: str, numpy: NumpyDtype) -> None:
        self.name = name
        self.numpy = numpy
        self.is_floating_point = numpy.kind == "f"
        self.is_complex = numpy.kind == "c"
        self.is_signed = numpy.kind in "ifc"
        self.itemsize = numpy.itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> dtype:
        return self

    def __hash__(self) -> int:
        return hash(self.numpy)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self.numpy == other if isinstance(other, np.dtype) else False

    def to_complex(self) -> dtype:
        """The complex dtype of the same precision."""
        return FROM_NUMPY[complex_of(self.numpy)]

    def to_real(self) -> dtype:
        """The real dtype of the same precision."""
        return FROM_NUMPY[real_of(self.numpy)]


def _dtype(name: str, numpy_name: str | None = None) -> dtype:
    return dtype(name, np.dtype(numpy_name or name))


bool_ = _dtype("bool")
uint8 = _dtype("uint8")
int8 = _dtype("int8")
int16 = _dtype("int16")
int32 = _dtype("int32")
int64 = _dtype("int64")
float16 = _dtype("float16")
float32 = _dtype("float32")
float64 = _dtype("float64")
complex64 = _dtype("complex64")
complex128 = _dtype("complex128")

ALL = (bool_, uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128)
FROM_NUMPY: dict[NumpyDtype, dtype] = {d.numpy: d for d in ALL}
FROM_NAME: dict[str, dtype] = {d.name: d for d in ALL}
FROM_PYTHON: dict[type, NumpyDtype] = {
    float: np.dtype(np.float64),
    int: np.dtype(np.int64),
    bool: np.dtype(np.bool_),
    complex: np.dtype(np.complex128),
}

BOOL, UINT8, INT8, INT16, INT32, INT64 = (d.numpy for d in ALL[:6])
FLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = (d.numpy for d in ALL[6:])


# The C names that PyTorch's messages and class names use.
PYTORCH_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
    "int64": "Long", "float16": "Half", "float32": "Float", "float64": "Double",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def named(name: str) -> dtype:
    """The dtype of that PyTorch name (for pickle)."""
    return FROM_NAME[name]


def public(numpy: NumpyDtype) -> dtype:
    """The `dtype` object that stands for a NumPy dtype."""
    return FROM_NUMPY[numpy]


def to_numpy(given: Any, argument: str = "dtype", function: str = "") -> NumpyDtype:
    """The NumPy dtype meant by a `dtype`, a NumPy dtype or scalar type, or a Python type."""
    if type(given) is dtype:
        return given.numpy
    if isinstance(given, type) and given in FROM_PYTHON:
        return FROM_PYTHON[given]
    if isinstance(given, np.dtype) or (isinstance(given, type) and issubclass(given, np.generic)):
        numpy = np.dtype(given)
        if numpy in FROM_NUMPY:
            return FROM_NUMPY[numpy].numpy
        raise ArgumentTypeError(
            with_site(
                f"argument '{argument}': {numpy} is not a dtype that tensors have; the supported "
                f"types are: {', '.join(d.name for d in ALL)}."
            )
        )
    raise ArgumentTypeError(
        with_site(
            f"{function and function + '(): '}argument '{argument}' must be torch.dtype, not "
            f"{type(given).__name__}: got {given!r}"
        )
    )


def complex_of(numpy: NumpyDtype) -> NumpyDtype:
    """The complex dtype with the precision of `numpy` (float16 goes to complex64)."""
    if numpy.kind == "c":
        return numpy
    return COMPLEX128 if numpy is FLOAT64 else COMPLEX64


def real_of(numpy: NumpyDtype) -> NumpyDtype:
    """The real dtype with the precision of a complex one; others unchanged."""
    if numpy.kind != "c":
        return numpy
    return FLOAT64 if numpy.itemsize == 16 else FLOAT32


def is_differentiable(numpy: NumpyDtype) -> bool:
    """Only floating point and complex values have derivatives."""
    return numpy.kind in "fc"


class finfo:  # noqa: N801  PyTorch's name
    """The limits of a floating dtype: `eps`, `max`, `min`, `tiny`, `smallest_normal`, `resolution`,
    `bits`.  Raises TypeError for an integer dtype."""

    def __init__(self, type: Any = None) -> None:  # noqa: A002
        numpy = real_of(Defaults.dtype if type is None else to_numpy(type, "type"))
        if numpy.kind != "f":
            raise ArgumentTypeError(
                with_site(
                    f"torch.finfo() requires a floating point input type. Use torch.iinfo to "
                    f"handle '{numpy.name}'"
                )
            )
        facts = np.finfo(numpy)
        self.bits, self.dtype = numpy.itemsize * 8, numpy.name
        self.eps, self.max, self.min = float(facts.eps), float(facts.max), float(facts.min)
        self.tiny = self.smallest_normal = float(facts.smallest_normal)
        self.resolution = float(facts.resolution)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801  PyTorch's name
    """The limits of an integer dtype: `max`, `min`, `bits`.  Raises TypeError for others."""

    def __init__(self, type: Any) -> None:  # noqa: A002
        numpy = to_numpy(type, "type")
        if numpy.kind not in "iu":
            raise ArgumentTypeError(
                with_site(
                    f"torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                    f"'{numpy.name}'"
                )
            )
        facts = np.iinfo(numpy)
        self.bits, self.dtype = numpy.itemsize * 8, numpy.name
        self.max, self.min = int(facts.max), int(facts.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


# ---------------------------------------------------------------- promotion
_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def promote_types(a: NumpyDtype, b: NumpyDtype) -> NumpyDtype:
    """PyTorch's `promote_types`: unlike NumPy's, an integer never widens a float."""
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda d: _CATEGORY[d.kind])
    if _CATEGORY[low.kind] == _CATEGORY[high.kind] or _CATEGORY[low.kind] == 2:
        if low is FLOAT16 and high.kind == "c":
            return high
        return FROM_NUMPY[np.promote_types(a, b)].numpy
    return high


def combine_categories(high: NumpyDtype | None, low: NumpyDtype | None) -> NumpyDtype | None:
    """The dtype of a result whose decisive operands are `high`, and whose lesser ones are `low`.

    Source: the PyTorch note "Type promotion": a lesser operand (0-d, or a Python number) counts
    only when its category is higher.
    """
    if high is None or low is None:
        return low if high is None else high
    if high.kind == "c":
        return high
    if high.kind == "f":
        return complex_of(high) if low.kind == "c" else high
    if high.kind == "b" or low.kind in "fc":
        return promote_types(high, low)
    return high


def dtype_of_number(value: Any) -> NumpyDtype:
    """The dtype a Python number stands for: the default float for a float, int64 for an int."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64
    if isinstance(value, float):
        return Defaults.dtype
    return Defaults.complex_dtype


def result_type(
    dimensioned: list[NumpyDtype], zero_dim: list[NumpyDtype], numbers: list[Any]
) -> NumpyDtype:
    """PyTorch's result dtype for operands sorted by how much they count."""
    groups: list[NumpyDtype | None] = []
    for group in (dimensioned, zero_dim, [dtype_of_number(n) for n in numbers]):
        result: NumpyDtype | None = None
        for candidate in group:
            result = candidate if result is None else promote_types(result, candidate)
        groups.append(result)
    found = combine_categories(groups[0], combine_categories(groups[1], groups[2]))
    assert found is not None, "result_type needs an operand"
    return found


def can_cast(source: NumpyDtype, target: NumpyDtype) -> bool:
    """Whether an in-place result of dtype `source` may be stored as `target` (PyTorch's rule)."""
    if source.kind == "c" and target.kind != "c":
        return False
    if source.kind == "f" and target.kind not in "fc":
        return False
    return not (source.kind != "b" and target.kind == "b")
