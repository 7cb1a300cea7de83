"""Reading the arguments of public functions (layer 4): dims, sizes, dtypes, tensors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.shapes import normalize_axes, normalize_axis, to_shape
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentTypeError, DtypeError
from pullback.typing import Axes, Shape

NUMBERS = (bool, int, float, complex)
PYTORCH_NAMES = dtypes.PYTORCH_NAMES
UNSET: Any = object()  # "not given", where None means something


def tensor(value: Any, function: str, argument: str = "input") -> Tensor:
    """`value`, which must be a Tensor: PyTorch's TypeError otherwise."""
    if isinstance(value, Tensor):
        return value
    raise ArgumentTypeError(
        with_site(
            f"{function}(): argument '{argument}' must be Tensor, not {type(value).__name__}"
        )
    )


def tensor_list(values: Any, function: str, argument: str = "tensors") -> tuple[Tensor, ...]:
    """A sequence of Tensors, or a Tensor split along its first axis."""
    if isinstance(values, Tensor) or not isinstance(values, (tuple, list)):
        raise ArgumentTypeError(
            with_site(
                f"{function}(): argument '{argument}' must be tuple of Tensors, not "
                f"{type(values).__name__}"
            )
        )
    for i, v in enumerate(values):
        if not isinstance(v, Tensor):
            raise ArgumentTypeError(
                with_site(
                    f"expected Tensor as element {i} in argument '{argument}' of {function}(), "
                    f"but got {type(v).__name__}"
                )
            )
    return tuple(values)


def operand(value: Any, function: str, argument: str = "other") -> Any:
    """A Tensor or a Python number; NumPy scalars and arrays are taken in."""
    if isinstance(value, (Tensor, *NUMBERS)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return wrap(value)
    raise ArgumentTypeError(
        with_site(
            f"{function}(): argument '{argument}' must be Tensor or Number, not "
            f"{type(value).__name__}"
        )
    )


def dim(value: Any, ndim: int, name: str = "dim") -> int:
    """One dimension as a non-negative axis."""
    return normalize_axis(value, ndim, name)


def dims(value: Any, ndim: int, name: str = "dim") -> Axes:
    """Dimensions as a sorted tuple of axes; None and () mean all of them."""
    if value is None or (isinstance(value, (tuple, list)) and not value):
        return tuple(range(ndim))
    return normalize_axes(value, ndim, name)


def either(value: Any, other: Any, default: Any = None) -> Any:
    """The value of an argument with two names (`dim` and NumPy's `axis`)."""
    return value if other is UNSET else other


def size(args: tuple[Any, ...], name: str = "size") -> Shape:
    """Sizes given one by one, or as one sequence."""
    return to_shape(args, name)


def integer(value: Any, function: str, argument: str) -> int:
    """An int (or anything with __index__; a 0-d integer Tensor)."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(
            with_site(
                f"{function}(): argument '{argument}' must be int, not {type(value).__name__}"
            )
        ) from None


def dtype(value: Any, default: Any = None) -> Any:
    """The NumPy dtype of a `dtype=` argument."""
    return default if value is None else dtypes.to_numpy(value)


def differentiable_dtype(numpy: Any, function: str) -> None:
    """mean and its like refuse integers, as in PyTorch."""
    if numpy.kind not in "fc":
        raise DtypeError(
            with_site(
                f"{function}(): could not infer output dtype. Input dtype must be either a "
                f"floating point or complex dtype. Got: {PYTORCH_NAMES[numpy.name]}; convert the "
                "tensor first, for instance with .float()"
            )
        )

