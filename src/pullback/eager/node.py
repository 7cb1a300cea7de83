"""Graph nodes (layer 3): what one recorded operation remembers.

Edges are `(node, output number)` tuples.  For an input that does not require grad the edge slot
holds None or an `Origin`, the reason why the graph ends there.
"""

from __future__ import annotations

import copy
import itertools
import weakref
from types import CodeType
from typing import TYPE_CHECKING, Any

from pullback.core.callsite import CallSite, at, resolve
from pullback.errors import GraphError

if TYPE_CHECKING:
    from pullback.core.primitive import Plan
    from pullback.eager.tensor import Tensor

next_sequence = itertools.count().__next__


class Origin:
    """Why a tensor does not require grad although something it came from did, and where."""

    __slots__ = ("reason", "code", "offset")

    def __init__(self, reason: str, code: CodeType, offset: int) -> None:
        self.reason = reason
        self.code = code
        self.offset = offset

    @property
    def call_site(self) -> CallSite:
        """The user's line at which the graph was cut."""
        return resolve(self.code, self.offset)


class Moved(int):
    """A version number that agrees with none: by `x.data = y` a tensor has got other memory, or by
    `x.detach_()` lost its history.

    The engine then looks closer; `moves` are what a tensor held, the tensor, and its edge.
    """

    moves: list[tuple[weakref.ref[Any], weakref.ref[Tensor], tuple[Any, int] | None]]

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Extras:
    """What few nodes have: hooks, tensors that retain their grad, user metadata."""

    __slots__ = ("tensor_hooks", "retains", "pre_hooks", "post_hooks", "metadata")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, dict[int, Any]] = {}  # output number -> id -> hook
        self.retains: dict[int, weakref.ref[Tensor]] = {}
        self.pre_hooks: dict[int, Any] = {}
        self.post_hooks: dict[int, Any] = {}
        self.metadata: dict[Any, Any] = {}


IN_NAMESPACE = ("AccumulateGrad", "CopySlices", "CopyBackwards")


class Node:
    """One recorded operation.  Its class carries PyTorch's name for it (`MulBackward0`)."""

    __slots__ = (
        "plan", "edges", "saved", "versions", "shape", "dtype", "sequence", "code", "offset",
        "__weakref__",
    )  # fmt: skip

    plan: Plan
    edges: tuple[Any, ...]
    saved: tuple[Any, ...] | None  # None once freed
    versions: tuple[tuple[list[int], int], ...]
    shape: Any  # of the output; a tuple of shapes when the plan is not `single`
    dtype: Any
    sequence: int
    code: CodeType
    offset: int

    def name(self) -> str:
        """PyTorch's name of the operation's backward (with a C++ namespace where it has one)."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in IN_NAMESPACE else name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes of the inputs, with output numbers; (None, 0) where none is recorded."""
        return tuple(e if type(e) is tuple and e[0].known else (None, 0) for e in self.edges)

    @property
    def known(self) -> bool:
        """Whether the user may see it."""
        return True

    @property
    def call_site(self) -> CallSite:
        """The user's line that ran the operation."""
        return resolve(self.code, self.offset)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's own notes on this node."""
        return self.get_extras().metadata

    def get_extras(self) -> Extras:
        """The record of rare things, made on demand."""
        plan = self.plan
        if plan.extras is None:
            # a plan of its own: nodes without hooks pay nothing for the few that have some
            plan = copy.copy(plan)
            plan.extras = Extras()
            plan.is_plain = False
            self.plan = plan
        found: Extras = plan.extras
        return found

    # ------------------------------------------------------------ for pictures
    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """The shape of each output."""
        return [self.shape] if self.plan.single else list(self.shape)

    @property
    def output_dtypes(self) -> list[Any]:
        """The NumPy dtype of each output."""
        return [self.dtype] if self.plan.single else list(self.dtype)

    @property
    def freed(self) -> bool:
        """Whether its saved values are gone."""
        return self.saved is None

    @property
    def saved_values(self) -> list[tuple[str, tuple[int, ...], str]]:
        """Name, shape and dtype of each value kept for backward (none once freed)."""
        found = []
        for name, value in zip(self.plan.saved_names(), self.saved or (), strict=False):
            if hasattr(value, "shape") and hasattr(value, "dtype"):
                found.append((name, tuple(value.shape), str(value.dtype)))
        return found

    @property
    def saved_bytes(self) -> int:
        """Bytes of the arrays kept for backward."""
        return sum(int(getattr(v, "nbytes", 0)) for v in self.saved or ())

    @property
    def input_notes(self) -> tuple[str | None, ...]:
        """For each input without an edge, why it has none."""
        notes: list[str | None] = []
        for e in self.edges:
            if isinstance(e, Origin):
                site = e.call_site
                notes.append(f"{REASONS[e.reason]} at {site.file}:{site.line}")
            else:
                notes.append(None)
        return tuple(notes)

    # ------------------------------------------------------------ saved values
    def check_versions(self) -> tuple[Any, ...]:
        """The saved values; PyTorch's error when one of them was changed in place."""
        saved = self.saved or ()
        for position, (counter, number) in enumerate(self.versions):
            if type(counter[0]) is Moved and position < len(self.plan.saved_inputs):
                saved = self.follow_data(saved, position, counter[0])
            if int(counter[0]) != int(number):
                name = self.plan.saved_names()[position]
                shape = list(self.saved[position].shape) if self.saved else []
                raise GraphError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: {name} of {self.name()} (shape {shape}) is at version "
                    f"{counter[0]}; expected version {number} instead. Clone it before the "
                    "in-place change, or use the out-of-place operation."
                    + at(self.call_site, "saved at")
                    + at(changed_at(counter), "changed at")
                )
        return saved

    def follow_data(
        self, saved: tuple[Any, ...], position: int, moved: Moved
    ) -> tuple[Any, ...]:
        """As in PyTorch, an input that got other memory by `x.data = y` is what it is now."""
        edge = self.edges[self.plan.saved_inputs[position]]
        for before, owner, source in moved.moves:
            tensor = owner()
            if tensor is None or before() is not saved[position]:
                continue
            if type(edge) is not tuple:
                same = source is None and not tensor._requires_grad
            elif source is None:
                same = type(edge[0]) is AccumulateGrad and edge[0].variable is tensor
            else:
                same = edge[0] is source[0]() and edge[1] == source[1]
                if same and type(tensor._edge) is not tuple:
                    raise GraphError(
                        "Trying to use a saved tensor that has been detached in-place, i.e. with "
                        ".detach_(). This is not supported, please use out-of-place `.detach()` "
                        "instead" + at(self.call_site, "saved at")
                    )
            if same:
                if tensor._data.shape != saved[position].shape:
                    have, given = list(saved[position].shape), list(tensor._data.shape)
                    raise GraphError(
                        f"The size of tensor a {have} must match the size of tensor b {given}: "
                        f"{self.plan.saved_names()[position]} of {self.name()} got it by .data"
                        + at(self.call_site, "saved at")
                    )
                return (*saved[:position], tensor._data, *saved[position + 1 :])
        return saved

    def freed_error(self) -> GraphError:
        """PyTorch's error for a second pass over a freed graph."""
        return GraphError(
            "Trying to backward through the graph a second time (or directly access saved tensors "
            "after they have already been freed). Saved intermediate values of the graph are freed "
            "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
            f"to backward through the graph a second time. The freed node is {self.name()}"
            + at(self.call_site, "made at")
        )


REASONS = {
    "detach": "detached",
    "no_grad": "made under no_grad",
    "integer": "made integer or boolean",
    "nondifferentiable": "through an operation without a derivative",
}


class LeafPlan:
    """What the engine reads of a plan, for the nodes that end the graph."""

    single = True
    is_plain = False
    broadcasts = False
    extras = None


LEAF: Any = LeafPlan()

class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to the leaf's `.grad`."""

    __slots__ = ("variable", "_extras")

    # the same for all: class attributes in place of the slots
    plan = LEAF
    edges = ()
    saved = ()
    versions = ()
    variable: Tensor
    _extras: Extras | None

    def __lt__(self, other: object) -> bool:
        """In a heap of nodes that are ready, leaves are equals."""
        return False

    @property
    def known(self) -> bool:
        """Not that of a tensor nobody holds, which stands for no edge at all."""
        rare = self.variable._rare
        return rare is not None and rare.accumulator is not None

    def get_extras(self) -> Extras:
        """The record of rare things, made on demand."""
        if self._extras is None:
            self._extras = Extras()
        return self._extras

    @property
    def call_site(self) -> CallSite:
        """A leaf was made by no operation."""
        return CallSite("<leaf>", 0, "", None)

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """The shape of the leaf."""
        return [self.shape]

    @property
    def output_dtypes(self) -> list[Any]:
        """The dtype of the leaf."""
        return [self.dtype]

    @property
    def saved_values(self) -> list[tuple[str, tuple[int, ...], str]]:
        """Nothing is kept."""
        return []

    @property
    def saved_bytes(self) -> int:
        """Nothing is kept."""
        return 0

    @property
    def freed(self) -> bool:
        """There is nothing to free."""
        return False


_NODE_CLASSES: dict[str, type[Node]] = {}


def node_class(name: str) -> type[Node]:
    """The class of nodes with that name; one per name."""
    found = _NODE_CLASSES.get(name)
    if found is None:
        found = _NODE_CLASSES[name] = type(name, (Node,), {"__slots__": ()})
    return found


# Where a version counter was last bumped: kept on the counter itself, after the number.
def changed_at(counter: list[Any]) -> CallSite | None:
    """The user's line of the last in-place change that this counter saw."""
    return resolve(counter[1], counter[2]) if len(counter) > 1 and counter[1] else None
