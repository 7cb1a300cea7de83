"""The fast mode of `gradcheck` (layer 5): one random projection of each Jacobian.

With a random direction u in an input and a random weight v on an output, the number v^T J u comes
from two calls of the function, from one backward pass, and from one forward pass; a wrong entry of
J changes it, unless u and v happen to hide it.  Complex vectors count by their real and imaginary
parts, so that the number is always real.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.eager.tensor import Tensor, wrap
from pullback.transforms.gradcheck_jacobians import (
    Function,
    check_gradient,
    check_repeats,
    difference,
    is_complex,
    pullback_of,
    pushed,
    wide,
)


class Failed(NamedTuple):
    """The first projection that differs: which (output, input), and in words."""

    pair: tuple[int, int]
    message: str


def unit(x: Tensor, rng: np.random.Generator) -> Any:
    """A random vector of length 1, shaped as `x`, in double precision."""
    found = np.asarray(rng.uniform(0.1, 1, x._data.shape))
    if is_complex(x):
        found = found + 1j * rng.uniform(0.1, 1, x._data.shape)
    length = np.sqrt(np.sum(np.abs(found) ** 2))
    return found / length if found.size else found


def inner(a: Any, b: Any) -> float:
    """The real inner product of flat vectors, real or complex."""
    return float(np.sum((np.conj(a) * b).real))


def check_fast(
    func: Function, inputs: Sequence[Any], positions: list[int], outputs: list[Tensor], o: Any
) -> Failed | None:
    """The first output and input whose projections differ; None when all agree.

    o: the `Options` of the check.
    """
    rng = np.random.default_rng(0)
    xs = [inputs[p] for p in positions]
    directions = [unit(x, rng) for x in xs]
    weights = [unit(out, rng) for out in outputs]
    numbers = []
    for x, u in zip(xs, directions, strict=True):
        if not u.size:  # no direction: the Jacobian has no entries
            numbers.append([0.0] * len(outputs))
            continue
        moved = difference(
            func, inputs, x, ..., (o.eps * u).astype(x._data.dtype), o.eps,
            lambda y: y._requires_grad,
        )  # fmt: skip
        numbers.append([inner(v.reshape(-1), d) for v, d in zip(weights, moved, strict=True)])
    if o.check_forward_ad:
        for i, (p, u) in enumerate(zip(positions, directions, strict=True)):
            tangent = wrap(np.asarray(u.astype(xs[i]._data.dtype)))
            found = pushed(func, inputs, {p: tangent})
            for k, (v, t) in enumerate(zip(weights, found, strict=True)):
                failed = _compare(numbers[i][k], inner(v.reshape(-1), wide(t)), k, i, u, v, o, True)
                if failed is not None:
                    return failed
    if o.check_backward_ad:
        for k, (out, v) in enumerate(zip(outputs, weights, strict=True)):
            seed = np.asarray(v.astype(out._data.dtype))
            gradients = pullback_of(out, xs, seed)
            again = pullback_of(out, xs, seed.copy())
            for i, (g, h, u) in enumerate(zip(gradients, again, directions, strict=True)):
                check_repeats(g, h, i, o.nondet_tol)
                if g is not None:
                    check_gradient(g, xs[i], i, o.check_grad_dtypes)
                value = 0.0 if g is None else inner(wide(g), u.reshape(-1))
                failed = _compare(numbers[i][k], value, k, i, u, v, o, False)
                if failed is not None:
                    return failed
    return None


def _compare(
    numerical: float, value: float, k: int, i: int, u: Any, v: Any, o: Any, forward: bool
) -> Failed | None:
    """Entries may differ by atol each, so that the projection may by atol * sum|u| * sum|v|."""
    allowed = o.atol * float(np.abs(u).sum() * np.abs(v).sum()) + o.rtol * abs(numerical)
    if value == numerical or abs(value - numerical) <= allowed:
        return None
    mode = "computed with forward mode " if forward else ""
    return Failed(
        (k, i),
        f"Jacobian {mode}mismatch for output {k} with respect to input {i},\n"
        f"numerical:{numerical:.6g}\nanalytical:{value:.6g}\n"
        "These are random projections v^T J u (fast_mode=True), with a tolerance of "
        f"{allowed:.4g}. No single entry is out of tolerance in the slow mode",
    )
