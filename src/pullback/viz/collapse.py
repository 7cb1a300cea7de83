"""Finding repeated structure, so that large graphs stay readable (layer 6).

Operations are taken in the order in which they ran.  A loop shows there as a sequence of (name,
source position) pairs that repeats at once; such runs become groups, inner loops first.  What is
still too long is grouped by source line, then by function, then into plain ranges.  A group is
always an interval of the running order, so that no choice of open and closed groups can turn the
picture into a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from pullback.viz.model import OP, ROOT, Model

SMALL = 45  # graphs of so many nodes are shown whole
LIMIT = 60  # entries that one group (and the top) may list before they are grouped again
FAN_OUT = 12  # entries of a group made only to divide a long list
WORK = 1_000_000_000  # comparisons spent on looking for repetition

# Kinds of groups.
TOP, REPEAT, ITERATION, LINE, FUNCTION, RANGE = (
    "top", "repeat", "iteration", "line", "function", "range",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Group:
    """Entries (records by id, or groups) that can be shown as one."""

    kind: str
    items: list[int | Group] = field(default_factory=list)
    count: int = 1  # how many iterations a repeat holds
    first: int = 1  # the number of the first of them
    open: bool = False
    parent: Group | None = None

    def walk(self) -> Iterator[Group]:
        """This group and all below it, parents first."""
        stack = [self]
        while stack:
            group = stack.pop()
            yield group
            stack += [i for i in reversed(group.items) if isinstance(i, Group)]

    def leaves(self) -> Iterator[int]:
        """The records in it, in order, at any depth."""
        stack: list[int | Group] = [self]
        while stack:
            entry = stack.pop()
            if isinstance(entry, Group):
                stack += reversed(entry.items)
            else:
                yield entry


def collapse(model: Model, enabled: bool = True) -> Group:
    """The groups of a model, as a tree whose root is always open."""
    operations = [r.id for r in model.records if r.kind == OP]
    entries: list[int | Group] = list(operations)
    if enabled:
        entries = bound(model, repeats(tokens(model, operations), operations))
    top = Group(TOP, entries, open=True)
    owner = link(top)
    place_ends(model, top, owner)
    link(top)
    if len(model.records) <= SMALL:
        for group in top.walk():
            group.open = True
    return top


def link(top: Group) -> dict[int, Group]:
    """Set every `parent`; the result is the group of each record."""
    owner = {}
    for group in top.walk():
        for entry in group.items:
            if isinstance(entry, Group):
                entry.parent = group
            else:
                owner[entry] = group
    return owner


def tokens(model: Model, operations: Sequence[int]) -> list[int]:
    """A number per operation; equal for the same operation at the same place in the source."""
    known: dict[Any, int] = {}
    found = []
    for i in operations:
        record = model.records[i]
        found.append(known.setdefault((record.name, record.site), len(known)))
    return found


# ------------------------------------------------------------------ repetition
def repeats(words: list[int], operations: Sequence[int]) -> list[int | Group]:
    """Fold repeated sequences into groups, shortest first, until nothing repeats."""
    entries: list[int | Group] = list(operations)
    sequence = np.array(words, dtype=np.int64)
    vocabulary: dict[Any, int] = {}
    fresh = max(words, default=0) + 1
    spent, period = 0, 1
    while period <= len(sequence) // 2 and spent < WORK:
        spent += len(sequence)
        runs = tandem_runs(sequence, period)
        if not runs:
            period += 1
            continue
        kept: list[int | Group] = []
        numbers: list[int] = []
        position = 0
        for start, count in runs:
            kept += entries[position:start]
            numbers += sequence[position:start].tolist()
            end = start + count * period
            kept.append(repeat_group(entries[start:end], period))
            # The count is left out: an outer loop repeats even if its inner loops vary in length.
            word = tuple(sequence[start : start + period].tolist())
            numbers.append(vocabulary.setdefault(word, fresh + len(vocabulary)))
            position = end
        entries = kept + entries[position:]
        sequence = np.array(numbers + sequence[position:].tolist(), dtype=np.int64)
        period = 1  # an outer loop may now be shorter than the inner one was
    return entries


def tandem_runs(sequence: np.ndarray, period: int) -> list[tuple[int, int]]:
    """(start, count) of each place where `period` entries repeat often enough to be folded."""
    same = np.concatenate(([False], sequence[:-period] == sequence[period:], [False]))
    change = np.flatnonzero(same[1:] != same[:-1])
    runs = []
    free = 0  # where the last run ended
    for start, end in zip(change[::2].tolist(), change[1::2].tolist(), strict=True):
        start = max(start, free)
        count = (end - start) // period + 1
        # Two of a kind are worth a group only when they are long.
        enough = (count >= 3 and (count - 1) * period >= 3) or (count == 2 and period >= 12)
        if end > start and enough:
            runs.append((start, count))
            free = start + count * period
    return runs


def repeat_group(entries: list[int | Group], period: int) -> Group:
    """One group of equal iterations: the first, the ones between in ranges, the last."""
    iterations: list[Group] = []
    for number, start in enumerate(range(0, len(entries), period), 1):
        body = entries[start : start + period]
        iterations.append(Group(ITERATION, body, first=number))
    count = len(iterations)
    if period == 1:
        plain = [entry.items[0] for entry in iterations]
        return Group(REPEAT, divide(plain, REPEAT, 1), count)
    if count <= FAN_OUT:
        return Group(REPEAT, list(iterations), count)
    middle = divide(list(iterations[1:-1]), REPEAT, 2)
    return Group(REPEAT, [iterations[0], *middle, iterations[-1]], count)


def divide(entries: Sequence[int | Group], kind: str, first: int = 1) -> list[int | Group]:
    """At most `FAN_OUT` entries: consecutive ones go together into groups, as deep as needed."""
    if len(entries) <= (LIMIT if kind == RANGE else FAN_OUT):
        return list(entries)
    size = -(-len(entries) // FAN_OUT)
    result: list[int | Group] = []
    for start in range(0, len(entries), size):
        part = entries[start : start + size]
        number = first + start
        result.append(
            part[0]
            if len(part) == 1
            else Group(kind, divide(part, kind, number), count=len(part), first=number)
        )
    return result


# ------------------------------------------------------------------ long lists
def bound(model: Model, entries: list[int | Group]) -> list[int | Group]:
    """The entries, grouped until no list is longer than `LIMIT`."""
    holder = Group(TOP, shorten(model, entries))
    for group in holder.walk():
        if group is not holder and len(group.items) > LIMIT:
            group.items = shorten(model, group.items)
    return holder.items


def shorten(model: Model, entries: list[int | Group]) -> list[int | Group]:
    """Group one list by line, then by function, then anyhow; only as far as needed."""

    def by_line(record: int) -> Any:
        site = model.records[record].site
        return site and (site.file, site.line)

    def by_function(record: int) -> Any:
        site = model.records[record].site
        return site and (site.file, site.function)

    if len(entries) > LIMIT:
        entries = group_runs(entries, by_line, LINE)
    if len(entries) > LIMIT:
        entries = group_runs(entries, by_function, FUNCTION)
    if len(entries) > LIMIT:
        entries = divide(entries, RANGE)
    return entries


def group_runs(
    entries: list[int | Group], key: Callable[[int], Any], kind: str
) -> list[int | Group]:
    """Join neighbours with one key; a run that is the whole list is left for the next means."""

    def of(entry: int | Group) -> Any:
        if not isinstance(entry, Group):
            return key(entry)
        keys = {key(i) for i in entry.leaves()}
        return keys.pop() if len(keys) == 1 else entry

    result: list[int | Group] = []
    for _, run in groupby(entries, of):
        part = list(run)
        if len(part) == len(entries) or len(part) < 3:
            result += part
        else:
            result.append(Group(kind, part, count=len(part)))
    return result


# ------------------------------------------------------------------ leaves and constants
def place_ends(model: Model, top: Group, owner: dict[int, Group]) -> None:
    """Put each leaf and constant into the innermost group that holds all who use it.

    What several iterations share stays outside of the loop, where it can be seen to be shared.
    """
    depth: dict[int, int] = {}
    for group in top.walk():
        depth[id(group)] = 0 if group.parent is None else depth[id(group.parent)] + 1
    consumers = model.consumers()
    added: dict[int, list[int | Group]] = {}
    for record in model.records:
        if record.kind == OP:
            continue
        home: Group | None = None
        users = set(consumers[record.id])
        for user in users:
            group = owner.get(user, top)
            home = group if home is None else common(home, group, depth)
            if home is top:
                break
        while home is not None and home.kind == REPEAT and len(users) > 1:
            home = home.parent
        if record.kind == ROOT or home is None:
            home = top
        added.setdefault(id(home), []).append(record.id)
    for group in list(top.walk()):
        group.items = added.get(id(group), []) + group.items


def common(a: Group, b: Group, depth: dict[int, int]) -> Group:
    """The innermost group that holds both."""
    while a is not b:
        if depth[id(a)] >= depth[id(b)]:
            assert a.parent is not None
            a = a.parent
        else:
            assert b.parent is not None
            b = b.parent
    return a


def shown(top: Group) -> dict[int, int | Group]:
    """For each record, what stands for it: itself, or the outermost closed group around it."""
    found: dict[int, int | Group] = {}
    for group in top.walk():
        if not group.open:
            continue
        for entry in group.items:
            if not isinstance(entry, Group):
                found[entry] = entry
            elif not entry.open:
                for record in entry.leaves():
                    found[record] = entry
    return found
