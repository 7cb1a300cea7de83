"""The door: running a primitive on Tensors (layer 3).

`apply` is the general way.  `unary` and `binary` build functions for elementwise primitives that
go straight to NumPy when nothing is special (exact Tensors, plain arrays of one dtype) and to
`apply` otherwise; they hold the hot path, so they trade repetition for speed.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pullback.config import MODE, NO_GRAD, Defaults
from pullback.core import dtypes
from pullback.core.callsite import INTERNAL, here, is_internal, outside, with_site
from pullback.core.dispatch import INTERPRETERS, register_interpreter
from pullback.core.primitive import Plan, Primitive
from pullback.core.quiet import quiet, run_again
from pullback.core.refusal import refuse
from pullback.core.shapes import broadcast_shapes
from pullback.eager.node import Node, Origin, next_sequence, node_class
from pullback.eager.tensor import Tensor, counter_of, gradient_edge, wrap
from pullback.eager.view import link_view
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, DtypeError, PullbackError
from pullback.ops.broadcast import cast
from pullback.typing import Params

_new = object.__new__
_getframe = sys._getframe
_mode = MODE.get
_ndarray = np.ndarray
_asarray = np.asarray
_FLOAT32, _FLOAT64 = dtypes.FLOAT32, dtypes.FLOAT64
NUMBERS = (bool, int, float, complex)


# ------------------------------------------------------------------ the general way
def apply(
    primitive: Primitive, args: tuple[Any, ...], params: Params, name: str | None = None
) -> Any:
    """Run `primitive` on Tensors, numbers and arrays; record it when a Tensor requires grad.

    `name` replaces the node's name (PyTorch tells `SumBackward0` from `SumBackward1`).
    """
    mask = 0
    special = False
    payloads = []
    bit = 1
    for a in args:
        if type(a) is Tensor or isinstance(a, Tensor):
            p = a._data
            if type(p) is not _ndarray:
                special = True
            payloads.append(p)
            if a._requires_grad:
                mask |= bit
        else:
            payloads.append(a)
            if type(a) in INTERPRETERS:
                special = True
        bit += bit
    if special:
        payloads, mask = lift(args, payloads, mask)
    if primitive.prepares:
        payloads = promote(primitive, payloads)
    try:
        if special:
            result = primitive(*payloads, **params)
        elif params:
            result = quiet.run(primitive.forward, *payloads, **params)
        else:
            result = quiet.run(primitive.forward, *payloads)
    except Exception as error:
        result = failed(primitive, payloads, params, error)
    if primitive.outputs != 1 or special or not mask or _mode():
        return finish(primitive, args, payloads, params, result, mask, name)
    out = _new(Tensor)
    out._data = r = result if type(result) is _ndarray else _asarray(result)
    out._requires_grad = False
    out._grad = out._rare = out._counter = out._edge = None
    if primitive.view:
        link_view(out, args[0], primitive, params)
    plan = primitive.plans.get((mask, name, len(args)))
    if plan is None or r.dtype.kind not in "fc" or 0 in primitive.nondifferentiable:
        if not primitive.differentiable:
            mark((out,), "nondifferentiable")
        else:
            record(primitive.plan(mask, name, len(args)), args, payloads, params, (out,))
        return out
    node = _new(plan.node_class or class_of(plan))
    node.plan = plan
    saved: list[Any] = []
    versions = []
    for i in plan.saved_inputs:
        saved.append(payloads[i])
        a = args[i]
        if isinstance(a, Tensor):
            counter = a._counter
            if counter is None:
                counter = a._counter = [0]
            versions.append((counter, counter[0]))
        else:
            versions.append(FRESH)
    if plan.saved_outputs:
        saved.append(r)
        counter = out._counter
        if counter is None:
            counter = out._counter = [0]
        versions.append((counter, counter[0]))
    for kind, key in plan.context:
        if kind == "param":
            saved.append(params[key])
        elif kind == "shape":
            p = payloads[key]
            saved.append(p.shape if type(p) is _ndarray else np.shape(p))
        else:
            saved.append(context_value(kind, key, payloads, params))
    node.saved = tuple(saved)
    node.versions = tuple(versions)
    edges = []
    for a in args:
        if type(a) is Tensor or isinstance(a, Tensor):
            e = a._edge
            if a._requires_grad and type(e) is not tuple:
                e = gradient_edge(a)
            edges.append(e)
        else:
            edges.append(None)
    node.edges = tuple(edges)
    node.shape = r.shape
    node.dtype = r.dtype
    node.sequence = next_sequence()
    frame = _getframe(1)
    while True:
        code = frame.f_code
        if not INTERNAL.get(code.co_filename, True):
            break
        outer = frame.f_back
        if outer is None or not is_internal(code.co_filename):
            break
        frame = outer
    node.code = code
    node.offset = frame.f_lasti
    out._requires_grad = True
    out._edge = (node, 0)
    return out


def class_of(plan: Plan) -> Any:
    """The node class of a plan, made when it is first recorded."""
    plan.node_class = node_class(plan.name)
    return plan.node_class


def finish(
    primitive: Primitive,
    args: tuple[Any, ...],
    payloads: list[Any],
    params: Params,
    result: Any,
    mask: int,
    name: str | None,
) -> Any:
    """Wrap what a forward gave, and record it."""
    if primitive.outputs == 1:
        out = wrap(result if type(result) is _ndarray else as_payload(result))
        if primitive.view:
            link_view(out, args[0], primitive, params)
        outs: tuple[Tensor, ...] = (out,)
    else:
        outs = tuple(wrap(as_payload(r)) for r in result)
        if primitive.view:
            for k, out in enumerate(outs):
                link_view(out, args[0], primitive, params, k)
    if mask:
        if _mode() & NO_GRAD:
            mark(outs, "no_grad")
        elif not primitive.differentiable:
            mark(outs, "nondifferentiable")
        else:
            record(primitive.plan(mask, name, len(args)), args, payloads, params, outs)
    else:
        for a in args:  # the reason why an input has no gradient is the reason for the output
            if isinstance(a, Tensor) and a._edge is not None:
                for out in outs:
                    out._edge = a._edge if type(a._edge) is Origin else None
                break
    return outs[0] if primitive.outputs == 1 else outs


def as_payload(value: Any) -> Any:
    """An ndarray from a NumPy scalar; the value of a transform, and an array, stay."""
    if type(value) is _ndarray or not isinstance(value, (np.generic, np.ndarray, *NUMBERS)):
        return value
    return np.asarray(value)


def mark_origin(out: Tensor, reason: str) -> None:
    """Note why `out` requires no grad although what it came from did."""
    mark((out,), reason)


def mark(outs: tuple[Tensor, ...], reason: str) -> None:
    """Note why outputs of tensors that require grad do not."""
    frame = outside(_getframe(2))
    for out in outs:
        out._edge = Origin(reason, frame.f_code, frame.f_lasti)


def record(
    plan: Plan,
    args: tuple[Any, ...],
    payloads: list[Any],
    params: Params,
    outs: tuple[Tensor, ...],
    saved_first: Any = None,
    numbers: list[int] | None = None,
    edges: tuple[Any, ...] | None = None,
) -> Node | None:
    """Make the node of one operation and hang its outputs on it.

    `saved_first` replaces input 0 among the saved values (an in-place operation keeps a copy), and
    `numbers` and `edges` are the versions and edges of the inputs before it wrote.
    """
    primitive = plan.primitive
    outs_kept = [
        out
        for k, out in enumerate(outs)
        if k not in primitive.nondifferentiable and out._data.dtype.kind in "fc"
    ]
    if not outs_kept:
        mark(outs, "integer")
        return None
    cls = plan.node_class
    if cls is None:
        cls = plan.node_class = node_class(plan.name)
    node = _new(cls)
    node.plan = plan
    node.edges = edges_of(args, plan.mask) if edges is None else edges
    saved: list[Any] = []
    versions: list[tuple[list[int], int]] = []
    for i in plan.saved_inputs:
        a = args[i]
        if i == 0 and saved_first is not None:
            saved.append(saved_first)
            versions.append(FRESH)
            continue
        saved.append(payloads[i])
        if isinstance(a, Tensor):
            counter = counter_of(a)
            versions.append((counter, counter[0] if numbers is None else numbers[i]))
        else:
            versions.append(FRESH)
    for k in plan.saved_outputs:
        saved.append(outs[k]._data)
        counter = counter_of(outs[k])
        versions.append((counter, counter[0]))
    for kind, key in plan.context:
        saved.append(context_value(kind, key, payloads, params))
    node.saved = tuple(saved)
    node.versions = tuple(versions)
    if plan.single:
        node.shape = outs[0]._data.shape
        node.dtype = outs[0]._data.dtype
    else:
        node.shape = tuple(o._data.shape for o in outs)
        node.dtype = tuple(o._data.dtype for o in outs)
    node.sequence = next_sequence()
    frame = outside(_getframe(1))
    node.code = frame.f_code
    node.offset = frame.f_lasti
    for k, out in enumerate(outs):
        if k not in primitive.nondifferentiable and out._data.dtype.kind in "fc":
            out._requires_grad = True
            out._edge = (node, k)
    return node


def edges_of(args: tuple[Any, ...], mask: int) -> tuple[Any, ...]:
    """Where the inputs of an operation come from."""
    return tuple(
        gradient_edge(a) if mask >> i & 1
        # one that requires grad and is not in the mask belongs to an outer level: so does its edge
        else None if not isinstance(a, Tensor) or a._requires_grad else a._edge
        for i, a in enumerate(args)
    )


FRESH: tuple[list[int], int] = ([0], 0)  # a version that never changes: of a copy, of a number


def context_value(kind: str, key: Any, payloads: list[Any], params: Params) -> Any:
    """What a rule names besides values: a shape, a dtype, a parameter."""
    if kind == "param":
        return params[key]
    if kind == "shape":
        return np.shape(payloads[key])
    if kind == "dtype":
        return payloads[key].dtype
    if kind == "shapes":
        return tuple(p.shape for p in payloads)
    return key  # "const"


# ------------------------------------------------------------------ levels, dtypes, errors
def level_of(payload: Any) -> int:
    """0 for an array; the level of the transform that a payload belongs to."""
    return 0 if type(payload) is _ndarray else getattr(payload, "level", 0)


def lift(args: tuple[Any, ...], payloads: list[Any], mask: int) -> tuple[list[Any], int]:
    """Let Tensors of lower levels stand as constants among the payloads of the highest level.

    Their own history is then recorded by the calls that the transform makes on them, at their
    level; at this level they have none.
    """
    lifted = list(payloads)
    for i, a in enumerate(args):
        if isinstance(a, Tensor) and hasattr(a._data, "owner"):
            lifted[i] = settled(a)
    levels = [level_of(p) for p in lifted]
    top = max(levels)
    highest = lifted[levels.index(top)]
    if hasattr(highest, "owner"):
        return lift_into_dual(args, lifted, mask, highest)
    for i, (a, level) in enumerate(zip(args, levels, strict=True)):
        if isinstance(a, Tensor) and level < top:
            lifted[i] = a
            mask &= ~(1 << i)
    return lifted, mask


def settled(tensor: Tensor) -> Any:
    """The payload; that of a dual whose level has ended is its bare primal from now on."""
    payload = tensor._data
    while hasattr(payload, "owner") and not payload.level:
        payload = tensor._data = payload.primal._data
    return payload


def tape_level(payload: Any) -> int:
    """The innermost `vmap` that a payload belongs to; duals have the same shape at all levels."""
    found = getattr(payload, "tape_level", None)
    return level_of(payload) if found is None else int(found)


def lift_into_dual(
    args: tuple[Any, ...], payloads: list[Any], mask: int, highest: Any
) -> tuple[list[Any], int]:
    """As `lift`, where the highest payload carries a tangent: the others have none.

    A dual has the shape of what it is made of, so that the history of a Tensor of a lower level
    counts at this one as well, unless it is no batch where the others are.
    """
    tapes = [tape_level(p) for p in payloads]
    top = max(tapes)
    for i, a in enumerate(args):
        if not isinstance(a, Tensor):
            continue
        if level_of(payloads[i]) < highest.level:
            payloads[i] = highest.constant(a)
        if tapes[i] < top:
            mask &= ~(1 << i)
    return payloads, mask


def promote(primitive: Primitive, payloads: list[Any], stored: Any = None) -> list[Any]:
    """The payloads in the dtype that PyTorch would compute in, unless it refuses them.

    `stored` is the dtype of the memory that the result goes to: what does not fit there is refused
    by the one who writes it, before the dtype is.
    """
    first = payloads[0]
    if type(first) is _ndarray:
        dtype = first.dtype
        for p in payloads:
            if type(p) is not _ndarray or p.dtype is not dtype:
                break
        else:
            if primitive.promotion != "float" or dtype.kind in "fc":
                if primitive.refuses:
                    refuse(primitive.refuses, dtype, payloads)
                return payloads
    dimensioned, zero_dim, numbers = [], [], []
    for p in payloads:
        if isinstance(p, NUMBERS):
            numbers.append(p)
        elif p.ndim if not isinstance(p, Tensor) else p._data.ndim:
            dimensioned.append(dtype_of(p))
        else:
            zero_dim.append(dtype_of(p))
    target = dtypes.result_type(dimensioned, zero_dim, numbers)
    if primitive.refuses:
        if stored is None or dtypes.can_cast(target, stored):
            refuse(primitive.refuses, target, payloads)
        elif primitive.promotion is not None:
            raise cannot_store(target, stored)
        if primitive.promotion is None:
            return payloads
    if primitive.promotion == "float" and target.kind not in "fc":
        target = Defaults.dtype
    return [convert(p, target) for p in payloads]


def cannot_store(have: Any, want: Any) -> Exception:
    """PyTorch's error for a result whose dtype the memory it goes to cannot hold."""
    names = dtypes.PYTORCH_NAMES
    return DtypeError(
        with_site(
            f"result type {names[have.name]} can't be cast to the desired output type "
            f"{names[want.name]}"
        )
    )


def dtype_of(payload: Any) -> Any:
    """The NumPy dtype of any payload, or of a Tensor standing as one."""
    return payload._data.dtype if isinstance(payload, Tensor) else payload.dtype


def convert(payload: Any, target: Any) -> Any:
    """A payload in dtype `target`; Python numbers stay numbers where NumPy treats them alike."""
    if isinstance(payload, NUMBERS):
        if target.kind in "fc" or isinstance(payload, bool):
            return payload
        if isinstance(payload, int):
            info = np.iinfo(target)
            if info.min <= payload <= info.max:
                return payload
        return np.asarray(payload).astype(target)  # wraps around, as in PyTorch
    if dtype_of(payload) is target:
        return payload
    if type(payload) is _ndarray:
        return payload.astype(target)
    return cast(payload, dtype=target)


def failed(primitive: Primitive, payloads: list[Any], params: Params, error: Exception) -> Any:
    """Turn NumPy's exception into PyTorch's; returns a result only when a second try works."""
    if isinstance(error, PullbackError):
        raise error
    if isinstance(error, RuntimeError) and "cannot enter context" in str(error):
        return run_again(primitive.forward, *payloads, **params)
    explained = primitive.explain and primitive.explain(payloads, params, error)
    if explained is not None:
        raise explained from None
    if primitive.broadcasts and isinstance(error, ValueError):
        broadcast_shapes([np.shape(p) for p in payloads])
    if isinstance(error, (TypeError, IndexError, ValueError)):
        described = ", ".join(describe(p) for p in payloads)
        raise ArgumentRuntimeError(
            with_site(f"{primitive.name}: cannot be computed for {described}: {error}")
        ) from error
    raise error


def describe(payload: Any) -> str:
    """A value as errors name it: its dtype and shape."""
    if hasattr(payload, "dtype"):
        return f"a {payload.dtype} tensor of shape {list(np.shape(payload))}"
    return f"{type(payload).__name__} {payload!r}"


# ------------------------------------------------------------------ the hot path
# The layouts of `saved` that the fast ways know: which operands a node keeps.
NOTHING, FIRST, SECOND, BOTH, OUTPUT = range(5)
LAYOUTS: dict[tuple[int, ...], int] = {(): NOTHING, (0,): FIRST, (1,): SECOND, (0, 1): BOTH}


# The one subclass of Tensor that the fast ways take as well: `nn.parameter` puts its class here.
PARAMETER: Any = Tensor


def fast_plan(primitive: Primitive, mask: int, name: str | None, n: int) -> Plan | None:
    """The plan, when its nodes keep at most inputs (or only the output): else None."""
    plan = primitive.plan(mask, name, n)
    if plan.context or (plan.saved_outputs and plan.saved_inputs) or plan.joint:
        return None
    if plan.saved_inputs not in LAYOUTS or primitive.outputs != 1:
        return None
    plan.saves = OUTPUT if plan.saved_outputs else LAYOUTS[plan.saved_inputs]
    if plan.node_class is None:
        plan.node_class = node_class(plan.name)
    return plan


def binary(primitive: Primitive, name: str | None = None) -> Any:
    """A function of two operands for an elementwise primitive, usable as an operator.

    Returns NotImplemented for operands that are no numbers and no tensors.  Everything happens in
    one frame: a call in between would cost as much as the whole record of the operation.
    """
    forward = primitive.forward
    plans: Any = (None, *(fast_plan(primitive, m, name, 2) for m in (1, 2, 3)))

    def general(a: Any, b: Any) -> Any:
        operand = as_operand(b)
        if operand is NotImplemented:
            return NotImplemented
        return apply(primitive, (a, operand), EMPTY, name)

    if None in plans[1:] or not primitive.differentiable:
        return general

    def operator(a: Any, b: Any) -> Any:
        if type(a) is not Tensor and type(a) is not PARAMETER:
            return general(a, b)
        x = a._data
        if type(x) is not _ndarray:
            return general(a, b)
        dtype = x.dtype
        if type(b) is Tensor:
            y = b._data
            if type(y) is not _ndarray or dtype is not y.dtype:
                return general(a, b)
            needs = a._requires_grad + 2 * b._requires_grad
            f = b._edge
        elif type(b) is float or type(b) is int:
            y = CONSTANTS.get((b, dtype))
            if y is None:
                y = constant(b, dtype)
                if y is None:
                    return general(a, b)
            needs = a._requires_grad
            f = CONSTANT
        elif type(b) is PARAMETER:  # last: nothing else waits for this test
            y = b._data
            if type(y) is not _ndarray or dtype is not y.dtype:
                return general(a, b)
            needs = a._requires_grad + 2 * b._requires_grad
            f = b._edge
        else:
            return general(a, b)
        if dtype is not _FLOAT32 and dtype is not _FLOAT64:
            return general(a, b)
        try:
            r = quiet.run(forward, x, y)
        except Exception as error:
            r = failed(primitive, [x, y], EMPTY, error)
        if type(r) is not _ndarray:
            r = _asarray(r)
        out = _new(Tensor)
        out._data = r
        out._grad = out._rare = out._counter = None
        if not needs:
            out._requires_grad = False
            e = a._edge
            out._edge = f if e is None and f is not CONSTANT else e
            return out
        if _mode():
            out._requires_grad = False
            mark((out,), "no_grad")
            return out
        plan = plans[needs]
        node = _new(plan.node_class)
        node.plan = plan
        saves = plan.saves
        if saves == 0:  # nothing
            node.saved = node.versions = ()
        elif saves == 2:  # the second operand
            node.saved = (y,)
            if f is CONSTANT:
                node.versions = ()
            else:
                counter = b._counter
                if counter is None:
                    counter = b._counter = [0]
                node.versions = ((counter, counter[0]),)
        elif saves == 1:  # the first
            node.saved = (x,)
            counter = a._counter
            if counter is None:
                counter = a._counter = [0]
            node.versions = ((counter, counter[0]),)
        elif saves == 3:  # both
            node.saved = (x, y)
            counter = a._counter
            if counter is None:
                counter = a._counter = [0]
            if f is CONSTANT:
                node.versions = ((counter, counter[0]),)
            else:
                other = b._counter
                if other is None:
                    other = b._counter = [0]
                node.versions = ((counter, counter[0]), (other, other[0]))
        else:  # the output
            counter = out._counter = [0]
            node.saved = (r,)
            node.versions = ((counter, 0),)
        e = a._edge
        if needs & 1 and type(e) is not tuple:
            e = gradient_edge(a)
        if needs & 2 and type(f) is not tuple:
            f = e if a is b else gradient_edge(b)
        node.edges = (e, f if f is not CONSTANT else None)
        node.shape = r.shape
        node.dtype = dtype
        node.sequence = next_sequence()
        frame = _getframe(1)
        code = frame.f_code
        if INTERNAL.get(code.co_filename, True):
            frame = outside(frame)
            code = frame.f_code
        node.code = code
        node.offset = frame.f_lasti
        out._requires_grad = True
        out._edge = (node, 0)
        return out

    return operator


CONSTANT: Any = Origin  # stands for the edge of a Python number

# Python numbers as 0-d arrays: NumPy takes 0.3 us longer over a float than over an array.
CONSTANTS: dict[Any, Any] = {}


def constant(value: Any, dtype: Any) -> Any:
    """A number as a 0-d array of a floating dtype, remembered; None where that is not exact."""
    if dtype is not _FLOAT32 and dtype is not _FLOAT64:
        return None
    try:
        array = quiet.run(_asarray, value, dtype)
    except OverflowError:
        return None
    array.flags.writeable = False
    # 0.0 and -0.0 are one key but two values, and a NaN is no key at all.
    if value and value == value:
        if len(CONSTANTS) >= 1024:
            CONSTANTS.clear()
        CONSTANTS[value, dtype] = array
    return array


EMPTY: Params = {}


def as_operand(value: Any) -> Any:
    """A number, Tensor or array as an operand; NotImplemented for anything else."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, NUMBERS):
        return value
    if isinstance(value, np.ndarray):
        return wrap(value)
    return NotImplemented


def unary(primitive: Primitive, name: str | None = None, into: Any = None) -> Any:
    """A function of one tensor for an elementwise primitive without parameters.

    `into(out, result, operand)` serves the argument `out=`, when there is one.
    """
    forward = primitive.forward
    plan = fast_plan(primitive, 1, name, 1)

    def general(input: Any, *, out: Any = None) -> Any:  # noqa: A002
        result = apply(primitive, (as_tensor_argument(primitive, input),), EMPTY, name)
        return result if out is None else into(out, result, input)

    if plan is None or not primitive.differentiable:
        return general
    cls = plan.node_class
    saves = plan.saves

    def call(input: Any, *, out: Any = None) -> Any:  # noqa: A002  PyTorch's name
        x = input
        if (type(x) is not Tensor and type(x) is not PARAMETER) or out is not None:
            return general(x, out=out)
        p = x._data
        if type(p) is not _ndarray:
            return general(x)
        dtype = p.dtype
        if dtype is not _FLOAT32 and dtype is not _FLOAT64:
            return general(x)
        try:
            r = quiet.run(forward, p)
        except Exception as error:
            r = failed(primitive, [p], EMPTY, error)
        if type(r) is not _ndarray:
            r = _asarray(r)
        out = _new(Tensor)
        out._data = r
        out._grad = out._rare = out._counter = None
        if not x._requires_grad:
            out._requires_grad = False
            out._edge = x._edge
            return out
        if _mode():
            out._requires_grad = False
            mark((out,), "no_grad")
            return out
        node = _new(cls)
        node.plan = plan
        if saves == 4:  # the output
            counter = out._counter = [0]
            node.saved = (r,)
            node.versions = ((counter, 0),)
        elif saves:
            mine = x._counter
            if mine is None:
                mine = x._counter = [0]
            node.saved = (p,)
            node.versions = ((mine, mine[0]),)
        else:
            node.saved = node.versions = ()
        e = x._edge
        if type(e) is not tuple:
            e = gradient_edge(x)
        node.edges = (e,)
        node.shape = r.shape
        node.dtype = dtype
        node.sequence = next_sequence()
        frame = _getframe(1)
        code = frame.f_code
        if INTERNAL.get(code.co_filename, True):
            frame = outside(frame)
            code = frame.f_code
        node.code = code
        node.offset = frame.f_lasti
        out._requires_grad = True
        out._edge = (node, 0)
        return out

    return call


def as_tensor_argument(primitive: Primitive, value: Any) -> Any:
    """`value` when it is a Tensor; PyTorch's TypeError otherwise."""
    if isinstance(value, Tensor):
        return value
    raise ArgumentTypeError(
        with_site(
            f"{primitive.name}(): argument 'input' (position 1) must be Tensor, not "
            f"{type(value).__name__}")
    )


# A Tensor ranks just above its payload: it is what records the payload's operations.
register_interpreter(Tensor, lambda value: level_of(value._data) + 0.1, apply)

__all__ = ["apply", "binary", "here", "unary"]
