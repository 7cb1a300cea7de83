"""Shapes and axes (layer 1)."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from pullback.core.callsite import with_site
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, DimensionError, ShapeError
from pullback.typing import Axes, Shape


def normalize_axis(axis: Any, ndim: int, name: str = "dim") -> int:
    """`axis` as a non-negative int; PyTorch's IndexError when it is out of range."""
    try:
        axis = operator.index(axis)
    except TypeError:
        raise ArgumentTypeError(
            with_site(f"argument '{name}' must be int, not {type(axis).__name__}")
        ) from None
    extent = max(ndim, 1)  # a 0-d tensor takes -1 and 0
    if not -extent <= axis < extent:
        raise DimensionError(
            with_site(
                f"Dimension out of range (expected to be in range of [{-extent}, {extent - 1}], "
                f"but got {axis})"
            )
        )
    return axis + extent if axis < 0 else axis


def normalize_axes(axes: Any, ndim: int, name: str = "dim") -> Axes:
    """`axes` (None for all, an int, or a sequence) as a sorted tuple of distinct axes."""
    if axes is None:
        return tuple(range(ndim))
    if isinstance(axes, int) or hasattr(axes, "__index__"):
        found: Axes = (normalize_axis(axes, ndim, name),)
    else:
        found = tuple(normalize_axis(a, ndim, name) for a in axes)
        if len(set(found)) != len(found):
            repeated = next(a for a in found if found.count(a) > 1)
            raise ArgumentRuntimeError(
                with_site(f"dim {repeated} appears multiple times in the list of dims")
            )
        found = tuple(sorted(found))
    return found if ndim else ()


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape:
    """The common shape; PyTorch's RuntimeError, with both sizes, when there is none."""
    ndim = max((len(s) for s in shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        offset = ndim - len(shape)
        for i, size in enumerate(shape):
            have = result[offset + i]
            if size != 1 and size != have:
                if have != 1:
                    raise ShapeError(
                        with_site(
                            f"The size of tensor a ({have}) must match the size of tensor b "
                            f"({size}) at non-singleton dimension {offset + i}: the shapes are "
                            f"{' and '.join(str(list(s)) for s in shapes)}"
                        )
                    )
                result[offset + i] = size
    return tuple(result)


def to_shape(size: Iterable[Any], name: str = "size") -> Shape:
    """A tuple of Python ints from the forms in which PyTorch takes sizes."""
    given = tuple(size)
    if len(given) == 1 and not hasattr(given[0], "__index__") and isinstance(given[0], Iterable):
        given = tuple(given[0])
    try:
        return tuple(operator.index(n) for n in given)
    except TypeError:
        bad = next(n for n in given if not hasattr(n, "__index__"))
        raise ArgumentTypeError(
            with_site(f"argument '{name}' must be tuple of ints, but found {type(bad).__name__}")
        ) from None


def infer_size(shape: Shape, numel: int) -> Shape:
    """`shape` with its -1 replaced; PyTorch's RuntimeError when `numel` does not fit."""
    known, unknown = 1, None
    for i, n in enumerate(shape):
        if n == -1:
            if unknown is not None:
                raise ShapeError(with_site("only one dimension can be inferred"))
            unknown = i
        elif n < 0:
            raise ShapeError(with_site(f"invalid shape dimension {n} in shape {list(shape)}"))
        else:
            known *= n
    if unknown is None:
        if known == numel:
            return shape
    elif known == 0:
        if numel == 0:
            raise ShapeError(
                with_site(
                    f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
                    f"unspecified dimension size -1 can be any value and is ambiguous"
                )
            )
    elif numel % known == 0:
        return (*shape[:unknown], numel // known, *shape[unknown + 1 :])
    raise ShapeError(with_site(f"shape '{list(shape)}' is invalid for input of size {numel}"))
