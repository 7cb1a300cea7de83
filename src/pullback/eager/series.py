"""The payload of Taylor mode (layer 3): a value along a curve, as a truncated power series.

`x(t) = c_0 + c_1 t + ... + c_n t^n`; the coefficients are Tensors of the level below, None for
zero.  Linear primitives work on each coefficient, products by convolution, and a quotient by the
recurrence that solves `y b = a`.  Every other primitive follows from its jvp rule: `y' = R(x', x,
y)` along the curve, and the coefficient k of y needs R only up to k - 1.  R is therefore evaluated
once, on series whose coefficients are worked out when they are asked for; where it leads back to a
value that is being worked out (sin -> cos -> sin, exp -> exp) that one is taken.  The cost is
polynomial in the order, where nested jvp doubles with each.  (Griewank and Walther, Evaluating
Derivatives, ch. 13.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.dispatch import register_interpreter
from pullback.core.primitive import REGISTRY, Primitive
from pullback.eager.apply import level_of
from pullback.eager.batched import LEVELS, held
from pullback.eager.dual import ForwardLevel, Moving, fitted, rank, tangent_of
from pullback.eager.tensor import Tensor, counter_of, wrap
from pullback.ops.broadcast import zeros_like
from pullback.typing import Params

Coefficients = list[Tensor | None]


class SeriesLevel(ForwardLevel):
    """One expansion in progress."""

    __slots__ = ("order", "begun")

    def __init__(self, order: int) -> None:
        super().__init__()
        self.order = order
        # the primitive at work and all that its rule leads to: (call -> result, arguments)
        self.begun: dict[Any, Any] | None = None


class Series(Moving):
    """A truncated power series, as a payload."""

    __slots__ = ("known", "more", "owner", "number", "__weakref__")
    owner: SeriesLevel

    def __init__(
        self, known: Coefficients, owner: SeriesLevel, number: int,
        more: Callable[[int], Tensor | None] | None = None,
    ) -> None:  # fmt: skip
        self.known = known
        self.more = more  # gives the coefficients that are not known yet, in order
        self.owner = owner
        self.number = number
        owner.members.add(self)

    @property
    def primal(self) -> Tensor:  # type: ignore[override]
        """The value at t = 0."""
        found = self.known[0]
        assert found is not None
        return found

    @property
    def parts(self) -> tuple[Tensor | None, ...]:
        """All coefficients."""
        return tuple(self.coefficient(k) for k in range(self.owner.order + 1))

    def coefficient(self, k: int) -> Tensor | None:
        """That of t^k."""
        known = self.known
        if self.more is not None:
            while len(known) <= k:
                known.append(self.more(len(known)))
        return known[k] if k < len(known) else None

    @property
    def is_constant(self) -> bool:
        """Whether it is known not to move."""
        return self.more is None and not any(c is not None for c in self.known[1:])

    def made_of(self, parts: Sequence[Tensor | None]) -> Series:
        """Another one of its level."""
        return Series(list(parts), self.owner, self.number)

    def hold(self, parts: Sequence[Tensor | None]) -> None:
        """Be made of these."""
        self.known, self.more = list(parts), None

    def close(self) -> None:
        """Its level ends: nothing moves, and the value keeps no history of its own."""
        del self.known[1:]
        self.more = None
        if self.primal._requires_grad:
            self.known[0] = wrap(self.primal._data)

    def __repr__(self) -> str:
        return f"Series(level={self.level}, {self.known})"


def call_series(primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
    """Run a primitive on values along the curve."""
    args = tuple(a.primal._data if type(a) is Series and not a.level else a for a in args)
    top: Series | None = None
    for a in args:
        if type(a) is Series and (top is None or a.number > top.number):
            top = a
    if top is None:
        return primitive(*args, **params)
    level = top.owner
    begun = level.begun
    if begun is not None:
        key = _key(primitive, args, params)
        if key in begun:
            return begun[key][0]
        result = _started(primitive, args, params, top)
        begun[key] = result, args  # the arguments live on: their ids stand in the key
        return result
    level.begun = {}
    try:
        result = _started(primitive, args, params, top)
        level.begun[_key(primitive, args, params)] = result, args
        for out in result if isinstance(result, tuple) else (result,):
            if type(out) is Series:
                out.hold(out.parts)
    finally:
        for found, _ in level.begun.values():  # what they lead to leads back: leave no cycle
            for out in found if isinstance(found, tuple) else (found,):
                if type(out) is Series:
                    out.more = None
        level.begun = None
    return result


def _key(primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
    numbers = (bool, int, float, complex)
    known = tuple((type(a), a) if isinstance(a, numbers) else id(a) for a in args)
    return primitive.name, known, repr(sorted(params.items())) if params else ""


def _started(primitive: Primitive, args: tuple[Any, ...], params: Params, top: Series) -> Any:
    """The result with its first coefficient; the others come when they are asked for."""
    mine = [type(a) is Series and a.number == top.number for a in args]
    primals = [a.primal if m else a for a, m in zip(args, mine, strict=True)]
    result = primitive(*primals, **params)
    if not primitive.differentiable:
        return _bare(result)
    moving = [m and not a.is_constant for a, m in zip(args, mine, strict=True)]
    outs = result if isinstance(result, tuple) else (result,)
    found: list[Any] = []
    for k, r in enumerate(outs):
        value = held(r)
        fixed = value._data.dtype.kind not in "fc" or k in primitive.nondifferentiable
        found.append(value._data if fixed else Series([value], top.owner, top.number))
    if any(moving):
        rule = _rule_of(primitive, args, mine, moving, params, found, top)
        for k, out in enumerate(found):
            if type(out) is Series:
                out.more = rule(k)
    return tuple(found) if isinstance(result, tuple) else found[0]


def _bare(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_bare, result))
    return result._data if isinstance(result, Tensor) else result


def _rule_of(
    p: Primitive, args: tuple[Any, ...], mine: list[bool], moving: list[bool], params: Params,
    outs: list[Any], top: Series,
) -> Callable[[int], Callable[[int], Tensor | None]]:  # fmt: skip
    """output number -> what gives its coefficients from 1 on."""
    if _is_linear(p, moving):
        made = _coefficientwise(p, args, mine, moving, params)
    elif p.jvp in ("bilinear", "multilinear") or p.name == "mul":
        made = _convolution(p, args, mine, params)
    elif p.name == "square":
        made = _convolution(REGISTRY["mul"], args * 2, mine * 2, params)
    elif p.name == "div":
        made = _quotient(args, mine, outs[0])
    elif p.name == "reciprocal":
        made = _quotient((1.0, *args), [False, *mine], outs[0])
    else:
        return _from_jvp(p, args, mine, moving, params, outs, top)

    shared: dict[int, Any] = {}  # of several outputs: order -> all of them

    def rule(number: int) -> Callable[[int], Tensor | None]:
        def more(k: int) -> Tensor | None:
            if p.outputs == 1:
                found = made(k)
            else:
                if k not in shared:
                    shared[k] = made(k)
                found = shared[k] and shared[k][number]
            return None if found is None else fitted(held(found), outs[number].primal)

        return more

    return rule


def _is_linear(p: Primitive, moving: list[bool]) -> bool:
    """Whether the derivative in the inputs that move depends on none of them."""
    if p.jvp == "linear":
        return True
    if not isinstance(p.jvp, dict) or p.variadic:
        return False
    rules = [p.jvp.get(name) for name, m in zip(p.inputs, moving, strict=True) if m]
    values = {n for n, m in zip(p.inputs, moving, strict=True) if m} | set(p.output_names)
    return all(rule is None or values.isdisjoint(rule.names) for rule in rules)


def _coefficientwise(
    p: Primitive, args: tuple[Any, ...], mine: list[bool], moving: list[bool], params: Params
) -> Callable[[int], Any]:
    primals = [a.primal if m else a for a, m in zip(args, mine, strict=True)]

    def made(k: int) -> Any:
        parts = [a.coefficient(k) if m else None for a, m in zip(args, moving, strict=True)]
        if all(c is None for c in parts):
            return None
        return tangent_of(p, primals, parts, params, None)

    return made


def _convolution(
    p: Primitive, args: tuple[Any, ...], mine: list[bool], params: Params
) -> Callable[[int], Any]:
    def made(k: int) -> Any:
        total: Any = None
        for orders in _compositions(k, mine):
            parts = [
                a.coefficient(j) if m else a for a, m, j in zip(args, mine, orders, strict=True)
            ]
            if any(c is None for c in parts):
                continue
            term = p(*parts, **params)
            total = term if total is None else total + term
        return total

    return made


def _compositions(k: int, mine: list[bool]) -> list[tuple[int, ...]]:
    """All ways to share out the order k among the inputs that move."""
    if not mine:
        return [()] if k == 0 else []
    shares = range(k + 1) if mine[0] else (0,)
    return [(j, *rest) for j in shares for rest in _compositions(k - j, mine[1:])]


def _quotient(args: tuple[Any, ...], mine: list[bool], out: Series) -> Callable[[int], Any]:
    """From y b = a: y_k = (a_k - sum of y_j b_(k-j) over j < k) / b_0."""
    (a, b), (of_a, of_b) = args, mine
    first = b.primal if of_b else b

    def made(k: int) -> Any:
        total = a.coefficient(k) if of_a else None
        for j in range(k if of_b else 0):
            y, c = out.coefficient(j), b.coefficient(k - j)
            if y is not None and c is not None:
                term = REGISTRY["mul"](y, c)
                total = -term if total is None else total - term
        return None if total is None else REGISTRY["div"](total, first)

    return made


def _from_jvp(
    p: Primitive, args: tuple[Any, ...], mine: list[bool], moving: list[bool], params: Params,
    outs: list[Any], top: Series,
) -> Callable[[int], Callable[[int], Tensor | None]]:  # fmt: skip
    """By the jvp rule: k y_k is the coefficient k - 1 of R(x', x, y)."""
    slopes: list[Any] = []

    def evaluated() -> list[Any]:
        if not slopes:
            tangents = [_slope(a) if m else None for a, m in zip(args, moving, strict=True)]
            out = outs[0] if p.outputs == 1 else tuple(outs)
            found = tangent_of(p, list(args), tangents, params, out)
            if p.outputs == 1:
                found = (found,)
            slopes.extend([None] * len(outs) if found is None else found)
        return slopes

    def rule(number: int) -> Callable[[int], Tensor | None]:
        def more(k: int) -> Tensor | None:
            slope = evaluated()[number]
            slope = getattr(slope, "_data", slope)
            if type(slope) is Series and slope.number == top.number:
                found = slope.coefficient(k - 1)
            else:
                found = None if slope is None or k > 1 else held(slope)
            if found is None:
                return None
            found = fitted(found, outs[number].primal)
            return held(REGISTRY["div"](found, float(k))) if k > 1 else found

        return more

    return rule


def _slope(x: Series) -> Series:
    """The derivative of a series along the curve."""
    begun = x.owner.begun
    assert begun is not None
    key = ("slope", id(x))
    if key not in begun:

        def more(k: int) -> Tensor | None:
            found = x.coefficient(k + 1)
            if found is None or k == 0:
                return found
            return held(REGISTRY["mul"](found, float(k + 1)))

        first = more(0)
        if first is None:  # a series has a first coefficient, zero or not
            first = wrap(zeros_like(x.primal))
        begun[key] = Series([first], x.owner, x.number, more), (x,)
    found: Series = begun[key][0]
    return found


# ---------------------------------------------------------------- in and out of a level
def expand(value: Tensor, direction: Tensor, owner: SeriesLevel) -> Tensor:
    """`value + t direction`, over the memory of `value`."""
    above = max(level_of(value._data), level_of(direction._data))
    mapped = LEVELS.get()
    if mapped:
        above = max(above, mapped[-1].number)
    out = wrap(Series([value, direction], owner, owner.number_above(above)))
    out._counter = counter_of(value)
    return out


def derivatives(tensor: Tensor, owner: SeriesLevel) -> list[Tensor]:
    """The derivatives of a result in t, at t = 0: the value first."""
    payload = tensor._data
    parts: tuple[Tensor | None, ...] = (tensor,)
    if type(payload) is Series and payload.owner is owner:
        parts = payload.parts
    found = []
    for k in range(owner.order + 1):
        part = parts[k] if k < len(parts) else None
        if part is None:
            part = wrap(zeros_like(tensor))
        elif k > 1:
            part = held(REGISTRY["mul"](part, float(math.factorial(k))))
        found.append(part)
    return found


register_interpreter(Series, rank, call_series)
