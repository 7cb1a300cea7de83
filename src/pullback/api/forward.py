"""`autograd.forward_ad`: tensors that carry tangents (layer 4).

Unlike PyTorch's, levels nest: each `dual_level` inside another differentiates once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.eager.apply import settled
from pullback.eager.dual import FORWARD_LEVELS, ForwardLevel, check_shapes, make, split
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: the primal, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Start a level of forward differentiation; returns its depth (0 for the outermost)."""
    levels = FORWARD_LEVELS.get()
    level = ForwardLevel(len(levels))
    FORWARD_LEVELS.set((*levels, level))
    return level.depth


def exit_dual_level(*, level: int | None = None) -> None:
    """End the innermost level: all its tangents are dropped.

    Raises RuntimeError where there is none, or `level` is not the innermost.
    """
    levels = FORWARD_LEVELS.get()
    if not levels:
        raise ArgumentRuntimeError(
            with_site(
                "Trying to exit a forward AD level but no level exists: Dual level must be a "
                "positive number. Enter one with dual_level() first")
        )
    if level is not None and level != levels[-1].depth:
        raise ArgumentRuntimeError(
            with_site(
                "Trying to exit a forward AD level that was not the last one that was created. "
                f"This is not supported: level={level}, the last one is {levels[-1].depth}")
        )
    FORWARD_LEVELS.set(levels[:-1])
    levels[-1].end()


@contextmanager
def dual_level() -> Iterator[int]:
    """A level of forward differentiation for the block; tangents live until its end."""
    depth = enter_dual_level()
    try:
        yield depth
    finally:
        exit_dual_level(level=depth)


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent` through what is computed from it.

    tensor, tangent: of one shape, floating point or complex; the tangent is not copied.
    level: the depth of the level, the innermost by default.

    Raises RuntimeError outside a level, for other shapes, and for a tensor that has a tangent at
    the level; TypeError and ValueError for what is no tensor of numbers with derivatives.
    """
    owner = _level(level, "make_dual")
    if owner is None:
        raise ArgumentRuntimeError(
            with_site(
                "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                "enter_dual_level() first.")
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                with_site(f"make_dual(): {name} must be Tensor, not {type(value).__name__}")
            )
        if not dtypes.is_differentiable(value._data.dtype):
            raise ArgumentValueError(
                with_site(
                    f"Expected {name} to be floating point or complex, but got: {value.dtype}")
            )
    check_shapes(tensor, tangent)
    settled(tensor)
    primal, carried = split(tensor, owner)
    if carried is not None:
        raise ArgumentRuntimeError(
            with_site(
                "Making a dual Tensor based on a Tensor that already has a forward gradient "
                f"at the same level {owner.depth} is not supported.")
        )
    return make(primal, tangent, owner)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a tensor; the tangent is None where it carries none.

    Raises TypeError for what is no tensor, RuntimeError for a level that does not exist.
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            with_site(
                "_unpack_dual(): argument 'dual' (position 1) must be Tensor, not "
                f"{type(tensor).__name__}")
        )
    owner = _level(level, "unpack_dual")
    settled(tensor)
    if owner is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*split(tensor, owner))


def _level(depth: int | None, what: str) -> ForwardLevel | None:
    levels = FORWARD_LEVELS.get()
    if depth is None:
        return levels[-1] if levels else None
    if not 0 <= depth < len(levels):
        if not levels:
            return None
        raise ArgumentRuntimeError(
            with_site(
                f"Invalid level given to {what}: level={depth}, and the open levels are "
                f"0 to {len(levels) - 1}")
        )
    return levels[depth]
