"""Calling a module that has hooks (layer 6): forward hooks, and hooks of its backward pass.

The backward of a module is seen through two nodes of the graph: one that its inputs pass on the way
in, one that its results pass on the way out.  Each is the identity of several tensors at once, so
that a hook is called with all gradients together.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pullback.api.creation import zeros_like
from pullback.api.modes import is_grad_enabled
from pullback.core.callsite import here, with_site
from pullback.eager.apply import apply
from pullback.eager.node import AccumulateGrad, Node
from pullback.eager.tensor import Tensor
from pullback.eager.view import CUSTOM, link_view
from pullback.errors import ArgumentRuntimeError
from pullback.ops.movement import alias, bundle

if TYPE_CHECKING:
    from pullback.nn.module import Module


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module.forward` with every hook that is registered."""
    called: set[int] = set()
    try:
        return _call(module, args, kwargs, called)
    except Exception:
        _call_the_rest(module, args, kwargs, called)
        raise


def _call(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]
) -> Any:
    for number, hook in list(module._forward_pre_hooks.items()):
        args, kwargs = _before(module, hook, number, args, kwargs)
    passage = None
    full = list(module._backward_hooks.values()) if module._is_full_backward_hook else []
    before = list(module._backward_pre_hooks.values())
    if full or before:
        passage = Passage(module, full, before)
        args = passage.entered(args)
    result = module.forward(*args, **kwargs)
    for number, hook in list(module._forward_hooks.items()):
        called.add(number)
        changed = _after(module, hook, number, args, kwargs, result)
        result = result if changed is None else changed
    if passage is not None:
        result = passage.left(result)
    if module._backward_hooks and module._is_full_backward_hook is False:
        _hook_last_node(module, result)
    return result


def _before(
    module: Module, hook: Any, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments after one forward pre-hook."""
    if number not in module._forward_pre_hooks_with_kwargs:
        changed = hook(module, args)
        if changed is None:
            return args, kwargs
        return (changed if isinstance(changed, tuple) else (changed,)), kwargs
    changed = hook(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not isinstance(changed, tuple) or len(changed) != 2:
        raise ArgumentRuntimeError(
            with_site(
                "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                f"{changed}."
            )
        )
    return changed


def _after(
    module: Module, hook: Any, number: int, args: tuple[Any, ...], kwargs: dict[str, Any],
    result: Any,
) -> Any:  # fmt: skip
    if number in module._forward_hooks_with_kwargs:
        return hook(module, args, kwargs, result)
    return hook(module, args, result)


def _call_the_rest(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]
) -> None:
    """After an error: the hooks that are always to be called, with None for the result."""
    for number in list(module._forward_hooks_always_called):
        if number in called or number not in module._forward_hooks:
            continue
        try:
            _after(module, module._forward_hooks[number], number, args, kwargs, None)
        except Exception as error:
            site = here(1)
            warnings.warn_explicit(
                "module forward hook with ``always_call=True`` raised an exception that was "
                f"silenced as another error was raised in forward: {error}",
                UserWarning, site.file, site.line,
            )  # fmt: skip


# ---------------------------------------------------------------- the backward pass of a module
class Passage:
    """One call of a module: where its gradients leave it, and where they came in."""

    def __init__(self, module: Module, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_output: tuple[Any, ...] | None = None
        self.n_inputs = 0
        self.no_input_requires_grad = True

    def entered(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments by way of a node that calls the hooks."""
        self.n_inputs = len(args)
        new, node, places = bundled(args)
        if node is None:
            return args
        self.no_input_requires_grad = False
        shapes = tuple(a.detach() if isinstance(a, Tensor) else None for a in args)

        def hook(grad_input: tuple[Any, ...], _: Any) -> Any:
            given = self.grad_output
            if given is None:  # nothing came through the results of this call
                return None
            grads = spread(grad_input, places, len(args))
            zeros = (
                zeros_like(a) if g is None and isinstance(a, Tensor) else g
                for a, g in zip(shapes, grads, strict=True)
            )
            found = self.run_hooks(tuple(zeros), given)
            self.grad_output = None
            return tuple(found[i] for i in places)

        node.register_hook(hook)  # type: ignore[attr-defined]
        return new

    def run_hooks(self, grads: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the inputs after every backward hook."""
        for hook in self.hooks:
            changed = hook(self.module, grads, given)
            if changed is None:
                continue
            changed = changed if isinstance(changed, tuple) else (changed,)
            if len(changed) != len(grads):
                raise ArgumentRuntimeError(
                    with_site(
                        "Backward hook returned an invalid number of grad_input, got "
                        f"{len(changed)}, but expected {len(grads)}"
                    )
                )
            grads = changed
        return grads

    def left(self, result: Any) -> Any:
        """The results by way of a node that calls the pre-hooks and notes the gradients."""
        single = not isinstance(result, tuple)
        values = (result,) if single else result
        if single and not isinstance(result, Tensor):
            site = here(1)
            warnings.warn_explicit(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}", UserWarning, site.file, site.line,
            )  # fmt: skip
            return result
        new, node, places = bundled(values)
        if node is None:
            return result

        def hook(grad_output: tuple[Any, ...]) -> Any:
            given = self.run_pre_hooks(spread(grad_output, places, len(values)))
            self.grad_output = given
            if self.no_input_requires_grad:
                self.fire_at_results(given)
                self.grad_output = None
            return tuple(given[i] for i in places)

        node.register_prehook(hook)  # type: ignore[attr-defined]
        if single:
            return new[0]
        return type(result)(*new) if hasattr(result, "_fields") else new

    def run_pre_hooks(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the results after every backward pre-hook."""
        for hook in self.pre_hooks:
            changed = hook(self.module, grads)
            if changed is None:
                continue
            changed = changed if isinstance(changed, tuple) else (changed,)
            if len(changed) != len(grads):
                raise ArgumentRuntimeError(
                    with_site(
                        "Backward pre hook returned an invalid number of grad_output, got "
                        f"{len(changed)}, but expected {len(grads)}"
                    )
                )
            grads = changed
        return grads

    def fire_at_results(self, given: tuple[Any, ...]) -> None:
        """The backward hooks of a call none of whose inputs requires grad."""
        if self.hooks:
            site = here(1)
            warnings.warn_explicit(
                "Full backward hook is firing when gradients are computed with respect to module "
                "outputs since no inputs require gradients.", UserWarning, site.file, site.line,
            )  # fmt: skip
        for hook in self.hooks:
            changed = hook(self.module, (None,) * self.n_inputs, given)
            if changed is not None and not (
                isinstance(changed, tuple) and all(c is None for c in changed)
            ):
                raise ArgumentRuntimeError(
                    with_site(
                        "Backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
                )


def bundled(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Node | None, list[int]]:
    """The values, those that require grad as outputs of one node; the node, and which they are."""
    places = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v._requires_grad]
    if not places or not is_grad_enabled():
        return values, None, places
    outs = apply(bundle, tuple(values[i] for i in places), {})
    new = list(values)
    for i, out in zip(places, outs, strict=True):
        edge = out._edge
        link_view(out, values[i], alias, {})
        if out._rare is not None:  # a write would go past the node, and its hooks
            out._rare.creation = CUSTOM
        out._edge = edge
        new[i] = out
    return tuple(new), outs[0]._edge[0], places


def spread(values: tuple[Any, ...], places: list[int], n: int) -> tuple[Any, ...]:
    """The values at their places among n, None elsewhere."""
    found: list[Any] = [None] * n
    for i, v in zip(places, values, strict=True):
        found[i] = v
    return tuple(found)


def _hook_last_node(module: Module, result: Any) -> None:
    """Hooks of the older kind: on the node that made the (first) result."""
    first = result
    while not isinstance(first, Tensor):
        if isinstance(first, dict):
            first = next(v for v in first.values() if isinstance(v, Tensor))
        else:
            first = first[0]
    node = first.grad_fn
    if node is None:
        return
    inside = [n for n, _ in node.next_functions if n is not None]
    if any(not isinstance(n, AccumulateGrad) for n in inside):
        site = here(1)
        warnings.warn_explicit(
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is "
            "deprecated and will be removed in future versions. This hook will be missing some "
            "grad_input. Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning, site.file, site.line,
        )  # fmt: skip
    for hook in list(module._backward_hooks.values()):

        def on_node(grad_input: Any, grad_output: Any, hook: Any = hook) -> Any:
            return hook(module, grad_input, grad_output)

        node.register_hook(on_node)  # type: ignore[attr-defined]
