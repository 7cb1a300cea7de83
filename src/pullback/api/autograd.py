"""`backward` and `grad` (layer 4): checking what was asked, seeding the engine, handing out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.callsite import here, with_site
from pullback.eager import engine
from pullback.eager.node import REASONS, Node, Origin
from pullback.eager.tensor import Tensor, gradient_edge, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError, GraphError
from pullback.ops.elementwise import linked

_ndarray = np.ndarray
_ONES: dict[Any, Any] = {}


def one(dtype: Any) -> Any:
    """The seed of a 0-d output, shared: the engine never writes to what it did not make."""
    found = _ONES.get(dtype)
    if found is None:
        found = _ONES[dtype] = np.ones((), dtype)
        found.flags.writeable = False
    return found


# ---------------------------------------------------------------- seeds
def seed(output: Tensor, gradient: Any, i: int, batched: bool) -> Any:
    """The cotangent of one output, checked; a Tensor or a payload."""
    data = output._data
    if gradient is None:
        if not output._requires_grad:
            raise no_graph(output, i)
        if data.size != 1:
            raise GraphError(
                with_site(
                    "grad can be implicitly created only for scalar outputs: this one has shape "
                    f"{list(output.shape)}. Give gradient=..., or reduce it first (.sum())"
                )
            )
        if data.dtype.kind == "c":
            raise GraphError(
                with_site(
                    "grad can be implicitly created only for real scalar outputs but got "
                    f"{output.dtype}"
                )
            )
        return one(data.dtype) if not data.shape else np.ones(data.shape, data.dtype)
    if not isinstance(gradient, Tensor):
        raise ArgumentTypeError(
            with_site(
                "gradients can be either Tensors or None, but got "
                f"{type(gradient).__name__}"
            )
        )
    shape = tuple(gradient._data.shape)
    if (shape[1:] if batched else shape) != tuple(data.shape):
        detail = " (without its first, batch dimension)" if batched else ""
        raise GraphError(
            with_site(
                f"Mismatch in shape: grad_output[{i}] has a shape of {gradient.shape}{detail} and "
                f"output[{i}] has a shape of {output.shape}."
            )
        )
    if (data.dtype.kind == "c") != (gradient._data.dtype.kind == "c"):
        raise GraphError(
            with_site(
                "For complex Tensors, both grad_output and output are required to have the same "
                f"dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {gradient.dtype} and "
                f"output[{i}] has a dtype of {output.dtype}."
            )
        )
    return gradient


def no_graph(output: Tensor, i: int) -> GraphError:
    """PyTorch's error for a root without a graph; ours says why it has none."""
    origin = output._edge
    why = ""
    if isinstance(origin, Origin):
        why = f" It was {REASONS[origin.reason]} at {origin.call_site}."
    elif not dtypes.is_differentiable(output._data.dtype):
        why = f" Its dtype is {output.dtype}: only floating point and complex tensors have graphs."
    return GraphError(
        with_site(
            f"element {i} of tensors does not require grad and does not have a grad_fn.{why} "
            "pullback.explain(tensor) says more"
        )
    )


def sequence(value: Any) -> tuple[Any, ...]:
    """One value or several, as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def seeds(
    outputs: tuple[Any, ...], gradients: tuple[Any, ...], create_graph: bool, batched: bool = False
) -> tuple[list[tuple[Node, int]], list[Any]]:
    """Edges and cotangents of the roots."""
    if len(gradients) != len(outputs):
        raise GraphError(
            with_site(f"got {len(outputs)} tensors and {len(gradients)} gradients")
        )
    edges, cotangents = [], []
    for i, (output, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        if not isinstance(output, Tensor):
            raise ArgumentTypeError(
                with_site(f"element {i} of tensors must be a Tensor, not {type(output).__name__}")
            )
        found = seed(output, gradient, i, batched)
        if not output._requires_grad:
            raise no_graph(output, i)
        dtype = output._data.dtype
        given = found._data if isinstance(found, Tensor) else found
        if given.dtype != dtype:
            found = found.to(dtype) if isinstance(found, Tensor) else found.astype(dtype)
        if create_graph and not isinstance(found, Tensor):
            found = wrap(found)
        elif not create_graph and isinstance(found, Tensor):
            found = found._data
        edges.append(gradient_edge(output))
        cotangents.append(found)
    return edges, cotangents


# ---------------------------------------------------------------- backward
def tensor_backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """The gradient of this tensor in all leaves of its graph, added to their `.grad`.

    gradient: Tensor of the shape of this one - the cotangent v of the product v^T J; needed unless
        this tensor has one element (then 1).
    retain_graph: keep saved values for another pass (default: as `create_graph`).
    create_graph: record the pass, so that gradients can be differentiated again.
    inputs: accumulate into these tensors only.

    Raises RuntimeError for a tensor without a graph, a missing or misshapen gradient, a graph that
    was freed, and saved values changed in place.

    >>> import pullback
    >>> x = pullback.arange(4.0, requires_grad=True)
    >>> (2 * pullback.dot(x, x)).backward()
    >>> x.grad
    tensor([ 0.,  4.,  8., 12.])
    """
    edge = self._edge
    if gradient is None and inputs is None and not create_graph and type(edge) is tuple:
        data = self._data
        if type(data) is _ndarray and not data.shape and data.dtype.kind == "f":
            engine.run([edge], [one(data.dtype)], keep_graph=bool(retain_graph),
                       create_graph=False)  # fmt: skip
            return
    backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """The sum of the gradients of `tensors`, accumulated in the leaves.

    tensors, grad_tensors: a Tensor or a sequence; a missing gradient means 1 for one element.
    See `Tensor.backward` for the rest.
    """
    if grad_variables is not None:
        grad_tensors = grad_variables
    roots = sequence(tensors)
    gradients = (None,) * len(roots) if grad_tensors is None else sequence(grad_tensors)
    request = None
    if inputs is not None:
        wanted = sequence(inputs)
        if not wanted:
            raise ArgumentRuntimeError(
                with_site("`inputs` argument to `backward` cannot be empty.")
            )
        request = engine.Request(
            [_input_edge(t, i, "backward") for i, t in enumerate(wanted)], accumulate=True
        )
    edges, cotangents = seeds(roots, gradients, create_graph)
    if create_graph:
        site = here(1)
        warnings.warn_explicit(
            "Using backward() with create_graph=True will create a reference cycle between the "
            "parameter and its gradient which can cause a memory leak. We recommend using "
            "autograd.grad when creating the graph to avoid this. If you have to use this "
            "function, make sure to reset the .grad fields of your parameters to None after use "
            "to break the cycle and avoid the leak.",
            UserWarning, site.file, site.line,
        )  # fmt: skip
    keep = create_graph if retain_graph is None else retain_graph
    engine.run(edges, cotangents, keep_graph=keep, create_graph=create_graph, request=request)
    if request is not None:
        _accumulate_inner(wanted, request, create_graph)


def _accumulate_inner(wanted: tuple[Any, ...], request: engine.Request, create: bool) -> None:
    """`backward(inputs=...)` with tensors that are no leaves: their `.grad` is filled as well."""
    for t in wanted:
        if isinstance(t, Tensor) and not t.is_leaf:
            g = request.captured.get(gradient_edge(t))
            if g is not None:
                payload = g if create or type(g) is not _ndarray else g.copy()
                engine.accumulate(t, payload, False, create)


def _input_edge(t: Any, i: int, function: str) -> tuple[Node, int]:
    if not isinstance(t, Tensor):
        raise ArgumentTypeError(
            with_site(f"{function}(): inputs[{i}] must be a Tensor, not {type(t).__name__}")
        )
    if not t._requires_grad:
        raise GraphError(
            with_site(
                "One of the differentiated Tensors does not require grad: "
                f"inputs[{i}] of shape {list(t.shape)}"
            )
        )
    return gradient_edge(t)


# ---------------------------------------------------------------- grad
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` in `inputs`, returned and not accumulated.

    grad_outputs: the cotangents (None for outputs with one element); with `is_grads_batched`,
        each has a leading batch dimension, and so has each result.
    allow_unused: None for inputs that the outputs do not reach, instead of an error.
    materialize_grads: zeros instead of None.

    Raises RuntimeError as `backward`, and for inputs that were not used.

    >>> import pullback
    >>> x = pullback.tensor(3.0, requires_grad=True)
    >>> pullback.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if not only_inputs:
        raise ArgumentValueError(
            with_site("only_inputs=False is gone from PyTorch too: use backward() to accumulate")
        )
    if materialize_grads and allow_unused is False:
        raise ArgumentValueError(
            with_site(
                "Expected allow_unused to be True or not passed when materialize_grads=True, but "
                "got: allow_unused=False."
            )
        )
    unused_ok = materialize_grads if allow_unused is None else allow_unused
    roots, wanted = sequence(outputs), sequence(inputs)
    if not wanted:
        raise ArgumentValueError(with_site("grad requires non-empty inputs."))
    gradients = (None,) * len(roots) if grad_outputs is None else sequence(grad_outputs)
    targets = [_input_edge(t, i, "grad") for i, t in enumerate(wanted)]
    if is_grads_batched:
        found = _batched(roots, gradients, targets, retain_graph, create_graph)
    else:
        found = _captured(roots, gradients, targets, retain_graph, create_graph)
    results: list[Any] = []
    for i, (t, g) in enumerate(zip(wanted, found, strict=True)):
        if g is None and not is_grads_batched and _is_constant(roots, targets[i]):
            g = wrap(np.zeros(t._data.shape, t._data.dtype))
        if g is None and not unused_ok:
            raise GraphError(
                with_site(
                    f"The differentiated Tensor at index {i} appears to not have been used in the "
                    "graph. Set allow_unused=True if this is the desired behavior. Its shape is "
                    f"{list(t.shape)}"
                )
            )
        if g is None and materialize_grads:
            g = wrap(np.zeros(t._data.shape, t._data.dtype))
        results.append(g)
    return tuple(results)


def _is_constant(roots: tuple[Any, ...], target: tuple[Node, int]) -> bool:
    """Whether outputs name an input that they do not change with: see `linked`."""
    stack = [(gradient_edge(t)[0], False) for t in roots if isinstance(t, Tensor)]
    seen = set(stack)
    while stack:
        node, passed = stack.pop()
        if passed and node is target[0]:
            return True
        is_link = getattr(node.plan, "primitive", None) is linked
        for k, edge in enumerate(node.edges):
            if type(edge) is tuple:
                step = (edge[0], passed or (is_link and k == 1))
                if step not in seen:
                    seen.add(step)
                    stack.append(step)
    return False


def _captured(
    roots: tuple[Any, ...], gradients: tuple[Any, ...], targets: list[tuple[Node, int]],
    retain_graph: bool | None, create_graph: bool,
) -> list[Any]:  # fmt: skip
    """Run the engine and take what arrived at the targets, as Tensors of their own."""
    request = engine.Request(targets, accumulate=False)
    edges, cotangents = seeds(roots, gradients, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    engine.run(edges, cotangents, keep_graph=keep, create_graph=create_graph, request=request)
    found: list[Any] = []
    for edge in targets:
        g = request.captured.get(edge)
        if g is None:
            found.append(None)
        elif isinstance(g, Tensor):
            found.append(g)
        else:
            # the caller may change it in place: nobody else may hold this memory
            found.append(wrap(engine.copy_payload(g)))
    return found


def _batched(
    roots: tuple[Any, ...], gradients: tuple[Any, ...], targets: list[tuple[Node, int]],
    retain_graph: bool | None, create_graph: bool,
) -> list[Any]:  # fmt: skip
    """One pass whose cotangents are batches."""
    from pullback.eager.batched import new_level, to_batch, unbatch

    sizes = {g._data.shape[0] for g in gradients if g is not None and g.ndim}
    if len(sizes) != 1 or any(g is None for g in gradients):
        raise ArgumentRuntimeError(
            with_site(
                "is_grads_batched=True needs grad_outputs with one common leading dimension, got "
                f"{[list(g.shape) if isinstance(g, Tensor) else g for g in gradients]}"
            )
        )
    for i, (output, g) in enumerate(zip(roots, gradients, strict=True)):
        seed(output, g, i, batched=True)
    size = sizes.pop()
    with new_level(size) as level:
        inner = tuple(to_batch(g, 0, level) for g in gradients)
        found = _captured(roots, inner, targets, retain_graph, create_graph)
        return [None if g is None else unbatch(g, level, 0) for g in found]


__all__ = ["backward", "grad", "tensor_backward"]
