"""`gradcheck` and `gradgradcheck` (layer 5): gradients against difference quotients.

`gradcheck_jacobians.py` makes and compares the Jacobians; here is what is checked, in which order.
Random directions are drawn from generators of their own: the user's stream is left alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.api import forward
from pullback.api.autograd import grad
from pullback.api.modes import enable_grad
from pullback.core.callsite import here, with_site
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentValueError, PullbackError
from pullback.transforms.gradcheck_fast import check_fast
from pullback.transforms.gradcheck_jacobians import (
    IMAGINARY,
    REAL,
    Function,
    GradcheckError,
    agree,
    analytical,
    differentiable,
    failure,
    forward_columns,
    is_complex,
    mismatch,
    numerical,
    outputs_of,
    pushed,
    wide,
)
from pullback.transforms.vmap import vmap


class OptionError(PullbackError, AssertionError):
    """Options that do not go together (AssertionError, as in PyTorch)."""


class Options(NamedTuple):
    """What one check was asked for; the names are those of `gradcheck`."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    check_batched_grad: bool
    check_batched_forward_grad: bool
    check_forward_ad: bool
    check_backward_ad: bool
    fast_mode: bool


# ---------------------------------------------------------------- public
def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` at `inputs` agree with central differences.

    func: takes `inputs`, returns a Tensor or a tuple of Tensors; called many times.
    inputs: a Tensor or a sequence; those that require grad are checked, in double precision.  Their
        memory is changed while differences are taken, and put back.
    eps: the step of the differences.
    atol, rtol: an entry may differ by atol + rtol * |numerical|.
    raise_exception: raise GradcheckError; otherwise return False.
    nondet_tol: how much two backward passes over one graph may differ.
    check_undefined_grad: also backward from some of the outputs only, the others having none.
    check_grad_dtypes: gradients must have the dtype of their input.
    check_batched_grad, check_batched_forward_grad: gradients under `vmap` equal those of a loop.
    check_forward_ad, check_backward_ad: which modes are checked.
    fast_mode: compare one random projection of each Jacobian instead of all its entries.
    masked: for sparse tensors, which do not exist here; ignored.

    Complex inputs and outputs are checked by their real and imaginary parts; the gradient in a
    complex z = a + ib of a real L is dL/da + i dL/db.

    Returns True, or raises GradcheckError (a RuntimeError) that says which entry differs most.
    Raises ValueError when no input requires grad, RuntimeError for inputs whose memory overlaps,
    AssertionError for options that do not combine.  Warns about inputs in less than double
    precision.

    >>> import pullback
    >>> x = pullback.tensor([0.5, 1.0], dtype=pullback.float64, requires_grad=True)
    >>> pullback.autograd.gradcheck(pullback.sin, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise OptionError(
            with_site("Expected at least one of check_forward_ad or check_backward_ad to be True")
        )
    if check_batched_grad and not check_backward_ad:
        raise OptionError(
            with_site("Setting check_batched_grad=True requires check_backward_ad to be True")
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise OptionError(
            with_site(
                "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
            )
        )
    options = Options(
        eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad,
        check_batched_forward_grad, check_forward_ad, check_backward_ad, fast_mode,
    )  # fmt: skip
    try:
        with enable_grad():
            _check(func, as_inputs(inputs), options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the second derivatives of `func` agree with differences of its gradient.

    grad_outputs: cotangents for the outputs, as `gradcheck` inputs; drawn at random when None, with
        `gen_non_contig_grad_outputs` in non-contiguous memory.
    check_rev_over_rev, check_fwd_over_rev: how the gradient is differentiated.
    The rest, and what is raised, as in `gradcheck`: the function that is checked takes the inputs
    followed by the cotangents, and returns the gradients.

    >>> import pullback
    >>> x = pullback.tensor([0.5, 1.0], dtype=pullback.float64, requires_grad=True)
    >>> pullback.autograd.gradgradcheck(pullback.sin, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise OptionError(
            with_site(
                "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
            )
        )
    if check_batched_grad and not check_rev_over_rev:
        raise OptionError(
            with_site("Setting check_batched_grad=True requires check_rev_over_rev to be True")
        )
    xs = as_inputs(inputs)
    positions_of(xs)
    if grad_outputs is None:
        with enable_grad():
            outputs = differentiable(outputs_of(func, xs))
        if not outputs:
            if raise_exception:
                raise failure(
                    "gradgradcheck: no output of the function requires grad, so that there is no "
                    "gradient to differentiate"
                )
            return False
        cotangents = random_cotangents(outputs, gen_non_contig_grad_outputs)
    else:
        cotangents = as_inputs(grad_outputs)
    count = len(xs)

    def gradient(*args: Any) -> tuple[Tensor, ...]:
        wanted = differentiable(args[:count])
        outputs = differentiable(outputs_of(func, args[:count]))
        found = grad(outputs, wanted, args[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradient, (*xs, *cotangents), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode,
    )  # fmt: skip


def random_cotangents(outputs: Sequence[Tensor], scattered: bool) -> tuple[Tensor, ...]:
    """Cotangents for the outputs, that require grad; on demand with gaps between the elements."""
    rng = np.random.default_rng(0)
    found = []
    for x in outputs:
        shape = x._data.shape
        values = np.asarray(rng.uniform(-1, 1, shape))
        if is_complex(x):
            values = values + 1j * rng.uniform(-1, 1, shape)
        values = np.asarray(values).astype(x._data.dtype)
        if scattered and shape:
            wide_ = np.zeros((*shape, 2), values.dtype)
            wide_[..., 0] = values
            values = wide_[..., 0]
        found.append(wrap(values).requires_grad_())
    return tuple(found)


# ---------------------------------------------------------------- inputs
def as_inputs(inputs: Any) -> tuple[Any, ...]:
    """One input or several, as a tuple."""
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def positions_of(inputs: tuple[Any, ...]) -> list[int]:
    """Which inputs require grad; there must be one."""
    found = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x._requires_grad]
    if not found:
        raise ArgumentValueError(
            with_site(
                "gradcheck expects at least one input tensor to require gradient, but none of "
                "them have requires_grad=True."
            )
        )
    return found


def check_inputs(inputs: tuple[Any, ...]) -> list[int]:
    """The positions of the inputs to check; refuses what differences cannot be taken in."""
    found = positions_of(inputs)
    for i in found:
        data = inputs[i]._data
        if type(data) is not np.ndarray:
            raise ArgumentRuntimeError(
                with_site("gradcheck: needs plain tensors, and cannot run inside a transform")
            )
        if data.dtype not in (np.float64, np.complex128):
            site = here()
            warnings.warn_explicit(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                f"complex (it is {inputs[i].dtype}). This check will likely fail: differences "
                "need double precision",
                UserWarning, site.file, site.line,
            )  # fmt: skip
        check_memory(data, i)
    for n, i in enumerate(found):
        for j in found[:n]:
            check_shared(inputs, j, i)
    return found


def check_memory(data: Any, i: int) -> None:
    """Changing one element must change no other."""
    if not data.size:  # strides without elements mean nothing
        return
    if any(s == 0 and n > 1 for s, n in zip(data.strides, data.shape, strict=True)):
        raise ArgumentRuntimeError(
            with_site(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients "
                "correctly: give it a copy (.contiguous())"
            )
        )
    offsets = sum(
        (np.arange(n).reshape(-1, *(1,) * (data.ndim - k - 1)) * s
         for k, (n, s) in enumerate(zip(data.shape, data.strides, strict=True))),
        start=np.zeros((), int),
    )  # fmt: skip
    if np.unique(offsets).size != data.size:
        raise ArgumentRuntimeError(
            with_site(
                f"The {i}th input has elements that share memory. gradcheck only supports inputs "
                "that are non-overlapping: give it a copy (.contiguous())"
            )
        )
    if not data.flags.writeable:
        raise ArgumentRuntimeError(
            with_site(
                f"The {i}th input is in read-only memory, which gradcheck cannot change to take "
                "differences: give it a copy (.clone())"
            )
        )


def check_shared(inputs: tuple[Any, ...], j: int, i: int) -> None:
    """Different inputs must not share memory (one tensor given twice is fine)."""
    a, b = inputs[j], inputs[i]
    if a is not b and np.shares_memory(a._data, b._data):
        raise ArgumentRuntimeError(
            with_site(
                f"Inputs {j} and {i} share memory. gradcheck only supports inputs that are "
                "non-overlapping, since it changes them one at a time: give it copies (.clone())"
            )
        )


# ---------------------------------------------------------------- the checks
def _check(func: Function, inputs: tuple[Any, ...], o: Options) -> None:
    positions = check_inputs(inputs)
    everything = outputs_of(func, inputs)
    outputs = differentiable(everything)
    if not outputs:
        check_constant(func, inputs, positions, everything, o.eps)
        return
    if o.fast_mode:
        failed = check_fast(func, inputs, positions, outputs, o)
        if failed is not None:
            check_slow(func, inputs, positions, outputs, o, failed.pair)
            raise failure(failed.message)
    else:
        check_slow(func, inputs, positions, outputs, o)
    if o.check_forward_ad and o.check_undefined_grad and len(positions) > 1:
        check_missing_tangents(func, inputs, positions)
    if o.check_batched_forward_grad:
        check_batched_tangents(func, inputs, positions)
    if not o.check_backward_ad:
        return
    xs = [inputs[p] for p in positions]
    if o.check_batched_grad:
        for k, output in enumerate(outputs):
            check_batched(output, k, xs)
    check_linear(outputs, xs)
    if o.check_undefined_grad and len(outputs) > 1:
        check_undefined(outputs, xs)


def check_constant(
    func: Function, inputs: tuple[Any, ...], positions: list[int], outputs: list[Tensor], eps: float
) -> None:
    """A function without a graph must really be constant."""

    def keep(x: Tensor) -> bool:
        return x._data.dtype.kind in "fc"

    kept = [x for x in outputs if keep(x)]
    for p in positions:
        columns = numerical(func, inputs, inputs[p], kept, eps, keep)
        for k, rows in enumerate(columns.rows):
            if np.any(rows != 0):
                raise failure(
                    "Numerical gradient for function expected to be zero: no output requires "
                    f"grad, but output {k} changes with input {p} "
                    f"(by {np.max(np.abs(rows)):.4g} per unit)"
                )


def check_slow(
    func: Function, inputs: tuple[Any, ...], positions: list[int], outputs: list[Tensor],
    o: Options, only: tuple[int, int] | None = None,
) -> None:  # fmt: skip
    """All entries of all Jacobians; with `only`, those of one (output, input) pair."""
    xs = [inputs[p] for p in positions]
    wanted = {
        i: numerical(func, inputs, xs[i], outputs, o.eps)
        for i in range(len(xs)) if only is None or only[1] == i
    }  # fmt: skip
    pairs = [(k, part) for part in (IMAGINARY, REAL) for k, out in enumerate(outputs)
             if (part == REAL or is_complex(out)) and (only is None or only[0] == k)]  # fmt: skip
    if o.check_forward_ad:
        for i in wanted:
            columns = forward_columns(func, inputs, positions[i], outputs)
            for k, part in pairs:
                compare(columns.jacobian(k, part), wanted[i].jacobian(k, part), k, i, outputs[k],
                        xs[i], part, o, forward=True)  # fmt: skip
    if o.check_backward_ad:
        for k, part in pairs:
            found = analytical(outputs[k], xs, part, o.nondet_tol, o.check_grad_dtypes)
            for i in wanted:
                compare(found[i], wanted[i].jacobian(k, part), k, i, outputs[k], xs[i], part, o)


def compare(
    found: Any, wanted: Any, k: int, i: int, output: Tensor, x: Tensor, part: str, o: Options,
    forward: bool = False,
) -> None:  # fmt: skip
    """Refuse a Jacobian that differs from the numerical one."""
    if not agree(found, wanted, o.atol, o.rtol):
        raise failure(mismatch(found, wanted, k, i, output, x, part, o.atol, o.rtol, forward))


def zeros_of(tensors: Sequence[Tensor]) -> list[Tensor]:
    """A zero cotangent for each."""
    return [wrap(np.zeros(x._data.shape, x._data.dtype)) for x in tensors]


def check_linear(outputs: list[Tensor], xs: list[Tensor]) -> None:
    """A backward pass is linear in its cotangents: from zeros come zeros."""
    found = grad(outputs, xs, zeros_of(outputs), retain_graph=True, allow_unused=True)
    for i, g in enumerate(found):
        if g is not None and not np.all(wide(g) == 0):
            raise failure(
                "backward not multiplied by grad_output: cotangents of zero give a gradient in "
                f"input {i} that is not zero"
            )


def check_undefined(outputs: list[Tensor], xs: list[Tensor]) -> None:
    """A backward pass that reaches only some of the outputs; the others have no cotangent."""
    for k in range(len(outputs)):
        rest = [x for j, x in enumerate(outputs) if j != k]
        try:
            found = grad(rest, xs, zeros_of(rest), retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            raise failure(
                "Expected backward function to handle undefined output grads: without a cotangent "
                f"for output {k} it raised {type(error).__name__}: {error}"
            ) from error
        for i, g in enumerate(found):
            if g is not None and not np.all(wide(g) == 0):
                raise failure(
                    "Expected all input grads to be undefined or zero when all output grads are "
                    f"undefined or zero: without a cotangent for output {k}, that of input {i} is "
                    "not"
                )


# ---------------------------------------------------------------- batches
BATCH = 2


def random_batch(x: Tensor, rng: np.random.Generator) -> Any:
    """A few random tensors like `x`, along a new first dim."""
    shape = (BATCH, *x._data.shape)
    values = rng.normal(size=shape)
    if is_complex(x):
        values = values + 1j * rng.normal(size=shape)
    return np.asarray(values).astype(x._data.dtype)


def check_batched(output: Tensor, k: int, xs: list[Tensor]) -> None:
    """Gradients with `is_grads_batched` equal those of a loop."""
    seeds = random_batch(output, np.random.default_rng(k))
    try:
        found = grad(output, xs, wrap(seeds), retain_graph=True, allow_unused=True,
                     is_grads_batched=True)  # fmt: skip
    except RuntimeError as error:
        raise failure(f"While computing batched gradients, got: {error}") from error
    for b in range(BATCH):
        alone = grad(output, xs, wrap(np.asarray(seeds[b])), retain_graph=True, allow_unused=True)
        for i, (g, batch) in enumerate(zip(alone, found, strict=True)):
            compare_batched(g, batch, b, f"For output {k} and input {i}", "batched gradient")


def compare_batched(g: Tensor | None, batch: Tensor | None, b: int, where: str, what: str) -> None:
    """One slice of a batch against what was computed alone."""
    alone = np.zeros(()) if g is None else wide(g)
    slice_ = np.zeros(()) if batch is None else wide(wrap(np.asarray(batch._data[b])))
    if not np.allclose(slice_, alone, rtol=1e-5, atol=1e-8, equal_nan=True):
        raise failure(
            f"{where}: gradcheck or gradgradcheck failed while testing {what} computation: "
            f"example {b} of the batch gives {slice_}, alone it gives {alone}"
        )


def check_batched_tangents(
    func: Function, inputs: tuple[Any, ...], positions: list[int]
) -> None:
    """Forward mode under `vmap` equals a loop."""
    for n, p in enumerate(positions):
        tangents = random_batch(inputs[p], np.random.default_rng(n))

        def push(tangent: Tensor, p: int = p) -> tuple[Tensor, ...]:
            duals = [
                forward.make_dual(x, tangent) if k == p else x for k, x in enumerate(inputs)
            ]
            pairs = [forward.unpack_dual(y) for y in differentiable(outputs_of(func, duals))]
            return tuple(
                zeros_of([q.primal])[0] if q.tangent is None else q.tangent for q in pairs
            )

        try:
            with forward.dual_level():
                found = vmap(push)(wrap(tangents))
        except RuntimeError as error:
            raise failure(f"While computing batched gradients, got: {error}") from error
        for b in range(BATCH):
            alone = pushed(func, inputs, {p: wrap(np.asarray(tangents[b]))})
            for k, (t, batch) in enumerate(zip(alone, found, strict=True)):
                compare_batched(t, batch, b, f"For output {k} and input {n}",
                                "forward-mode batched gradient")  # fmt: skip


def check_missing_tangents(
    func: Function, inputs: tuple[Any, ...], positions: list[int]
) -> None:
    """An input without a tangent counts as one whose tangent is zero."""
    for n, p in enumerate(positions):
        tangents = random_batch(inputs[p], np.random.default_rng(n))[0]
        mine = {p: wrap(np.asarray(tangents))}
        others = {q: zeros_of([inputs[q]])[0] for q in positions if q != p}
        alone = pushed(func, inputs, mine)
        filled = pushed(func, inputs, {**others, **mine})
        for k, (a, b) in enumerate(zip(alone, filled, strict=True)):
            if not np.allclose(wide(a), wide(b), rtol=1e-5, atol=1e-8, equal_nan=True):
                raise failure(
                    f"Expected forward mode to treat missing tangents as zeros: for output {k} "
                    f"and input {n} the two differ"
                )
