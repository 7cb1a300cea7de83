"""The payload of forward mode (layer 3): a value together with its tangent.

Primal and tangent are Tensors of the level below: what is done with them is recorded there, which
is how a derivative of a tangent is had.  The Tensor around a `Dual` may be recorded too (forward
over reverse): its node keeps Duals, and the gradients that its backward computes carry tangents.

A level is one forward differentiation in progress; levels are numbered with those of `vmap`, so
that the innermost transform always acts first and perturbations of two levels never mix.  When a
level ends, its Duals lose their tangents and count as their primal values.
"""

from __future__ import annotations

import contextvars
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.dispatch import register_interpreter
from pullback.core.primitive import REGISTRY, Primitive, RuleSpec
from pullback.core.quiet import quiet
from pullback.eager import inplace
from pullback.eager.apply import level_of, record, tape_level
from pullback.eager.batched import LEVELS, Batched, Shared, bare, held, mapped_like, next_level
from pullback.eager.tensor import Tensor, counter_of, wrap
from pullback.eager.view import apply_chain, family, memory
from pullback.errors import ArgumentRuntimeError, UnsupportedError
from pullback.ops.broadcast import broadcast_to, cast, shape_of, zeros_like
from pullback.ops.movement import alias
from pullback.ops.operators import Operators
from pullback.typing import Params, Shape


class ForwardLevel:
    """One forward differentiation in progress.

    Its duals have more than one number where some are made inside a `vmap` that began later: each
    number is above those of what the dual is made of.
    """

    __slots__ = ("number", "numbers", "members", "depth", "ended")

    def __init__(self, depth: int = 0) -> None:
        self.number = next_level()
        self.numbers: dict[int, int] = {}  # above which level -> number
        self.depth = depth  # among the levels that `dual_level` made
        self.members: weakref.WeakSet[Any] = weakref.WeakSet()
        self.ended = False

    def number_above(self, level: int) -> int:
        """The number of duals that are made of values of `level`."""
        if self.number > level:
            return self.number
        found = self.numbers.get(level)
        if found is None:
            found = self.numbers[level] = next_level()
        return found

    def end(self) -> None:
        """Drop all tangents; primal values keep no history of their own."""
        self.ended = True
        for value in list(self.members):
            value.close()


FORWARD_LEVELS: contextvars.ContextVar[tuple[ForwardLevel, ...]] = contextvars.ContextVar(
    "forward_levels", default=()
)


class Moving(Operators):
    """What the payloads of forward mode share: a primal, and how it changes along a direction."""

    __slots__ = ()

    primal: Tensor
    owner: ForwardLevel
    number: int

    @property
    def parts(self) -> tuple[Tensor | None, ...]:
        """Everything it is made of: the primal first; None for what is zero."""
        raise NotImplementedError

    def made_of(self, parts: Sequence[Tensor | None]) -> Any:
        """Another one of its level."""
        raise NotImplementedError

    def hold(self, parts: Sequence[Tensor | None]) -> None:
        """Be made of these."""
        raise NotImplementedError

    def close(self) -> None:
        """Its level ends: nothing moves, and the primal keeps no history of its own."""
        primal = wrap(self.primal._data) if self.primal._requires_grad else self.primal
        self.hold((primal, *(None for _ in self.parts[1:])))

    def overwrite(self, result: Any) -> None:
        """Store a result, with how it moves, in the memory of all parts."""
        replace = REGISTRY["replace"]
        mine = type(result) is type(self) and result.level == self.level and self.level
        first, *rest = result.parts if mine else (held(result),)
        if first._data.dtype != self.dtype:
            first = cast(first, dtype=self.dtype)
        inplace.apply_inplace(replace, (self.primal, first), {})
        moved: list[Tensor | None] = []
        for k, part in enumerate(self.parts[1:]):
            value = rest[k] if rest else None
            if value is not None:
                value = fitted(value, first)
            if part is None:  # nobody else shows this memory: see `adopt`
                moved.append(None if value is None else value + 0)
                continue
            value = held(zeros_like(first)) if value is None else value
            inplace.apply_inplace(replace, (part, value), {})
            moved.append(part)
        self.hold((self.primal, *moved))

    @property
    def level(self) -> int:
        """The number of its level; 0 once that has ended."""
        return 0 if self.owner.ended else self.number

    @property
    def value(self) -> Tensor:
        """What holds the memory: the primal."""
        return self.primal

    @property
    def tape_level(self) -> int:
        """The innermost `vmap` that it belongs to; 0 for none."""
        return tape_level(self.primal._data)

    @property
    def shape(self) -> Shape:
        """The shape."""
        found: Shape = tuple(self.primal._data.shape)
        return found

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return self.primal._data.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.primal._data.size)

    @property
    def flags(self) -> Any:
        """How the primal lies in memory."""
        return self.primal._data.flags

    @property
    def strides(self) -> Any:
        """Steps between elements of the primal, in bytes."""
        return self.primal._data.strides

    def over(self, primal: Tensor) -> Any:
        """Another primal of equal value that changes alike."""
        return self.made_of((primal, *self.parts[1:]))

    def constant(self, tensor: Tensor) -> Any:
        """A Tensor of a lower level, as one of this level that does not change."""
        return self.made_of((tensor, *(None for _ in self.parts[1:])))

    def __array__(self, *args: Any, **options: Any) -> Any:
        return np.asarray(memory(self), *args, **options)

    def reshape(self, shape: Any) -> Any:
        """As of an array."""
        return REGISTRY["reshape"](self, shape=tuple(shape))

    def __bool__(self) -> bool:
        return bool(self.primal)


class Dual(Moving):
    """A primal value and its tangent (None: zero), as a payload."""

    __slots__ = ("primal", "tangent", "owner", "number", "__weakref__")

    def __init__(
        self, primal: Tensor, tangent: Tensor | None, owner: ForwardLevel, number: int
    ) -> None:
        self.primal = primal
        self.tangent = tangent
        self.owner = owner
        self.number = number
        owner.members.add(self)

    @property
    def parts(self) -> tuple[Tensor | None, ...]:
        """Everything it is made of."""
        return self.primal, self.tangent

    def made_of(self, parts: Sequence[Tensor | None]) -> Dual:
        """Another one of its level."""
        primal, tangent = parts
        assert primal is not None
        return Dual(primal, tangent, self.owner, self.number)

    def hold(self, parts: Sequence[Tensor | None]) -> None:
        """Be made of these."""
        primal, self.tangent = parts
        assert primal is not None
        self.primal = primal

    def __repr__(self) -> str:
        return f"Dual(level={self.level}, {self.primal!r}, tangent={self.tangent!r})"


def fitted(tangent: Tensor, primal: Any) -> Tensor:
    """A tangent in the shape and dtype of its primal."""
    if shape_of(tangent) != shape_of(primal):
        tangent = broadcast_to(tangent, shape=shape_of(primal))
    if tangent._data.dtype != primal._data.dtype:
        tangent = cast(tangent, dtype=primal._data.dtype)
    return tangent


# ---------------------------------------------------------------- running a primitive
def call_dual(primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
    """Run a primitive on primals, and its derivative on tangents."""
    args = tuple(a.primal._data if type(a) is Dual and not a.level else a for a in args)
    duals = [a for a in args if type(a) is Dual]
    if not duals:
        return primitive(*args, **params)
    top = max(duals, key=lambda d: d.number)
    primals: list[Any] = []
    tangents: list[Any] = []
    for a in args:
        mine = type(a) is Dual and a.number == top.number
        primals.append(a.primal if mine else a)
        tangents.append(a.tangent if mine else None)
    plain = False
    if not primitive.view:  # a view is made from the Tensor, which knows its base
        both = [*primals, *tangents]
        values, plain = bare(both)
        if not plain:  # an array beside values of a transform would warn like NumPy's
            values = [a if type(v) is np.ndarray else v for a, v in zip(both, values, strict=True)]
        primals, tangents = values[: len(args)], values[len(args) :]
    if plain:  # on arrays only, with NumPy's warnings off for all of it
        result, found = quiet.run(derive, primitive, primals, tangents, params)
    else:
        result, found = derive(primitive, primals, tangents, params)
    if isinstance(result, tuple):
        return tuple(dressed(o, t, top) for o, t in zip(result, found, strict=True))
    return dressed(result, found, top)


def derive(
    primitive: Primitive, primals: list[Any], tangents: list[Any], params: Params
) -> tuple[Any, Any]:
    """The result on primals, and its tangent (None: zero); tuples for several outputs."""
    result = primitive(*primals, **params)
    if isinstance(result, tuple):
        found: Any = (None,) * len(result)
        if primitive.differentiable and any(t is not None for t in tangents):
            slopes = tangent_of(primitive, primals, tangents, params, result)
            if slopes is not None:
                found = tuple(
                    None if k in primitive.nondifferentiable else t for k, t in enumerate(slopes)
                )
        return result, found
    if primitive.differentiable and any(t is not None for t in tangents):
        return result, tangent_of(primitive, primals, tangents, params, result)
    return result, None


def dressed(result: Any, found: Any, level: Dual) -> Any:
    """A result with the tangent that a rule gave; integers have none."""
    out = held(result)
    if out._data.dtype.kind not in "fc":
        return out._data
    tangent = None if found is None else fitted(held(found), out)
    return Dual(out, tangent, level.owner, level.number)


def tangent_of(
    primitive: Primitive, primals: list[Any], tangents: list[Any], params: Params, out: Any
) -> Any:
    """The derivative along the tangents, by the primitive's jvp rule; None where it is zero."""
    rule = primitive.jvp
    if isinstance(rule, str):
        return BY_KIND[rule](primitive, primals, tangents, params)
    if isinstance(rule, dict):
        return _by_input(primitive, rule, primals, tangents, params, out)
    return rule(tangents, primals, params, out)


def _linear(p: Primitive, primals: list[Any], tangents: list[Any], params: Params) -> Any:
    """The map itself; inputs in which it is not linear (indices) stay as they are."""
    moved = []
    for i, (x, t) in enumerate(zip(primals, tangents, strict=True)):
        if t is not None:
            moved.append(t)
        elif p.joint is not None or p.variadic or p.inputs[i] in p.vjps:
            moved.append(zeros_like(x) if hasattr(x, "dtype") else 0)
        else:
            moved.append(x)
    return p(*moved, **params)


def _multilinear(p: Primitive, primals: list[Any], tangents: list[Any], params: Params) -> Any:
    """The sum over the inputs, each in turn replaced by its tangent."""
    total: Any = None
    for i, t in enumerate(tangents):
        if t is not None:
            part = p(*primals[:i], t, *primals[i + 1 :], **params)
            total = part if total is None else total + part
    return total


def _by_input(
    p: Primitive, rules: dict[str, RuleSpec], primals: list[Any], tangents: list[Any],
    params: Params, out: Any,
) -> Any:  # fmt: skip
    total: Any = None
    for i, t in enumerate(tangents):
        if t is None:
            continue
        spec = rules.get(p.inputs[0 if p.variadic else i])
        if spec is None:
            continue
        values = [_named(p, n, primals, params, out) for n in spec.names]
        part = spec.call(t, *values)
        if part is not None:
            total = part if total is None else total + part
    return total


def _named(p: Primitive, name: str, primals: list[Any], params: Params, out: Any) -> Any:
    """What a rule names, as in `Plan`."""
    if name in p.inputs:
        return tuple(primals) if p.variadic else primals[p.inputs.index(name)]
    if name in p.output_names:
        return out if p.outputs == 1 else out[p.output_names.index(name)]
    if name in params:
        return params[name]
    stem, _, suffix = name.rpartition("_")
    if suffix == "shapes":
        return tuple(shape_of(x) for x in primals)
    value = primals[p.inputs.index(stem)]
    return shape_of(value) if suffix == "shape" else getattr(value, "_data", value).dtype


BY_KIND: dict[str, Callable[..., Any]] = {
    "linear": _linear, "bilinear": _multilinear, "multilinear": _multilinear,
}  # fmt: skip


# ---------------------------------------------------------------- in and out of a level
def check_shapes(primal: Tensor, tangent: Tensor) -> None:
    """A tangent has the shape of its primal; else RuntimeError."""
    if primal._data.shape != tangent._data.shape:
        raise ArgumentRuntimeError(
            with_site(
                "Trying to set a forward gradient that has a different size than that of the "
                f"original Tensor, this is not supported. Tensor is of size {list(primal.shape)} "
                f"while the given forward gradient is of size {list(tangent.shape)}.",
                3,
            )
        )


def make(primal: Tensor, tangent: Tensor, owner: ForwardLevel, tracked: bool = True) -> Tensor:
    """A Tensor that carries a tangent, over the memory of `primal`.

    With `tracked` it hangs on the graph of `primal`, so that a backward pass gives gradients that
    carry tangents.
    """
    above = max(level_of(primal._data), level_of(tangent._data))
    mapped = LEVELS.get()
    if mapped:
        above = max(above, mapped[-1].number)
    payload = Dual(primal, tangent, owner, owner.number_above(above))
    out = wrap(payload)
    out._counter = counter_of(primal)
    if tracked and primal._requires_grad:
        plan = alias.plan(1, "ViewBackward0", 1)
        record(plan, (primal,), [payload], {}, (out,))
    return out


def split(tensor: Tensor, owner: ForwardLevel) -> tuple[Tensor, Tensor | None]:
    """The primal of a Tensor and its tangent at a level."""
    payload = tensor._data
    if type(payload) is Batched or type(payload) is Shared:
        return split_batch(tensor, payload, owner)
    if not isinstance(payload, Moving) or not payload.level:
        return tensor, None
    if type(payload) is not Dual:
        if any(part is not None and split(part, owner)[1] is not None for part in payload.parts):
            raise UnsupportedError(
                with_site(
                    "unpack_dual inside taylor, of a tangent from outside: open the level inside, "
                    "or use func.jvp of the whole of taylor"
                )
            )
        return tensor, None
    primal, slope = split(payload.primal, owner)
    direction, bend = (None, None) if payload.tangent is None else split(payload.tangent, owner)
    if payload.owner is owner:  # twice where it was made outside of a `vmap` and used inside
        if slope is None or direction is None:
            return primal, direction if slope is None else slope
        return primal, slope + direction
    if slope is None and bend is None:
        return tensor, None
    value = wrap(Dual(primal, direction, payload.owner, payload.number))
    base = held(zeros_like(primal)) if slope is None else slope
    return value, wrap(Dual(base, bend, payload.owner, payload.number))


def split_batch(
    tensor: Tensor, payload: Batched | Shared, owner: ForwardLevel
) -> tuple[Tensor, Tensor | None]:
    """As `split`, of one example of a batch that carries tangents from outside the `vmap`."""
    primal, tangent = split(payload.value, owner)
    if tangent is None:
        return tensor, None
    if tensor._requires_grad:
        raise UnsupportedError(
            with_site(
                "unpack_dual inside vmap of a tensor that requires grad, whose tangent comes from "
                "outside of the vmap: open the dual level inside, or use func.jvp"
            )
        )
    kind = type(payload)
    return wrap(kind(primal, payload.level)), wrap(kind(tangent, payload.level))


def adopt(target: Tensor, payloads: list[Any]) -> None:
    """Before a write: let the target, its base and all views be able to change as what is written.

    A tangent of theirs becomes a batch where what is written differs between examples.
    """
    top: Moving | None = None
    for p in payloads:
        if isinstance(p, Moving) and any(c is not None for c in p.parts[1:]):
            top = p if top is None or p.level > top.level else top
    if top is None or not top.level:
        return
    if tape_level(payloads[0]) < top.tape_level or level_of(payloads[0]) > top.level:
        return  # refused by the caller
    base, views = family(target)
    if isinstance(base._data, Moving) and base._data.level == top.level:
        inner, slopes = base._data.primal, base._data.parts[1:]
    else:
        inner, slopes = wrap(base._data), (None,) * len(top.parts[1:])
        inner._counter = counter_of(base)
        if not base.is_leaf:  # a leaf is written under no_grad
            inner._requires_grad, inner._edge = base._requires_grad, base._edge
    sources: list[Any] = []
    for p in payloads:
        sources += p.parts if isinstance(p, Moving) and p.level == top.level else (p,)
    wide = [wrap(zeros_like(inner)) if slope is None else slope for slope in slopes]
    for source in sources:
        wide = [mapped_like(source, w) for w in wide]
    if all(w is slope for w, slope in zip(wide, slopes, strict=True)):
        return
    base._data = top.made_of((inner, *wide))
    for view in views:
        chain = view._rare.chain  # type: ignore[union-attr]
        view._data = top.made_of([apply_chain(part, chain) for part in (inner, *wide)])


inplace.ADOPT.append(adopt)


def rank(value: Moving) -> float:
    """Its level; of an ended one just above what it stands for."""
    return value.level or level_of(value.primal._data) + 0.05


register_interpreter(Dual, rank, call_dual)
