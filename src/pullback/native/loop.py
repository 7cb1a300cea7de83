"""The loop itself (layer 6): loads, lowerings, stores, once per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.native.builder import Builder
from pullback.native.entry import DONE, TRAPPED, Slot

BOOL = np.dtype(np.bool_)
# llvmlite cannot write nodes of metadata that are distinct or name themselves: see `as_text`
GROUP, LOOP = "pullback access group", "pullback loop"


class Body(NamedTuple):
    """What a loop computes: `compute` makes the outputs from the inputs, both as LLVM values."""

    inputs: Sequence[Slot]
    n_outputs: int
    compute: Callable[[Builder, list[Any]], list[Any]]


class Loop:
    """Writes `i32 loop(i64 n, pointer, ...)`; afterwards `slots` and `trapped` tell what it is."""

    def __init__(self, ir: Any, module: Any, body: Body, dtype: Any) -> None:
        self._ir, self._module = ir, module
        self._byte, self._long = ir.IntType(8), ir.IntType(64)
        pointers = [self._byte.as_pointer()] * (len(body.inputs) + body.n_outputs)
        self.function = ir.Function(
            module, ir.FunctionType(ir.IntType(32), [self._long, *pointers]), "loop"
        )
        self._b = ir.IRBuilder(self.function.append_basic_block("start"))
        self.make = Builder(ir, self._b, dtype.name)
        # The iterations touch different elements, whichever arrays are the same: said by metadata,
        # because `noalias` would forbid results in place.
        self._group = module.add_metadata([ir.MetaDataString(module, GROUP)])
        self.slots: tuple[Slot, ...] = ()
        self.trapped = False
        self._write(body, dtype)

    def _write(self, body: Body, dtype: Any) -> None:
        b, ir = self._b, self._ir
        n, *pointers = self.function.args
        start = b.block
        loop = self.function.append_basic_block("loop")
        done = self.function.append_basic_block("done")
        zero, one = ir.Constant(self._long, 0), ir.Constant(self._long, 1)
        sources = list(zip(pointers, body.inputs, strict=False))
        first = b.icmp_signed(">", n, zero)
        begin = self.function.append_basic_block("begin")
        b.cbranch(first, begin, done)
        b.position_at_end(begin)
        constants = [self._load(p, s.dtype) if s.scalar else None for p, s in sources]
        b.branch(loop)
        b.position_at_end(loop)
        i = b.phi(self._long)
        i.add_incoming(zero, begin)
        trap = b.phi(ir.IntType(32))
        trap.add_incoming(ir.Constant(trap.type, DONE), begin)
        values = [
            self._load(p, s.dtype, i) if c is None else c
            for (p, s), c in zip(sources, constants, strict=True)
        ]
        results = body.compute(self.make, values)
        kinds = [BOOL if self.make.is_condition(r) else dtype for r in results]
        scalar = all(s.scalar for s in body.inputs)
        self.slots = (*body.inputs, *(Slot(kind, scalar, True) for kind in kinds))
        for p, r, kind in zip(pointers[len(sources) :], results, kinds, strict=True):
            self._store(p, r, kind, i)
        trapped = trap
        self.trapped = bool(self.make.traps)
        for t in self.make.traps:
            trapped = b.or_(trapped, b.select(t, ir.Constant(trap.type, TRAPPED),
                                              ir.Constant(trap.type, DONE)))  # fmt: skip
        after = b.add(i, one, flags=("nsw",))
        i.add_incoming(after, b.block)
        trap.add_incoming(trapped, b.block)
        again = b.cbranch(b.icmp_signed("<", after, n), loop, done)
        again.set_metadata("llvm.loop", self._loop_metadata())
        b.position_at_end(done)
        status = b.phi(trap.type)
        status.add_incoming(ir.Constant(trap.type, DONE), start)
        status.add_incoming(trapped, loop)
        b.ret(status)

    # ------------------------------------------------------------ memory
    def _address(self, pointer: Any, kind: Any, i: Any) -> Any:
        pointer = self._b.bitcast(pointer, kind.as_pointer())
        return pointer if i is None else self._b.gep(pointer, [i], source_etype=kind)

    def _load(self, pointer: Any, dtype: Any, i: Any = None) -> Any:
        kind = self._byte if dtype == BOOL else self.make.type
        value = self._b.load(self._address(pointer, kind, i), typ=kind, align=dtype.itemsize)
        if i is not None:
            value.set_metadata("llvm.access.group", self._group)
        if dtype == BOOL:
            return self._b.icmp_unsigned("!=", value, self._ir.Constant(kind, 0))
        return value

    def _store(self, pointer: Any, value: Any, dtype: Any, i: Any) -> None:
        kind = self._byte if dtype == BOOL else self.make.type
        if dtype == BOOL:
            value = self._b.zext(value, kind)
        store = self._b.store(value, self._address(pointer, kind, i), align=dtype.itemsize)
        store.set_metadata("llvm.access.group", self._group)

    def _loop_metadata(self) -> Any:
        string = self._ir.MetaDataString
        parallel = self._module.add_metadata(
            [string(self._module, "llvm.loop.parallel_accesses"), self._group]
        )
        return self._module.add_metadata([string(self._module, LOOP), parallel])


def as_text(module: Any) -> str:
    """The module for LLVM to parse, with its access group and loop made distinct."""
    lines = []
    for line in str(module).splitlines():
        name, equals, _ = line.partition(" = ")
        if equals and f'!"{GROUP}"' in line:
            line = f"{name} = distinct !{{}}"
        elif equals and f'!"{LOOP}"' in line:
            line = line.replace("= !{", "= distinct !{").replace(f'!"{LOOP}"', name)
        lines.append(line)
    return "\n".join(lines)
