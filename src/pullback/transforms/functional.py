"""`pullback.autograd.functional` (layer 5): whole Jacobians and Hessians, and products with them.

All six are short programs over `autograd.grad`.  A product J v with reverse mode alone is taken by
the double-backward trick (J. Townsend, 2017): u -> J^T u is linear in u, and the transpose of its
own derivative is J.  Strict mode refuses what would otherwise be a silent zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.api import forward
from pullback.api.autograd import grad
from pullback.api.modes import enable_grad
from pullback.api.movement import stack
from pullback.core.callsite import with_site
from pullback.eager.batched import raised
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    DimensionError,
    GraphError,
    PullbackError,
    UnsupportedError,
)
from pullback.ops.movement import alias
from pullback.transforms.inputs import basis
from pullback.transforms.vmap import vmap

Tensors = tuple[Tensor, ...]
Gradients = Sequence[Tensor | None]
JACOBIAN = "torch.autograd.functional.jacobian"  # how PyTorch's messages begin


class StrategyError(PullbackError, AssertionError):
    """An unknown strategy (AssertionError, as in PyTorch)."""


# ---------------------------------------------------------------- arguments
def as_tensors(value: Any, what: str, function: str) -> tuple[bool, Tensors]:
    """`value` as a tuple of Tensors, and whether it was a tuple."""
    found = value if isinstance(value, tuple) else (value,)
    for i, x in enumerate(found):
        if not isinstance(x, Tensor):
            where = f"the value at index {i}" if isinstance(value, tuple) else f"the given {what}"
            raise ArgumentTypeError(
                with_site(
                    f"The {what} given to {function} must be either a Tensor or a tuple of "
                    f"Tensors but {where} has type {type(x)}."
                )
            )
    if not found:
        raise DimensionError(
            with_site(f"The {what} given to {function} must hold a Tensor: got an empty tuple")
        )
    return isinstance(value, tuple), found


def entering(inputs: Tensors, keep: bool) -> Tensors:
    """Fresh tensors to differentiate in; with `keep`, those tied to an outer graph stay so."""
    found = []
    for x in map(raised, inputs):
        if keep and x._requires_grad:
            found.append(alias(x))  # its gradient is not confused with that of other uses
        else:
            found.append(x.detach().requires_grad_())
    return tuple(found)


def vector(v: Any, keep: bool, function: str) -> Tensors:
    """The vector of a product, cut from its graph unless that is to be kept."""
    found = as_tensors(v, "v", function)[1]
    return tuple(x if keep and x._requires_grad else x.detach() for x in found)


def check_vector(v: Tensors, like: Tensors, tupled: bool) -> None:
    """One vector for each tensor of `like`, of its shape."""
    if len(v) != len(like):
        if tupled:
            raise ArgumentRuntimeError(
                with_site(
                    f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
                )
            )
        raise ArgumentRuntimeError(with_site("The given v should contain a single Tensor."))
    for i, (one, x) in enumerate(zip(v, like, strict=True)):
        if one.shape != x.shape:
            which = f"Entry {i} in v" if tupled else "v"
            raise ArgumentRuntimeError(
                with_site(
                    f"{which} has invalid size: should be {x.shape} but got {one.shape}."
                )
            )


def vector_for_inputs(v: Any, inputs: Tensors, tupled: bool, keep: bool, function: str) -> Any:
    """The vector of jvp, vhp, hvp; None stands for 1 where there is one element."""
    if v is None:
        if len(inputs) != 1 or inputs[0].numel() != 1:
            raise ArgumentRuntimeError(
                with_site(
                    "The vector v can only be None if the input to the user-provided function is "
                    f"a single Tensor with a single element: {function} got inputs of shapes "
                    f"{[list(x.shape) for x in inputs]}"
                )
            )
        return None
    found = vector(v, keep, function)
    check_vector(found, inputs, tupled)
    return found


def single_element(output: Any, function: str) -> Tensor:
    """The result of a function whose Hessian is asked for, refused unless it is one number."""
    tupled, found = as_tensors(output, "outputs of the user-provided function", function)
    if tupled:
        raise ArgumentRuntimeError(
            with_site(f"The function given to {function} should return a single Tensor")
        )
    if found[0].numel() != 1:
        raise ArgumentRuntimeError(
            with_site(
                f"The Tensor returned by the function given to {function} should contain a single "
                f"element: its shape is {list(found[0].shape)}"
            )
        )
    return found[0]


# ---------------------------------------------------------------- strict mode
def check_outputs(outputs: Tensors, strict: bool) -> None:
    """In strict mode, every output must have been computed differentiably."""
    for i, x in enumerate(outputs):
        if strict and not x._requires_grad:
            raise GraphError(
                with_site(
                    f"Output {i} of the user-provided function does not require gradients. With "
                    "strict=True it must be computed differentiably from the inputs"
                )
            )


def check_first_order(gradients: Gradients, strict: bool, hessian: bool) -> None:
    """In strict mode, first derivatives must exist and themselves depend on something."""
    if not strict:
        return
    for i, g in enumerate(gradients):
        if g is None:
            raise GraphError(
                with_site(
                    f"The output of the user-provided function is independent of input {i}. "
                    "This is not allowed in strict mode."
                )
            )
        if not g._requires_grad:
            start = "While computing the hessian, found that the jacobian" if hessian else (
                "The jacobian"
            )
            raise GraphError(
                with_site(
                    f"{start} of the user-provided function with respect to input {i} is "
                    "independent of the input. This is not allowed in strict mode: the function "
                    "must be differentiable twice, and not linear"
                )
            )


# What strict mode says about a missing derivative, by what was being taken.
MISSING = {
    "gradient": "The output of the user-provided function is independent of input {i}.",
    "product": "The gradient with respect to the input is independent of entry {i} in the "
    "grad_outputs when using the double backward trick to compute forward mode gradients.",
    "hessian": "The jacobian of the user-provided function is independent of input {i}.",
    "hessian product": "The hessian of the user-provided function is independent of entry {i} in "
    "the grad_jacobian.",
}


def filled(
    gradients: Gradients, like: Tensors, strict: bool, create_graph: bool, stage: str
) -> Tensors:
    """Zeros for missing derivatives; in strict mode they are errors instead."""
    found = []
    for i, (g, x) in enumerate(zip(gradients, like, strict=True)):
        if g is None and strict:
            raise GraphError(
                with_site(MISSING[stage].format(i=i) + " This is not allowed in strict mode.")
            )
        if g is not None and strict and create_graph and not g._requires_grad:
            order = "hessian" if stage.startswith("hessian") else "jacobian"
            raise GraphError(
                with_site(
                    f"The {order} of the user-provided function is independent of input {i}. This "
                    "is not allowed in strict mode when create_graph=True."
                )
            )
        found.append(_zeros(x) if g is None else g)
    return tuple(found)


def _zeros(x: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """Zeros in the dtype of `x`, and in its shape unless another is given."""
    return wrap(np.zeros(x._data.shape if shape is None else shape, x._data.dtype))


# ---------------------------------------------------------------- the engine
def gradients_of(
    outputs: Gradients,
    inputs: Tensors,
    cotangents: Gradients | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    batched: bool = False,
) -> Gradients:
    """`autograd.grad` of those outputs that can be differentiated; None for what is unreached."""
    weights = cotangents if cotangents is not None else [None] * len(outputs)
    pairs = [
        (o, w)
        for o, w in zip(outputs, weights, strict=True)
        if o is not None and o._requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    roots, seeds = zip(*pairs, strict=True)
    return grad(
        roots, inputs, seeds, create_graph=create_graph, retain_graph=retain_graph,
        allow_unused=True, is_grads_batched=batched,
    )  # fmt: skip


def leaving(values: Tensors, tupled: bool, keep: bool) -> Any:
    """Results in the caller's structure, cut from the graph unless it was asked for."""
    found = values if keep else tuple(x.detach() for x in values)
    return found if tupled else found[0]


# ---------------------------------------------------------------- products
def vjp(
    func: Callable[..., Any],
    inputs: Tensor | Tensors,
    v: Tensor | Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func` and the product v^T J of its Jacobian at `inputs`.

    inputs: Tensor or tuple of Tensors, floating or complex.
    v: as the outputs of `func`; None (meaning 1) for a single output with one element.
    create_graph: make both results differentiable.
    strict: refuse outputs that do not depend on some input, instead of returning zeros.

    Returns `(outputs, products)`, the second in the structure and shapes of `inputs`.

    Raises TypeError for what is no Tensor, RuntimeError for a `v` that does not fit and for what
    `strict` refuses.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0])
    >>> pullback.autograd.functional.vjp(lambda x: x**2, x, pullback.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    tupled, given = as_tensors(inputs, "inputs", "vjp")
    with enable_grad():
        xs = entering(given, create_graph)
        several, outputs = as_tensors(func(*xs), "outputs of the user-provided function", "vjp")
        check_outputs(outputs, strict)
        weights = None
        if v is not None:
            weights = vector(v, create_graph, "vjp")
            check_vector(weights, outputs, several)
        elif len(outputs) != 1 or outputs[0].numel() != 1:
            raise ArgumentRuntimeError(
                with_site(
                    "The vector v can only be None if the user-provided function returns a single "
                    f"Tensor with a single element: got {[list(o.shape) for o in outputs]}"
                )
            )
        found = gradients_of(outputs, xs, weights, create_graph)
        products = filled(found, xs, strict, create_graph, "gradient")
    return leaving(outputs, several, create_graph), leaving(products, tupled, create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Tensor | Tensors,
    v: Tensor | Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The outputs of `func` and the product J v of its Jacobian at `inputs`, by two backwards.

    v: as `inputs`; None (meaning 1) for a single input with one element.
    The rest as in `vjp`.  Returns `(outputs, products)`, the second shaped as the outputs.
    `pullback.func.jvp` and `autograd.forward_ad` give the same product in one forward pass.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0])
    >>> pullback.autograd.functional.jvp(lambda x: x**2, x, pullback.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    tupled, given = as_tensors(inputs, "inputs", "jvp")
    with enable_grad():
        xs = entering(given, create_graph)
        weights = vector_for_inputs(v, xs, tupled, create_graph, "jvp")
        several, outputs = as_tensors(func(*xs), "outputs of the user-provided function", "jvp")
        check_outputs(outputs, strict)
        # the first backward is linear in its cotangents: their values do not matter
        probes = tuple(_zeros(o).requires_grad_(o._requires_grad) for o in outputs)
        first = gradients_of(outputs, xs, probes, create_graph=True)
        check_first_order(first, strict, hessian=False)
        found = _second(first, probes, weights, create_graph)
        products = filled(found, outputs, strict, create_graph, "product")
    return leaving(outputs, several, create_graph), leaving(products, several, create_graph)


def _second(first: Gradients, probes: Tensors, weights: Any, create_graph: bool) -> Gradients:
    """The derivative of `first` in the probes, those that are differentiable."""
    wanted = tuple(p for p in probes if p._requires_grad)
    if not wanted:
        return (None,) * len(probes)
    results = iter(gradients_of(first, wanted, weights, create_graph))
    return [next(results) if p._requires_grad else None for p in probes]


def vhp(
    func: Callable[..., Any],
    inputs: Tensor | Tensors,
    v: Tensor | Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of a scalar `func` and the product v^T H of its Hessian at `inputs`.

    v: as `inputs`; None (meaning 1) for a single input with one element.
    `func` must return a single Tensor with one element; otherwise RuntimeError.
    The rest as in `vjp`.  Returns `(value, products)`, the second as `inputs`.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0])
    >>> pullback.autograd.functional.vhp(lambda x: (x**3).sum(), x, pullback.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    tupled, given = as_tensors(inputs, "inputs", "vhp")
    with enable_grad():
        xs = entering(given, create_graph)
        weights = vector_for_inputs(v, xs, tupled, create_graph, "vhp")
        value = single_element(func(*xs), "vhp")
        check_outputs((value,), strict)
        first = gradients_of((value,), xs, create_graph=True)
        check_first_order(first, strict, hessian=True)
        found = gradients_of(first, xs, weights, create_graph)
        products = filled(found, xs, strict, create_graph, "hessian")
    return leaving((value,), False, create_graph), leaving(products, tupled, create_graph)


def hvp(
    func: Callable[..., Any],
    inputs: Tensor | Tensors,
    v: Tensor | Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of a scalar `func` and the product H v of its Hessian at `inputs`.

    As `vhp`, which takes one backward pass less.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0])
    >>> pullback.autograd.functional.hvp(lambda x: (x**3).sum(), x, pullback.tensor([1.0, 10.0]))
    (tensor(9.), tensor([  6., 120.]))
    """
    tupled, given = as_tensors(inputs, "inputs", "hvp")
    with enable_grad():
        xs = entering(given, create_graph)
        weights = vector_for_inputs(v, xs, tupled, create_graph, "hvp")
        value = single_element(func(*xs), "hvp")
        check_outputs((value,), strict)
        first = gradients_of((value,), xs, create_graph=True)
        check_first_order(first, strict, hessian=True)
        probes = tuple(_zeros(x).requires_grad_() for x in xs)
        second = gradients_of(first, xs, probes, create_graph=True)
        check_first_order(second, strict, hessian=True)
        found = gradients_of(second, probes, weights, create_graph)
        products = filled(found, xs, strict, create_graph, "hessian product")
    return leaving((value,), False, create_graph), leaving(products, tupled, create_graph)


# ---------------------------------------------------------------- whole matrices
def jacobian(
    func: Callable[..., Any],
    inputs: Tensor | Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`.

    inputs: Tensor or tuple of Tensors, floating or complex.
    create_graph: make the result differentiable (reverse mode only).
    strict: refuse outputs that do not depend on some input, instead of returning zeros.
    vectorize: one pass with a batch of cotangents (or tangents) instead of one pass per row.
    strategy: "reverse-mode", or "forward-mode" (needs `vectorize`; better for few inputs).

    Returns, for a single input and output, a Tensor of shape `output.shape + input.shape`;
    otherwise `result[output][input]`, without the level that is single.  A row holds what
    `autograd.grad` of that output gives: for complex inputs, the conjugate derivative.

    Raises TypeError for what is no Tensor, RuntimeError for what `strict` refuses and for complex
    outputs without `vectorize`, NotImplementedError for options that do not combine.

    >>> import pullback
    >>> pullback.autograd.functional.jacobian(lambda x: x**2, pullback.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_strategy(strategy)
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    tupled, given = as_tensors(inputs, "inputs", "jacobian")
    with enable_grad():
        xs = entering(given, create_graph)
        several, outputs = as_tensors(
            func(*xs), "outputs of the user-provided function", "jacobian"
        )
        check_outputs(outputs, strict)
        if vectorize and strict:
            raise ArgumentRuntimeError(
                with_site(
                    f"{JACOBIAN}: `strict=True` and `vectorized=True` are not supported together. "
                    "Give one of the two"
                )
            )
        if vectorize:
            blocks = _batched_rows(outputs, xs, create_graph)
        else:
            blocks = [
                _rows(i, out, xs, create_graph, strict) for i, out in enumerate(outputs)
            ]
    rows = tuple(leaving(b, tupled, create_graph) for b in blocks)
    return rows if several else rows[0]


def check_strategy(strategy: str) -> None:
    """The two that there are."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise StrategyError(
            with_site(
                'Expected strategy to be either "forward-mode" or "reverse-mode", got '
                f"{strategy!r}. The first suits functions with more outputs than inputs"
            )
        )


def _rows(i: int, out: Tensor, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobians of one output, a backward pass per element."""
    flat = out.reshape(-1)
    rows: list[list[Tensor]] = [[] for _ in xs]
    for j in range(out.numel()):
        found = gradients_of((flat[j],), xs, create_graph=create_graph, retain_graph=True)
        for k, (g, x) in enumerate(zip(found, xs, strict=True)):
            if g is None and strict:
                raise GraphError(
                    with_site(
                        f"Output {i} of the user-provided function is independent of input {k}. "
                        "This is not allowed in strict mode."
                    )
                )
            if g is not None and strict and create_graph and not g._requires_grad:
                raise GraphError(
                    with_site(
                        "The jacobian of the user-provided function is independent of input "
                        f"{k}. This is not allowed in strict mode when create_graph=True."
                    )
                )
            rows[k].append(_zeros(x) if g is None else g)
    return tuple(_stacked(r, out, x) for r, x in zip(rows, xs, strict=True))


def _stacked(rows: list[Tensor], out: Tensor, x: Tensor) -> Tensor:
    shape = (*out.shape, *x.shape)
    return stack(rows).reshape(shape) if rows else _zeros(x, shape)


def _batched_rows(outputs: Tensors, xs: Tensors, create_graph: bool) -> list[Tensors]:
    """The Jacobians of all outputs from one pass, its batch the rows of all of them."""
    counts = [o.numel() for o in outputs]
    found: Gradients = (None,) * len(xs)
    if sum(counts):
        found = gradients_of(outputs, xs, basis(outputs), create_graph, True, batched=True)
    blocks = []
    start = 0
    for out, count in zip(outputs, counts, strict=True):
        block = []
        for x, g in zip(xs, found, strict=True):
            shape = (*out.shape, *x.shape)
            rows = _zeros(x, shape) if g is None else g[start : start + count].reshape(shape)
            block.append(rows)
        blocks.append(tuple(block))
        start += count
    return blocks


def _forward_jacobian(
    func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    """The Jacobian by one forward pass over a batch of tangents."""
    if create_graph or strict:
        option = "create_graph=True" if create_graph else "strict=True"
        error = UnsupportedError if create_graph else ArgumentRuntimeError
        raise error(
            with_site(
                f'{JACOBIAN}: `{option}` and `strategy="forward-mode"` are not supported together '
                f'(yet). Leave `{option}` out, or take `strategy="reverse-mode"`'
            )
        )
    tupled, xs = as_tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise UnsupportedError(
            with_site(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only "
                "implemented for `vectorize=True`."
            )
        )
    return _pushed(func, xs, tupled)


def _pushed(func: Callable[..., Any], xs: Tensors, tupled: bool) -> Any:
    """Every column at once: `vmap` over tangents of the forward pass.

    Structures are PyTorch's: here, other than in reverse mode, lists where the inputs are a tuple.
    """
    seen: list[Any] = []

    def push(tangents: Tensors) -> Tensors:
        duals = [forward.make_dual(x, t) for x, t in zip(xs, tangents, strict=True)]
        seen[:] = as_tensors(func(*duals), "outputs of the user-provided function", "jacobian")
        pairs = [forward.unpack_dual(o) for o in seen[1]]
        return tuple(
            _zeros(p.primal) if p.tangent is None else p.tangent for p in pairs
        )

    counts = [x.numel() for x in xs]
    with forward.dual_level():
        if sum(counts):
            columns = vmap(push)(basis(xs))
        else:
            one = push(tuple(map(_zeros, xs)))  # only the shapes of the outputs matter
            columns = tuple(_zeros(o, (0, *o.shape)) for o in one)
    blocks = []
    for column in columns:
        start, block = 0, []
        for x, count in zip(xs, counts, strict=True):
            part = column[start : start + count].movedim(0, -1)
            block.append(part.reshape((*column.shape[1:], *x.shape)))
            start += count
        blocks.append(block if tupled else block[0])
    if not seen[0]:
        return blocks[0]
    return blocks if tupled else tuple(blocks)


def hessian(
    func: Callable[..., Any],
    inputs: Tensor | Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar `func` at `inputs`: the Jacobian of its gradient.

    `func` must return a single Tensor with one element; otherwise RuntimeError.
    outer_jacobian_strategy: how the Jacobian of the gradient is taken; see `jacobian`, which
        explains the other arguments too.

    Returns a Tensor of shape `input.shape + input.shape`, for a tuple of inputs
    `result[i][j]` of shape `inputs[i].shape + inputs[j].shape`.

    >>> import pullback
    >>> pullback.autograd.functional.hessian(lambda x: (x**3).sum(), pullback.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    tupled, _ = as_tensors(inputs, "inputs", "hessian")
    check_strategy(outer_jacobian_strategy)

    def value(*xs: Tensor) -> Tensor:
        found = single_element(func(*xs), "hessian")
        check_outputs((found,), strict)
        return found.reshape(())

    def gradient(*xs: Tensor) -> Any:
        if outer_jacobian_strategy == "forward-mode":  # the duals must be what is differentiated
            xs = tuple(x if x._requires_grad else x.requires_grad_() for x in xs)
        found = jacobian(value, xs if tupled else xs[0], create_graph=True)
        check_first_order(found if tupled else (found,), strict, hessian=True)
        return found

    return jacobian(
        gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy
    )
