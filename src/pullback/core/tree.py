"""Nested containers of leaves (layer 1), to any depth.

Tuples, named tuples, lists, deques, dicts (ordered ones and those with a default too) and
dataclasses; a dataclass field with `metadata={"static": True}` belongs to the structure.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Structure(NamedTuple):
    """The shape of a nested container: how to put leaves back."""

    kind: Any  # None for a leaf, else the container's type
    keys: tuple[Any, ...]  # of a dict or dataclass
    children: tuple[Any, ...]
    more: Any = None  # what else the container needs: a default, a length, static fields


LEAF = Structure(None, (), ())
_DICTS = (collections.OrderedDict, collections.defaultdict)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves in order, and the structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    if isinstance(tree, (tuple, list)):
        return Structure(type(tree), (), tuple(_flatten(t, leaves) for t in tree))
    if isinstance(tree, dict):
        keys = tuple(tree)
        kind = type(tree) if isinstance(tree, _DICTS) else dict
        more = tree.default_factory if isinstance(tree, collections.defaultdict) else None
        return Structure(kind, keys, tuple(_flatten(tree[k], leaves) for k in keys), more)
    if isinstance(tree, collections.deque):
        return Structure(type(tree), (), tuple(_flatten(t, leaves) for t in tree), tree.maxlen)
    if _is_dataclass(type(tree)):
        import dataclasses  # 1 ms that few programs need

        names, static = [], []
        for f in dataclasses.fields(tree):
            if f.metadata.get("static"):
                static.append((f.name, getattr(tree, f.name)))
            else:
                names.append(f.name)
        children = tuple(_flatten(getattr(tree, n), leaves) for n in names)
        return Structure(type(tree), tuple(names), children, tuple(static))
    leaves.append(tree)
    return LEAF


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    """The container with new leaves."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure.kind is None:
        return next(leaves)
    found = [_unflatten(s, leaves) for s in structure.children]
    kind = structure.kind
    if issubclass(kind, dict):
        pairs = zip(structure.keys, found, strict=True)
        return kind(pairs) if structure.more is None else kind(structure.more, pairs)
    if issubclass(kind, collections.deque):
        return kind(found, structure.more)
    if _is_dataclass(kind):
        return _instance(kind, {**dict(zip(structure.keys, found, strict=True)),
                                **dict(structure.more)})  # fmt: skip
    if hasattr(kind, "_fields"):
        return kind(*found)
    return kind(found)


def _is_dataclass(kind: type) -> bool:
    return hasattr(kind, "__dataclass_fields__")


def _instance(kind: Any, values: dict[str, Any]) -> Any:
    """A dataclass with these values, made as its constructor is not: leaves may be anything."""
    out = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(out, name, value)
    return out


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with `function` applied to each leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(x) for x in leaves])
