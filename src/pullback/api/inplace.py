"""In-place functions (layer 4): `x.add_(y)` and its like, `copy_`, `zero_`, `out=`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.api.elementwise import scaled
from pullback.api.modes import is_grad_enabled
from pullback.core.blas import axpy
from pullback.core.callsite import with_site
from pullback.core.dtypes import FLOAT32, FLOAT64
from pullback.core.primitive import Primitive
from pullback.core.quiet import quiet
from pullback.eager.apply import apply
from pullback.eager.inplace import apply_inplace, check_writable, store
from pullback.eager.tensor import Tensor, bump_version, wrap
from pullback.errors import ArgumentRuntimeError, ShapeError
from pullback.ops import elementwise as ops
from pullback.ops.broadcast import broadcast_to, reshape, shape_of, sum_to, zeros_like
from pullback.ops.kinds import general
from pullback.ops.movement import clone


# ---------------------------------------------------------------- copying
def _copy(x: Any, source: Any) -> Any:
    return np.broadcast_to(source, x.shape)


def _batch_copy(size: int, x: Any, source: Any, *, batched: tuple[bool, ...]) -> Any:
    shape = shape_of(x)[batched[0] :]
    if batched[1]:
        own = shape_of(source)[1:]
        source = reshape(source, shape=(size, *(1,) * (len(shape) - len(own)), *own))
    return clone(broadcast_to(source, shape=(size, *shape)))


copy_primitive = general(
    "copy", _copy,
    vjp=dict(x=lambda g: zeros_like(g), source=lambda g, source_shape: sum_to(g, source_shape)),
    jvp=dict(source=lambda t: t), batch=_batch_copy, broadcasts=True, node_name="CopyBackwards",
    doc="source in the shape of x",
)  # fmt: skip


def copy_(x: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Writes source (broadcast, converted) into x."""
    s = source if isinstance(source, Tensor) else wrap(np.asarray(source))
    try:
        fits = np.broadcast_shapes(x._data.shape, s._data.shape) == tuple(x._data.shape)
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            with_site(
                f"output with shape {list(x.shape)} doesn't match the broadcast shape of the "
                f"source {list(s.shape)}: The expanded size of the tensor must match"
            )
        )
    if type(x._data) is np.ndarray and type(s._data) is np.ndarray and not s._requires_grad:
        # nothing of the source is recorded: no need for the general way, which makes a copy
        if np.shares_memory(x._data, s._data):
            s = wrap(s._data.copy())
    if s._data.dtype.kind == "c" and x._data.dtype.kind != "c":
        s = s.real
    if s._data.dtype != x._data.dtype:
        with np.errstate(all="ignore"):
            s = s.to(x.dtype)
    return apply_inplace(copy_primitive, (x, s), {}, "CopyBackwards")


def fill_(x: Tensor, value: Any) -> Tensor:
    """Writes one number everywhere."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise ArgumentRuntimeError(
                with_site(
                    "fill_ only supports 0-dimension value tensor but got tensor with "
                    f"{value.ndim} dimensions."
                )
            )
        return copy_(x, value)
    with np.errstate(all="ignore"):
        filled = wrap(np.asarray(value).astype(x._data.dtype))
    return apply_inplace(copy_primitive, (x, filled), {}, "FillBackward0")


def zero_(x: Tensor) -> Tensor:
    """Writes zeros."""
    data = x._data
    if not x._requires_grad and type(data) is np.ndarray and x._rare is None:
        store(x, _ZERO)
        return x
    zero = wrap(np.zeros((), data.dtype))
    return apply_inplace(copy_primitive, (x, zero), {}, "ZeroBackward0")


_ZERO = np.zeros((), bool)


def random_fill(x: Tensor, array: Any) -> Tensor:
    """Writes freshly drawn numbers, which depend on nothing."""
    return apply_inplace(copy_primitive, (x, wrap(array)), {}, "FillBackward0")


def write_out(out: Any, result: Tensor) -> Tensor:
    """Store a result in the tensor given as `out=`."""
    target = arguments.tensor(out, "out", "out")
    if target._requires_grad or result._requires_grad:
        raise ArgumentRuntimeError(
            with_site(
                "functions with out=... arguments don't support automatic differentiation, but "
                "one of the arguments requires grad."
            )
        )
    check_writable(target, 0)
    if target._data.shape != result._data.shape:
        if target._data.size:
            raise ShapeError(
                with_site(
                    f"out= has shape {list(target.shape)}, the result {list(result.shape)}: give "
                    "an output of that shape (resizing is not supported)"
                )
            )
        target._data = np.empty(result._data.shape, target._data.dtype)
    return copy_(target, result)


# ---------------------------------------------------------------- elementwise, in place
def two(primitive: Primitive, name: str, node: str | None = None) -> Any:
    """An in-place method of two operands (`x.mul_(y)`)."""

    def method(self: Tensor, other: Any) -> Tensor:
        b = arguments.operand(other, name)
        return apply_inplace(primitive, (self, b), {}, node)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{primitive.doc}, stored in the tensor itself."
    return method


def operator(primitive: Primitive, name: str, node: str | None = None) -> Any:
    """An in-place operator (`x *= y`); NotImplemented for operands it does not know."""

    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, bool, int, float, complex, np.generic, np.ndarray)):
            return NotImplemented
        return apply_inplace(primitive, (self, arguments.operand(other, name)), {}, node)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{primitive.doc}, stored in the tensor itself."
    return method


def one(primitive: Primitive, name: str, node: str | None = None) -> Any:
    """An in-place method without operands (`x.exp_()`)."""

    def method(self: Tensor) -> Tensor:
        return apply_inplace(primitive, (self,), {}, node)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{primitive.doc}, stored in the tensor itself."
    return method


def add_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self += alpha * other."""
    if alpha != 1 and scaled_update(self, other, alpha):
        return self
    b = arguments.operand(scaled("add_", other, alpha), "add_")
    return apply_inplace(ops.add, (self, b), {}, "AddBackward0")


def sub_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self -= alpha * other."""
    if alpha != 1 and type(alpha) is float and scaled_update(self, other, -alpha):
        return self
    b = arguments.operand(scaled("sub_", other, alpha), "sub_")
    return apply_inplace(ops.sub, (self, b), {})


def scaled_update(x: Any, y: Any, alpha: Any) -> bool:
    """x += alpha * y, where it is that plain; False where it is not.

    An optimiser's step is this.  BLAS does it in one pass over memory, and rounds once per element,
    as PyTorch does.
    """
    if type(y) is not Tensor or type(alpha) is not float:
        return False
    a, b = x._data, y._data
    if (
        type(a) is not np.ndarray
        or type(b) is not np.ndarray
        or a.dtype is not b.dtype
        or a.shape != b.shape
        or a.dtype not in (FLOAT32, FLOAT64)
        or ((x._requires_grad or y._requires_grad) and is_grad_enabled())
    ):
        return False
    mine, theirs = a.flags, b.flags
    if not (mine.c_contiguous and mine.writeable and theirs.c_contiguous):
        return False
    if (a is b or not (mine.owndata and theirs.owndata)) and np.may_share_memory(a, b):
        return False
    update = axpy(a.dtype.itemsize)
    if update is not None:
        update(alpha, b, a)
    else:
        quiet.run(_add_scaled, a, b, a.dtype.type(alpha))
    bump_version(x)
    return True


def _add_scaled(a: Any, b: Any, alpha: Any) -> None:
    np.add(a, b * alpha, out=a)


def pow_(self: Tensor, exponent: Any) -> Tensor:
    """self **= exponent."""
    b = arguments.operand(exponent, "pow_", "exponent")
    if b == 2 and not isinstance(b, Tensor) and self._data.dtype.kind in "fc":
        return apply_inplace(ops.square, (self,), {})
    node = "PowBackward1" if isinstance(b, Tensor) else "PowBackward0"
    return apply_inplace(ops.pow_, (self, b), {}, node)


def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002
    """self limited to [min, max]."""
    if min is None and max is None:
        raise ArgumentRuntimeError(
            with_site("torch.clamp: At least one of 'min' or 'max' must not be None")
        )
    return apply_inplace(ops.clamp, (self,), {"min": min, "max": max}, "ClampBackward1")


def masked_fill_(self: Tensor, mask: Any, value: Any) -> Tensor:
    """self with `value` where mask holds."""
    from pullback.api.elementwise import masked_fill

    return replaced(self, masked_fill(self, mask, value), "MaskedFillBackward0")


def replaced(self: Tensor, result: Tensor, node: str) -> Tensor:
    """`self` becomes `result`, computed out of place from it (rare in-place functions)."""
    return apply_inplace(identity_of, (self, result), {}, node)


def _batch_replace(size: int, x: Any, source: Any, *, batched: tuple[bool, ...]) -> Any:
    return clone(source if batched[1] else broadcast_to(source, shape=(size, *shape_of(source))))


identity_of = general(
    "replace", lambda x, source: source, vjp=dict(source=lambda g: g), batch=_batch_replace,
    jvp=dict(source=lambda t: t), doc="the second argument",
)  # fmt: skip


def in_place(function: Any, x: Any, *args: Any) -> Tensor:
    """`function(x, *args)` stored in `x`: what `inplace=True` asks of an activation."""
    target = arguments.tensor(x, function.__name__)
    check_writable(target, 0)
    # what its rules keep of the input must outlive the write
    return replaced(target, function(target.clone(), *args), "CopyBackwards")


def out_of_place(function: Any, node: str) -> Any:
    """The in-place version of a function, by way of its out-of-place one."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(self, 0)
        return replaced(self, function(self, *args, **kwargs), node)

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"`{function.__name__}`, stored in the tensor itself."
    return method


__all__ = ["apply", "clone", "copy_", "fill_", "write_out", "zero_"]
