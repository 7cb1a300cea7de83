"""Views (layer 3): which tensors share memory, and how an in-place change reaches the others.

A view knows its base and the chain of view primitives from the base to itself.  A change in place
outdates the views of that memory: their edge becomes a `LazyView`, which stands for "the chain,
applied to the base as it is now" and is worked out when first asked for.  A view requires grad
when its base does.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from pullback.config import MODE, NO_GRAD
from pullback.core.callsite import with_site
from pullback.core.primitive import Primitive
from pullback.eager.node import Node
from pullback.eager.tensor import (
    LazyEdge,
    Rare,
    Tensor,
    counter_of,
    gradient_edge,
    retain,
    set_flag,
    wrap,
    wrap_with_edge,
)
from pullback.errors import GraphError
from pullback.typing import Params

# How a view was made decides whether a recorded change may reach it: alone | with others by one
# operation | under no_grad | given back by code whose derivative is its own (a hook, a Function)
PLAIN, MULTIPLE, UNRECORDED, CUSTOM = range(4)


def link_view(
    out: Tensor, parent: Tensor, primitive: Primitive, params: Params, number: int | None = None
) -> None:
    """Note that `out` shows the memory of `parent`, if it does.

    `number` is the output number for primitives with several outputs.
    """
    shown, source = out._data, parent._data
    if type(shown) is not np.ndarray:
        shown, source = memory(shown), memory(source)
        if type(shown) is not np.ndarray:
            return  # a value of a trace: it has no memory of its own
    owner = shown.base
    if type(owner) is not np.ndarray:
        owner = getattr(owner, "base", None)  # of what `as_strided` made
    if owner is None or (owner is not source and owner is not source.base):
        return  # the primitive had to copy (a reshape)
    counter = parent._counter
    if counter is None:
        counter = parent._counter = [0]
    rare = parent._rare
    mine = Rare()
    if rare is not None and rare.base is not None:
        base = rare.base
        mine.chain = (rare.chain, primitive, params, number)
        mine.creation = rare.creation
    else:
        base = parent
        mine.chain = (None, primitive, params, number)
    mine.base = base
    mine.seen = int(counter[0])
    if MODE.get() & NO_GRAD:
        mine.creation = UNRECORDED
    elif number is not None:
        mine.creation = MULTIPLE
    out._rare, out._counter = mine, counter
    if base._requires_grad:
        out._requires_grad = True
    if len(counter) < 4:
        counter[1:] = (*counter[1:], None, None)[:2] + (Views(),)
    counter[3].add(out)


def memory(value: Any) -> Any:
    """The array (or the value of a trace) at the bottom of a payload or Tensor."""
    while type(value) is not np.ndarray:
        inner = getattr(value, "_data", None)
        if inner is None:
            inner = getattr(value, "value", None)
        if inner is None:
            break
        value = inner
    return value


def family(tensor: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The tensor whose memory a tensor shows (itself, if it is no view), and its live views."""
    rare = tensor._rare
    base = tensor if rare is None or rare.base is None else rare.base
    counter = base._counter
    return base, [] if counter is None or len(counter) < 4 else counter[3].of(base)


class Views:
    """The live views of one memory, kept on its version counter; the last ones are up to date."""

    __slots__ = ("references", "outdated")

    def __init__(self) -> None:
        self.references: list[weakref.ref[Tensor]] = []
        self.outdated = 0  # how many of them, from the start, have seen that they are

    def add(self, view: Tensor) -> None:
        """Put an up-to-date view on the list, dropping dead ones now and then."""
        found = self.references
        if len(found) >= 32 and not len(found) & (len(found) - 1):  # at powers of two
            first, rest = found[: self.outdated], found[self.outdated :]
            first = [r for r in {id(r): r for r in first}.values() if r() is not None]
            found[:] = first + [r for r in {id(r): r for r in rest}.values() if r() is not None]
            self.outdated = len(first)
        found.append(weakref.ref(view))

    def outdate(self) -> None:
        """The memory was changed: what the views know of their history is old."""
        found = self.references
        for reference in found[self.outdated :]:
            view = reference()
            if view is not None:
                edge = view._edge
                if type(edge) is tuple:
                    view._edge = STALE
                elif view._rare is not None and view._rare.base is not None:
                    if view._rare.base._requires_grad and not isinstance(edge, LazyEdge):
                        view._edge = STALE_LEAF
        self.outdated = len(found)

    def of(self, base: Tensor) -> list[Tensor]:
        """The live views of one tensor."""
        live = [r() for r in {id(r): r for r in self.references}.values()]
        return [v for v in live if v is not None and v._rare is not None and v._rare.base is base]

    def share_requires_grad(self, base: Tensor) -> None:
        """After a change of `base.requires_grad`: its views show it."""
        for view in self.of(base):
            rare = view._rare
            assert rare is not None
            if base._requires_grad:
                view._requires_grad = True
                if rare.seen != int(counter_of(base)[0]) and not isinstance(view._edge, LazyEdge):
                    view._edge = STALE if type(view._edge) is tuple else STALE_LEAF
            elif view._edge is STALE_LEAF or not isinstance(view._edge, (tuple, LazyEdge)):
                view._requires_grad = rare.own_flag
                view._edge = None


class LazyView(LazyEdge):
    """The edge of a view whose memory was changed."""

    __slots__ = ()

    def __init__(self, leaf: bool) -> None:
        self.leaf = leaf

    def resolve(self, tensor: Tensor) -> tuple[Node, int]:
        """Replay the chain on the base; only the graph of that is used."""
        rare = tensor._rare
        assert rare is not None and rare.base is not None
        if rare.creation != PLAIN:
            raise refused_write(tensor, "its base or another view of its base has been")
        base = rare.base
        source = wrap(base._data)
        source._requires_grad = True
        if base._requires_grad:
            source = wrap_with_edge(base._data, gradient_edge(base))
        token = MODE.set(0)
        try:
            replayed = apply_chain(source, rare.chain, "AsStridedBackward0")
        finally:
            MODE.reset(token)
        keep_fresh(tensor)
        edge: tuple[Node, int] = replayed._edge
        tensor._edge = edge
        follow(tensor)
        return edge


STALE = LazyView(False)  # it had a history of its own
STALE_LEAF = LazyView(True)  # it had none: it requires grad because its base does
WRITTEN = LazyView(False)  # it was written itself: the history that its base has now is its own


def keep_fresh(view: Tensor) -> None:
    """The edge that a view has belongs to its memory as it is now."""
    counter = counter_of(view)
    assert view._rare is not None
    view._rare.seen = int(counter[0])
    counter[3].add(view)


def refused_write(view: Tensor, change: str) -> GraphError:
    """The error for a recorded change that reaches a view made with others or under no_grad."""
    rare = view._rare
    assert rare is not None
    edge = view._edge
    if rare.creation == UNRECORDED or edge is STALE_LEAF or not view._requires_grad:
        text = f"A view was created in no_grad mode and {change} modified inplace with grad mode "
        text += "enabled."
    elif rare.creation == CUSTOM:
        name = "an operation" if type(edge) is not tuple else type(edge[0]).__name__
        number = 0 if type(edge) is not tuple else edge[1]
        text = f"Output {number} of {name} is a view and {change} modified inplace."
    else:
        _, primitive, _, number = next(s for s in steps(rare.chain) if s[3] is not None)
        name = primitive.node_name.removesuffix("Backward0")
        text = f"Output {number} of {name} is a view and {change} modified inplace."
    if rare.creation == MULTIPLE:
        text += (
            " This view is the output of a function that returns multiple views. Such functions do "
            "not allow the output views to be modified inplace. You should replace the inplace "
            "operation by an out-of-place one."
        )
    elif rare.creation == CUSTOM:
        text += (
            " This view was created inside a custom Function (or because an input was returned "
            "as-is), and the change would go past its backward, or its hooks: this behavior is "
            "forbidden. Change a clone() of it instead."
        )
    else:
        text += (
            " It is not clear whether the change is to be recorded: put the view and the change "
            "both inside the no_grad block, or both outside."
        )
    return GraphError(with_site(text))


def steps(chain: Any) -> list[Any]:
    """The links of a chain, from the base on."""
    found = []
    while chain is not None:
        found.append(chain)
        chain = chain[0]
    found.reverse()
    return found


def apply_chain(value: Any, chain: Any, name: str | None = None) -> Any:
    """The view of `value` (of any kind) that a chain of view primitives makes.

    `name` is what the node of the last one is called, where a Tensor is given.
    """
    for link in steps(chain):
        _, primitive, params, number = link
        if name is not None and link is chain and number is None:
            from pullback.eager.apply import apply

            return apply(primitive, (value,), params, name)
        value = primitive(value, **params)
        if number is not None:
            value = value[number]
    return value


def rebase(tensor: Tensor, edge: tuple[Node, int]) -> None:
    """Give a base its new history; its views, outdated by the change, follow when asked."""
    tensor._edge = edge
    follow(tensor)
    set_flag(tensor, True)


def follow(tensor: Tensor) -> None:
    """A tensor that retains its gradient does so at the node that makes it now."""
    rare = tensor._rare
    if rare is not None and rare.retains:
        retain(tensor)
