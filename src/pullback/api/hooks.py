"""Hooks on tensors and nodes, and `retain_grad` (layer 4)."""

from __future__ import annotations

import itertools
from typing import Any

from pullback.core.callsite import with_site
from pullback.eager.node import Node
from pullback.eager.tensor import Tensor, gradient_edge, is_leaf, rare_of, retain
from pullback.errors import ArgumentTypeError, GraphError

_next_id = itertools.count().__next__


class RemovableHandle:
    """What registering a hook gives: `remove()` takes the hook away; also a context manager."""

    def __init__(self, hooks: dict[int, Any], *notes: dict[int, bool]) -> None:
        self.id = _next_id()
        self._hooks = hooks
        self._notes = notes  # what else is known of the hook, by its number

    def remove(self) -> None:
        """Take the hook away; twice does no harm."""
        self._hooks.pop(self.id, None)
        for note in self._notes:
            note.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def _add(hooks: dict[int, Any], hook: Any) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """Calls `hook(grad)` when the gradient of this tensor is complete; what it returns replaces it.

    Raises RuntimeError for a tensor that does not require grad, TypeError for no callable.
    """
    if not self._requires_grad:
        raise GraphError(
            with_site("cannot register a hook on a tensor that doesn't require gradient")
        )
    if not callable(hook):
        raise ArgumentTypeError(
            with_site(f"register_hook(): hook must be callable, got {type(hook).__name__}")
        )
    if self.is_leaf:
        rare = rare_of(self)
        if rare.hooks is None:
            rare.hooks = {}
        return _add(rare.hooks, hook)
    node, number = gradient_edge(self)
    return _add(node.get_extras().tensor_hooks.setdefault(number, {}), hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """Calls `hook(tensor)` after a leaf's `.grad` was updated by a backward pass."""
    if not self._requires_grad:
        raise GraphError(
            with_site("cannot register a hook on a tensor that doesn't require gradient")
        )
    if not self.is_leaf:
        raise GraphError(
            with_site("post accumulate grad hooks cannot be registered on non-leaf tensors")
        )
    rare = rare_of(self)
    if rare.post_hooks is None:
        rare.post_hooks = {}
    return _add(rare.post_hooks, hook)


def retain_grad(self: Tensor) -> None:
    """Keep `.grad` of a non-leaf; nothing to do for a leaf."""
    if not self._requires_grad:
        raise GraphError(with_site("can't retain_grad on Tensor that has requires_grad=False"))
    if is_leaf(self) or self.retains_grad:
        return
    retain(self)


def node_register_hook(self: Node, hook: Any) -> RemovableHandle:
    """Calls `hook(grad_inputs, grad_outputs)` after the node ran; may replace grad_inputs."""
    return _add(self.get_extras().post_hooks, hook)


def node_register_prehook(self: Node, hook: Any) -> RemovableHandle:
    """Calls `hook(grad_outputs)` before the node runs; may replace them."""
    return _add(self.get_extras().pre_hooks, hook)
