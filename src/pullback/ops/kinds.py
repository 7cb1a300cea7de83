"""How primitives are declared (layer 2): four kinds, each deriving what its rule implies.

`elementwise`  a function of corresponding elements: give partial derivatives (or vjps by hand)
`linear`       linear in the listed inputs: give the transposes; the derivative is the map itself
`bilinear`     linear in each of two inputs: give both transposes
`general`      everything else: give vjps (or one joint rule) and jvps by hand

A rule is a plain function whose parameters name what it needs: the cotangent `g` (a tangent `t` in
a jvp) first, then inputs, `<input>_shape`, `<input>_dtype`, `out`, and keyword parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.primitive import Primitive, RuleSpec, rule_spec, signature
from pullback.typing import Rule

Forward = Callable[..., Any]


def conj(value: Any) -> Any:
    """The complex conjugate of a value of any kind; a real value itself."""
    if type(value) is np.ndarray:
        return value.conj() if value.dtype.kind == "c" else value
    if isinstance(value, (int, float, np.generic)):
        return value.conjugate()
    if isinstance(value, complex):
        return value.conjugate()
    data = getattr(value, "_data", value)
    return conj_primitive(value) if data.dtype.kind == "c" else value


def _vjp_of_partial(partial: Any) -> RuleSpec:
    """g * conj(partial); a partial that is the number 1 or -1 costs no multiplication."""
    if partial == 1:
        return RuleSpec(lambda g: g, ())
    if partial == -1:
        return RuleSpec(lambda g: -g, ())
    names = partial.__code__.co_varnames[: partial.__code__.co_argcount]
    if len(names) == 1:
        return RuleSpec(lambda g, s: g * conj(partial(s)), names)
    return RuleSpec(lambda g, *s: g * conj(partial(*s)), names)


def _jvp_of_partial(partial: Any) -> RuleSpec:
    if partial == 1:
        return RuleSpec(lambda t: t, ())
    if partial == -1:
        return RuleSpec(lambda t: -t, ())
    names = partial.__code__.co_varnames[: partial.__code__.co_argcount]
    return RuleSpec(lambda t, *s: t * partial(*s), names)


def elementwise(
    name: str,
    forward: Forward,
    *,
    partials: dict[str, Any] | None = None,
    vjp: dict[str, Rule] | None = None,
    jvp: dict[str, Rule] | None = None,
    promotion: str | None = "arithmetic",
    emit: Rule | None = None,
    inputs: tuple[str, ...] | None = None,
    node_name: str | None = None,
    reference: str | None = None,
    doc: str = "",
    **more: Any,
) -> Primitive:
    """A function of corresponding elements, with broadcasting.

    `partials` gives d out / d input for each input; vjp and jvp are derived from them.  Where a
    partial cannot express the rule without inf * 0 (a selection), give `vjp` and `jvp` by hand.
    """
    names, params, _ = signature(forward)
    vjps = {k: _vjp_of_partial(p) for k, p in (partials or {}).items()}
    vjps.update({k: rule_spec(r) for k, r in (vjp or {}).items()})
    jvps = {k: _jvp_of_partial(p) for k, p in (partials or {}).items()}
    jvps.update({k: rule_spec(r) for k, r in (jvp or {}).items()})
    return Primitive(
        name, forward, kind="elementwise", inputs=inputs or names, params=params, vjps=vjps,
        jvp=jvps or None, batch="elementwise", lower=emit, promotion=promotion, broadcasts=True,
        node_name=node_name, reference=reference, doc=doc, **more,
    )  # fmt: skip


def linear(
    name: str,
    forward: Forward,
    *,
    transpose: dict[str, Rule] | None = None,
    joint: Rule | None = None,
    batch: Any = None,
    emit: Rule | None = None,
    **more: Any,
) -> Primitive:
    """Linear in the inputs that `transpose` lists (all of them for a `joint` rule)."""
    inputs, params, variadic = signature(forward)
    return Primitive(
        name, forward, kind="linear", inputs=inputs, params=params, variadic=variadic,
        vjps={k: rule_spec(r) for k, r in (transpose or {}).items()},
        joint=rule_spec(joint) if joint else None, jvp="linear", batch=batch, lower=emit, **more,
    )  # fmt: skip


def bilinear(
    name: str,
    forward: Forward,
    *,
    transpose: dict[str, Rule],
    batch: Any = None,
    emit: Rule | None = None,
    **more: Any,
) -> Primitive:
    """Linear in each of two inputs: the jvp is f(ta, b) + f(a, tb)."""
    inputs, params, _ = signature(forward)
    return Primitive(
        name, forward, kind="bilinear", inputs=inputs, params=params,
        vjps={k: rule_spec(r) for k, r in transpose.items()}, jvp="bilinear", batch=batch,
        lower=emit, **more,
    )  # fmt: skip


def general(
    name: str,
    forward: Forward,
    *,
    vjp: dict[str, Rule] | None = None,
    joint: Rule | None = None,
    jvp: dict[str, Rule] | Rule | None = None,
    batch: Any = None,
    emit: Rule | None = None,
    **more: Any,
) -> Primitive:
    """A primitive whose rules are all given by hand.

    A jvp is a dict of rules per input (their results add up), or one function
    `jvp(tangents, primals, params, out)` with None for inputs that have no tangent.
    """
    inputs, params, variadic = signature(forward)
    jvps: Any = {k: rule_spec(r) for k, r in jvp.items()} if isinstance(jvp, dict) else jvp
    return Primitive(
        name, forward, kind="general", inputs=inputs, params=params, variadic=variadic,
        vjps={k: rule_spec(r) for k, r in (vjp or {}).items()},
        joint=rule_spec(joint) if joint else None, jvp=jvps, batch=batch, lower=emit, **more,
    )  # fmt: skip


def _raw_conj(x: Any) -> Any:
    return np.conjugate(x)


conj_primitive = Primitive(
    "conj", _raw_conj, kind="elementwise", inputs=("x",),
    vjps={"x": RuleSpec(lambda g: conj(g), ())}, jvp={"x": RuleSpec(lambda t: conj(t), ())},
    batch="elementwise", broadcasts=True, node_name="ConjBackward0",
    doc="the complex conjugate",
)  # fmt: skip
