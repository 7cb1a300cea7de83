"""One fused elementwise loop (layer 6): several primitives, one pass over memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.primitive import REGISTRY
from pullback.core.quiet import silent_context
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, UnsupportedError
from pullback.native.builder import Builder
from pullback.native.entry import DONE, TRAPPED, Entry, Slot, headers_are_readable, may_be_one
from pullback.native.llvm import Compiled, bindings
from pullback.native.loop import BOOL, Body, Loop, as_text
from pullback.typing import Array


class Instruction(NamedTuple):
    """A primitive on values: an int is the number of an input or of an earlier instruction
    (inputs come first), a float is a constant; `params` are the primitive's, as pairs."""

    primitive: str
    operands: tuple[int | float, ...]
    params: tuple[tuple[str, Any], ...] = ()


class Variant(NamedTuple):
    """Machine code for inputs of certain kinds: which are 0-d, which are boolean."""

    entry: Any  # by array headers: the quick way; None where headers cannot be read
    loop: Any  # by addresses
    lead: int  # the input whose shape is that of the results
    slots: tuple[Slot, ...]
    dtypes: tuple[Any, ...]  # of the results
    exact: bool  # whether an output may be one of the inputs
    code: Compiled  # keeps the memory


_CACHE: dict[Any, Variant] = {}


class FusedLoop:
    """A native function of n arrays of one shape, or 0-d arrays that stand for all elements.

    Inputs have the loop's dtype or are boolean; an output is boolean if its value is a condition.

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
        if self.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise UnsupportedError(
                with_site(f"fused loop: needs float32 or float64, got {self.dtype}")
            )
        self.n_inputs = n_inputs
        self.program = tuple(program)
        self.outputs = tuple(outputs)
        self._variants: dict[Any, Variant] = {}
        # The variant used last, which the next call tries first: entry, lead, the dtype if there is
        # one output, all dtypes, and the variant, which keeps the code.  One tuple, because another
        # thread may replace it in the middle of a call.
        self._recent: tuple[Any, int, Any, tuple[Any, ...], Any] = (None, 0, None, (), None)
        for k, step in enumerate(self.program):
            _check_step(step, k + n_inputs)
        if not self.outputs:
            raise ArgumentTypeError(with_site("fused loop: needs at least one output, got none"))
        for number in self.outputs:
            _check_number(number, n_inputs + len(self.program), "an output")

    def __call__(self, *arrays: Array, out: Sequence[Array] | None = None) -> tuple[Array, ...]:
        """Run on arrays of one shape (or 0-d); results are new arrays, or those given as `out`.

        An array of `out` may be one of the inputs (except for sin, cos and tan), but must not
        overlap one otherwise.

        Raises RuntimeError for other dtypes or shapes, or memory that is not contiguous.
        """
        entry, lead, single, dtypes, keep = self._recent  # `keep` keeps the code alive
        if entry is not None and len(arrays) == self.n_inputs:
            if out is not None:
                results = tuple(out)
            else:
                first = arrays[lead] if arrays else None
                shape = first.shape if type(first) is np.ndarray else ()
                if single is not None:  # the commonest case, worth its own lines
                    result = np.empty(shape, single)
                    if entry(*map(id, arrays), id(result)) == DONE:
                        return (result,)
                    return self._carefully(arrays, None)
                results = tuple([np.empty(shape, d) for d in dtypes])
            # `arrays` and `results` keep alive what is passed by address
            if len(results) == len(dtypes) and entry(*map(id, (*arrays, *results))) == DONE:
                return results
        return self._carefully(arrays, out)

    # ------------------------------------------------------------ calls that are not the usual one
    def _carefully(self, arrays: Sequence[Array], out: Sequence[Array] | None) -> tuple[Array, ...]:
        """Find what is wrong and say so; else run, and be quick next time."""
        if len(arrays) != self.n_inputs:
            raise ArgumentTypeError(
                with_site(f"fused loop: needs {self.n_inputs} arrays, got {len(arrays)}", 3)
            )
        shape = self._common_shape(arrays)
        key = tuple((a.ndim == 0, a.dtype == BOOL) for a in arrays)
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants.setdefault(key, self._compiled(key))
        single = variant.dtypes[0] if len(variant.dtypes) == 1 else None
        self._recent = (variant.entry, variant.lead, single, variant.dtypes, variant)
        if out is None:
            results = tuple(np.empty(shape, d) for d in variant.dtypes)
        else:
            results = tuple(out)
            _check_results(results, arrays, shape, variant)
        addresses = [a.__array_interface__["data"][0] for a in (*arrays, *results)]
        if variant.loop(results[0].size, *addresses) == TRAPPED:
            self._by_numpy(arrays, results)
        return results

    def _common_shape(self, arrays: Sequence[Array]) -> tuple[int, ...]:
        shape: tuple[int, ...] = ()
        for i, a in enumerate(arrays):
            _check(a, f"array {i}", (self.dtype, BOOL), 5)
            if a.ndim:
                if shape and a.shape != shape:
                    raise ArgumentRuntimeError(
                        with_site(f"fused loop: shapes {list(shape)} and {list(a.shape)} differ", 4)
                    )
                shape = a.shape
        return shape

    def _by_numpy(self, arrays: Sequence[Array], results: Sequence[Array]) -> None:
        """The same program by the primitives themselves, for arguments that the loop gave up on."""
        run = silent_context().run
        values: list[Any] = list(arrays)
        for step in self.program:
            operands = [values[o] if isinstance(o, int) else o for o in step.operands]
            forward = REGISTRY[step.primitive].forward
            values.append(np.asarray(run(forward, *operands, **dict(step.params))))
        for r, number in zip(results, self.outputs, strict=True):
            r[...] = values[number]

    # ------------------------------------------------------------ code
    def _compiled(self, key: tuple[tuple[bool, bool], ...]) -> Variant:
        whole = (self.n_inputs, self.program, self.outputs, self.dtype.name, key)
        # 0.0 == -0.0, so equal programs may differ: the text tells them apart
        found = _CACHE.get((whole, repr(self.program)))
        if found is None:
            found = _CACHE.setdefault((whole, repr(self.program)), self._make(key))
        return found

    def _make(self, key: tuple[tuple[bool, bool], ...]) -> Variant:
        module, slots, exact = self._module(key)
        code = Compiled(as_text(module))
        pointers = [ctypes.c_void_p] * len(slots)
        entry = None
        if headers_are_readable():
            entry = ctypes.CFUNCTYPE(ctypes.c_int, *pointers)(code.address("entry"))
        loop = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, *pointers)(code.address("loop"))
        lead = next((i for i, s in enumerate(slots) if not s.scalar and not s.output), 0)
        dtypes = tuple(s.dtype for s in slots if s.output)
        return Variant(entry, loop, lead, slots, dtypes, exact, code)

    def assembly(self, *scalars: bool) -> str:
        """The machine code as text, for inputs that are all arrays unless said otherwise."""
        flags = scalars or (False,) * self.n_inputs
        return self._compiled(tuple((s, False) for s in flags)).code.assembly()

    def _module(self, key: tuple[tuple[bool, bool], ...]) -> tuple[Any, tuple[Slot, ...], bool]:
        ir, binding = bindings()
        module = ir.Module("fused")
        module.triple = binding.get_default_triple()
        inputs = [Slot(BOOL if boolean else self.dtype, scalar, False) for scalar, boolean in key]
        loop = Loop(ir, module, Body(inputs, len(self.outputs), self._compute), self.dtype)
        exact = not loop.trapped  # a trap computes again, from inputs that must still be there
        if headers_are_readable():
            Entry(ir, module, loop.function, loop.slots, exact)
        return module, loop.slots, exact

    def _compute(self, make: Builder, inputs: list[Any]) -> list[Any]:
        """The outputs, as LLVM values."""
        values = list(inputs)
        for step in self.program:
            operands = [
                values[o] if isinstance(o, int) else make.constant(o) for o in step.operands
            ]
            value = REGISTRY[step.primitive].lower(make, *operands, **dict(step.params))
            if all(map(make.is_condition, operands)) and not make.is_condition(value):
                make.refuse_booleans()  # the dtype of a number made of them is not the loop's
            values.append(value)
        return [values[number] for number in self.outputs]


def _check_step(step: Instruction, known: int) -> None:
    """Refuse what cannot be lowered, before any code is made."""
    primitive = REGISTRY.get(step.primitive)
    if primitive is None or primitive.lower is None:
        raise UnsupportedError(
            with_site(
                f"fused loop: the primitive {step.primitive!r} has no lowering to native code", 4
            )
        )
    if len(step.operands) != len(primitive.inputs):
        raise ArgumentTypeError(
            with_site(
                f"fused loop: {step.primitive} needs {len(primitive.inputs)} operands, got "
                f"{len(step.operands)}",
                4,
            )
        )
    given = sorted(name for name, _ in step.params)
    if given != sorted(primitive.params):
        raise UnsupportedError(
            with_site(
                f"fused loop: {step.primitive} needs the parameters {sorted(primitive.params)}, "
                f"got {given}",
                4,
            )
        )
    for o in step.operands:
        if isinstance(o, bool) or not isinstance(o, (int, float)):
            raise ArgumentTypeError(
                with_site(
                    f"fused loop: an operand of {step.primitive} must be the number of a value "
                    f"(int) or a constant (float), got {o!r}",
                    4,
                )
            )
        if isinstance(o, int):
            _check_number(o, known, f"an operand of {step.primitive}")


def _check_number(number: int, known: int, what: str) -> None:
    if not 0 <= number < known:
        raise ArgumentTypeError(
            with_site(f"fused loop: {what} is value {number}, but there are only {known} so far", 4)
        )


def _check(a: Any, what: str, dtypes: tuple[Any, ...], depth: int) -> None:
    if (
        not isinstance(a, np.ndarray)
        or a.dtype not in dtypes
        or not (a.flags.c_contiguous and a.flags.aligned)
    ):
        described = f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else type(a).__name__
        if isinstance(a, np.ndarray) and a.dtype in dtypes:
            described += " that is not contiguous: copy it with np.ascontiguousarray"
        raise ArgumentRuntimeError(
            with_site(
                f"fused loop: {what} must be a contiguous {dtypes[0]} array, got {described}", depth
            )
        )


def _check_results(
    results: Sequence[Any], arrays: Sequence[Array], shape: tuple[int, ...], variant: Variant
) -> None:
    """Whether `out` fits: number, dtypes, shapes, and memory apart from all else."""
    if len(results) != len(variant.dtypes):
        raise ArgumentTypeError(
            with_site(
                f"fused loop: needs {len(variant.dtypes)} arrays in out, got {len(results)}", 4
            )
        )
    everything = (*arrays, *results)
    for k, r in enumerate(results):
        _check(r, f"out {k}", (variant.dtypes[k],), 5)
        if r.shape != shape or not r.flags.writeable:
            raise ArgumentRuntimeError(
                with_site(f"fused loop: out {k} must be a writable array of {list(shape)}", 4)
            )
        place = len(arrays) + k
        for i, other in enumerate(everything[:place]):
            same = r.__array_interface__["data"][0] == other.__array_interface__["data"][0]
            if same and may_be_one(variant.slots[place], variant.slots[i], variant.exact):
                continue
            if np.may_share_memory(r, other):
                what = f"array {i}" if i < len(arrays) else f"out {i - len(arrays)}"
                raise ArgumentRuntimeError(
                    with_site(f"fused loop: out {k} shares memory with {what}", 4)
                )
