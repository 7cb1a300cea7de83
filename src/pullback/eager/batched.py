"""The payload of `vmap` (layer 3): an array that stands for one example of a batch.

The batch axis is always the first one of `value`; shape, ndim and dtype are those of one example.
`value` may be an array, a Tensor of an outer level, or a payload of an outer transform: batching
rules are written with primitives, which go on to whatever the value is.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import math
from collections.abc import Iterator
from typing import Any

from pullback.core.callsite import with_site
from pullback.core.dispatch import register_interpreter
from pullback.core.primitive import Primitive
from pullback.eager.apply import level_of
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ShapeError, TracingError, UnsupportedError
from pullback.ops.broadcast import broadcast_to, dtype_of, reshape, shape_of
from pullback.ops.movement import permute
from pullback.ops.operators import Operators
from pullback.typing import Params, Shape

_next_level = itertools.count(1).__next__


class Level:
    """One `vmap` in progress."""

    __slots__ = ("number", "size")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size


@contextlib.contextmanager
def new_level(size: int) -> Iterator[Level]:
    """A level above all that exist; the current one inside."""
    level = Level(_next_level(), size)
    token = LEVELS.set((*LEVELS.get(), level))
    try:
        yield level
    finally:
        LEVELS.reset(token)


LEVELS: contextvars.ContextVar[tuple[Level, ...]] = contextvars.ContextVar("levels", default=())


def raised(tensor: Tensor) -> Tensor:
    """The tensor as a batch of the innermost `vmap`, where it is not one yet.

    What is differentiated inside a `vmap` must belong to it: a tensor of an outer level counts as
    a constant there, and its derivative for each example would be lost.
    """
    levels = LEVELS.get()
    if not levels or level_of(tensor._data) >= levels[-1].number:
        return tensor
    level = levels[-1]
    value: Any = tensor if tensor._requires_grad else tensor._data
    return wrap(Batched(broadcast_to(value, shape=(level.size, *shape_of(value))), level.number))


class Batched(Operators):
    """One example of a batch, as a payload."""

    __slots__ = ("value", "level")

    def __init__(self, value: Any, level: int) -> None:
        self.value = value
        self.level = level

    @property
    def shape(self) -> Shape:
        """The shape of one example."""
        return shape_of(self.value)[1:]

    @property
    def ndim(self) -> int:
        """The number of dims of one example."""
        return len(shape_of(self.value)) - 1

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return dtype_of(self.value)

    @property
    def size(self) -> int:
        """The number of elements of one example."""
        return math.prod(self.shape)

    @property
    def batch_size(self) -> int:
        """The number of examples."""
        return shape_of(self.value)[0]

    def reshape(self, shape: Any) -> Any:
        """As of an array."""
        return reshape(self, shape=tuple(shape))

    def __bool__(self) -> bool:
        raise TracingError(
            with_site(
                "vmap: a Python branch on the value of a tensor, which differs between the "
                "examples of the batch: use torch.where"
            )
        )

    def __repr__(self) -> str:
        return f"Batched(level={self.level}, {self.batch_size} x {list(self.shape)}, {self.dtype})"


def aligned(value: Any, batched: bool, ndim: int) -> Any:
    """A batched value whose example has `ndim` dims, new ones put after the batch axis."""
    if not batched:
        return value
    shape = shape_of(value)
    missing = ndim - (len(shape) - 1)
    if missing <= 0:
        return value
    return reshape(value, shape=(shape[0], *(1,) * missing, *shape[1:]))


def example_ndim(value: Any, batched: bool) -> int:
    """The number of dims of one example."""
    return len(shape_of(value)) - batched


def call_batched(primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
    """Run a primitive on values some of which are batches, by its batching rule."""
    level = max(a.level for a in args if type(a) is Batched)
    batched = tuple(type(a) is Batched and a.level == level for a in args)
    values = [a.value if b else a for a, b in zip(args, batched, strict=True)]
    size = next(shape_of(v)[0] for v, b in zip(values, batched, strict=True) if b)
    rule = primitive.batch
    if rule is None:
        raise UnsupportedError(
            with_site(
                f"vmap: the operation {primitive.name} has no batching rule yet; take it out of "
                "the mapped function, or loop over the examples"
            )
        )
    if isinstance(rule, str):
        result = BY_KIND[rule](primitive, size, values, batched, params)
    elif "batched" in rule.__code__.co_varnames:  # it asks which values are batches
        result = rule(size, *values, **params, batched=batched)
    else:
        result = rule(size, *values, **params)
    if isinstance(result, tuple):
        return tuple(Batched(r, level) for r in result)
    return Batched(result, level)


def _elementwise(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    ndim = max(example_ndim(v, b) for v, b in zip(values, batched, strict=True))
    return p(*(aligned(v, b, ndim) for v, b in zip(values, batched, strict=True)), **params)


def _reduction(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    axis = tuple(a + 1 for a in params["axis"])
    return p(*values, **{**params, "axis": axis})


def _reshape(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    return p(*values, **{**params, "shape": (size, *params["shape"])})


def _broadcast(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    value = aligned(values[0], True, len(params["shape"]))
    return p(value, **{**params, "shape": (size, *params["shape"])})


def _axes(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    axis = params["axis"]
    x = values[0]
    if axis is None:
        x, axis = reshape(x, shape=(size, math.prod(shape_of(x)[1:]))), 0
    if not shape_of(x)[1:]:  # 0-d examples: the operation needs an axis to work along
        out = p(reshape(x, shape=(size, 1)), **{**params, "axis": _shifted(axis)})
        return reshape(out, shape=shape_of(x))
    return p(x, **{**params, "axis": _shifted(axis)})


def _shifted(axis: Any) -> Any:
    return axis + 1 if isinstance(axis, int) else tuple(a + 1 for a in axis)


def _join(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    full = [
        v if b else broadcast_to(v, shape=(size, *shape_of(v)))
        for v, b in zip(values, batched, strict=True)
    ]
    return p(*full, **{**params, "axis": params["axis"] + 1})


BY_KIND: dict[str, Any] = {
    "elementwise": _elementwise, "leading": _elementwise, "reduction": _reduction,
    "reshape": _reshape, "broadcast": _broadcast, "axes": _axes, "join": _join,
}  # fmt: skip


# ---------------------------------------------------------------- in and out of a level
def to_batch(tensor: Tensor, dim: int, level: Level) -> Tensor:
    """A Tensor that stands for one slice of `tensor` along `dim`."""
    value: Any = tensor
    shape = shape_of(tensor)
    if dim:
        rest = tuple(i for i in range(len(shape)) if i != dim)
        value = permute(tensor, perm=(dim, *rest))
    if isinstance(value, Tensor) and not value._requires_grad:
        value = value._data  # nothing outside records it: a plain payload is enough
    return wrap(Batched(value, level.number))


def unbatch(result: Tensor, level: Level, dim: int) -> Tensor:
    """The batch that a result of this level stands for, with its axis at `dim`."""
    payload = result._data
    if type(payload) is Batched and payload.level == level.number:
        value = payload.value
        out = value if isinstance(value, Tensor) else wrap(value)
    else:  # it does not depend on the mapped inputs
        out = broadcast_to(result, shape=(level.size, *shape_of(result)))
    ndim = len(shape_of(out))
    if not -ndim <= dim < ndim:
        raise ShapeError(with_site(f"vmap: out_dims {dim} is out of range for {ndim} dims"))
    dim %= ndim
    if dim == 0:
        return out
    perm = list(range(1, ndim))
    perm.insert(dim, 0)
    return permute(out, perm=tuple(perm))


register_interpreter(Batched, lambda value: value.level, call_batched)

__all__ = ["Batched", "Level", "new_level", "to_batch", "unbatch"]
