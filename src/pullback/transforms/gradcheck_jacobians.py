"""Jacobians for `gradcheck` (layer 5): by differences, by backward passes, by forward mode.

Everything is a real function here.  A complex output counts twice, by its real and its imaginary
part; for a complex input z = a + ib the entry of a real output L is dL/da + i dL/db, which is the
gradient in PyTorch's convention.  Jacobians have a row for each element of the input, and a column
for each element of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.api import forward
from pullback.api.autograd import grad
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentTypeError, PullbackError

Array = Any
Function = Callable[..., Any]
REAL, IMAGINARY = "real", "imaginary"


class GradcheckError(PullbackError, RuntimeError):
    """What `gradcheck` found wrong."""


def failure(message: str) -> GradcheckError:
    """The error, with the user's line."""
    return GradcheckError(with_site(message))


# ---------------------------------------------------------------- values of the function
def outputs_of(func: Function, inputs: Sequence[Any]) -> list[Tensor]:
    """All outputs of one call, checked to be Tensors."""
    result = func(*inputs)
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    for i, x in enumerate(found):
        if not isinstance(x, Tensor):
            raise ArgumentTypeError(
                with_site(
                    "gradcheck: the function must return a Tensor or a tuple of Tensors, but "
                    f"output {i} is {type(x).__name__}"
                )
            )
    return found


def differentiable(tensors: Sequence[Any]) -> list[Tensor]:
    """Those that require grad."""
    return [x for x in tensors if isinstance(x, Tensor) and x._requires_grad]


def is_complex(x: Tensor) -> bool:
    """Whether a tensor counts by two parts."""
    return bool(x._data.dtype.kind == "c")


def wide(x: Tensor) -> Array:
    """A flat copy of the values, in double precision."""
    return np.array(x._data, dtype=complex if is_complex(x) else float).reshape(-1)


# ---------------------------------------------------------------- differences
def difference(
    func: Function, inputs: Sequence[Any], x: Tensor, where: Any, step: Any, eps: float,
    keep: Callable[[Tensor], bool],
) -> list[Array]:  # fmt: skip
    """(f(x + step) - f(x - step)) / 2 eps, flat, for each output that `keep` chooses.

    The memory of `x` is changed and put back, so that a function that reads the tensor otherwise
    than by its arguments (the parameters of a module) sees the change too.
    """
    data = x._data
    before = data.copy()
    try:
        data[where] = before[where] - step
        low = [wide(o) for o in outputs_of(func, inputs) if keep(o)]
        data[where] = before[where] + step
        high = [wide(o) for o in outputs_of(func, inputs) if keep(o)]
    finally:
        data[...] = before
    with np.errstate(all="ignore"):
        return [(b - a) / (2 * eps) for a, b in zip(low, high, strict=True)]


def part_of(values: Array, part: str) -> Array:
    """The real or imaginary part of what may be real."""
    return np.imag(values) if part == IMAGINARY else np.real(values)


class Columns:
    """The derivatives of all outputs along the elements of one input, filled row by row."""

    def __init__(self, x: Tensor, outputs: Sequence[Tensor]) -> None:
        self.complex_input = is_complex(x)
        n = x.numel()
        kinds = 2 if self.complex_input else 1
        self.rows = [
            np.zeros((kinds, n, o.numel()), complex if is_complex(o) else float) for o in outputs
        ]

    def put(self, kind: int, row: int, values: Sequence[Array]) -> None:
        """The derivatives along the real (kind 0) or imaginary (1) direction of one element."""
        for table, v in zip(self.rows, values, strict=True):
            table[kind, row] = v

    def jacobian(self, k: int, part: str) -> Array:
        """Of output `k`: dL/da, or dL/da + i dL/db for a complex input."""
        found = part_of(self.rows[k], part)
        return found[0] + 1j * found[1] if self.complex_input else found[0]


def numerical(
    func: Function, inputs: Sequence[Any], x: Tensor, outputs: Sequence[Tensor], eps: float,
    keep: Callable[[Tensor], bool] = lambda o: o._requires_grad,
) -> Columns:  # fmt: skip
    """The Jacobians in one input by central differences, two calls for each of its elements."""
    columns = Columns(x, outputs)
    for row, where in enumerate(np.ndindex(*x._data.shape)):
        for kind, step in enumerate((eps, 1j * eps) if columns.complex_input else (eps,)):
            columns.put(kind, row, difference(func, inputs, x, where, step, eps, keep))
    return columns


# ---------------------------------------------------------------- backward passes
def pullback_of(output: Tensor, inputs: Sequence[Tensor], cotangent: Array) -> list[Tensor | None]:
    """The gradients for one cotangent; the graph is kept."""
    return list(grad(output, list(inputs), wrap(cotangent), retain_graph=True, allow_unused=True))


def analytical(
    output: Tensor, inputs: Sequence[Tensor], part: str, nondet_tol: float, check_dtypes: bool
) -> list[Array]:
    """The Jacobians of one part of an output in all inputs, a backward pass for each element.

    Each pass is run twice: what differs by more than `nondet_tol` is an error.
    """
    found = [
        np.zeros((x.numel(), output.numel()), complex if is_complex(x) else float) for x in inputs
    ]
    for column in range(output.numel()):
        seed = np.zeros(output._data.size, output._data.dtype)
        seed[column] = 1j if part == IMAGINARY else 1
        seed = seed.reshape(output._data.shape)
        first = pullback_of(output, inputs, seed)
        second = pullback_of(output, inputs, seed.copy())
        for i, (g, again, x) in enumerate(zip(first, second, inputs, strict=True)):
            check_repeats(g, again, i, nondet_tol)
            if g is not None:
                check_gradient(g, x, i, check_dtypes)
                found[i][:, column] = wide(g)
    return found


def check_gradient(g: Tensor, x: Tensor, i: int, check_dtypes: bool) -> None:
    """A gradient has the shape of its input, and on demand its dtype."""
    if g.shape != x.shape:
        raise failure(
            f"Analytical gradient has incorrect size: for input {i} of shape {list(x.shape)} it "
            f"is {list(g.shape)}"
        )
    if check_dtypes and g.dtype != x.dtype:
        raise failure(
            f"Gradient has dtype mismatch: for input {i} of {x.dtype} it is {g.dtype}"
        )


def check_repeats(g: Tensor | None, again: Tensor | None, i: int, nondet_tol: float) -> None:
    """Two passes over the same graph must agree."""
    if g is None or again is None:
        if g is not again:
            raise failure(f"Backward is not reentrant: one of two passes did not reach input {i}")
        return
    a, b = wide(g), wide(again)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    gap = float(np.max(np.abs(a[~same] - b[~same]), initial=0.0))
    if not gap <= nondet_tol:
        raise failure(
            "Backward is not reentrant, i.e., running backward with same input and grad_output "
            f"multiple times gives different values: for input {i} they differ by {gap:.3g}. The "
            f"tolerance for nondeterminism was {nondet_tol}."
        )


# ---------------------------------------------------------------- forward mode
def pushed(
    func: Function, inputs: Sequence[Any], tangents: dict[int, Tensor]
) -> list[Tensor]:
    """The tangents of the differentiable outputs, zeros where there is none.

    tangents: by position in `inputs`.
    """
    with forward.dual_level():
        duals = [
            forward.make_dual(x, tangents[k]) if k in tangents else x
            for k, x in enumerate(inputs)
        ]
        pairs = [forward.unpack_dual(o) for o in differentiable(outputs_of(func, duals))]
        return [
            wrap(np.zeros(p.primal._data.shape, p.primal._data.dtype))
            if p.tangent is None
            else p.tangent.detach()
            for p in pairs
        ]


def forward_columns(
    func: Function, inputs: Sequence[Any], position: int, outputs: Sequence[Tensor]
) -> Columns:
    """The Jacobians in one input by forward mode, a call for each of its elements."""
    x = inputs[position]
    columns = Columns(x, outputs)
    for row in range(x.numel()):
        for kind in range(2 if columns.complex_input else 1):
            direction = np.zeros(x._data.size, x._data.dtype)
            direction[row] = 1j if kind else 1
            tangent = wrap(direction.reshape(x._data.shape))
            columns.put(kind, row, [wide(t) for t in pushed(func, inputs, {position: tangent})])
    return columns


# ---------------------------------------------------------------- comparing
def excess(found: Array, wanted: Array, atol: float, rtol: float) -> Array:
    """How far each entry lies outside the tolerance; infinite for NaN, negative where all is well.

    As `torch.allclose(found, wanted)`: |found - wanted| <= atol + rtol |wanted|, and equal
    infinities agree.
    """
    with np.errstate(all="ignore"):
        gap = np.abs(found - wanted) - (atol + rtol * np.abs(wanted))
        gap = np.where(found == wanted, -1.0, gap)
        return np.where(np.isnan(gap), np.inf, gap)


def agree(found: Array, wanted: Array, atol: float, rtol: float) -> bool:
    """Whether all entries are within the tolerance."""
    return bool(np.all(excess(found, wanted, atol, rtol) <= 0))


def table(values: Array) -> str:
    """A small picture of a Jacobian."""
    return np.array2string(
        values, precision=4, suppress_small=True, threshold=120, max_line_width=96
    )


def mismatch(
    found: Array, wanted: Array, k: int, i: int, output: Tensor, x: Tensor, part: str,
    atol: float, rtol: float, forward: bool = False,
) -> str:  # fmt: skip
    """What differs, where, and by how much."""
    start = ""
    if is_complex(output):
        start = f"While considering the {part} part of complex outputs only, "
    mode = "computed with forward mode " if forward else ""
    beyond = excess(found, wanted, atol, rtol)
    row, column = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
    n, a = wanted[row, column], found[row, column]
    with np.errstate(all="ignore"):
        gap = float(np.abs(a - n))
    relative = gap / float(np.abs(n)) if n else float("inf")
    return (
        f"{start}Jacobian {mode}mismatch for output {k} with respect to input {i},\n"
        f"numerical:{table(wanted)}\nanalytical:{table(found)}\n"
        "(a row for each element of the input, a column for each of the output)\n"
        f"{int((beyond > 0).sum())} of {beyond.size} entries differ. The worst is "
        f"d output{index(column, output)} / d input{index(row, x)}: "
        f"numerical {number(n)}, analytical {number(a)}, absolute difference {gap:.4g}, relative "
        f"{relative:.4g}; allowed is atol={atol:g} + rtol={rtol:g} * |numerical| = "
        f"{atol + rtol * float(np.abs(n)):.4g}"
    )


def index(flat: Any, x: Tensor) -> str:
    """The index of an element, as one writes it."""
    place = np.unravel_index(int(flat), x._data.shape) if x._data.shape else ()
    return str([int(p) for p in place]) if place else ""


def number(value: Any) -> str:
    """Six digits of a real or complex number."""
    return f"{complex(value):.6g}" if np.iscomplexobj(value) else f"{float(value):.6g}"
