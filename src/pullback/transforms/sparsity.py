"""Which outputs depend on which inputs: index sets carried through a trace (layer 5).

Each value of a traced program has a pattern: a boolean csr array with a row for each element and a
column for each element of the program's input.  A primitive maps the patterns of its operands to
those of its results.  What only moves elements is run on element numbers instead of values, and so
needs no rule of its own.  A primitive that is not known here counts as dense: every element of its
results depends on every element of its operands, which is always safe.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.primitive import Primitive
from pullback.eager.traced import Instruction, Ref
from pullback.errors import UnsupportedError
from pullback.ops.indexing import INDEX, gather, pick, take
from pullback.ops.special import windows
from pullback.tracing import Program
from pullback.typing import Array, Shape

# Results that do not change with their inputs, as far as derivatives are concerned.
FLAT = {"sign", "floor", "ceil", "trunc", "round"}
# Each element of the result is one element of an operand, or a constant.
MOVES = {
    "reshape", "broadcast_to", "permute", "flip", "roll", "cat", "stack", "cut", "pad_zeros",
    "split", "unbind", "tile", "diagonal", "diagonal_scatter", "tril", "triu", "uncut", "getitem",
    "gather", "take", "pick", "unpick", "scatter", "view_write", "replace", "windows",
    *(f"index{n}" for n in INDEX), *(f"index_put{n}" for n in INDEX),
}  # fmt: skip
# The operands of these that hold elements; the others are positions, and must be constants.
ELEMENTS = {"scatter": (0, 2), "view_write": (0, 1), "replace": (1,)} | {
    f"index_put{n}": (0, 1) for n in INDEX
}
MOST_ENTRIES = 200_000_000  # of one pattern: about a gigabyte

Rule = Callable[["Patterns", Instruction], "list[Any]"]


class Dense(Exception):
    """The patterns grow beyond what is worth holding."""


class Patterns:
    """The patterns of the values of one program, filled in instruction by instruction."""

    def __init__(self, program: Program) -> None:
        import scipy.sparse

        self.sparse = scipy.sparse
        self.program = program
        (number,) = program.inputs
        self.n = math.prod(program.shapes[number][0])
        self.known: dict[int, Any] = {number: self.identity(self.n)}

    # ------------------------------------------------------------ making patterns
    def identity(self, size: int) -> Any:
        """Each element depends on itself."""
        return self.matrix(np.arange(size + 1), np.arange(size), (size, size))

    def matrix(self, starts: Array, columns: Array, shape: Shape) -> Any:
        """A boolean csr array."""
        entries = np.ones(len(columns), bool)
        return self.sparse.csr_array((entries, columns, starts), shape=shape)

    def pairs(self, rows: Array, columns: Array, shape: Shape) -> Any:
        """A boolean csr array with entries at (rows, columns)."""
        entries = np.ones(len(rows), bool)
        return self.sparse.coo_array((entries, (rows, columns)), shape=shape).tocsr()

    def empty(self, size: int) -> Any:
        """Elements that depend on nothing."""
        return self.sparse.csr_array((size, self.n), dtype=bool)

    # ------------------------------------------------------------ reading a program
    def of(self, operand: Any) -> Any:
        """The pattern of an operand: None for one that depends on nothing."""
        if not isinstance(operand, Ref):
            return None
        found = self.known[int(operand)]
        return found if found.nnz else None

    def shape(self, operand: Any) -> Shape:
        """The shape of an operand."""
        if isinstance(operand, Ref):
            return self.program.shapes[int(operand)][0]
        return np.shape(operand)

    def size(self, operand: Any) -> int:
        """The number of elements of an operand."""
        return math.prod(self.shape(operand))

    def result_shape(self, step: Instruction, k: int = 0) -> Shape:
        """The shape of a result."""
        return self.program.shapes[step.results[k]][0]

    # ------------------------------------------------------------ combining patterns
    def rows(self, pattern: Any, numbers: Array) -> Any:
        """The rows at `numbers`, repeated at will."""
        numbers = numbers.reshape(-1)
        counts = np.diff(pattern.indptr)
        if int(counts[numbers].sum()) > MOST_ENTRIES:
            raise Dense
        return pattern[numbers]

    def union(self, patterns: list[Any], size: int) -> Any:
        """What depends on any of them."""
        found: list[Any] = []
        for p in patterns:
            if p is not None and not any(p is q for q in found):
                found.append(p)
        if not found:
            return self.empty(size)
        total = found[0]
        for p in found[1:]:
            total = total + p
        return total

    def through(self, local: Any, pattern: Any) -> Any:
        """The pattern after a step whose own pattern is `local`: (results, elements)."""
        work = int((local.sum(0, dtype=np.int64) * np.diff(pattern.indptr)).sum())
        if work > 4 * MOST_ENTRIES:
            raise Dense
        return (local @ pattern).tocsr()

    def grouped(self, pattern: Any, targets: Array, size: int) -> Any:
        """Element k counts for result `targets[k]`."""
        targets = targets.reshape(-1)
        local = self.pairs(targets, np.arange(len(targets)), (size, len(targets)))
        return self.through(local, pattern)

    def everything(self, patterns: list[Any], size: int) -> Any:
        """`size` elements each of which depends on all that the patterns depend on."""
        columns = [np.unique(p.indices) for p in patterns if p is not None]
        if not columns or not size:
            return self.empty(size)
        every = np.unique(np.concatenate(columns))
        if len(every) * size > MOST_ENTRIES:
            raise Dense
        starts = np.arange(size + 1) * len(every)
        return self.matrix(starts, np.tile(every, size), (size, self.n))

    # ------------------------------------------------------------ running
    def step(self, step: Instruction) -> None:
        """Fill in the patterns of the results of an instruction."""
        if all(self.of(o) is None for o in step.operands) or (
            not step.primitive.differentiable or step.primitive.name in FLAT
        ):
            found = None
        else:
            found = rule_of(step.primitive)(self, step)
        for k, number in enumerate(step.results):
            size = math.prod(self.result_shape(step, k))
            self.known[number] = self.empty(size) if found is None else found[k]


# ---------------------------------------------------------------- the rules
def dense(all_: Patterns, step: Instruction) -> list[Any]:
    """Everything depends on everything: for primitives that are not known."""
    patterns = [all_.of(o) for o in step.operands]
    return [
        all_.everything(patterns, math.prod(all_.result_shape(step, k)))
        for k in range(len(step.results))
    ]


def numbered(shape: Shape) -> Array:
    """The numbers of the elements of a value."""
    return np.arange(math.prod(shape)).reshape(shape)


def elementwise(all_: Patterns, step: Instruction) -> list[Any]:
    """Corresponding elements, with broadcasting; the condition of `where` has no derivative."""
    shape = all_.result_shape(step)
    operands = step.operands[1:] if step.primitive.name == "where" else step.operands
    return [aligned_union(all_, operands, shape)]


def aligned_union(all_: Patterns, operands: Any, shape: Shape) -> Any:
    """What elements of operands that broadcast to `shape` depend on together."""
    found = []
    for o in operands:
        p = all_.of(o)
        if p is not None and all_.shape(o) != shape:
            p = all_.rows(p, np.broadcast_to(numbered(all_.shape(o)), shape))
        found.append(p)
    return all_.union(found, math.prod(shape))


def constants(step: Instruction, places: Any) -> bool:
    """Whether the operands other than those at `places` are constants."""
    return not any(isinstance(o, Ref) for i, o in enumerate(step.operands) if i not in places)


def moves(all_: Patterns, step: Instruction) -> list[Any]:
    """Run the primitive on element numbers (0: a constant) and see where they end up."""
    count = len(step.operands)
    several = step.primitive.variadic
    places = ELEMENTS.get(step.primitive.name, range(count) if several else (0,))
    if not constants(step, places):
        return dense(all_, step)
    patterns, labels, start = [all_.empty(1)], list(step.operands), 1
    for i in places:
        o, p = step.operands[i], all_.of(step.operands[i])
        if p is None:
            labels[i] = np.zeros(all_.shape(o), np.int64)
        else:
            labels[i] = numbered(all_.shape(o)) + start
            patterns.append(p)
            start += p.shape[0]
    if step.primitive.name == "replace":
        labels[0] = labels[1]
    found = step.primitive.forward(*labels, **step.params)
    stacked = all_.sparse.vstack(patterns, format="csr")
    return [
        all_.rows(stacked, np.asarray(r))
        for r in (found if isinstance(found, tuple) else (found,))
    ]


def reduction(all_: Patterns, step: Instruction) -> list[Any]:
    """Each result depends on the elements that are reduced into it."""
    shape, axis = all_.shape(step.operands[0]), step.params["axis"]
    if not constants(step, (0,)):
        return dense(all_, step)
    kept = tuple(1 if i in axis else n for i, n in enumerate(shape))
    return [groups(all_, step.operands[0], kept)]


def groups(all_: Patterns, operand: Any, kept: Shape) -> Any:
    """The pattern of a reduction to shape `kept`, whose dims are those of the operand or 1."""
    targets = np.broadcast_to(numbered(kept), all_.shape(operand))
    return all_.grouped(all_.of(operand), targets, math.prod(kept))


def along_axis(all_: Patterns, step: Instruction) -> list[Any]:
    """Each result depends on all elements of its slice along one axis."""
    shape, axis = all_.shape(step.operands[0]), step.params["axis"]
    kept = tuple(1 if i == axis else n for i, n in enumerate(shape))
    whole = groups(all_, step.operands[0], kept)
    return [all_.rows(whole, np.broadcast_to(numbered(kept), shape))]


def running(all_: Patterns, step: Instruction) -> list[Any]:
    """Each result depends on the elements of its slice up to its own place."""
    shape, axis = all_.shape(step.operands[0]), step.params["axis"]
    if not shape:
        return [all_.of(step.operands[0])]
    length = shape[axis]
    lines = np.moveaxis(numbered(shape), axis, -1).reshape(-1, length)
    if lines.shape[0] * length * (length + 1) // 2 > MOST_ENTRIES:
        raise Dense
    below, upto = np.tril_indices(length)
    local = all_.pairs(
        lines[:, below].reshape(-1), lines[:, upto].reshape(-1), (lines.size, lines.size)
    )
    return [all_.through(local, all_.of(step.operands[0]))]


def adds(reading: Callable[..., Any]) -> Rule:
    """Elements added at positions: the transpose of reading there, so read the numbers there."""

    def rule(all_: Patterns, step: Instruction) -> list[Any]:
        if not constants(step, (0,)):
            return dense(all_, step)
        params = {k: v for k, v in step.params.items() if k != "shape"}
        shape = all_.result_shape(step)
        targets = reading(numbered(shape), *step.operands[1:], **params)
        targets = np.broadcast_to(targets, all_.shape(step.operands[0]))
        return [all_.grouped(all_.of(step.operands[0]), targets, math.prod(shape))]

    return rule


def adds_to(n: int) -> Rule:
    """`index_add_put`: x plus values at positions."""

    def rule(all_: Patterns, step: Instruction) -> list[Any]:
        if not constants(step, (0, 1)):
            return dense(all_, step)
        x, value, *positions = step.operands
        shape = all_.result_shape(step)
        targets = INDEX[n].forward(numbered(shape), *positions, **step.params)
        found = all_.of(value)
        if found is not None:
            sources = np.broadcast_to(numbered(all_.shape(value)), targets.shape)
            found = all_.grouped(all_.rows(found, sources), targets, math.prod(shape))
        return [all_.union([all_.of(x), found], math.prod(shape))]

    return rule


def scatter_add(all_: Patterns, step: Instruction) -> list[Any]:
    """x plus src at positions along one axis; src may be larger than the positions."""
    x, index, src = step.operands
    if isinstance(index, Ref):
        return dense(all_, step)
    shape = all_.result_shape(step)
    targets = gather.forward(numbered(shape), np.asarray(index), **step.params)
    found = all_.of(src)
    if found is not None:
        sources = numbered(all_.shape(src))
        if sources.ndim:
            sources = sources[tuple(slice(0, k) for k in targets.shape)]
        sources = np.broadcast_to(sources, targets.shape)
        found = all_.grouped(all_.rows(found, sources), targets, math.prod(shape))
    return [all_.union([all_.of(x), found], math.prod(shape))]


def copied(all_: Patterns, step: Instruction) -> list[Any]:
    """`copy`: the source, broadcast over what it overwrites."""
    return [aligned_union(all_, step.operands[1:], all_.result_shape(step))]


# ---------------------------------------------------------------- products
def product(all_: Patterns, step: Instruction) -> list[Any]:
    """Products of matrices: exact where one factor is a constant matrix."""
    operands, name = step.operands, step.primitive.name
    shape = all_.result_shape(step)
    if name == "addmm":
        a, b, added = operands[1], operands[2], operands[0]
    elif name == "linear":
        a, b, added = operands[0], operands[1], operands[2]
        if isinstance(b, Ref):
            return [all_.union([aligned_union(all_, (added,), shape), *contracted(
                all_, (a, b), ("ij", "kj"), "ik", shape)], math.prod(shape))]  # fmt: skip
        b = np.asarray(b).T
    else:
        (a, b), added = operands, None
    found = times_constant(all_, a, b, shape)
    if added is not None:
        found.append(aligned_union(all_, (added,), shape))
    return [all_.union(found, math.prod(shape))]


def times_constant(all_: Patterns, a: Any, b: Any, shape: Shape) -> list[Any]:
    """The patterns of a @ b by its operands."""
    left, right = all_.shape(a), all_.shape(b)
    wide = {1: "j", 2: "ij"}
    if not isinstance(a, Ref) and len(left) == 2 and len(right) <= 2:
        columns = right[1] if len(right) == 2 else 1
        local = all_.sparse.kron(
            all_.sparse.csr_array(np.asarray(a) != 0), all_.identity(columns), format="csr"
        )
        return [all_.through(local.astype(bool), all_.of(b))]
    if not isinstance(b, Ref) and len(right) == 2:
        local = all_.sparse.kron(
            all_.identity(math.prod(left[:-1])), all_.sparse.csr_array(np.asarray(b).T != 0),
            format="csr",
        )  # fmt: skip
        return [all_.through(local.astype(bool), all_.of(a))]
    batch = "ABCDEFGH"[: max(len(left), len(right), 2) - 2]
    first = (batch[len(batch) - max(len(left) - 2, 0) :]) + wide[min(len(left), 2)]
    second = (batch[len(batch) - max(len(right) - 2, 0) :]) + ("jk" if len(right) > 1 else "j")
    out = batch + ("i" if len(left) > 1 else "") + ("k" if len(right) > 1 else "")
    return contracted(all_, (a, b), (first, second), out, shape)


def contracted(
    all_: Patterns, operands: Any, terms: Any, out: str, shape: Shape
) -> list[Any]:  # fmt: skip
    """Sums of products over named indices: each operand reduced, then repeated, into the result."""
    found = []
    for operand, term in zip(operands, terms, strict=True):
        p = all_.of(operand)
        if p is None:
            continue
        have = all_.shape(operand)
        kept = tuple(n if c in out else 1 for c, n in zip(term, have, strict=True))
        reduced = groups(all_, operand, kept)
        numbers = numbered(kept)
        # put the axes in the order of the result; a repeated or missing one has size 1
        order = [term.index(c) for c in out if c in term]
        rest = [i for i in range(len(term)) if i not in order]
        numbers = numbers.transpose(order + rest).reshape([kept[i] for i in order])
        spread = tuple(slice(None) if c in term else None for c in out)
        found.append(all_.rows(reduced, np.broadcast_to(numbers[spread], shape)))
    return found


def einsum(all_: Patterns, step: Instruction) -> list[Any]:
    """By the indices of the equation, which names none twice in one operand."""
    left, out = step.params["equation"].split("->")
    shape = all_.result_shape(step)
    found = contracted(all_, step.operands, left.split(","), out, shape)
    return [all_.union(found, math.prod(shape))]


def nll(all_: Patterns, step: Instruction) -> list[Any]:
    """One element of each slice, perhaps summed up."""
    x, index = step.operands
    if isinstance(index, Ref):
        return dense(all_, step)
    places = pick.forward(
        numbered(all_.shape(x)), np.asarray(index), axis=step.params["axis"], keepdims=False
    )
    picked = all_.rows(all_.of(x), np.asarray(places))
    summed = step.params["reduction"] != "none"
    return [all_.everything([picked], 1) if summed else picked]


def dot(all_: Patterns, step: Instruction) -> list[Any]:
    """The inner product of two vectors: entries against a constant 0 do not count."""
    a, b = step.operands
    for constant, other in ((a, b), (b, a)):
        if not isinstance(constant, Ref):
            nonzero = np.flatnonzero(np.asarray(constant))
            picked = all_.rows(all_.of(other), nonzero)
            return [all_.grouped(picked, np.zeros(len(nonzero), np.int64), 1)]
    return dense(all_, step)


RULES: dict[str, Rule] = {
    **dict.fromkeys(MOVES, moves),
    **dict.fromkeys(("softmax", "log_softmax"), along_axis),
    **dict.fromkeys(("cumsum", "cumprod"), running),
    **dict.fromkeys(("matmul", "mv", "addmm", "linear"), product),
    **{f"unindex{n}": adds(INDEX[n].forward) for n in INDEX},
    **{f"index_add_put{n}": adds_to(n) for n in INDEX},
    "ungather": adds(gather.forward), "untake": adds(take.forward), "scatter_add": scatter_add,
    "fold": adds(windows.forward), "nll": nll, "copy": copied, "einsum": einsum, "dot": dot,
}  # fmt: skip
BY_BATCHING: dict[str, Rule] = {"elementwise": elementwise, "reduction": reduction}


def rule_of(primitive: Primitive) -> Rule:
    """The rule of a primitive: by its name, by how it batches, or the safe one."""
    found = RULES.get(primitive.name)
    if found is None and isinstance(primitive.batch, str):
        found = BY_BATCHING.get(primitive.batch)
    return found or dense


def dependence(program: Program) -> Any:
    """The pattern of the Jacobian of a traced program with one input and one output.

    Returns a boolean scipy.sparse csr_array of shape (elements of the output, of the input): an
    entry wherever a derivative can be other than zero.

    Raises NotImplementedError where the pattern is so dense that holding it makes no sense.
    """
    all_ = Patterns(program)
    (output,) = program.outputs
    if not isinstance(output, Ref):
        return all_.empty(int(np.size(output)))
    size = math.prod(program.shapes[int(output)][0])
    try:
        for step in program.instructions:
            all_.step(step)
        found = all_.known[int(output)]
    except Dense:
        if size * all_.n > MOST_ENTRIES:
            raise UnsupportedError(
                with_site(
                    f"the {size} x {all_.n} matrix of derivatives is not sparse: its pattern has "
                    f"more than {MOST_ENTRIES} entries. Use products with it (func.vjp, func.jvp)"
                )
            ) from None
        starts = np.arange(size + 1) * all_.n
        found = all_.matrix(starts, np.tile(np.arange(all_.n), size), (size, all_.n))
    found.sum_duplicates()
    found.sort_indices()
    return found
