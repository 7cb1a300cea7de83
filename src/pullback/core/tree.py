"""Nested containers of leaves (layer 1): tuples, lists, dicts and named tuples, to any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Structure(NamedTuple):
    """The shape of a nested container: how to put leaves back."""

    kind: Any  # None for a leaf, else the container's type
    keys: tuple[Any, ...]
    children: tuple[Any, ...]


LEAF = Structure(None, (), ())


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves in order, and the structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    if isinstance(tree, (tuple, list)):
        return Structure(type(tree), (), tuple(_flatten(t, leaves) for t in tree))
    if isinstance(tree, dict):
        keys = tuple(tree)
        return Structure(dict, keys, tuple(_flatten(tree[k], leaves) for k in keys))
    leaves.append(tree)
    return LEAF


def unflatten(structure: Structure, leaves: list[Any]) -> Any:
    """The container with new leaves."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure.kind is None:
        return next(leaves)
    found = [_unflatten(s, leaves) for s in structure.children]
    if structure.kind is dict:
        return dict(zip(structure.keys, found, strict=True))
    if hasattr(structure.kind, "_fields"):
        return structure.kind(*found)
    return structure.kind(found)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with `function` applied to each leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(x) for x in leaves])
