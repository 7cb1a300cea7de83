"""Views (layer 3): which tensors share memory, and how an in-place change reaches the others.

A view knows its base and the chain of view primitives from the base to itself.  When the base or
another view is changed in place by a recorded operation, every live view gets a `LazyView` edge:
its history is then "the chain, applied to the base as it is now", worked out when first asked for.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from pullback.config import MODE
from pullback.core.primitive import Primitive
from pullback.eager.node import Node
from pullback.eager.tensor import LazyEdge, Rare, Tensor, counter_of, rare_of, retain
from pullback.typing import Params


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
    if owner is None or (owner is not source and owner is not source.base):
        return  # the primitive had to copy (a reshape)
    rare = parent._rare
    chain: tuple[Any, ...]
    if rare is not None and rare.base is not None:
        base = rare.base
        chain = rare.chain
    else:
        base = parent
        chain = ()
    out._counter = counter_of(parent)
    mine = out._rare = Rare()
    mine.base = base
    mine.chain = (*chain, (primitive, params, number))
    mine.multi = number is not None or (rare is not None and rare.multi)
    register_view(base, out)


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
    references = (base._rare.views if base._rare is not None else None) or ()
    return base, [view for r in references if (view := r()) is not None]


def register_view(base: Tensor, view: Tensor) -> None:
    """Put a view on its base's list, dropping dead ones now and then."""
    rare = rare_of(base)
    views = rare.views
    if views is None:
        views = rare.views = []
    elif len(views) >= 32 and not len(views) & (len(views) - 1):  # at powers of two
        views[:] = [v for v in views if v() is not None]
    views.append(weakref.ref(view))


class LazyView(LazyEdge):
    """The edge of a view whose base has got a new history."""

    __slots__ = ()

    def resolve(self, tensor: Tensor) -> tuple[Node, int]:
        """Replay the chain on the base; only the graph of that is used."""
        rare = tensor._rare
        assert rare is not None and rare.base is not None
        token = MODE.set(0)
        try:
            replayed = apply_chain(rare.base, rare.chain)
        finally:
            MODE.reset(token)
        edge: tuple[Node, int] = replayed._edge
        return edge


STALE = LazyView()


def apply_chain(value: Any, chain: tuple[Any, ...]) -> Any:
    """The view of `value` (of any kind) that a chain of view primitives makes."""
    for primitive, params, number in chain:
        value = primitive(value, **params)
        if number is not None:
            value = value[number]
    return value


def rebase(view: Tensor, edge: tuple[Node, int]) -> None:
    """Give every live view of a changed base a lazy edge; `edge` is the base's new history."""
    base, views = family(view)
    base._edge = edge
    base._requires_grad = True
    follow(base)
    for other in views:
        other._edge = STALE
        other._requires_grad = True
        follow(other)


def follow(tensor: Tensor) -> None:
    """A tensor that retains its gradient does so at the node that makes it now."""
    if tensor._rare is not None and tensor._rare.retains:
        retain(tensor)
