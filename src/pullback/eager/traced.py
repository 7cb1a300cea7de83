"""The payload of a trace (layer 3): a value that writes down what is done with it.

Operations run on the example value that it carries, and are recorded as instructions; control flow
that would look at a value is refused, because a replay could take the other branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.callsite import CallSite, here, with_site
from pullback.core.dispatch import register_interpreter
from pullback.core.primitive import Primitive, array_of
from pullback.core.quiet import silent_context
from pullback.errors import TracingError, UnsupportedError
from pullback.ops.operators import Operators
from pullback.typing import Params, Shape


class Instruction:
    """One primitive call of a trace: operands are value numbers, or constants."""

    __slots__ = ("primitive", "operands", "params", "results", "call_site")

    def __init__(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Params,
        results: tuple[int, ...], call_site: CallSite,
    ) -> None:  # fmt: skip
        self.primitive = primitive
        self.operands = operands
        self.params = params
        self.results = results
        self.call_site = call_site


class Ref(int):
    """The number of a traced value, told apart from an integer constant."""

    __slots__ = ()


class Recorder:
    """What one trace has seen so far."""

    __slots__ = ("instructions", "shapes", "run")

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.shapes: list[tuple[Shape, Any]] = []  # of each value: shape, dtype
        self.run = silent_context().run

    def value(self, example: Any) -> Traced:
        """A new value with the next number."""
        self.shapes.append((example.shape, example.dtype))
        return Traced(self, len(self.shapes) - 1, example)


class Traced(Operators):
    """A value of a trace, as a payload."""

    __slots__ = ("recorder", "number", "example")
    level = 0.25  # above plain tensors (0.1), below every `vmap` (1 and up)

    def __init__(self, recorder: Recorder, number: int, example: Any) -> None:
        self.recorder = recorder
        self.number = number
        self.example = example

    @property
    def shape(self) -> Shape:
        """The shape, fixed for the trace."""
        found: Shape = self.example.shape
        return found

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.example.shape)

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return self.example.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.example.size)

    def __bool__(self) -> bool:
        raise TracingError(
            with_site(
                "a Python branch on the value of a tensor inside a traced function: a replay "
                "could take the other branch. Use torch.where"
            )
        )

    def __repr__(self) -> str:
        return f"Traced(%{self.number}: {self.dtype}{list(self.shape)})"


def call_traced(primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
    """Run a primitive on the examples, and record the call."""
    recorders = {id(a.recorder): a.recorder for a in args if type(a) is Traced}
    if len(recorders) > 1:
        raise UnsupportedError(with_site("values of two traces met in one operation"))
    recorder = next(iter(recorders.values()))
    examples: list[Any] = []
    operands: list[Any] = []
    for a in args:
        if type(a) is Traced:
            examples.append(a.example)
            operands.append(Ref(a.number))
        elif isinstance(a, (np.ndarray, np.generic, bool, int, float, complex)):
            examples.append(a)
            operands.append(np.array(a) if isinstance(a, np.ndarray) else a)
        elif hasattr(a, "_data") and isinstance(a._data, np.ndarray):
            if a._requires_grad:
                raise UnsupportedError(
                    with_site(
                        "a traced function uses a tensor that requires grad and is no argument: "
                        "pass it as an argument"
                    )
                )
            examples.append(a._data)
            operands.append(a._data.copy())
        else:
            raise UnsupportedError(with_site(f"a trace cannot hold a {type(a).__name__}"))
    result = recorder.run(primitive.forward, *examples, **params)
    parts = result if isinstance(result, tuple) else (result,)
    values = tuple(recorder.value(array_of(r)) for r in parts)
    recorder.instructions.append(
        Instruction(primitive, tuple(operands), params, tuple(v.number for v in values), here(2))
    )
    return values if isinstance(result, tuple) else values[0]


register_interpreter(Traced, lambda value: value.level, call_traced)
