"""A traced program (layer 5): instructions over primitives, that prints and replays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.primitive import array_of
from pullback.core.quiet import silent_context
from pullback.eager.traced import Instruction, Ref
from pullback.errors import ArgumentRuntimeError, UnsupportedError
from pullback.typing import Shape


class Program:
    """Straight-line code over arrays.

    `inputs` and `outputs` are value numbers; `shapes[n]` is the shape and dtype of value n.
    """

    def __init__(
        self,
        inputs: Sequence[int],
        outputs: Sequence[Any],
        instructions: Sequence[Instruction],
        shapes: Sequence[tuple[Shape, Any]],
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.instructions = tuple(instructions)
        self.shapes = tuple(shapes)

    def live(self) -> Program:
        """The program without instructions that no output needs."""
        needed = {int(o) for o in self.outputs if isinstance(o, Ref)}
        kept = []
        for i in reversed(self.instructions):
            if needed.intersection(i.results):
                kept.append(i)
                needed.update(int(o) for o in i.operands if isinstance(o, Ref))
        return Program(self.inputs, self.outputs, kept[::-1], self.shapes)

    def replay(self, *arrays: Any) -> tuple[Any, ...]:
        """Run on new arrays of the traced shapes and dtypes.

        Raises RuntimeError for another number, shape or dtype of inputs.
        """
        if len(arrays) != len(self.inputs):
            raise ArgumentRuntimeError(
                with_site(f"replay: needs {len(self.inputs)} inputs, got {len(arrays)}")
            )
        values: dict[int, Any] = {}
        for i, (number, a) in enumerate(zip(self.inputs, arrays, strict=True)):
            shape, dtype = self.shapes[number]
            if a.shape != shape or a.dtype != dtype:
                raise ArgumentRuntimeError(
                    with_site(
                        f"replay: input {i} was traced as {dtype}{list(shape)}, got "
                        f"{a.dtype}{list(a.shape)}: trace again"
                    )
                )
            values[number] = a
        run = silent_context().run
        for step in self.instructions:
            operands = [values[int(o)] if isinstance(o, Ref) else o for o in step.operands]
            result = run(step.primitive.forward, *operands, **step.params)
            for n, r in zip(step.results, result if isinstance(result, tuple) else (result,),
                            strict=True):  # fmt: skip
                values[n] = array_of(r)
        return tuple(values[int(o)] if isinstance(o, Ref) else o for o in self.outputs)

    def __str__(self) -> str:
        def name(operand: Any) -> str:
            if isinstance(operand, Ref):
                return f"%{int(operand)}"
            if isinstance(operand, np.ndarray):
                return f"const{list(operand.shape)}" if operand.size > 1 else f"{operand.item()!r}"
            return repr(operand)

        def described(number: int) -> str:
            shape, dtype = self.shapes[number]
            return f"{dtype}{list(shape)}"

        lines = [f"%{n} = input: {described(n)}" for n in self.inputs]
        for i in self.instructions:
            results = ", ".join(f"%{n}" for n in i.results)
            params = "".join(f", {k}={v!r}" for k, v in i.params.items())
            operands = ", ".join(name(o) for o in i.operands)
            lines.append(
                f"{results} = {i.primitive.name}({operands}{params}): "
                f"{described(i.results[0])}  # {i.call_site}"
            )
        lines.append("return " + ", ".join(name(o) for o in self.outputs))
        return "\n".join(lines)

    __repr__ = __str__

    def fused(self) -> Any:
        """One native loop that computes all outputs, for elementwise programs of one dtype.

        Raises UnsupportedError for programs with other operations, shapes or dtypes.
        """
        from pullback.native.fuse import FusedLoop
        from pullback.native.fuse import Instruction as Step

        shape, dtype = self.shapes[self.inputs[0]]
        order = {n: k for k, n in enumerate(self.inputs)}
        steps: list[Any] = []
        for i in self.instructions:
            result_shape, result_dtype = self.shapes[i.results[0]]
            if i.primitive.name in ("reshape", "broadcast_to", "sum") or result_shape != shape:
                raise UnsupportedError(
                    with_site(
                        f"fused: {i.primitive.name} at {i.call_site} is not elementwise over "
                        f"{list(shape)}"
                    )
                )
            operands = tuple(
                order[int(o)] if isinstance(o, Ref) else float(np.asarray(o)) for o in i.operands
            )
            steps.append(Step(i.primitive.name, operands, tuple(i.params.items())))
            order[i.results[0]] = len(self.inputs) + len(steps) - 1
            if result_dtype != dtype and result_dtype != np.bool_:
                raise UnsupportedError(with_site(f"fused: mixed dtypes {dtype}, {result_dtype}"))
        outputs = tuple(order[int(o)] for o in self.outputs)
        return FusedLoop(len(self.inputs), tuple(steps), outputs, dtype)
