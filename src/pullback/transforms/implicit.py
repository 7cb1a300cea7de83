"""Derivatives through a solver, by the implicit function theorem (layer 5).

Where F(x*, a) = 0, the solution moves with the arguments as dx* = -(dF/dx)^-1 (dF/da) da; how the
solver got there does not matter (Griewank & Walther, Evaluating Derivatives, ch. 15; Blondel et
al., "Efficient and modular implicit differentiation", 2022).  No matrix is formed: Krylov methods
ask only for products with dF/dx or its transpose, which are passes through F.

The cotangent w of F in the backward pass solves (dF/dx)^T w = g: it is the solution of an equation
itself, and is differentiated in the same way.  So derivatives of any order need no code of their
own: a `Problem` makes the problem of its adjoint and that of its tangent.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.api.autograd import grad as gradients
from pullback.config import MODE, NO_GRAD
from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.core.primitive import Primitive, RuleSpec
from pullback.eager.apply import record, tape_level
from pullback.eager.batched import at_level
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    GraphError,
    UnsupportedError,
)
from pullback.ops.broadcast import reshape, shape_of
from pullback.ops.indexing import getitem
from pullback.ops.movement import alias, cat, cut, stack
from pullback.typing import Array

METHODS = ("gmres", "bicgstab", "cg")
Residual = Callable[[Any, Sequence[Any]], Any]  # (unknown, inputs) -> residual, all Tensors


class Options(NamedTuple):
    """How linear systems are solved."""

    method: Any
    rtol: float | None
    maxiter: int | None


# ---------------------------------------------------------------- small helpers
@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Record operations, whatever the mode outside."""
    token = MODE.set(MODE.get() & ~NO_GRAD)
    try:
        yield
    finally:
        MODE.reset(token)


def as_tensor(value: Any) -> Tensor:
    """A value of any kind as a Tensor."""
    return value if isinstance(value, Tensor) else wrap(value)


def leaf_of(tensor: Tensor) -> Tensor:
    """What to differentiate in: an alias that an outer derivative reaches through, or a leaf."""
    if tensor._requires_grad:
        return alias(tensor)
    out = wrap(tensor._data)
    out._requires_grad = True
    return out


def levelled(values: Sequence[Any]) -> list[Tensor]:
    """The values as Tensors of one `vmap` level: that of the highest.

    In an operation of that level the others would count as constants, and a derivative in them
    would be lost.
    """
    tensors = [as_tensor(v) for v in values]
    level = max((tape_level(t._data) for t in tensors), default=0)
    return [at_level(t, level) for t in tensors]


def vjp(
    residual: Residual, x: Tensor, inputs: Sequence[Tensor], w: Tensor, create: bool
) -> Tensor:
    """(d residual / dx)^T w."""
    with recording():
        leaf = leaf_of(x)
        value = residual(leaf, inputs)
        if not value.requires_grad:
            return wrap(np.zeros(shape_of(x), x._data.dtype))
        (found,) = gradients(value, leaf, w, create_graph=create, materialize_grads=True)
    return found


# ---------------------------------------------------------------- problems
class Problem:
    """An equation residual(x, inputs) = 0 in a vector x, and what solves it for given arrays."""

    def __init__(
        self, residual: Residual, solve: Callable[[Sequence[Array]], Array], options: Options
    ) -> None:
        self.residual = residual
        self.solve = solve
        self.options = options

    def adjoint(self) -> Problem:
        """(dF/dx)^T w = g in w, with inputs (g, x, *inputs)."""

        def residual(w: Tensor, given: Sequence[Tensor]) -> Tensor:
            g, x, *inputs = given
            return vjp(self.residual, x, inputs, w, create=True) - g

        def solve(given: Sequence[Array]) -> Array:
            g, x, *inputs = given
            with recording():
                leaf = leaf_of(wrap(x))
                value = self.residual(leaf, [wrap(a) for a in inputs])

                def product(w: Array) -> Array:
                    if not value.requires_grad:
                        return np.zeros_like(x)
                    (found,) = gradients(
                        value, leaf, wrap(w), retain_graph=True, materialize_grads=True
                    )
                    return found.numpy()

                return krylov(product, g, self.options)

        return Problem(residual, solve, self.options)

    def tangent(self, moving: tuple[bool, ...]) -> Problem:
        """(dF/dx) t + (dF/da) s = 0 in t, with inputs (x, *inputs, s for each moving input)."""
        count = len(moving)

        def product(t: Tensor, given: Sequence[Tensor]) -> Tensor:
            """The derivative of the residual in direction (t, s): twice a transposed product."""
            x, inputs, directions = given[0], given[1 : count + 1], given[count + 1 :]
            with recording():
                point = leaf_of(x)
                leaves = [leaf_of(a) if m else a for a, m in zip(inputs, moving, strict=True)]
                value = self.residual(point, leaves)
                if not value.requires_grad:
                    return value * 0
                wanted = [point, *(a for a, m in zip(leaves, moving, strict=True) if m)]
                u = leaf_of(value.detach() * 0)
                back = gradients(value, wanted, u, create_graph=True, materialize_grads=True)
                total = sum(
                    (b * d).sum() for b, d in zip(back, (t, *directions), strict=True)
                )
                (found,) = gradients(total, u, create_graph=True, materialize_grads=True)
            return found

        def solve(given: Sequence[Array]) -> Array:
            tensors = [wrap(a) for a in given]
            still = [*tensors[: count + 1], *(t * 0 for t in tensors[count + 1 :])]
            constant = product(tensors[0] * 0, tensors)
            return krylov(
                lambda t: product(wrap(t), still).numpy(force=True),
                -constant.numpy(force=True), self.options,
            )  # fmt: skip

        return Problem(product, solve, self.options)


def krylov(product: Callable[[Array], Array], b: Array, options: Options) -> Array:
    """The solution of product(x) = b, checked."""
    try:
        from scipy.sparse import linalg
    except ImportError:
        raise UnsupportedError(
            with_site("derivatives of func.implicit need SciPy: run `pip install scipy`")
        ) from None
    n = b.size
    if not n or not b.any():
        return np.zeros_like(b)
    # NumPy scalars and other strides would be foreign to the passes
    operator = linalg.LinearOperator(
        (n, n), dtype=b.dtype,
        matvec=lambda v: product(np.ascontiguousarray(v.reshape(-1), dtype=b.dtype)),
    )  # fmt: skip
    rtol = options.rtol
    if rtol is None:
        rtol = 1e-10 if b.dtype == np.float64 else 1e-5
    if callable(options.method):
        x = np.asarray(options.method(operator, b), dtype=b.dtype).reshape(-1)
    else:
        more: dict[str, Any] = {"rtol": rtol, "atol": 0.0, "maxiter": options.maxiter}
        if options.method == "gmres":
            more["restart"] = min(n, 100)
            more["maxiter"] = options.maxiter or 20
        x, _ = getattr(linalg, options.method)(operator, b, **more)
        x = np.asarray(x, dtype=b.dtype)
    size = float(np.linalg.norm(b))
    off = float(np.linalg.norm(product(x) - b))
    if not off <= 10 * rtol * size:
        name = options.method if isinstance(options.method, str) else "the given method"
        raise GraphError(
            with_site(
                f"implicit: {name} did not solve the linear system of {n} unknowns: the residual "
                f"is {off / size:.1e} of the right-hand side, needed is rtol={rtol:g}. The "
                "derivative of `optimality` in the solution may be singular, or not fit the "
                "method (cg needs it symmetric and positive definite); else choose another "
                "method, a larger maxiter, or a larger rtol"
            )
        )
    return x


# ---------------------------------------------------------------- the primitive
def solved(values: Sequence[Any], problem: Problem) -> Any:
    """The solution of a problem as a value of the kind of its inputs, recorded where they are."""
    if all(type(v) is np.ndarray for v in values):
        return problem.solve(values)
    payloads = [v._data if isinstance(v, Tensor) else v for v in values]
    mode = MODE.get()
    if mode & ~NO_GRAD or any(type(p) is not np.ndarray for p in payloads):
        return implicit_solution(*values, problem=problem)
    out = wrap(problem.solve(payloads))
    mask = sum(1 << i for i, v in enumerate(values) if isinstance(v, Tensor) and v._requires_grad)
    if mask and not mode & NO_GRAD:
        plan = implicit_solution.plan(mask, None, len(values))
        record(plan, tuple(values), payloads, {"problem": problem}, (out,))
    return out


def _forward(*xs: Any, problem: Problem) -> Any:
    return problem.solve(xs)


def _back(g: Any, xs: Any, out: Any, problem: Problem, needs: tuple[bool, ...]) -> Any:
    w = solved((g, out, *xs), problem.adjoint())
    create = any(isinstance(v, Tensor) for v in (w, out, *xs))
    w, x, *inputs = levelled((w, out, *xs))
    with recording():
        leaves = [leaf_of(a) if n else a for a, n in zip(inputs, needs, strict=True)]
        value = problem.residual(x, leaves)
        wanted = [a for a, n in zip(leaves, needs, strict=True) if n]
        if not value.requires_grad:
            return [None] * len(needs)
        found = iter(gradients(value, wanted, -w, create_graph=create, materialize_grads=True))
    results = [next(found) if n else None for n in needs]
    return results if create else [None if r is None else r._data for r in results]


def _jvp(tangents: Any, primals: Any, params: Any, out: Any) -> Any:
    moving = tuple(t is not None for t in tangents)
    problem: Problem = params["problem"]
    directions = [t for t in tangents if t is not None]
    return solved((out, *primals, *directions), problem.tangent(moving))


def _batch(size: int, *xs: Any, problem: Problem, batched: tuple[bool, ...]) -> Any:
    """One example after the other: a solver need not know of batches."""
    each = []
    for i in range(size):
        mine = [getitem(x, key=(i,)) if b else x for x, b in zip(xs, batched, strict=True)]
        each.append(solved([as_array(x) for x in mine], problem))
    return stack(*each, axis=0)


def as_array(value: Any) -> Any:
    """An array from a NumPy scalar (one element of an array); other values as they are."""
    return np.asarray(value) if isinstance(value, np.generic) else value


implicit_solution = Primitive(
    "implicit", _forward, kind="general", inputs=("xs",), params=("problem",), variadic=True,
    joint=RuleSpec(_back, ("xs", "out", "problem", "needs")), jvp=_jvp, batch=_batch,
    node_name="ImplicitBackward", doc="the solution of an equation, by the solver of a problem",
)  # fmt: skip


# ---------------------------------------------------------------- what users call
class Layout:
    """The structure of a solution: several Tensors as one vector."""

    def __init__(self) -> None:
        self.structure: Any = None
        self.shapes: list[tuple[int, ...]] = []

    def pack(self, solution: Any) -> Array:
        """The arrays of a solution as one vector; remembers their structure."""
        leaves, self.structure = tree.flatten(solution)
        arrays = [x.numpy(force=True) if isinstance(x, Tensor) else np.asarray(x) for x in leaves]
        dtypes = {a.dtype for a in arrays}
        if len(dtypes) != 1 or next(iter(dtypes)).kind != "f":
            raise ArgumentTypeError(
                with_site(
                    "implicit: needs `solver` to return Tensors of one real floating dtype, got "
                    f"{sorted(map(str, dtypes))}"
                )
            )
        self.shapes = [a.shape for a in arrays]
        return np.concatenate([a.reshape(-1) for a in arrays])

    def unpack(self, vector: Any) -> Any:
        """The structure with the parts of a vector (a Tensor)."""
        if len(self.shapes) == 1:
            return tree.unflatten(self.structure, [reshape(vector, shape=self.shapes[0])])
        parts, start = [], 0
        for shape in self.shapes:
            stop = start + math.prod(shape)
            parts.append(reshape(cut(vector, axis=0, start=start, stop=stop), shape=shape))
            start = stop
        return tree.unflatten(self.structure, parts)

    def vector(self, residual: Any) -> Any:
        """What `optimality` returned as one vector; its structure is checked."""
        leaves, structure = tree.flatten(residual)
        shapes = [tuple(x.shape) if isinstance(x, Tensor) else type(x) for x in leaves]
        if structure != self.structure or shapes != self.shapes:
            raise ArgumentRuntimeError(
                with_site(
                    "implicit: needs `optimality` to return Tensors with the structure and shapes "
                    f"of the solution, {self.shapes}, got {shapes}"
                )
            )
        flat = [reshape(x, shape=(math.prod(s),)) for x, s in zip(leaves, self.shapes, strict=True)]
        return flat[0] if len(flat) == 1 else cat(*flat, axis=0)


def implicit(
    solver: Callable[..., Any], optimality: Callable[..., Any], *,
    method: str | Callable[[Any, Array], Array] = "gmres", rtol: float | None = None,
    maxiter: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """`solver` as a function whose derivatives come from the equation that its result satisfies.

    solver: (*args) -> x, a Tensor or nested containers of Tensors of one real floating dtype.  It
        may do anything (loop, call SciPy or other libraries): it is never differentiated, and gets
        detached Tensors.
    optimality: (x, *args) -> residual with the structure and shapes of x: 0 at the solution.  It
        must be written in operations of this library, and use no Tensor that requires grad other
        than its arguments.
    method: how linear systems in d optimality / dx are solved: "gmres", "bicgstab", "cg" (for
        symmetric positive definite ones) of scipy.sparse.linalg, or `(operator, b) -> x` with a
        scipy LinearOperator.
    rtol: bound for the residual over the right-hand side; 1e-10 for float64, else 1e-5.
    maxiter: as SciPy's (for gmres: cycles of up to 100 iterations).

    The result has reverse mode of any order and works under `vmap` (example by example).  The
    derivative is that of the exact solution: it is as good as the solver's result is.

    Raises TypeError and RuntimeError for results that do not fit; RuntimeError, in the backward
    pass, when a linear system was not solved to `rtol`; NotImplementedError without SciPy.

    >>> import pullback
    >>> def newton(a):  # the square root of a
    ...     x = a
    ...     for _ in range(30):
    ...         x = (x + a / x) / 2
    ...     return x
    >>> root = pullback.func.implicit(newton, lambda x, a: x * x - a)
    >>> a = pullback.tensor(16.0, requires_grad=True)
    >>> pullback.autograd.grad(root(a), a)
    (tensor(0.1250),)
    """
    if not callable(method) and method not in METHODS:
        raise ArgumentValueError(
            with_site(f"implicit: needs method to be one of {METHODS} or callable, got {method!r}")
        )
    options = Options(method, rtol, maxiter)

    @functools.wraps(solver)
    def solution(*args: Any) -> Any:
        leaves, structure = tree.flatten(args)
        places = [i for i, a in enumerate(leaves) if isinstance(a, Tensor)]
        inputs = [leaves[i] for i in places]
        layout = Layout()

        def arguments(tensors: Sequence[Any]) -> Any:
            full = list(leaves)
            for i, t in zip(places, tensors, strict=True):
                full[i] = t
            return tree.unflatten(structure, full)

        def residual(x: Any, tensors: Sequence[Any]) -> Any:
            return layout.vector(optimality(layout.unpack(x), *arguments(tensors)))

        def solve(arrays: Sequence[Array]) -> Array:
            detached = [wrap(a) for a in arrays]
            with recording():  # the solver may use derivatives itself
                found = layout.pack(solver(*arguments(detached)))
                check(residual(wrap(found), detached))
            return found

        problem = Problem(residual, solve, options)
        if not inputs:
            return layout.unpack(wrap(solve([])))
        return layout.unpack(as_tensor(solved(inputs, problem)))

    return solution


def check(residual: Tensor) -> None:
    """What the value of the residual at the solution gives away."""
    if residual.requires_grad:
        raise GraphError(
            with_site(
                "implicit: `optimality` uses a Tensor that requires grad and is no argument: its "
                "gradient would be lost. Pass it to the solver as an argument"
            )
        )
    if not np.isfinite(residual.numpy()).all():
        raise ArgumentRuntimeError(
            with_site("implicit: `optimality` is not finite at the result of `solver`")
        )
