"""All parameters as one vector, and back (layer 6)."""

from __future__ import annotations

from typing import Any

from pullback.api.movement import cat
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError


def parameters_to_vector(parameters: Any) -> Tensor:
    """The elements of all parameters one after another, with gradients that lead back to them."""
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Any) -> None:
    """Parameters whose memory is a vector's, one after another.

    Raises TypeError for no tensor, RuntimeError for a vector that is too short.
    """
    if not isinstance(vec, Tensor):
        raise ArgumentTypeError(
            with_site(f"expected torch.Tensor, but got: {type(vec).__name__}")
        )
    given = list(parameters)
    start = 0
    for p in given:
        left = vec._data.size - start
        if left < p._data.size:
            raise ArgumentRuntimeError(
                with_site(f"shape '{list(p.shape)}' is invalid for input of size {max(left, 0)}")
            )
        start += p._data.size
    start = 0
    for p in given:
        stop = start + p._data.size
        p.data = vec[start:stop].view_as(p).data
        start = stop
