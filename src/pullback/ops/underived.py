"""Functions that PyTorch records but has no derivative of (layer 2)."""

from __future__ import annotations

from typing import Any

from pullback.core.callsite import with_site
from pullback.errors import ArgumentRuntimeError, UnsupportedError
from pullback.ops.kinds import general


def refusing(words: str, error: type[Exception] | None = None) -> Any:
    """A rule that raises what PyTorch does: RuntimeError for one of its C++ operations."""
    raised = error or (ArgumentRuntimeError if "aten::" in words else UnsupportedError)

    def rule(g: Any) -> Any:
        raise raised(with_site(words))

    return rule


def no_forward(function: str) -> Any:
    """The rule of a function that has no forward derivative either."""
    return refusing(
        f"Trying to use forward AD with {function} that does not support it because it has not "
        "been implemented yet.",
        UnsupportedError,
    )


def _refuse_backward(g: Any, words: str, needs: tuple[bool, ...]) -> Any:
    return refusing(words)(g)


def _refuse_forward(tangents: Any, primals: Any, params: Any, out: Any) -> Any:
    return no_forward(params["function"])(out)


def _batch(size: int, *values: Any, batched: tuple[bool, ...], **params: Any) -> Any:
    from pullback.ops.indexing import along

    return along(size, values[0], batched[0])


underived = general(
    "underived", lambda *values, function, words: values[0], joint=_refuse_backward,
    jvp=_refuse_forward, batch=_batch,
    doc="the first value, computed from the others by a function without derivative",
)  # fmt: skip
