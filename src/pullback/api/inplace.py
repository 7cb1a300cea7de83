"""In-place functions (layer 4): `x.add_(y)` and its like, `copy_`, `zero_`, `out=`."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pullback.api import arguments, elementwise
from pullback.api.elementwise import refuse_zero_divisor, scaled
from pullback.api.modes import is_grad_enabled
from pullback.api.storage import root_of
from pullback.core.blas import axpy
from pullback.core.callsite import with_site
from pullback.core.dtypes import COMPLEX128, FLOAT32, FLOAT64, PYTORCH_NAMES, can_cast
from pullback.core.primitive import Primitive
from pullback.core.quiet import quiet
from pullback.core.refusal import Refusal
from pullback.eager.apply import apply
from pullback.eager.inplace import apply_inplace, check_writable, store
from pullback.eager.overlap import anything, at_places, by_element, by_order, identical, repeats
from pullback.eager.tensor import Tensor, bump_version, wrap
from pullback.errors import ArgumentRuntimeError, DtypeError, ShapeError
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
        check_writable(x, int(s._requires_grad))
        by_element(x, (s,))
        raise ShapeError(
            with_site(
                f"output with shape {list(x.shape)} doesn't match the broadcast shape of the "
                f"source {list(s.shape)}: The expanded size of the tensor must match"
            )
        )
    if s is not x and not (repeats(x._data) and identical(x._data, s._data)):
        check_writable(x, int(s._requires_grad))
        by_element(x, (s,))
    if s._data.dtype.kind == "c" and x._data.dtype.kind != "c":
        s = s.real
    if s._data.dtype != x._data.dtype:
        with np.errstate(all="ignore"):
            s = s.to(x.dtype)
    return apply_inplace(copy_primitive, (x, s), {}, "CopyBackwards", anything)


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
        with np.errstate(all="ignore"):
            value = value if value._data.dtype == x._data.dtype else value.to(x.dtype)
        return apply_inplace(copy_primitive, (x, value), {}, "FillBackward3", by_order)
    with np.errstate(all="ignore"):
        filled = wrap(np.asarray(value).astype(x._data.dtype))
    return apply_inplace(copy_primitive, (x, filled), {}, "FillBackward2", anything)


def zero_(x: Tensor) -> Tensor:
    """Writes zeros."""
    data = x._data
    if not x._requires_grad and type(data) is np.ndarray and x._rare is None:
        store(x, _ZERO)
        return x
    zero = wrap(np.zeros((), data.dtype))
    return apply_inplace(copy_primitive, (x, zero), {}, "ZeroBackward0", anything)


_ZERO = np.zeros((), bool)


def check_fill(x: Tensor) -> None:
    """Refuse to write all of a tensor, where that has no meaning."""
    check_writable(x, 0)
    by_element(x, ())


def random_fill(x: Tensor, array: Any, node: str) -> Tensor:
    """Writes freshly drawn numbers, which depend on nothing."""
    return apply_inplace(copy_primitive, (x, wrap(array)), {}, node)


def write_out(out: Any, result: Tensor, operands: tuple[Any, ...] = ()) -> Tensor:
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
    have, want = result._data.dtype, target._data.dtype
    if have != want and not can_cast(have, want):
        raise DtypeError(
            with_site(
                f"result type {PYTORCH_NAMES[have.name]} can't be cast to the desired output type "
                f"{PYTORCH_NAMES[want.name]}"
            )
        )
    if target._data.shape != result._data.shape:
        if target._data.size:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape "
                f"{list(target.shape)}, which does not match the required output shape "
                f"{list(result.shape)}. Give an output of that shape, or an empty one.",
                UserWarning,
                stacklevel=4,
            )
        target._data = resized(target._data, result._data.shape)
    by_element(target, operands)
    return copy_(target, result)


def resized(array: Any, shape: tuple[int, ...]) -> Any:
    """An array of another shape that begins at the same place, or new memory for want of room."""
    root = root_of(array)
    if type(root) is np.ndarray and root.flags.c_contiguous:
        start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        if start + math.prod(shape) * array.itemsize <= root.nbytes:
            return np.ndarray(shape, array.dtype, root, start)
    return np.empty(shape, array.dtype)


# ---------------------------------------------------------------- elementwise, in place
_WHOLE = ("fmod_", "remainder_", "floor_divide_", "__ifloordiv__", "__imod__")
_NUMBERED = {"fmod": "FmodBackward", "remainder": "RemainderBackward"}


def _node_of(primitive: Primitive, other: Any) -> str | None:
    """The node of those operations that have one for numbers and one for tensors."""
    stem = _NUMBERED.get(primitive.name)
    return stem and f"{stem}{int(isinstance(other, Tensor))}"


def two(primitive: Primitive, name: str, numbers: bool = True) -> Any:
    """An in-place method of two operands (`x.mul_(y)`); whether the second may be a number."""
    divides = name in _WHOLE

    def method(self: Tensor, other: Any) -> Tensor:
        b = arguments.operand(other, name) if numbers else arguments.tensor(other, name, "other")
        if divides:
            refuse_zero_divisor(self, b)
        return apply_inplace(primitive, (self, b), {}, _node_of(primitive, b))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{primitive.doc}, stored in the tensor itself."
    return method


def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """self ** exponent in double precision, which self must have."""
    b = arguments.operand(exponent, "float_power_", "exponent")
    complex_ = "c" in (self._data.dtype.kind, b._data.dtype.kind if isinstance(b, Tensor) else "")
    wide = COMPLEX128 if complex_ or type(b) is complex else FLOAT64
    if self._data.dtype != wide:
        names = arguments.PYTORCH_NAMES
        raise ArgumentRuntimeError(
            with_site(
                f"the base given to float_power_ has dtype {names[self._data.dtype.name]} but the "
                f"operation's result requires dtype {names[wide.name]}"
            )
        )
    return out_of_place(elementwise.float_power)(self, b)


def comparison(function: Any) -> Any:
    """A comparison whose result, 0 or 1, replaces the first operand: its gradient is 0."""

    def method(self: Tensor, other: Any) -> Tensor:
        check_writable(self, 0)
        by_element(self, (other,))
        result = function(self, other)
        node = f"{function.__name__.title()}Backward{int(isinstance(other, Tensor))}"
        return replaced(self, result.to(self.dtype), node)

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"`{function.__name__}`, stored in the tensor itself."
    return method


def one_real(primitive: Primitive, name: str) -> Any:
    """An in-place method whose result is real, and so none of a complex tensor."""
    plain = one(primitive, name)

    def method(self: Tensor) -> Tensor:
        said = f"In-place {primitive.name} is not supported for complex tensors."
        arguments.refuse(self, Refusal("c", said))
        found: Tensor = plain(self)
        return found

    method.__name__ = method.__qualname__ = name
    method.__doc__ = plain.__doc__
    return method


def operator(primitive: Primitive, name: str, node: str | None = None) -> Any:
    """An in-place operator (`x *= y`); NotImplemented for operands it does not know."""

    divides = name in _WHOLE

    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, bool, int, float, complex, np.generic, np.ndarray)):
            return NotImplemented
        b = arguments.operand(other, name)
        if divides:
            refuse_zero_divisor(self, b)
            return apply_inplace(primitive, (self, b), {}, _node_of(primitive, b))
        return apply_inplace(primitive, (self, b), {}, node)

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
    if alpha != 1:  # a scaled operand has memory of its own
        check_writable(self, int(isinstance(other, Tensor) and other._requires_grad))
        by_element(self, (other,))
    b = arguments.operand(scaled("add_", other, alpha, self), "add_")
    return apply_inplace(ops.add, (self, b), {}, "AddBackward0")


def sub_(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self -= alpha * other."""
    if alpha != 1 and type(alpha) is float and scaled_update(self, other, -alpha):
        return self
    if alpha != 1:
        check_writable(self, int(isinstance(other, Tensor) and other._requires_grad))
        by_element(self, (other,))
    b = arguments.operand(scaled("sub_", other, alpha, self), "sub_")
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


def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """self /= other; `rounding_mode` "trunc" or "floor" rounds the quotient."""
    b = arguments.operand(other, "div_")
    if rounding_mode is None:
        return apply_inplace(ops.div, (self, b), {})
    return out_of_place(elementwise.div)(self, b, rounding_mode=rounding_mode)


def pow_(self: Tensor, exponent: Any) -> Tensor:
    """self **= exponent."""
    b = arguments.operand(exponent, "pow_", "exponent")
    if not isinstance(b, Tensor) and b == 2 and self._data.dtype.kind in "fc":
        return apply_inplace(ops.square, (self,), {})
    node = "PowBackward1" if isinstance(b, Tensor) else "PowBackward0"
    return apply_inplace(ops.pow_, (self, b), {}, node)


def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002
    """self limited to [min, max]."""
    if min is None and max is None:
        raise ArgumentRuntimeError(
            with_site("torch.clamp: At least one of 'min' or 'max' must not be None")
        )
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return out_of_place(elementwise.clamp)(self, min, max)
    return apply_inplace(ops.clamp, (self,), {"min": min, "max": max}, "ClampBackward1")


def masked_fill_(self: Tensor, mask: Any, value: Any) -> Tensor:
    """self with `value` where mask holds."""
    from pullback.api.elementwise import masked_fill

    result = masked_fill(self, mask, value)
    at_places("masked_fill_")(self, ())
    return replaced(self, result, "MaskedFillBackward0")


def replaced(self: Tensor, result: Tensor, node: str) -> Tensor:
    """`self` becomes `result`, computed out of place from it (rare in-place functions)."""
    return apply_inplace(identity_of, (self, result), {}, node, anything)


def _batch_replace(size: int, x: Any, source: Any, *, batched: tuple[bool, ...]) -> Any:
    return clone(source if batched[1] else broadcast_to(source, shape=(size, *shape_of(source))))


identity_of = general(
    "replace", lambda x, source: source,
    vjp=dict(x=lambda g: zeros_like(g), source=lambda g: g), batch=_batch_replace,
    jvp=dict(source=lambda t: t), doc="the second argument",
)  # fmt: skip


def in_place(function: Any, x: Any, *args: Any) -> Tensor:
    """`function(x, *args)` stored in `x`: what `inplace=True` asks of an activation."""
    target = arguments.tensor(x, function.__name__)
    found: Tensor = out_of_place(function)(target, *args)
    return found


def out_of_place(function: Any, node: str | None = None, check: Any = by_element) -> Any:
    """The in-place version of a function, by way of its out-of-place one.

    `check` refuses operands that share memory with the tensor.
    """

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(self, 0)
        check(self, (*args, *kwargs.values()))
        # from a copy: what the function keeps of it must outlive the write
        result = function(apply(clone, (self,), {}), *args, **kwargs)
        found = result.grad_fn
        return replaced(self, result, node or ("" if found is None else type(found).__name__))

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"`{function.__name__}`, stored in the tensor itself."
    return method


__all__ = ["apply", "clone", "copy_", "fill_", "write_out", "zero_"]
