"""The autograd graph as plain records (layer 6).

`read` walks the tape behind some tensors once, without recursion, and copies out what pictures
need.  The records hold no tensor, no node and no array.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.core.callsite import CallSite
from pullback.eager.node import REASONS, AccumulateGrad, Node, Origin
from pullback.eager.tensor import Tensor, gradient_edge

Shape = tuple[int, ...]
OP, LEAF, CONSTANT, DETACHED, ROOT = "op", "leaf", "constant", "detached", "root"


@dataclass(slots=True, frozen=True)
class Input:
    """An edge: input `number` of a record is output `output` of the record `source`."""

    number: int
    source: int
    output: int
    name: str = ""


@dataclass(slots=True)
class Record:
    """One node of the picture.  `id` is its place in a topological order, producers first."""

    id: int
    kind: str
    name: str
    shapes: tuple[Shape, ...] = ()
    dtypes: tuple[str, ...] = ()
    site: CallSite | None = None
    saved: tuple[tuple[str, Shape, str], ...] = ()
    saved_bytes: int = 0  # of the arrays this node keeps, shared or not
    owned_bytes: int = 0  # of the memory that no earlier node keeps already
    freed: bool = False
    inputs: tuple[Input, ...] = ()
    label: str = ""  # the name the user gave
    note: str = ""

    @property
    def title(self) -> str:
        """What to call it: the user's name, or the operation's name without PyTorch's suffix."""
        return self.label or short_name(self.name)


@dataclass(slots=True)
class Model:
    """All records in topological order, and what was learnt on the way."""

    records: list[Record] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    leaf_bytes: int = 0  # of the kept memory, what is the leaves' own and alive anyway

    def consumers(self) -> list[list[int]]:
        """For each record, the records that it is an input of (with repetition)."""
        found: list[list[int]] = [[] for _ in self.records]
        for record in self.records:
            for edge in record.inputs:
                found[edge.source].append(record.id)
        return found


def short_name(name: str) -> str:
    """`Mul` for `MulBackward0`."""
    stem = name.rstrip("0123456789")
    return stem.removesuffix("Backward") or name


class Memory:
    """Counts each piece of memory once, however many nodes keep it or a view of it."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.of_leaves: set[int] = set()
        self.leaf_bytes = 0

    def add(self, values: Iterable[Any]) -> int:
        """Bytes that these values keep alive and nothing before them did."""
        fresh = 0
        for value in values:
            if getattr(value, "nbytes", None) is None:
                continue
            owner = owner_of(value)
            if id(owner) not in self.seen:
                self.seen.add(id(owner))
                fresh += int(owner.nbytes)
                if id(owner) in self.of_leaves:
                    self.leaf_bytes += int(owner.nbytes)
        return fresh


def owner_of(value: Any) -> Any:
    """The array whose memory a view shows."""
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    return value


Names = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]


def read(tensors: Sequence[Tensor], names: Names | None = None) -> Model:
    """The records of everything that `tensors` were computed from."""
    return Reader(names).run(tensors)


class Reader:
    """One walk over the tape.  Nodes are held only as long as the walk lasts."""

    def __init__(self, names: Names | None) -> None:
        self.model = Model()
        self.memory = Memory()
        self.sites: dict[Any, CallSite] = {}
        self.ids: dict[int, int] = {}  # id of a node -> id of its record
        self.dtype_names: dict[Any, str] = {}  # NumPy takes 10 us to spell one
        self.tensor_names: dict[int, str] = {}
        self.edge_names: dict[tuple[int, int], str] = {}
        for name, tensor in dict(names or {}).items():
            self.tensor_names[id(tensor)] = str(name)
            if tensor.grad_fn is not None:
                self.edge_names[id(tensor.grad_fn), tensor.output_nr] = str(name)

    def run(self, tensors: Sequence[Tensor]) -> Model:
        """Read, root by root."""
        for tensor in tensors:  # an output has a node of its own to carry its name
            if tensor.grad_fn is not None:
                self.edge_names.pop((id(tensor.grad_fn), tensor.output_nr), None)
        edges = [gradient_edge(t) if t.requires_grad else None for t in tensors]
        order = in_order(discover([e[0] for e in edges if e is not None]))
        for node in order:
            if isinstance(node, AccumulateGrad):
                self.memory.of_leaves.add(id(owner_of(node.variable._data)))
        for node in order:
            # Leaves come just before their first consumer: close by in every listing.
            if not isinstance(node, AccumulateGrad):
                self.add_operation(node)
        for number, (tensor, edge) in enumerate(zip(tensors, edges, strict=True)):
            self.add_root(tensor, edge, number, len(tensors))
        self.model.leaf_bytes = self.memory.leaf_bytes
        return self.model

    def append(self, record: Record) -> int:
        self.model.records.append(record)
        return record.id

    @property
    def next_id(self) -> int:
        return len(self.model.records)

    def site_of(self, thing: Any) -> CallSite:
        """The call site of a node or an origin, worked out once per place in the program."""
        key = (getattr(thing, "code", None), getattr(thing, "offset", None))
        if key[0] is None:
            found: CallSite = thing.call_site
            return found
        if key not in self.sites:
            self.sites[key] = thing.call_site
        return self.sites[key]

    def place_of(self, node: AccumulateGrad) -> CallSite | None:
        """Where a leaf was met, when its accumulator knows a real place."""
        site = self.site_of(node)
        return site if site.line > 0 else None

    def add_operation(self, node: Node) -> None:
        names = input_names(node)
        inputs = []
        saved = tuple(node.saved_values)
        for number, (source, output) in enumerate(node.next_functions):
            name = names[number] if number < len(names) else ""
            if source is None:
                identity = self.add_end(node, number, name, saved)
            elif isinstance(source, AccumulateGrad):
                identity = self.add_leaf(source)
            else:
                identity = self.ids[id(source)]
            inputs.append(Input(number, identity, output, name))
        self.ids[id(node)] = self.append(
            Record(
                self.next_id,
                OP,
                type(node).__name__,
                tuple(tuple(s) for s in node.output_shapes),
                tuple(self.dtype_name(d) for d in node.output_dtypes),
                self.site_of(node),
                saved,
                node.saved_bytes,
                self.memory.add(getattr(node, "saved", None) or ()),
                node.freed,
                tuple(inputs),
                self.label_of(node),
                hook_note(node),
            )
        )

    def dtype_name(self, dtype: Any) -> str:
        known = self.dtype_names.get(dtype)
        if known is None:
            known = self.dtype_names[dtype] = str(dtype)
        return known

    def label_of(self, node: Node) -> str:
        if not self.edge_names:
            return ""
        found = (self.edge_names.get((id(node), k)) for k in range(len(node.output_shapes)))
        return ", ".join(name for name in found if name)

    def add_leaf(self, node: AccumulateGrad) -> int:
        """The record of a leaf that requires grad, made when first met."""
        known = self.ids.get(id(node))
        if known is not None:
            return known
        variable = node.variable
        grad = "its .grad is set" if variable._grad is not None else "its .grad is None"
        self.ids[id(node)] = self.append(
            Record(
                self.next_id,
                LEAF,
                type(node).__name__,
                (tuple(variable.shape),),
                (self.dtype_name(variable._data.dtype),),
                self.place_of(node),
                label=self.tensor_names.get(id(variable), ""),
                note=grad,
            )
        )
        return self.ids[id(node)]

    def add_end(
        self, node: Node, number: int, name: str, saved: tuple[tuple[str, Shape, str], ...]
    ) -> int:
        """The record of an input without an edge: a constant, or where the graph was cut."""
        edges = getattr(node, "edges", ())
        edge = edges[number] if number < len(edges) else None
        # Its shape is known only when the node kept the value.
        kept = [(shape, dtype) for key, shape, dtype in saved if key == name and name]
        shapes = tuple(shape for shape, _ in kept)
        kinds = tuple(dtype for _, dtype in kept)
        if isinstance(edge, Origin):
            reason = REASONS.get(edge.reason, edge.reason)
            record = Record(
                self.next_id, DETACHED, edge.reason, shapes, kinds, self.site_of(edge), note=reason
            )
        else:
            record = Record(
                self.next_id, CONSTANT, "constant", shapes, kinds, note="does not require grad"
            )
        return self.append(record)

    def add_root(
        self, tensor: Tensor, edge: tuple[Node, int] | None, number: int, total: int
    ) -> None:
        name = self.tensor_names.get(id(tensor), "")
        inputs: tuple[Input, ...] = ()
        site = None
        note = ""
        if edge is not None:
            node, output = edge
            source = self.add_leaf(node) if isinstance(node, AccumulateGrad) else self.ids[id(node)]
            inputs = (Input(0, source, output),)
            site = None if isinstance(node, AccumulateGrad) else self.site_of(node)
        elif isinstance(tensor._edge, Origin):
            site = self.site_of(tensor._edge)
            note = REASONS.get(tensor._edge.reason, tensor._edge.reason)
        else:
            note = "does not require grad"
        record = Record(
            self.next_id,
            ROOT,
            "output" if total == 1 else f"output {number}",
            (tuple(tensor.shape),),
            (self.dtype_name(tensor._data.dtype),),
            site,
            inputs=inputs,
            label=name,
            note=note,
        )
        self.model.roots.append(self.append(record))


def input_names(node: Node) -> Sequence[str]:
    """What the operation calls its inputs; empty where it does not say."""
    primitive = getattr(getattr(node, "plan", None), "primitive", None)
    names: Sequence[str] = getattr(primitive, "inputs", ())
    if getattr(primitive, "variadic", False) and names:
        return [f"{names[0]}.{i}" for i in range(len(node.next_functions))]
    return names


def hook_note(node: Node) -> str:
    """Says so when the user hung something on the node."""
    extras = getattr(node, "extras", None)
    if extras is None:
        return ""
    hooks = sum(len(h) for h in extras.tensor_hooks.values())
    hooks += len(extras.pre_hooks) + len(extras.post_hooks)
    notes = [f"{hooks} hook{'s' if hooks > 1 else ''}"] if hooks else []
    notes += ["retains its grad"] if extras.retains else []
    return ", ".join(notes)


def discover(starts: Iterable[Node]) -> list[Node]:
    """Every node reachable from `starts`."""
    found: dict[int, Node] = {}
    stack = list(starts)
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            stack += [n for n, _ in node.next_functions if n is not None and id(n) not in found]
    return list(found.values())


def in_order(nodes: list[Node]) -> list[Node]:
    """Producers first, otherwise in order of creation."""
    nodes.sort(key=lambda n: n.sequence)
    place = {id(n): i for i, n in enumerate(nodes)}
    if all(
        place[id(s)] < i for i, n in enumerate(nodes) for s, _ in n.next_functions if s is not None
    ):
        return nodes
    # Rebased histories can give an input a later number than its consumer: sort properly.
    consumers: list[list[int]] = [[] for _ in nodes]
    waiting = [0] * len(nodes)
    for i, n in enumerate(nodes):
        for s, _ in n.next_functions:
            if s is not None:
                consumers[place[id(s)]].append(i)
                waiting[i] += 1
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(nodes[i])
        for j in consumers[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, j)
    return order
