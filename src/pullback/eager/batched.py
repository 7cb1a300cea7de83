"""The payloads of `vmap` (layer 3): values that stand for one example of a batch.

The batch axis is always the first one of the `value` of a `Batched`; shape, ndim and dtype are
those of one example.  `value` is a Tensor, plain or of an outer level: what is done with it is
recorded at that level, views of it stay views, and writing in place goes the ordinary way there.
Batching rules are written with primitives, which go on to whatever the value is.  A `Shared` is of
the level too, but the same in every example: it has no batch axis, and costs what one value costs.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import math
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback.core.callsite import at, here, outside, resolve, with_site
from pullback.core.dispatch import INTERPRETERS, register_interpreter
from pullback.core.primitive import REGISTRY, Primitive
from pullback.core.quiet import quiet
from pullback.eager.apply import as_payload, level_of, record, tape_level
from pullback.eager.inplace import ADOPT, apply_inplace, recorded_outside
from pullback.eager.tensor import Tensor, counter_of, wrap
from pullback.eager.view import apply_chain, family, memory
from pullback.errors import DimensionError, TracingError, UnsupportedError
from pullback.ops.broadcast import broadcast_to, cast, reshape, shape_of
from pullback.ops.movement import alias, clone, permute, stack
from pullback.ops.operators import Operators
from pullback.typing import Params, Shape

_NUMPY = os.path.dirname(np.__file__)
next_level = itertools.count(1).__next__  # of forward mode too (eager/dual.py)


class Level:
    """One `vmap` in progress."""

    __slots__ = ("number", "size", "randomness")

    def __init__(self, number: int, size: int, randomness: str = "error") -> None:
        self.number = number
        self.size = size
        self.randomness = randomness  # "error", "same" or "different": see api/random.py


@contextlib.contextmanager
def new_level(size: int, randomness: str = "error") -> Iterator[Level]:
    """A level above all that exist; the current one inside."""
    level = Level(next_level(), size, randomness)
    token = LEVELS.set((*LEVELS.get(), level))
    try:
        yield level
    finally:
        LEVELS.reset(token)


LEVELS: contextvars.ContextVar[tuple[Level, ...]] = contextvars.ContextVar("levels", default=())


def raised(tensor: Tensor) -> Tensor:
    """The tensor as a value of the innermost `vmap`, where it is not one yet.

    What is differentiated inside a `vmap` must belong to it: a tensor of an outer level counts as
    a constant there, and its derivative for each example would be lost.
    """
    levels = LEVELS.get()
    return at_level(tensor, levels[-1].number) if levels else tensor


def at_level(tensor: Tensor, level: int) -> Tensor:
    """The tensor as a value of a `vmap` level, where it is not of that or an inner one."""
    payload = tensor._data
    if tape_level(payload) >= level:
        return tensor
    if level_of(payload) < level:
        return wrap(Shared(tensor, level))
    out = wrap(payload.over(at_level(payload.primal, level)))  # a dual of the inside
    if tensor._requires_grad:
        record(alias.plan(1, None, 1), (tensor,), [out._data], {}, (out,))
    return out


class Batched(Operators):
    """One example of a batch, as a payload."""

    __slots__ = ("value", "level")

    def __init__(self, value: Tensor, level: int) -> None:
        self.value = value
        self.level = level

    @property
    def shape(self) -> Shape:
        """The shape of one example."""
        found: Shape = tuple(self.value._data.shape[1:])
        return found

    @property
    def ndim(self) -> int:
        """The number of dims of one example."""
        found: int = self.value._data.ndim - 1
        return found

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return self.value._data.dtype

    @property
    def size(self) -> int:
        """The number of elements of one example."""
        return math.prod(self.shape)

    @property
    def batch_size(self) -> int:
        """The number of examples."""
        found: int = self.value._data.shape[0]
        return found

    def overwrite(self, result: Any) -> None:
        """Store a result in the memory of the batch, and its history at the outer level."""
        if type(result) is Batched and result.level == self.level:
            value = result.value
        else:  # the same for every example
            value = held(broadcast_to(result, shape=(self.batch_size, *shape_of(result))))
        if value._data.dtype != self.dtype:
            value = cast(value, dtype=self.dtype)
        apply_inplace(REGISTRY["replace"], (self.value, value), {})

    @property
    def flags(self) -> Any:
        """How one example lies in memory: the flags of its array."""
        return self._one().flags

    @property
    def strides(self) -> Any:
        """Steps between the elements of one example, in bytes."""
        return self._one().strides

    def _one(self) -> Any:
        array = memory(self)
        extra = array.ndim - self.ndim
        return array[(0,) * extra] if array.size else np.empty(self.shape, array.dtype)

    def __array__(self, *args: Any, **options: Any) -> Any:
        frame = outside(sys._getframe(1))
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_NUMPY):
            frame = outside(frame.f_back)  # NumPy asked, for an operation of ours
        raise TracingError(
            "vmap: this operation reads the elements of a tensor, which differ between the "
            "examples of the batch inside a transform: use other operations, or call it outside "
            f"of vmap{at(resolve(frame.f_code, frame.f_lasti))}"
        )

    min = max = all = any = item = tolist = astype = __array__

    def reshape(self, shape: Any) -> Any:
        """As of an array."""
        return reshape(self, shape=tuple(shape))

    def __bool__(self) -> bool:
        raise TracingError(with_site(CONTROL_FLOW))

    def __repr__(self) -> str:
        return f"Batched(level={self.level}, {self.batch_size} x {list(self.shape)}, {self.dtype})"


class Shared(Operators):
    """A value of a `vmap` level that is the same in every example, as a payload."""

    __slots__ = ("value", "level")

    def __init__(self, value: Tensor, level: int) -> None:
        self.value = value
        self.level = level

    @property
    def shape(self) -> Shape:
        """The shape."""
        found: Shape = tuple(self.value._data.shape)
        return found

    @property
    def ndim(self) -> int:
        """The number of dims."""
        found: int = self.value._data.ndim
        return found

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return self.value._data.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def flags(self) -> Any:
        """How the value lies in memory."""
        return self.value._data.flags

    @property
    def strides(self) -> Any:
        """Steps between elements, in bytes."""
        return self.value._data.strides

    def overwrite(self, result: Any) -> None:
        """Store a result that is the same in every example too; see `widen` for others."""
        value = result.value if type(result) is Shared and result.level == self.level else result
        value = held(value)
        if value._data.dtype != self.dtype:
            value = cast(value, dtype=self.dtype)
        apply_inplace(REGISTRY["replace"], (self.value, value), {})

    def __array__(self, *args: Any, **options: Any) -> Any:
        return self.value._data.__array__(*args, **options)

    def reshape(self, shape: Any) -> Any:
        """As of an array."""
        return reshape(self, shape=tuple(shape))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Shared(level={self.level}, {self.value!r})"


CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. "
    "Inside a transform its value differs between the examples of the batch: use torch.where"
)


def held(value: Any) -> Tensor:
    """A result of a batching rule as what a `Batched` holds."""
    return value if isinstance(value, Tensor) else wrap(as_payload(value))


def bare(values: list[Any]) -> tuple[list[Any], bool]:
    """Payloads instead of the Tensors, if nothing records them, and whether all are plain arrays.

    Rules run faster without the work that a Tensor costs.  What is recorded, at whatever level,
    stays with its Tensor, whose counter tells of changes.
    """
    found = []
    plain = True
    for v in values:
        if isinstance(v, Tensor):
            p = v._data
            if v._requires_grad:
                return values, False
            if type(p) is not np.ndarray:
                if recorded_outside(p):
                    return values, False
                plain = False
            v = p
        elif type(v) in INTERPRETERS:
            plain = False
        found.append(v)
    return found, plain


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
    level = max(a.level for a in args if type(a) is Batched or type(a) is Shared)
    values: list[Any] = []
    batched = []
    size = -1
    for a in args:
        mapped = type(a) is Batched and a.level == level
        batched.append(mapped)
        if mapped:
            size = a.value._data.shape[0]
            values.append(a.value)
        else:
            values.append(a.value if type(a) is Shared and a.level == level else a)
    plain = False
    if not primitive.view and primitive.batch != "view_write":
        values, plain = bare(values)  # a view is made from the Tensor, which knows its base
    kind: Any = Batched
    if size < 0:
        kind = Shared
        call = quiet.run if plain else operator.call
        result = call(primitive, *values, **params)
    elif plain:
        result = quiet.run(run_rule, primitive, size, values, tuple(batched), params)
    else:
        result = run_rule(primitive, size, values, tuple(batched), params)
    if isinstance(result, tuple):
        return tuple(kind(held(r), level) for r in result)
    return kind(held(result), level)


def run_rule(
    primitive: Primitive, size: int, values: list[Any], batched: tuple[bool, ...], params: Params
) -> Any:
    """What the batching rule of a primitive gives for values with their batch axis in front."""
    rule: Any = BY_NAME.get(primitive.name) or primitive.batch or _each
    if isinstance(rule, str):
        rule = BY_KIND[rule]
    elif rule not in _GENERAL:
        if "batched" in rule.__code__.co_varnames:  # it asks which values are batches
            params = {**params, "batched": batched}
        return rule(size, *values, **params)
    return rule(primitive, size, values, batched, params)


def _each(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    """One call per example, for a primitive without a rule."""
    site = here(2)
    warnings.warn_explicit(
        "There is a performance drop because we have not yet implemented the batching rule for "
        f"{p.name}: it runs once for each example. Give the primitive a rule (batch=...)"
        f"\n  at {site}",
        UserWarning, site.file, site.line,
    )  # fmt: skip
    if not size:
        raise UnsupportedError(
            with_site(
                f"vmap: {p.name} has no batching rule, and a batch of no examples does not show "
                "the shape of its result"
            )
        )
    found = [
        p(*(v[i, ...] if b else v for v, b in zip(values, batched, strict=True)), **params)
        for i in range(size)
    ]
    if isinstance(found[0], tuple):
        return tuple(stack(*parts, axis=0) for parts in zip(*found, strict=True))
    return stack(*found, axis=0)


def _elementwise(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    ndim = max(example_ndim(v, b) for v, b in zip(values, batched, strict=True))
    return p(*(aligned(v, b, ndim) for v, b in zip(values, batched, strict=True)), **params)


def _reduction(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    axis = tuple(a + 1 for a in params["axis"])
    return p(*values, **{**params, "axis": axis})


def _prod(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    """A product of all elements becomes one along one axis: its derivative knows no others."""
    x, axis = values[0], params["axis"]
    shape = shape_of(x)
    if not axis:
        return clone(x)
    if len(axis) == 1:
        return _reduction(p, size, values, batched, params)
    flat = p(reshape(x, shape=(size, math.prod(shape[1:]))), axis=(1,), keepdims=False)
    return reshape(flat, shape=(size, *(1,) * len(axis))) if params["keepdims"] else flat


def _reshape(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    return p(*values, **{**params, "shape": (size, *params["shape"])})


def _broadcast(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    value = aligned(values[0], True, len(params["shape"]))
    return p(value, **{**params, "shape": (size, *params["shape"])})


def _axes(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    axis = params["axis"]
    x = values[0]
    if axis is None:  # of all elements
        flat = reshape(x, shape=(size, math.prod(shape_of(x)[1:])))
        out = p(flat, **{**params, "axis": 1, "keepdims": False})
        kept = params["keepdims"]
        return reshape(out, shape=(size, *(1,) * (len(shape_of(x)) - 1))) if kept else out
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


def _view_write(p: Primitive, size: int, values: Any, batched: Any, params: Params) -> Any:
    """A copy of the base, written through the views of it that the chain makes."""
    base, value = (
        v if b else broadcast_to(v, shape=(size, *shape_of(v)))
        for v, b in zip(values, batched, strict=True)
    )
    out = held(clone(base))
    place = apply_chain(Batched(out, 0), params["chain"]).value
    apply_inplace(REGISTRY["replace"], (place, held(value)), {})
    return out


BY_KIND: dict[str, Any] = {
    "elementwise": _elementwise, "leading": _elementwise, "reduction": _reduction,
    "reshape": _reshape, "broadcast": _broadcast, "axes": _axes, "join": _join,
    "view_write": _view_write,
}  # fmt: skip
BY_NAME: dict[str, Any] = {"prod": _prod}
_GENERAL = {_each, *BY_KIND.values(), *BY_NAME.values()}


# ---------------------------------------------------------------- in and out of a level
def to_batch(tensor: Tensor, dim: int, level: Level) -> Tensor:
    """A Tensor that stands for one slice of `tensor` along `dim`."""
    value = tensor
    if dim:
        rest = tuple(i for i in range(tensor.ndim) if i != dim)
        value = permute(tensor, perm=(dim, *rest))
    out = wrap(Batched(value, level.number))
    out._counter = counter_of(value)  # one memory: a change through either counts for both
    return out


def unbatch(result: Tensor, level: Level, dim: int) -> Tensor:
    """The batch that a result of this level stands for, with its axis at `dim`."""
    payload = result._data
    if type(payload) is Batched and payload.level == level.number:
        out = payload.value
    else:  # it does not depend on the mapped inputs
        one = outer(result, level.number)
        out = broadcast_to(one, shape=(level.size, *shape_of(one)))
    ndim = len(shape_of(out))
    if not -ndim <= dim < ndim:
        raise DimensionError(
            with_site(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but "
                f"got {dim}): out_dims of vmap"
            )
        )
    dim %= ndim
    if dim == 0:
        return out
    perm = list(range(1, ndim))
    perm.insert(dim, 0)
    return permute(out, perm=tuple(perm))


def outer(tensor: Tensor, level: int) -> Tensor:
    """What a tensor is outside of a level in which it is the same in every example."""
    payload = tensor._data
    return payload.value if type(payload) is Shared and payload.level == level else tensor


def mapped_like(source: Any, tensor: Tensor) -> Tensor:
    """A tensor as a value of every `vmap` level of `source`, mapped where that is mapped.

    What `zeros_like(x)` makes can then be written to, with values that differ between examples.
    The tensor itself where it is so already; a copy where it becomes a batch.
    source: a Tensor or a payload; of a dual its primal counts.
    """
    payload = getattr(source, "_data", source)
    kind = type(payload)
    if kind is not Batched and kind is not Shared:
        inner = getattr(payload, "primal", None)
        return tensor if inner is None else mapped_like(inner, tensor)
    if kind is Batched:
        tensor = outer(tensor, payload.level)
    mine = tensor._data
    if hasattr(mine, "over") and mine.level > payload.level:  # a dual of the inside
        value = mapped_like(payload, mine.primal)
        return tensor if value is mine.primal else wrap(mine.over(value))
    if level_of(mine) >= payload.level:
        rest = payload.value if mine.level == payload.level else payload
        value = mapped_like(rest, mine.value)
        return tensor if value is mine.value else wrap(type(mine)(value, mine.level))
    value = tensor
    if kind is Batched:
        shape = (payload.batch_size, *shape_of(tensor))
        value = held(clone(broadcast_to(tensor, shape=shape)))
    return wrap(kind(mapped_like(payload.value, value), payload.level))


def widen(target: Tensor, payloads: list[Any]) -> None:
    """Before a write: what was made inside a `vmap` may come to differ between its examples.

    Such a tensor, its base and all views become batches where what is written is one: what a
    constructor made (where PyTorch refuses the write), and what was computed from a `Shared`.
    """
    base, views = family(target)
    born = base._rare.born if base._rare is not None and not base._requires_grad else 0
    if max(map(tape_level, payloads)) > max(born, tape_level(base._data)):
        return  # mapped by a `vmap` that began later: refused by the caller
    wide = same = wrap(base._data)
    wide._counter = counter_of(base)
    for p in payloads:
        wide = mapped_like(p, wide)
    if wide is not same:
        base._data = wide._data
        for view in views:
            view._data = apply_chain(wide, view._rare.chain)._data  # type: ignore[union-attr]


ADOPT.append(widen)


def by_example(x: Tensor, find: Callable[[Any, int], Any], axis: int) -> Tensor:
    """The indices that `find(array, axis)` gives, of each example where `x` is mapped."""
    payload = x._data
    if type(payload) is Batched:
        return wrap(Batched(by_example(payload.value, find, axis + 1), payload.level))
    if type(payload) is Shared:
        return wrap(Shared(by_example(payload.value, find, axis), payload.level))
    if hasattr(payload, "primal"):  # where the elements are does not change along a direction
        return by_example(payload.primal, find, axis)
    return wrap(np.asarray(find(payload, axis), order="C"))


register_interpreter(Batched, lambda value: value.level, call_batched)
register_interpreter(Shared, lambda value: value.level, call_batched)

__all__ = [
    "CONTROL_FLOW", "Batched", "Level", "Shared", "by_example", "mapped_like", "memory",
    "new_level", "outer", "to_batch", "unbatch",
]  # fmt: skip
