"""Keeping gradients small (layer 6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pullback.api.creation import tensor
from pullback.api.modes import no_grad
from pullback.api.movement import stack
from pullback.api.reduce import norm
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError


def _gradients(parameters: Any) -> list[Tensor]:
    """The gradients of one tensor or of several, of those that have one."""
    given: Iterable[Any] = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p._grad for p in given if p._grad is not None]


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """The norm of all elements of all tensors, as if they were one vector.

    Raises RuntimeError for a norm that is not finite, with `error_if_nonfinite`.
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    order = float(norm_type)
    if not tensors:
        return tensor(0.0)
    total: Tensor = norm(stack([norm(t, order) for t in tensors]), order)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise ArgumentRuntimeError(
            with_site(
                f"The total norm of order {order} for gradients from `parameters` is non-finite, "
                "so it cannot be clipped. To disable this error and scale the gradients by the "
                "non-finite norm anyway, set `error_if_nonfinite=False`"
            )
        )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Multiplies the gradients by max_norm / total_norm, where that is less than 1."""
    grads = _gradients(parameters)
    if not grads:
        return
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(factor.to(g.dtype))


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Makes all gradients smaller by one factor, so that their norm together is at most max_norm.

    Returns the norm that they had.  Raises RuntimeError where it is not finite, with
    `error_if_nonfinite`.
    """
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    with no_grad():
        total = get_total_norm(_gradients(given), norm_type, error_if_nonfinite)
        clip_grads_with_norm_(given, max_norm, total)
    return total


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Keeps every element of all gradients between -clip_value and clip_value."""
    limit = float(clip_value)
    with no_grad():
        for g in _gradients(parameters):
            g.clamp_(-limit, limit)
