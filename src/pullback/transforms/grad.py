"""`grad` as a transform (layer 5): a function that returns the derivative of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback.api.autograd import grad as gradients
from pullback.config import MODE, NO_GRAD
from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.batched import raised
from pullback.eager.node import AccumulateGrad, Node
from pullback.eager.tensor import Tensor, gradient_edge, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError
from pullback.ops.broadcast import zeros_like
from pullback.ops.movement import alias


def fresh(tensor: Tensor) -> Tensor:
    """An alias of a tensor: the derivative is taken in it, the outer graph still reaches through.

    A tensor of which nobody outside wants a derivative becomes a plain leaf.
    """
    tensor = raised(tensor)
    if tensor._requires_grad and not MODE.get() & NO_GRAD:
        return alias(tensor)
    out = wrap(tensor._data)
    out._requires_grad = True
    return out


def others_differentiable(root: Node, mine: set[Node]) -> bool:
    """Whether the graph reaches anything differentiable besides the nodes in `mine`."""
    seen = {root}
    stack = [root]
    while stack:
        node = stack.pop()
        if node in mine:
            if type(node) is not AccumulateGrad:
                return True  # an alias of a tensor that an outer level differentiates
            continue
        if type(node) is AccumulateGrad:
            return True
        for edge in node.edges:
            if type(edge) is tuple and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return False


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives the gradient of a scalar `func` in its arguments `argnums`."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return derivative


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """As `grad`, returning `(gradient, value)`."""

    @functools.wraps(func)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for n in numbers:
            if not -len(args) <= n < len(args):
                raise ArgumentRuntimeError(
                    with_site(
                        f"Got argnum={n}, but only {len(args)} positional inputs"
                    )
                )
        inner = list(args)
        leaves: list[Tensor] = []

        def enter(x: Any) -> Any:
            if not isinstance(x, Tensor):
                raise ArgumentTypeError(
                    with_site(f"grad: differentiated arguments must be Tensors, got {type(x)}")
                )
            leaves.append(fresh(x))
            return leaves[-1]

        token = MODE.set(MODE.get() & ~NO_GRAD)
        try:
            outer = not token.old_value & NO_GRAD if isinstance(token.old_value, int) else True
            for n in numbers:
                inner[n] = tree.map_leaves(enter, args[n])
            result = func(*inner, **kwargs)
            value, aux = result if has_aux else (result, None)
            if not isinstance(value, Tensor):
                raise ArgumentRuntimeError(
                    with_site(
                        "Expected f(*args) to return a single tensor, got "
                        f"{type(value).__name__}"
                    )
                )
            if value.ndim:
                raise ArgumentRuntimeError(
                    with_site(
                        "Expected f(*args) to return a scalar tensor, got tensor with "
                        f"{value.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs "
                        "instead?"
                    )
                )
            if value._requires_grad:
                mine = {gradient_edge(x)[0] for x in leaves}
                keep = outer and others_differentiable(gradient_edge(value)[0], mine)
                found = list(gradients(value, leaves, create_graph=keep, materialize_grads=True))
            else:
                keep = False
                found = [wrap(zeros_like(x)) for x in leaves]
        finally:
            MODE.reset(token)
        structures = [tree.flatten(args[n])[1] for n in numbers]
        packed = []
        for s in structures:
            count = len(tree.flatten(tree.unflatten(s, found))[0]) if s is not tree.LEAF else 1
            packed.append(tree.unflatten(s, found[:count]))
            del found[:count]
        out = value if keep else value.detach()
        answer = packed[0] if isinstance(argnums, int) else tuple(packed)
        return answer, ((out, aux) if has_aux else out)

    return derivative
