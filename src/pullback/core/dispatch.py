"""Which interpreter handles a call of a primitive (layer 1).

Values are NumPy arrays, numbers, Tensors, or values of a transform.  Arrays are tried first, at the
cost of one dict look-up per argument.  Among the others the transform of the highest level wins:
it sees Tensors of lower levels as constants, which is what lets levels nest in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Makes a Tensor of an array; filled in by the layer that has Tensors.
WRAP: Callable[[Any], Any] = lambda array: array  # noqa: E731

# type -> (rank of a value of that type, handler(primitive, args, params))
INTERPRETERS: dict[type, tuple[Callable[[Any], float], Callable[..., Any]]] = {}


def register_interpreter(
    kind: type, rank: Callable[[Any], float], handler: Callable[..., Any]
) -> None:
    """Let calls with a value of type `kind` go to `handler` when its rank is the highest."""
    INTERPRETERS[kind] = (rank, handler)


def interpret(primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Run the primitive under the interpreter of the highest-ranking argument."""
    best, chosen = -1.0, None
    for a in args:
        entry = INTERPRETERS.get(type(a))
        if entry is not None:
            rank = entry[0](a)
            if rank > best:
                best, chosen = rank, entry[1]
    assert chosen is not None
    return chosen(primitive, args, params)
