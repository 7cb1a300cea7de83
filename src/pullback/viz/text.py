"""The graph as a text tree, and the words that all pictures share (layer 6)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pullback.core.callsite import CallSite, short_path
from pullback.viz.collapse import FUNCTION, ITERATION, LINE, RANGE, REPEAT, Group, shown
from pullback.viz.model import CONSTANT, DETACHED, LEAF, OP, ROOT, Model, Record, Shape, short_name

DEEPEST = 24  # levels of indentation before a branch is continued at the margin
WIDEST = 60  # characters of source text in one line


# ------------------------------------------------------------------ words
def bytes_text(count: int) -> str:
    """`8.0 KiB` for 8192."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def shape_text(shapes: Sequence[Shape], dtypes: Sequence[str]) -> str:
    """`(3, 4) float32`, for several outputs separated by commas."""
    parts = [f"{s} {d}" for s, d in zip(shapes, dtypes, strict=False)]
    return ", ".join(parts) if len(parts) <= 3 else f"{parts[0]}, ... {len(parts)} outputs"


def place_text(site: CallSite | None, full: bool = True) -> str:
    """`train.py:12`; the last part of the path only, unless `full`."""
    if site is None:
        return ""
    name = short_path(site.file) if full else os.path.basename(site.file)
    return f"{name}:{site.line}"


def source_text(site: CallSite | None, width: int = WIDEST) -> str:
    """The source line, cut to `width` characters."""
    return clip((site.source if site else None) or "", width)


def clip(text: str, width: int) -> str:
    """`text` in one line of at most `width` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def clip_end(text: str, width: int) -> str:
    """`text` cut to `width` characters, spaces untouched."""
    return text if len(text) <= width else text[: width - 3] + "..."


def plural(count: int, word: str) -> str:
    """`1 leaf`, `2 leaves`."""
    if count == 1:
        return f"1 {word}"
    return f"{count:,} " + ("leaves" if word == "leaf" else f"{word}s")


@dataclass(slots=True)
class Summary:
    """What a group says of its content."""

    title: str
    operations: int
    leaves: int
    owned_bytes: int
    site: CallSite | None  # of the first operation
    where: str  # `train.py:12`, or `train.py:12-17`
    one_line: bool  # whether all operations ran at one source line
    recipe: str  # the names of the operations, in order, of one iteration


def summarize(model: Model, group: Group) -> Summary:
    """Count a group, and find words for it."""
    operations = leaves = owned = 0
    first: CallSite | None = None
    lines: set[tuple[str, int]] = set()
    for i in group.leaves():
        record = model.records[i]
        owned += record.owned_bytes
        operations += record.kind == OP
        leaves += record.kind == LEAF
        if record.kind == OP and record.site is not None:
            first = first or record.site
            lines.add((record.site.file, record.site.line))
    return Summary(
        title_of(group, first, operations),
        operations,
        leaves,
        owned,
        first,
        span_text(lines),
        len(lines) == 1,
        recipe(model, group),
    )


def span_text(lines: set[tuple[str, int]]) -> str:
    """`train.py:12-17` for several lines of one file."""
    files = {os.path.basename(file) for file, _ in lines}
    if len(files) != 1:
        return f"{len(files)} files" if files else ""
    numbers = [number for _, number in lines]
    first, last = min(numbers), max(numbers)
    return f"{files.pop()}:{first}" + (f"-{last}" if last > first else "")


def title_of(group: Group, site: CallSite | None, operations: int) -> str:
    """What to call a group."""
    if group.kind == REPEAT:
        last = group.first + group.count - 1
        inner = group.parent is not None and group.parent.kind == REPEAT
        return f"iterations {group.first}-{last}" if inner else f"\u00d7 {group.count:,}"
    if group.kind == ITERATION:
        return f"iteration {group.first}"
    if group.kind == LINE:
        return f"line {site.line}" if site else "one line"
    if group.kind == FUNCTION:
        return f"{site.function}()" if site else "one function"
    return plural(operations, "operation") if group.kind == RANGE else group.kind


def recipe(model: Model, group: Group) -> str:
    """`Mul, Add, Tanh`: what one iteration does; a long list is counted instead."""
    body = group
    while body.kind == REPEAT:
        inner = [i for i in body.items if isinstance(i, Group)]
        if not inner:
            break
        body = inner[0]
    names = []
    plain = [i for i in body.leaves() if model.records[i].kind == OP]
    if body.kind == REPEAT:  # iterations of one operation each
        plain = plain[:1]
    names = [short_name(model.records[i].name) for i in plain[:400]]
    if len(plain) <= 6:
        return ", ".join(names)
    common = Counter(names).most_common(5)
    text = ", ".join(f"{n} {name}" if n > 1 else name for name, n in common)
    return text + (", ..." if len(set(names)) > 5 or len(plain) > 400 else "")


def headline(model: Model) -> str:
    """`graph of loss: 12 operations, 4 leaves; keeps 3.1 KiB for backward`."""
    roots = [model.records[i] for i in model.roots]
    named = ", ".join(r.label or r.name for r in roots[:3]) + (", ..." if len(roots) > 3 else "")
    kinds = Counter(r.kind for r in model.records)
    parts = [plural(kinds[OP], "operation"), plural(kinds[LEAF], "leaf")]
    if kinds[DETACHED]:
        parts.append(f"{kinds[DETACHED]:,} detached")
    freed = sum(r.freed for r in model.records)
    kept = bytes_text(sum(r.owned_bytes for r in model.records))
    tail = f"; keeps {kept} for backward" + (f", {freed:,} freed" if freed else "")
    return f"graph of {named}: {', '.join(parts)}{tail}"


def saved_text(record: Record) -> str:
    """What an operation keeps: `keeps 2.5 KiB (a, out)`."""
    if record.freed:
        return "freed"
    if not record.saved_bytes:
        return ""
    names = ", ".join(name for name, _, _ in record.saved[:4])
    return f"keeps {bytes_text(record.saved_bytes)} ({names})"


# ------------------------------------------------------------------ the tree
def tree(model: Model, top: Group) -> str:
    """The text tree: below each line, the inputs of what the line names.

    A single input follows at the same depth; several branch.  What is used more than once is
    listed once and numbered, and referred to by its number elsewhere.
    """
    return Tree(model, top).text()


class Tree:
    """Prints one tree, without recursion."""

    def __init__(self, model: Model, top: Group) -> None:
        self.model = model
        self.stands = shown(top)
        self.inputs: dict[int, list[int | Group]] = {}
        self.uses: Counter[int] = Counter()
        self.groups: dict[int, Group] = {}
        seen: set[tuple[int, int]] = set()
        for record in model.records:
            if record.kind in (CONSTANT, DETACHED, LEAF):
                continue
            unit = self.stands[record.id]
            known = self.inputs.setdefault(self.key(unit), [])
            for edge in record.inputs:
                source = self.stands[edge.source]
                if source is unit or model.records[edge.source].kind == CONSTANT:
                    continue
                pair = (self.key(unit), self.key(source))
                if isinstance(unit, Group) and pair in seen:
                    continue
                seen.add(pair)
                known.append(source)
                self.uses[self.key(source)] += 1
        self.done: set[int] = set()
        self.lines: list[str] = []

    def key(self, unit: int | Group) -> int:
        """A number for a record or a group; those of groups are negative."""
        if not isinstance(unit, Group):
            return unit
        self.groups[id(unit)] = unit
        return -id(unit)

    def text(self) -> str:
        """All lines."""
        self.lines = [headline(self.model)]
        for root in self.model.roots:
            waiting: list[int | Group] = [root]
            while waiting:
                waiting += self.branch(waiting.pop(0))
        return "\n".join(self.lines)

    def branch(self, start: int | Group) -> list[int | Group]:
        """Print from `start` down; the result is where to go on at the margin."""
        later: list[int | Group] = []
        stack: list[tuple[int | Group, str, str, int]] = [(start, "", "", 0)]
        while stack:
            unit, first, rest, depth = stack.pop()
            key = self.key(unit)
            mark = f"  [{self.number(unit)}]" if self.uses[key] > 1 else ""
            if key in self.done:
                self.lines.append(f"{first}see [{self.number(unit)}] {self.title(unit)}")
                continue
            children = self.inputs.get(key, [])
            if depth >= DEEPEST and children:
                number, title = self.number(unit), self.title(unit)
                self.lines.append(f"{first}continued below: [{number}] {title}")
                self.uses[key] += 2  # so that it is numbered there
                later.append(unit)
                continue
            self.done.add(key)
            self.lines.append(first + self.line(unit) + mark)
            if len(children) == 1:
                stack.append((children[0], rest, rest, depth))
                continue
            for place, child in reversed(list(enumerate(children))):
                last = place == len(children) - 1
                stack.append(
                    (
                        child,
                        rest + ("└─ " if last else "├─ "),
                        rest + ("   " if last else "│  "),
                        depth + 1,
                    )
                )
        return [u for u in later if self.key(u) not in self.done]

    def number(self, unit: int | Group) -> str:
        if isinstance(unit, Group):
            return f"#{next(unit.leaves())}+"
        return f"#{unit}"

    def title(self, unit: int | Group) -> str:
        if isinstance(unit, Group):
            return summarize(self.model, unit).title
        record = self.model.records[unit]
        return record.label or ("leaf" if record.kind == LEAF else record.name)

    def line(self, unit: int | Group) -> str:
        """Everything about one unit."""
        if isinstance(unit, Group):
            return group_line(summarize(self.model, unit))
        record = self.model.records[unit]
        return RECORD_LINES[record.kind](self.model, record)


def joined(*parts: str) -> str:
    return "  ".join(part for part in parts if part)


def group_line(of: Summary) -> str:
    """One line for a closed group."""
    counts = plural(of.operations, "operation")
    if of.leaves:
        counts += f", {plural(of.leaves, 'leaf')}"
    kept = f"keeps {bytes_text(of.owned_bytes)}" if of.owned_bytes else ""
    return joined(
        f"[{of.title}]",
        of.recipe,
        f"({counts})",
        kept,
        of.where,
        source_text(of.site) if of.one_line else "",
    )


def operation_line(model: Model, record: Record) -> str:
    constants = [
        e.name or str(e.number) for e in record.inputs if model.records[e.source].kind == CONSTANT
    ]
    name = f"{record.label} = {record.name}" if record.label else record.name
    return joined(
        name,
        shape_text(record.shapes, record.dtypes),
        f"constant: {', '.join(constants)}" if constants else "",
        saved_text(record),
        record.note,
        place_text(record.site),
        source_text(record.site),
    )


def leaf_line(_: Model, record: Record) -> str:
    return joined(
        f"leaf {record.label}".rstrip(), shape_text(record.shapes, record.dtypes), record.note
    )


def end_line(_: Model, record: Record) -> str:
    return joined(
        f"x {record.note}",
        shape_text(record.shapes, record.dtypes),
        place_text(record.site),
        source_text(record.site),
    )


def root_line(_: Model, record: Record) -> str:
    note = record.note if not record.inputs else ""
    return joined(f"{record.label or record.name}", shape_text(record.shapes, record.dtypes), note)


RECORD_LINES = {
    OP: operation_line, LEAF: leaf_line, CONSTANT: end_line, DETACHED: end_line, ROOT: root_line,
}  # fmt: skip
