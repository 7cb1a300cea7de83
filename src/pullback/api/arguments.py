"""Reading the arguments of public functions (layer 4): dims, sizes, dtypes, tensors."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from pullback.core import dtypes, refusal
from pullback.core.callsite import with_site
from pullback.core.refusal import Refusal
from pullback.core.shapes import normalize_axes, normalize_axis
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentTypeError, DtypeError
from pullback.typing import Axes, Shape

NUMBERS = (bool, int, float, complex)
PYTORCH_NAMES = dtypes.PYTORCH_NAMES
Function = TypeVar("Function", bound=Callable[..., Any])
UNSET: Any = object()  # "not given", where None means something


# where most functions have the arguments of these names; `addmm` and its like have an input first
_POSITIONS = {
    "input": 1, "x1": 1, "abs": 1, "real": 1, "condition": 1, "other": 2, "mat2": 2, "x2": 2,
    "angle": 2, "imag": 2, "values": 2, "vec": 2, "vec2": 2, "end": 2, "mask": 2, "tensor": 2,
}  # fmt: skip


def tensor(value: Any, function: str, argument: str = "input") -> Tensor:
    """`value`, which must be a Tensor: PyTorch's TypeError otherwise."""
    if isinstance(value, Tensor):
        return value
    position = _POSITIONS.get(argument)
    place = f" (position {position + (function == 'addmm' and position > 1)})" if position else ""
    raise ArgumentTypeError(
        with_site(
            f"{function}(): argument '{argument}'{place} must be Tensor, not {kind(value)}"
        )
    )


_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input",
                "x2": "other"}  # fmt: skip


def numpy_names(function: Function) -> Function:
    """A function whose arguments may go by NumPy's names too: `axis` for `dim`, and so on."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if options:
            options = {_NUMPY_NAMES.get(name, name): value for name, value in options.items()}
        return function(*args, **options)

    return cast(Function, call)


def flag(value: Any, function: str, argument: str) -> bool:
    """A bool, and nothing that merely counts as one."""
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    raise ArgumentTypeError(
        with_site(f"{function}(): argument '{argument}' must be bool, not {kind(value)}")
    )


def refuse(x: Tensor, *refusals: Refusal) -> None:
    """Raise what is said of the dtype of `x`, if anything is."""
    refusal.refuse(refusals, x._data.dtype, (x,))


def kind(value: Any) -> str:
    """The name of a value's type as messages give it."""
    found = type(value)
    return f"numpy.{found.__name__}" if found.__module__ == "numpy" else found.__name__


def tensor_list(values: Any, function: str, argument: str = "tensors") -> tuple[Tensor, ...]:
    """A sequence of Tensors, or a Tensor split along its first axis."""
    if isinstance(values, Tensor) or not isinstance(values, (tuple, list)):
        raise ArgumentTypeError(
            with_site(
                f"{function}(): argument '{argument}' (position 1) must be tuple of Tensors, not "
                f"{kind(values)}"
            )
        )
    for i, v in enumerate(values):
        if not isinstance(v, Tensor):
            raise ArgumentTypeError(
                with_site(
                    f"expected Tensor as element {i} in argument 0, but got {kind(v)}: "
                    f"'{argument}' of {function}()"
                )
            )
    return tuple(values)


def operand(value: Any, function: str, argument: str = "other") -> Any:
    """A Tensor or a Python number; NumPy scalars and arrays are taken in."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.generic):  # before the numbers: np.float64 is a float, but wider
        return value.item()
    if isinstance(value, NUMBERS):
        return value
    if isinstance(value, np.ndarray):
        return wrap(value)
    raise ArgumentTypeError(
        with_site(
            f"{function}(): argument '{argument}' (position {1 if argument == 'input' else 2}) "
            f"must be Tensor, not {kind(value)}: a Tensor or a number"
        )
    )


def fits(shape: Shape, target: Shape) -> bool:
    """Whether a value of that shape can be broadcast to the target."""
    return len(shape) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False)
    )


def dim(value: Any, ndim: int, name: str = "dim") -> int:
    """One dimension as a non-negative axis."""
    if isinstance(value, bool):
        raise ArgumentTypeError(with_site(f"argument '{name}' must be int, not bool"))
    return normalize_axis(value, ndim, name)


def dims(value: Any, ndim: int, name: str = "dim") -> Axes:
    """Dimensions as a sorted tuple of axes; None and () mean all of them."""
    if value is None or (isinstance(value, (tuple, list)) and not value):
        return tuple(range(ndim))
    if value is True or value is False:
        raise ArgumentTypeError(
            with_site(f"argument '{name}' (position 2) must be tuple of ints, not bool")
        )
    return normalize_axes(value, ndim, name)


def either(value: Any, other: Any, default: Any = None) -> Any:
    """The value of an argument with two names (`dim` and NumPy's `axis`)."""
    return value if other is UNSET else other


def size(args: tuple[Any, ...], name: str = "size", function: str = "") -> Shape:
    """Sizes given one by one, or as one list or tuple."""
    alone = len(args) == 1
    if alone and isinstance(args[0], (tuple, list)):
        args, alone = tuple(args[0]), False
    result = []
    for i, n in enumerate(args):
        if type(n) is int:
            result.append(n)
            continue
        try:
            if isinstance(n, (bool, np.bool_)) and not i:  # later ones count, in PyTorch too
                raise TypeError
            result.append(operator.index(n))
        except TypeError:
            raise not_ints(n, i, name, function, alone) from None
    return tuple(result)


def not_ints(value: Any, place: int, name: str, function: str, alone: bool) -> Exception:
    """PyTorch's error for something else than an int among sizes."""
    call = f"{function}(): " if function else ""
    if alone:
        text = f"argument '{name}' (position 1) must be tuple of ints, not {kind(value)}"
    elif not place:
        text = (
            f"argument '{name}' (position 1) must be tuple of ints, but found element of type "
            f"{kind(value)} at pos 0"
        )
    else:
        text = (
            f"argument '{name}' failed to unpack the object at pos {place + 1} with error \"type "
            f"must be tuple of ints,but got {kind(value)}\""
        )
    return ArgumentTypeError(with_site(call + text))


def sizes(args: tuple[Any, ...], function: str) -> Shape:
    """The sizes of a constructor."""
    return size(args, "size", function)


def one_size(value: Any, function: str) -> Shape:
    """The `size=` of a constructor: a list or tuple of ints."""
    if not isinstance(value, (tuple, list)):
        raise ArgumentTypeError(
            with_site(
                f"{function}(): argument 'size' (position 1) must be tuple of ints, not "
                f"{kind(value)}"
            )
        )
    return size((value,), "size", function)


def given(args: tuple[Any, ...], function: str, argument: str) -> None:
    """TypeError when a function that takes `*args` got none."""
    if not args:
        raise ArgumentTypeError(
            with_site(f'{function}() missing 1 required positional arguments: "{argument}"')
        )


def integer(value: Any, function: str, argument: str) -> int:
    """An int (or anything with __index__, such as a 0-d integer Tensor; no bool)."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(
            with_site(f"{function}(): argument '{argument}' must be int, not {kind(value)}")
        ) from None


def dtype(value: Any, default: Any = None, function: str = "") -> Any:
    """The NumPy dtype of a `dtype=` argument."""
    return default if value is None else dtypes.to_numpy(value, "dtype", function)


_ONLY_FLOATING = {
    "mean": "mean(): could not infer output dtype. Input dtype must be either a floating point or "
    "complex dtype. Got: {}",
    "mean dtype": "mean(): could not infer output dtype. Optional dtype must be either a floating "
    "point or complex dtype. Got: {}",
    "var": "std and var only support floating point and complex dtypes. Got: {}",
    "var_mean": "var_mean only support floating point and complex dtypes. Got: {}",
    "std_mean": "std_mean only support floating point and complex dtypes. Got: {}",
    "norm": "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
    "dist": "norm(): input dtype should be either floating point or complex. Got {} instead.",
}  # fmt: skip
_ONLY_FLOATING["std"] = _ONLY_FLOATING["var"]


def differentiable_dtype(numpy: Any, function: str) -> None:
    """mean and its like refuse integers, as in PyTorch."""
    if numpy.kind not in "fc":
        said = _ONLY_FLOATING[function].format(PYTORCH_NAMES[numpy.name])
        raise DtypeError(
            with_site(f"{said}; convert the tensor first, for instance with .float()")
        )

