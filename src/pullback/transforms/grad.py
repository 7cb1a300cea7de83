"""`grad` as a transform (layer 5): a function that returns the derivative of a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback.api.autograd import grad as gradients
from pullback.config import MODE, NO_GRAD
from pullback.core import dtypes, tree
from pullback.core.callsite import with_site
from pullback.eager.batched import raised
from pullback.eager.node import AccumulateGrad, Node
from pullback.eager.tensor import Tensor, counter_of, gradient_edge, wrap
from pullback.errors import ArgumentRuntimeError
from pullback.ops.broadcast import zeros_like
from pullback.ops.movement import alias
from pullback.transforms.inputs import Inputs, with_aux

CALL = "grad_and_value(f)(*args)"  # how PyTorch's messages begin


def fresh(tensor: Tensor) -> Tensor:
    """An alias of a tensor: the derivative is taken in it, the outer graph still reaches through.

    A tensor of which nobody outside wants a derivative becomes a plain leaf.
    """
    if not dtypes.is_differentiable(tensor._data.dtype):
        raise ArgumentRuntimeError(
            with_site(
                "only Tensors of floating point dtype can require gradients, and complex ones; "
                f"got an argument of dtype {tensor.dtype} to differentiate in")
        )
    tensor = raised(tensor)
    if tensor._requires_grad:
        return alias(tensor)
    out = released(tensor)
    out._requires_grad = True
    return out


def released(tensor: Tensor) -> Tensor:
    """A tensor without the history inside the transform; its tangents stay, its memory is shared.

    Unlike `detach`, which cuts the tangents of outer levels too.
    """
    out = wrap(tensor._data)
    out._counter = counter_of(tensor)
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
        inputs = Inputs(func, args, kwargs, argnums, "grad")
        mode = MODE.get()
        token = MODE.set(mode & ~NO_GRAD)
        try:
            leaves = [fresh(x) for x in inputs.leaves]
            mine = {gradient_edge(x)[0] for x in leaves}
            result = inputs.call(*leaves)
            value, aux = with_aux(result, CALL) if has_aux else (result, None)
            _check_scalar(value)
            keep = not mode & NO_GRAD and is_shared(value, mine)
            if value._requires_grad:
                found = list(gradients(value, leaves, create_graph=keep, materialize_grads=True))
            else:
                found = [wrap(zeros_like(x)) for x in leaves]
        finally:
            MODE.reset(token)
        answer = inputs.packed(found), value if keep else released(value)
        return (answer[0], (answer[1], outside(aux, mine, mode))) if has_aux else answer

    return derivative


def is_shared(tensor: Tensor, mine: set[Node]) -> bool:
    """Whether an outer derivative is wanted of a result, besides that in the nodes `mine`."""
    return tensor._requires_grad and others_differentiable(gradient_edge(tensor)[0], mine)


def outside(results: Any, mine: set[Node], mode: int) -> Any:
    """A tree of results as the caller gets them: with the history of outer levels only."""

    def one(x: Any) -> Any:
        if not isinstance(x, Tensor) or not x._requires_grad:
            return x
        return x if not mode & NO_GRAD and is_shared(x, mine) else released(x)

    return tree.map_leaves(one, results)


def _check_scalar(value: Any) -> None:
    if not isinstance(value, Tensor):
        raise ArgumentRuntimeError(
            with_site(f"{CALL}: Expected f(*args) to return a Tensor, got {type(value)}")
        )
    if value.ndim:
        raise ArgumentRuntimeError(
            with_site(
                f"{CALL}: Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{value.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        )
