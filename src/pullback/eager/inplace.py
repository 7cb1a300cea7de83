"""In-place operations (layer 3): change the memory, then give the tensor its new history."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.config import MODE, NO_GRAD
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.primitive import Primitive, RuleSpec
from pullback.core.quiet import quiet
from pullback.eager.apply import (
    cannot_store,
    edges_of,
    failed,
    lift,
    mark_origin,
    promote,
    record,
    tape_level,
)
from pullback.eager.overlap import REPEATED, by_element, repeats
from pullback.eager.tensor import (
    Tensor,
    bump_version,
    gradient_edge,
    note_move,
    set_flag,
    wrap,
)
from pullback.eager.view import PLAIN, WRITTEN, apply_chain, family, memory, rebase, refused_write
from pullback.errors import GraphError, ShapeError, TracingError, UnsupportedError
from pullback.ops.broadcast import zeros_like
from pullback.ops.movement import clone
from pullback.typing import Params

# Called before values of a transform are written: the target becomes able to hold them (a batch
# for vmap, a tangent for forward mode), with its base and all views.
ADOPT: list[Any] = []


def check_writable(target: Tensor, mask: int) -> None:
    """PyTorch's refusals; nothing has been touched yet."""
    if MODE.get() & NO_GRAD:
        return
    own = target._requires_grad
    if not (mask or own):
        return
    rare = target._rare
    if rare is not None and rare.base is not None:
        if rare.creation != PLAIN:
            raise refused_write(target, "is being")
        if own and rare.base.is_leaf:
            raise GraphError(
                with_site(
                    "a view of a leaf Variable that requires grad is being used in an in-place "
                    "operation. Change it under torch.no_grad(), or compute a new tensor instead")
            )
    # PyTorch also refuses a view made before its base came to require grad, until its grad_fn has
    # been read once: that is worked out here
    if own and target.is_leaf:
        raise GraphError(
            with_site(
                "a leaf Variable that requires grad is being used in an in-place operation. "
                "Change it under torch.no_grad(), or compute a new tensor instead")
        )


def has_memory(payload: Any) -> bool:
    """Whether an in-place change is seen by all that show the payload: not so in a trace."""
    return type(payload) is np.ndarray or hasattr(payload, "overwrite")


def recorded_outside(payload: Any) -> bool:
    """Whether an outer level records what is done with a value: it may keep it."""
    if type(payload) is np.ndarray:
        return False
    if isinstance(payload, Tensor):
        return payload._requires_grad or recorded_outside(payload._data)
    parts = getattr(payload, "parts", None) or (getattr(payload, "value", None),)
    return any(isinstance(part, Tensor) and recorded_outside(part) for part in parts)


def not_shared(mapped: bool) -> Exception:
    """The error for a write into a tensor from outside that the transform cannot express."""
    if not mapped:
        return UnsupportedError(
            with_site(
                "an in-place operation inside a traced function would write a value of the trace "
                "into a tensor from outside: pass that tensor as an argument, or use an "
                "out-of-place operation",
                3,
            )
        )
    return TracingError(
        with_site(
            "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a "
            "Tensor `other` in extra_args that has more elements than `self`: it differs between "
            "the examples, and the tensor written to is shared by all of them. Make that tensor "
            "inside the mapped function, by a constructor (torch.zeros(...)) or from a mapped one "
            "(torch.zeros_like(x), x.clone()), or use an out-of-place operation",
            3,
        )
    )


def apply_inplace(
    primitive: Primitive,
    args: tuple[Any, ...],
    params: Params,
    name: str | None = None,
    check: Any = by_element,
) -> Tensor:
    """Run `primitive` and store its result in `args[0]`; returns that tensor.

    `check` refuses operands that share memory with it.

    Raises GraphError, ShapeError or DtypeError with every tensor as it was.
    """
    target: Tensor = args[0]
    if len(args) == 2 and not params and updated(primitive, target, args[1]):
        return target
    mask = 0
    payloads = []
    for i, a in enumerate(args):
        payloads.append(a._data if isinstance(a, Tensor) else a)
        if isinstance(a, Tensor) and a._requires_grad:
            mask |= 1 << i
    check_writable(target, mask)
    special = any(
        type(p) is not np.ndarray for p, a in zip(payloads, args, strict=True)
        if isinstance(a, Tensor)
    )  # fmt: skip
    if special:
        for adopt in ADOPT:
            adopt(target, payloads)
            payloads[0] = target._data
        mapped = max(tape_level(p) for p in payloads)
        payloads, mask = lift(args, payloads, mask)
        if payloads[0] is target or mapped > tape_level(target._data):
            # other operands belong to a transform that it has no part in
            raise not_shared(any(hasattr(p, "overwrite") for p in payloads))
    recording = mask and not MODE.get() & NO_GRAD and primitive.differentiable
    plan = primitive.plan(mask, name, len(args)) if recording else None
    edges = None if plan is None else edges_of(args, mask)  # before the write outdates them
    check(target, args[1:])
    if primitive.prepares:
        payloads = promote(primitive, payloads, target._data.dtype)
    # Rules that name the changed input itself need it as it was.
    keep = plan is not None and 0 in plan.saved_inputs and has_memory(target._data)
    original = clone(target._data) if keep else None
    if special and payloads[0] is target._data and any(recorded_outside(p) for p in payloads):
        payloads[0] = clone(payloads[0]) if original is None else original
    # An operand that shares the target's memory is changed by the write: its saved value counts as
    # overwritten, and backward says so.
    before = [a._counter[0] if isinstance(a, Tensor) and a._counter else 0 for a in args]
    if not special and writes_directly(primitive, payloads, target._data):
        quiet.run(primitive.forward, *payloads, out=target._data)
        bump_version(target)
    else:
        try:
            if special:
                result = primitive(*payloads, **params)
            else:
                result = np.asarray(quiet.run(primitive.forward, *payloads, **params))
        except Exception as error:
            result = failed(primitive, payloads, params, error)
        check_result(target, result)
        store(target, result)
    if plan is None:
        return target
    out = wrap(target._data)
    out._counter = target._counter
    record(
        plan, args, payloads, params, (out,), saved_first=original, numbers=before, edges=edges
    )
    attach(target, out)
    return target


def updated(primitive: Primitive, target: Tensor, other: Any) -> bool:
    """The plainest case, done at once: a ufunc on float memory that nothing records."""
    x = target._data
    if type(x) is not np.ndarray or x.dtype.kind != "f" or not primitive.differentiable:
        return False
    needs = target._requires_grad
    if type(other) is Tensor:
        y = other._data
        if type(y) is not np.ndarray or y.dtype is not x.dtype or y.shape != x.shape:
            return False
        needs = needs or other._requires_grad
    elif type(other) is float or type(other) is int:
        y = other
    else:
        return False
    if not MODE.get() & NO_GRAD and (needs or target._rare is not None):
        return False
    flags = x.flags
    if not (flags.c_contiguous and flags.writeable and isinstance(primitive.forward, np.ufunc)):
        return False
    if type(other) is Tensor and y is not x and not (flags.owndata and y.flags.owndata):
        by_element(target, (other,))
    quiet.run(primitive.forward, x, y, out=x)
    bump_version(target)
    return True


def writes_directly(primitive: Primitive, payloads: list[Any], data: Any) -> bool:
    """Whether a ufunc can put its result straight into `data`: same dtype and shape, no error."""
    if not isinstance(primitive.forward, np.ufunc) or not primitive.differentiable:
        return False
    if payloads[0] is not data or data.dtype.kind not in "fc":
        return False
    if primitive.forward is np.negative and not data.flags.c_contiguous:
        return False  # NumPy 2 gives wrong values here for some strides (4 floats, 8 doubles)
    for p in payloads[1:]:
        if isinstance(p, np.ndarray):
            if p.dtype is not data.dtype or (p.ndim and p.shape != data.shape):
                return False
            if p is not data and p.ndim and np.may_share_memory(p, data):
                return False  # NumPy would make the same copy, after a longer look
        elif isinstance(p, complex) and data.dtype.kind != "c":
            return False
    return True


def check_result(target: Tensor, result: Any) -> None:
    """Shape and dtype of a result that is to be stored in `target`."""
    if tuple(result.shape) != tuple(target._data.shape):
        raise ShapeError(
            with_site(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                f"{list(result.shape)}")
        )
    have, want = result.dtype, target._data.dtype
    if have is not want and not dtypes.can_cast(have, want):
        raise cannot_store(have, want)

def store(target: Tensor, result: Any) -> None:
    """Write a result into a tensor's memory and note the change."""
    data = target._data
    if type(data) is np.ndarray:
        if repeats(data) and result.size > 1:  # what stays must not be written over what changes
            changed = (result != data) & ~((result != result) & (data != data))
            quiet.run(np.copyto, data, result, casting="unsafe", where=changed)
        else:
            quiet.run(np.copyto, data, result, casting="unsafe")
    elif has_memory(data):
        data.overwrite(result)  # a batch has memory, which views of it show
        if target._counter is not None and target._counter is data.value._counter:
            return
    else:
        target._data = result
    bump_version(target)


def attach(target: Tensor, out: Tensor) -> None:
    """Give `target` the history of `out`, and its base and other views theirs."""
    if not out._requires_grad:
        return
    rare = target._rare
    if rare is None or rare.base is None:
        rebase(target, out._edge)
        return
    base = rare.base
    value = wrap(target._data)
    value._requires_grad, value._edge = True, out._edge
    written = wrap(base._data)
    mask = 2 | (1 if base._requires_grad else 0)
    plan = view_write.plan(mask, "CopySlices", 2)
    params = {"chain": rare.chain, "order": order_of(base._data)}
    record(plan, (base, value), [base._data, value._data], params, (written,))
    target._edge = WRITTEN
    target._requires_grad = True
    rebase(base, written._edge)


def order_of(payload: Any) -> tuple[int, ...] | None:
    """The dims of a value from the longest stride to the shortest; None for the usual order."""
    while hasattr(payload, "primal"):
        payload = payload.primal._data
    shown = memory(payload)
    if type(shown) is not np.ndarray or shown.flags.c_contiguous:
        return None
    steps = shown.strides[shown.ndim - payload.ndim :]  # those of a batch come first
    order = tuple(sorted(range(payload.ndim), key=lambda i: -abs(steps[i])))
    return None if order == tuple(range(payload.ndim)) else order


def detach_in_place(tensor: Tensor) -> Tensor:
    """Cut the history of a tensor that is no view."""
    if tensor._rare is not None and tensor._rare.base is not None:
        raise GraphError(with_site("Can't detach views in-place. Use detach() instead."))
    recorded = tensor._requires_grad
    note_move(tensor)
    for view in family(tensor)[1]:
        if view._edge is WRITTEN:
            gradient_edge(view)  # what was written keeps its history
    set_flag(tensor, False)
    tensor._edge = None
    if recorded:
        mark_origin(tensor, "detach")
    return tensor


def laid_out(base: Any, order: tuple[int, ...] | None) -> Any:
    """A copy of an array whose dims lie in memory in `order`."""
    if order is None:
        return base.copy()
    back = sorted(range(len(order)), key=order.__getitem__)
    return base.transpose(order).copy().transpose(back)


def _write(base: Any, value: Any, *, chain: Any, order: Any) -> Any:
    out = laid_out(base, order)
    place = apply_chain(out, chain)
    if repeats(place):  # which of the elements is it the gradient of?
        raise GraphError(f"{REPEATED} It is the gradient of a view that was written when expanded.")
    place[...] = value
    return out


view_write: Primitive = Primitive(
    "view_write", _write, kind="linear", inputs=("base", "value"), params=("chain", "order"),
    vjps={
        "base": RuleSpec(
            lambda g, chain, order: view_write(
                g, zeros_like(apply_chain(g, chain)), chain=chain, order=order
            ),
            ("chain", "order"),
        ),
        "value": RuleSpec(lambda g, chain: apply_chain(g, chain) + 0, ("chain",)),
    },
    jvp="linear", batch="view_write", node_name="CopySlices",
    doc="base with the view that chain makes of it replaced by value",
)  # fmt: skip
