"""One fused elementwise loop (layer 6): several primitives, one pass over memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.primitive import REGISTRY
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, UnsupportedError
from pullback.native.builder import Builder
from pullback.native.llvm import Compiled, bindings
from pullback.typing import Array


class Instruction(NamedTuple):
    """A primitive on values: an int is the number of an input or of an earlier instruction
    (inputs come first), a float is a constant."""

    primitive: str
    operands: tuple[int | float, ...]


_CACHE: dict[Any, Any] = {}


class FusedLoop:
    """A native function of n arrays of one shape, or 0-d arrays that stand for all elements.

    >>> from pullback.native import FusedLoop, Instruction
    >>> import numpy as np
    >>> program = (Instruction("exp", (0,)), Instruction("mul", (1, 0)))
    >>> loop = FusedLoop(1, program, (2,), np.float32)
    >>> loop(np.zeros(3, np.float32))[0].tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(
        self, n_inputs: int, program: Sequence[Instruction], outputs: Sequence[int], dtype: Any
    ) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype.name not in ("float32", "float64"):
            raise UnsupportedError(
                with_site(f"fused loop: needs float32 or float64, got {self.dtype}")
            )
        self.n_inputs = n_inputs
        self.program = tuple(program)
        self.outputs = tuple(outputs)
        self._functions: dict[tuple[bool, ...], Any] = {}
        for step in self.program:
            primitive = REGISTRY.get(step.primitive)
            if primitive is None or primitive.lower is None:
                raise UnsupportedError(
                    with_site(
                        f"fused loop: the primitive {step.primitive!r} has no lowering to native "
                        "code"
                    )
                )

    def __call__(self, *arrays: Array, out: Sequence[Array] | None = None) -> tuple[Array, ...]:
        """Run on arrays of one shape (or 0-d); results are new arrays, or those given as `out`.

        Raises RuntimeError for other dtypes or shapes, or memory that is not contiguous.
        """
        if len(arrays) != self.n_inputs:
            raise ArgumentTypeError(
                with_site(f"fused loop: needs {self.n_inputs} arrays, got {len(arrays)}")
            )
        shape: tuple[int, ...] = ()
        scalars = []
        for i, a in enumerate(arrays):
            self._check(a, f"array {i}")
            scalars.append(a.ndim == 0)
            if a.ndim:
                if shape and a.shape != shape:
                    raise ArgumentRuntimeError(
                        with_site(f"fused loop: shapes {list(shape)} and {list(a.shape)} differ")
                    )
                shape = a.shape
        if out is None:
            results = tuple(np.empty(shape, self.dtype) for _ in self.outputs)
        else:
            results = tuple(out)
            for i, r in enumerate(results):
                self._check(r, f"out {i}")
                if r.shape != shape or not r.flags.writeable:
                    raise ArgumentRuntimeError(
                        with_site(f"fused loop: out {i} must be a writable array of {list(shape)}")
                    )
                if any(np.may_share_memory(r, a) for a in arrays):
                    raise ArgumentRuntimeError(
                        with_site(f"fused loop: out {i} shares memory with an input")
                    )
        key = tuple(scalars)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self._compiled(key)
        n = results[0].size if results else 0
        function(n, *[a.__array_interface__["data"][0] for a in (*arrays, *results)])
        return results

    def _check(self, a: Any, what: str) -> None:
        if not isinstance(a, np.ndarray) or a.dtype != self.dtype or not a.flags.c_contiguous:
            described = f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else type(a)
            raise ArgumentRuntimeError(
                with_site(
                    f"fused loop: {what} must be a contiguous {self.dtype} array, got {described}"
                )
            )

    # ------------------------------------------------------------ code
    def _compiled(self, scalars: tuple[bool, ...]) -> Any:
        key = (self.n_inputs, self.program, self.outputs, self.dtype.name, scalars)
        found = _CACHE.get(key)
        if found is None:
            code = Compiled(self._module(scalars))
            count = self.n_inputs + len(self.outputs)
            kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * count)
            found = _CACHE[key] = (kind(code.address("loop")), code)
        return found[0]

    def assembly(self, *scalars: bool) -> str:
        """The machine code as text, for inputs that are all arrays unless said otherwise."""
        key = scalars or (False,) * self.n_inputs
        return Compiled(self._module(tuple(key))).assembly()

    def _module(self, scalars: tuple[bool, ...]) -> Any:
        ir, binding = bindings()
        module = ir.Module("fused")
        module.triple = binding.get_default_triple()
        size = ir.IntType(64)
        element = ir.FloatType() if self.dtype.name == "float32" else ir.DoubleType()
        count = self.n_inputs + len(self.outputs)
        kind = ir.FunctionType(ir.VoidType(), [size, *[element.as_pointer()] * count])
        function = ir.Function(module, kind, "loop")
        for argument in function.args[1:]:
            argument.add_attribute("noalias")  # outputs never share memory with inputs
        n, *pointers = function.args
        entry = function.append_basic_block("entry")
        body = function.append_basic_block("body")
        done = function.append_basic_block("done")
        builder = ir.IRBuilder(entry)
        constants = [
            builder.load(p) if scalar else None
            for p, scalar in zip(pointers[: self.n_inputs], scalars, strict=True)
        ]
        zero, one = ir.Constant(size, 0), ir.Constant(size, 1)
        builder.cbranch(builder.icmp_signed(">", n, zero), body, done)
        builder.position_at_end(body)
        i = builder.phi(size)
        i.add_incoming(zero, entry)
        make = Builder(ir, builder, self.dtype.name)
        values: list[Any] = [
            c if c is not None else builder.load(builder.gep(p, [i]))
            for p, c in zip(pointers[: self.n_inputs], constants, strict=True)
        ]
        for step in self.program:
            operands = [
                values[o] if isinstance(o, int) else make.constant(o) for o in step.operands
            ]
            values.append(REGISTRY[step.primitive].lower(make, *operands))
        for p, number in zip(pointers[self.n_inputs :], self.outputs, strict=True):
            builder.store(values[number], builder.gep(p, [i]))
        after = builder.add(i, one)
        i.add_incoming(after, builder.block)
        builder.cbranch(builder.icmp_signed("<", after, n), body, done)
        builder.position_at_end(done)
        builder.ret_void()
        return module
