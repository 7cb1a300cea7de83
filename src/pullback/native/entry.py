"""The native way in (layer 6): checks arrays by their headers, then runs the loop.

Asking Python for the address, shape and flags of an array costs more than a short loop takes.  So
the function that Python calls gets the arrays themselves and reads their headers, whose layout is
part of NumPy's C interface (`PyArrayObject_fields` in `ndarraytypes.h`).  Anything but plain arrays
that fit is reported back untouched, for Python to look at in peace.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

DONE, REFUSED, TRAPPED = 0, 1, 2  # what a native call returns

# Offsets in bytes behind the object header, which is longer in Python without GIL.
HEADER = object.__basicsize__
TYPE = HEADER - 8
DATA, NDIM, DIMENSIONS, DTYPE, FLAGS = HEADER, HEADER + 8, HEADER + 16, HEADER + 40, HEADER + 48
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400


@functools.cache
def headers_are_readable() -> bool:
    """Whether array headers lie in memory as expected; if not, loops are called by addresses."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    a = np.empty((2, 3), np.float32)

    def word(offset: int, kind: Any = ctypes.c_void_p) -> Any:
        return kind.from_address(id(a) + offset).value

    dimensions = word(DIMENSIONS)
    return (
        word(TYPE) == id(np.ndarray)
        and word(DATA) == a.ctypes.data
        and word(NDIM, ctypes.c_int32) == 2
        and [ctypes.c_int64.from_address(dimensions + 8 * k).value for k in range(2)] == [2, 3]
        and word(DTYPE) == id(a.dtype)
        and word(FLAGS, ctypes.c_int32) == a.flags.num
    )


class Slot(NamedTuple):
    """What one array argument must be."""

    dtype: Any
    scalar: bool  # 0-d; all others have one shape
    output: bool


class Entry:
    """Writes `i32 entry(array, ...)`, which checks its arguments and calls the loop."""

    def __init__(self, ir: Any, module: Any, loop: Any, slots: Sequence[Slot], exact: bool) -> None:
        self._ir = ir
        self._byte, self._word, self._long = ir.IntType(8), ir.IntType(32), ir.IntType(64)
        self._pointer = self._byte.as_pointer()
        self._slots = slots
        self._exact = exact  # an output may be an input
        kind = ir.FunctionType(self._word, [self._pointer] * len(slots))
        self._function = ir.Function(module, kind, "entry")
        self._b = ir.IRBuilder(self._function.append_basic_block("entry"))
        self._refused = self._function.append_basic_block("refused")
        self._write(loop)
        self._b.position_at_end(self._refused)
        self._b.ret(ir.Constant(self._word, REFUSED))

    def _write(self, loop: Any) -> None:
        b = self._b
        arrays = list(self._function.args)
        for a, slot in zip(arrays, self._slots, strict=True):
            self._check_header(a, slot)
        # the last output has the shape of all that are no scalars
        lead = arrays[-1]
        ndim = self._field(lead, NDIM, self._word)
        dimensions = self._field(lead, DIMENSIONS, self._long.as_pointer())
        others = [
            self._field(a, DIMENSIONS, self._long.as_pointer())
            for a, slot in zip(arrays[:-1], self._slots, strict=False)
            if self._has_shape(a, slot, ndim)
        ]
        n = self._count(ndim, dimensions, others)
        addresses = [self._field(a, DATA, self._long) for a in arrays]
        self._check_overlap(addresses, n)
        pointers = [
            b.inttoptr(address, p.type) for address, p in zip(addresses, loop.args[1:], strict=True)
        ]
        b.ret(b.call(loop, [n, *pointers]))

    # ------------------------------------------------------------ pieces
    def _field(self, array: Any, offset: int, kind: Any) -> Any:
        address = self._b.gep(array, [self._ir.Constant(self._long, offset)])
        return self._b.load(self._b.bitcast(address, kind.as_pointer()), typ=kind)

    def _require(self, condition: Any) -> None:
        go_on = self._function.append_basic_block("go_on")
        self._b.cbranch(condition, go_on, self._refused)
        self._b.position_at_end(go_on)

    def _check_header(self, a: Any, slot: Slot) -> None:
        b, constant = self._b, self._ir.Constant
        # Types and dtypes are compared by identity; that is why such code serves one process.
        of_type = b.icmp_unsigned(
            "==", self._field(a, TYPE, self._long), constant(self._long, id(np.ndarray))
        )
        self._require(of_type)
        same = b.icmp_unsigned(
            "==", self._field(a, DTYPE, self._long), constant(self._long, id(slot.dtype))
        )
        wanted = CONTIGUOUS | ALIGNED | (WRITEABLE if slot.output else 0)
        mask = constant(self._word, wanted)
        flags = b.and_(self._field(a, FLAGS, self._word), mask)
        self._require(b.and_(same, b.icmp_unsigned("==", flags, mask)))

    def _has_shape(self, a: Any, slot: Slot, ndim: Any) -> bool:
        """Whether the dims are to be compared, after the check of their number."""
        wanted = self._ir.Constant(self._word, 0) if slot.scalar else ndim
        self._require(self._b.icmp_signed("==", self._field(a, NDIM, self._word), wanted))
        return not slot.scalar

    def _count(self, ndim: Any, dimensions: Any, others: Sequence[Any]) -> Any:
        """The number of elements; leaves if the dims of the others differ."""
        b, constant = self._b, self._ir.Constant
        one, start = constant(self._long, 1), b.block
        head = self._function.append_basic_block("dims")
        body = self._function.append_basic_block("dim")
        done = self._function.append_basic_block("counted")
        rank = b.sext(ndim, self._long)
        b.branch(head)
        b.position_at_end(head)
        k, n = b.phi(self._long), b.phi(self._long)
        k.add_incoming(constant(self._long, 0), start)
        n.add_incoming(one, start)
        b.cbranch(b.icmp_signed("<", k, rank), body, done)
        b.position_at_end(body)
        size = b.load(b.gep(dimensions, [k], source_etype=self._long), typ=self._long)
        for other in others:
            its = b.load(b.gep(other, [k], source_etype=self._long), typ=self._long)
            self._require(b.icmp_signed("==", its, size))
        n.add_incoming(b.mul(n, size), b.block)
        k.add_incoming(b.add(k, one), b.block)
        b.branch(head)
        b.position_at_end(done)
        return n

    def _check_overlap(self, addresses: Sequence[Any], n: Any) -> None:
        """An output is apart from every other array, or (element by element) one of the inputs."""
        b, constant = self._b, self._ir.Constant

        def end(i: int) -> Any:
            slot = self._slots[i]
            size = constant(self._long, slot.dtype.itemsize)
            return b.add(addresses[i], size if slot.scalar else b.mul(n, size))

        for o, output in enumerate(self._slots):
            for i, other in enumerate(self._slots[:o]):
                if not output.output:
                    continue
                fits = b.or_(
                    b.icmp_unsigned("<=", end(o), addresses[i]),
                    b.icmp_unsigned("<=", end(i), addresses[o]),
                )
                if may_be_one(output, other, self._exact):
                    fits = b.or_(fits, b.icmp_unsigned("==", addresses[o], addresses[i]))
                self._require(fits)


def may_be_one(output: Slot, other: Slot, exact: bool) -> bool:
    """Whether an output may lie exactly where another array lies."""
    return exact and not other.output and not other.scalar and other.dtype == output.dtype
