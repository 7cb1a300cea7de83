"""What a primitive is, and the table of all of them (layer 1).

A primitive says in one place everything that the system may ask of an operation: how to run it on
NumPy arrays, how to differentiate it in both directions, how to batch it, how to compile it.  Rules
are plain functions that *name* what they need; those names decide what a graph node keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from pullback.core.dispatch import INTERPRETERS, interpret
from pullback.core.refusal import Refusals
from pullback.typing import Rule

REGISTRY: dict[str, Primitive] = {}


class RuleSpec(NamedTuple):
    """A rule and, in order, the names of what it takes after the cotangent (or tangent)."""

    call: Rule
    names: tuple[str, ...]


class Plan:
    """What nodes of one primitive keep and compute, for one set of inputs that require grad.

    `saved` of a node is laid out as: the inputs at `saved_inputs`, the outputs at `saved_outputs`,
    then what `context` asks for (shapes, dtypes, parameters).  `rules` holds, for each input that
    requires grad, `(input number, rule, positions in saved, the one position or -1)`; a joint rule
    computes all at once.
    """

    __slots__ = (
        "primitive", "mask", "name", "saved_inputs", "saved_outputs", "context", "rules", "joint",
        "joint_positions", "saves_values", "node_class", "broadcasts", "single", "is_plain",
        "saves", "extras", "_names",
    )  # fmt: skip

    def __init__(self, primitive: Primitive, mask: int, name: str, n_inputs: int) -> None:
        self.primitive = primitive
        self.mask = mask
        self.name = name
        self.node_class: Any = None  # filled by the layer that knows nodes
        self.broadcasts = primitive.broadcasts
        self.single = primitive.outputs == 1
        wanted = [i for i in range(n_inputs) if mask >> i & 1]
        if primitive.joint is not None:
            specs = [primitive.joint]
        else:
            specs = [primitive.vjp_of(i) for i in wanted]
        names = list(dict.fromkeys(n for s in specs for n in s.names))
        self._lay_out(names, n_inputs)
        self.rules: tuple[tuple[int, Rule, tuple[Any, ...], int], ...] = ()
        self.joint: Rule | None = None
        self.joint_positions: tuple[Any, ...] = ()
        if primitive.joint is not None:
            self.joint = specs[0].call
            self.joint_positions = tuple(self._position(n) for n in specs[0].names)
        else:
            rules = []
            for i, s in zip(wanted, specs, strict=True):
                positions = tuple(self._position(n) for n in s.names)
                rules.append((i, s.call, positions, positions[0] if len(positions) == 1 else -1))
            self.rules = tuple(rules)
        self.saves_values = bool(self.saved_inputs or self.saved_outputs)
        # The engine's quick way serves one output and one rule per input.
        self.is_plain = self.single and self.joint is None
        self.saves = -1  # which of the commonest layouts `saved` has (see eager/apply.py)
        self.extras: Any = None  # hooks: of the private plan of a node that has some

    def _lay_out(self, names: Iterable[str], n_inputs: int) -> None:
        p = self.primitive
        inputs: list[tuple[str, int]] = []
        outputs: list[tuple[str, int]] = []
        context: list[tuple[str, str, Any]] = []
        for name in names:
            stem, _, suffix = name.rpartition("_")
            if name in p.inputs:
                index = p.inputs.index(name)
                if p.variadic:
                    inputs += [(f"{name}.{i}", i) for i in range(n_inputs)]
                else:
                    inputs.append((name, index))
            elif name in p.output_names:
                outputs.append((name, p.output_names.index(name)))
            elif name == "needs":
                context.append((name, "const", tuple(bool(self.mask >> i & 1)
                                                     for i in range(n_inputs))))  # fmt: skip
            elif name in p.params:
                context.append((name, "param", name))
            elif suffix in ("shape", "dtype") and stem in p.inputs:
                context.append((name, suffix, p.inputs.index(stem)))
            elif suffix == "shapes" and p.variadic:
                context.append((name, "shapes", None))
            else:  # pragma: no cover  registration refuses such names
                raise AssertionError(f"{p.name}: unknown name {name}")
        inputs.sort(key=lambda entry: entry[1])
        self.saved_inputs = tuple(i for _, i in inputs)
        self.saved_outputs = tuple(i for _, i in outputs)
        self.context = tuple((kind, key) for _, kind, key in context)
        self._names = [n for n, _ in inputs] + [n for n, _ in outputs] + [n for n, _, _ in context]

    def _position(self, name: str) -> Any:
        if self.primitive.variadic and name in self.primitive.inputs:
            return slice(0, len(self.saved_inputs))  # all of them, as one argument
        return self._names.index(name)

    def saved_names(self) -> list[str]:
        """The name of each entry of `saved`, in order."""
        return list(self._names)


class Primitive:
    """One operation with all its rules; calling it works on any kind of value.

    On arrays and numbers a call runs `forward`; on a Tensor it goes through the tape; on a value of
    a transform (`Batched`, `Traced`) through that transform.
    """

    __slots__ = (
        "name", "forward", "kind", "inputs", "params", "outputs", "output_names", "variadic",
        "vjps", "joint", "jvp", "batch", "lower", "promotion", "broadcasts", "view", "node_name",
        "plans", "explain", "materialize", "reference", "nondifferentiable", "doc", "refuses",
        "prepares",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        *,
        kind: str,
        inputs: tuple[str, ...],
        params: tuple[str, ...] = (),
        outputs: int | None = 1,
        output_names: tuple[str, ...] = ("out",),
        variadic: bool = False,
        vjps: dict[str, RuleSpec] | None = None,
        joint: RuleSpec | None = None,
        jvp: Any = None,
        batch: Any = None,
        lower: Any = None,
        promotion: str | None = None,
        broadcasts: bool = False,
        view: bool = False,
        node_name: str | None = None,
        explain: Callable[..., Exception | None] | None = None,
        materialize: bool = True,
        reference: str | None = None,
        nondifferentiable: tuple[int, ...] = (),
        doc: str = "",
        refuses: Refusals = (),
    ) -> None:
        self.name = name
        self.forward = forward
        self.kind = kind
        self.inputs = inputs
        self.params = params
        self.outputs = outputs  # None: as many as forward returns
        self.output_names = output_names
        self.variadic = variadic
        self.vjps = vjps or {}
        self.joint = joint
        self.jvp = jvp
        self.batch = batch
        self.lower = lower
        self.promotion = promotion
        self.broadcasts = broadcasts
        self.view = view
        self.node_name = node_name or name.title().replace("_", "") + "Backward0"
        self.plans: dict[Any, Plan] = {}
        self.explain = explain
        self.materialize = materialize
        self.reference = reference
        self.nondifferentiable = nondifferentiable
        self.doc = doc
        self.refuses = refuses  # dtypes that PyTorch does not take
        self.prepares = promotion is not None or bool(refuses)
        self._check_names()
        if name in REGISTRY:
            raise AssertionError(f"primitive {name} is declared twice")
        REGISTRY[name] = self

    def _check_names(self) -> None:
        """Unknown names in a rule are a mistake in the declaration: say so at import."""
        known = {*self.inputs, *self.params, *self.output_names, "needs"}
        known |= {f"{i}_{s}" for i in self.inputs for s in ("shape", "dtype", "shapes")}
        for spec in [*self.vjps.values(), *([self.joint] if self.joint else [])]:
            unknown = [n for n in spec.names if n not in known]
            if unknown:
                raise AssertionError(f"primitive {self.name}: a rule names {unknown}")

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __call__(self, *args: Any, **params: Any) -> Any:
        for a in args:
            if type(a) in INTERPRETERS:
                return interpret(self, args, params)
        return self.forward(*args, **params)

    @property
    def differentiable(self) -> bool:
        """Whether it has a derivative at all."""
        return bool(self.vjps) or self.joint is not None

    def vjp_of(self, index: int) -> RuleSpec:
        """The rule for input number `index`; a constant zero (None) where there is none."""
        return self.vjps.get(self.inputs[index], NO_GRADIENT)

    def plan(self, mask: int, name: str | None, n_inputs: int) -> Plan:
        """The plan for the inputs in bit set `mask`; made once."""
        key = (mask, name, n_inputs)
        found = self.plans.get(key)
        if found is None:
            found = self.plans[key] = Plan(self, mask, name or self.node_name, n_inputs)
        return found


NO_GRADIENT = RuleSpec(lambda g: None, ())


def rule_spec(rule: Rule, skip: int = 1) -> RuleSpec:
    """The rule with the names of its parameters after the first `skip` (g, or t)."""
    code = rule.__code__
    return RuleSpec(rule, code.co_varnames[skip : code.co_argcount])


def signature(forward: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Input names, parameter names and whether inputs are variadic, read off a forward."""
    if isinstance(forward, np.ufunc):
        return (("x",), ("a", "b"), ("a", "b", "c"))[forward.nin - 1], (), False
    code = forward.__code__
    positional = code.co_varnames[: code.co_argcount]
    stop = code.co_argcount + code.co_kwonlyargcount
    keyword = code.co_varnames[code.co_argcount : stop]
    if code.co_flags & 0x04:  # *xs
        return (code.co_varnames[stop],), keyword, True
    return positional, keyword, False


def array_of(value: Any) -> Any:
    """NumPy gives scalars for 0-d results; a payload is always an array."""
    return value if type(value) is np.ndarray else np.asarray(value)


