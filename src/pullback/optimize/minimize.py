"""`scipy.optimize.minimize` with exact derivatives of functions of Tensors (layer 6).

SciPy sees functions of one float64 vector; this file stands between them and functions of Tensors
of any shape, in nested containers.  What a method asks for decides what it gets: gradients,
products with the Hessian, whole Hessians, Jacobians of constraints.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.api.autograd import grad as gradients
from pullback.config import MODE, NO_GRAD
from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    UnsupportedError,
)
from pullback.ops.broadcast import cast, reshape
from pullback.ops.movement import cat, cut
from pullback.transforms.sparse import SparseDerivative
from pullback.typing import Array

WITHOUT_GRADIENT = {"nelder-mead", "powell", "cobyla", "cobyqa"}
WITH_PRODUCTS = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
WITH_HESSIAN = {"dogleg", "trust-exact"}


def scipy_optimize() -> Any:
    """`scipy.optimize`, loaded when first used."""
    try:
        import scipy.optimize
    except ImportError:
        raise UnsupportedError(
            with_site("pullback.optimize.minimize needs SciPy: run `pip install scipy`", 3)
        ) from None
    return scipy.optimize


# ---------------------------------------------------------------- between vectors and trees
class Vector:
    """How nested Tensors are laid out in one float64 vector."""

    def __init__(self, x0: Any) -> None:
        leaves, self.structure = tree.flatten(x0)
        for i, x in enumerate(leaves):
            if not isinstance(x, Tensor) or type(x._data) is not np.ndarray:
                raise ArgumentTypeError(
                    with_site(
                        f"minimize: needs x0 to hold plain Tensors, got {type(x).__name__} as "
                        f"leaf {i}", 3
                    )
                )
            if x._data.dtype.kind != "f":
                raise ArgumentTypeError(
                    with_site(
                        f"minimize: needs x0 of a real floating dtype, got {x.dtype} as leaf {i}",
                        3,
                    )
                )
        self.shapes = [x._data.shape for x in leaves]
        self.dtypes = [x._data.dtype for x in leaves]
        parts = [x._data.reshape(-1).astype(np.float64) for x in leaves]
        self.start = np.concatenate(parts) if parts else np.zeros(0)

    def tensors(self, vector: Tensor) -> Any:
        """The tree with the parts of a float64 vector (a Tensor), differentiably."""
        found, start = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            stop = start + math.prod(shape)
            part = reshape(cut(vector, axis=0, start=start, stop=stop), shape=shape)
            found.append(part if dtype == np.float64 else cast(part, dtype=dtype))
            start = stop
        return tree.unflatten(self.structure, found)

    def result(self, vector: Array) -> Any:
        """The tree for a vector of SciPy's, in memory of its own."""
        return self.tensors(wrap(np.array(vector, dtype=np.float64)))


class Function:
    """A function of nested Tensors as functions of a vector: value, gradient, Hessian products.

    The graph of the last point is kept: a method asks for many products there.
    """

    def __init__(self, function: Callable[..., Any], vector: Vector, args: tuple[Any, ...],
                 name: str) -> None:  # fmt: skip
        self.function = function
        self.vector = vector
        self.args = args
        self.name = name
        self.point: Array | None = None
        self.leaf: Any = None
        self.value: Any = None
        self.slope: Any = None

    def of_vector(self, leaf: Tensor) -> Tensor:
        """The function of one vector, giving one vector (or, of an objective, a scalar)."""
        return self.packed(self.function(self.vector.tensors(leaf), *self.args))

    def packed(self, result: Any) -> Tensor:
        """What the function returned as one float64 Tensor."""
        leaves, _ = tree.flatten(result)
        for r in leaves:
            if not isinstance(r, Tensor) or r._data.dtype.kind != "f":
                kind = f"dtype {r.dtype}" if isinstance(r, Tensor) else type(r).__name__
                raise ArgumentTypeError(
                    with_site(f"minimize: needs {self.name} to return real Tensors, got {kind}")
                )
        flat = [reshape(r, shape=(r.numel(),)) for r in leaves]
        whole = flat[0] if len(flat) == 1 else cat(*flat, axis=0)
        return whole if whole._data.dtype == np.float64 else cast(whole, dtype=np.dtype("f8"))

    def at(self, point: Array) -> Tensor:
        """The value at a point, with its graph."""
        if self.point is None or not np.array_equal(point, self.point):
            self.point = np.array(point, dtype=np.float64)
            self.leaf = wrap(self.point.copy())
            self.leaf._requires_grad = True
            self.slope = None
            token = MODE.set(MODE.get() & ~NO_GRAD)
            try:
                self.value = self.of_vector(self.leaf)
            finally:
                MODE.reset(token)
        return self.value

    def weighted(self, weights: Any, create: bool) -> Tensor:
        """The gradient of sum(weights * value) at the last point."""
        if not self.value.requires_grad:
            return wrap(np.zeros_like(self.leaf._data))
        (found,) = gradients(
            self.value, self.leaf, weights, retain_graph=True, create_graph=create,
            materialize_grads=True,
        )  # fmt: skip
        return found

    def products(self, slope: Tensor, directions: Array) -> Array:
        """Products of the derivative of `slope` with directions (k, n)."""
        if not slope.requires_grad:
            return np.zeros_like(directions)
        (found,) = gradients(
            slope, self.leaf, wrap(directions), retain_graph=True, is_grads_batched=True,
            materialize_grads=True,
        )  # fmt: skip
        return found.numpy(force=True)


class Objective(Function):
    """The scalar function that is minimised."""

    def packed(self, result: Any) -> Tensor:
        whole = super().packed(result)
        if whole.numel() != 1:
            raise ArgumentRuntimeError(
                with_site(
                    "minimize: needs f to return a scalar, got "
                    f"{whole.numel()} elements: reduce them (.sum())"
                )
            )
        return reshape(whole, shape=())

    def number(self, point: Array) -> float:
        """f(x)"""
        return float(self.at(point).item())

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """f(x) and its gradient."""
        value = self.number(point)
        return value, self.weighted(None, create=False).numpy(force=True)

    def hessian_product(self, point: Array, direction: Array) -> Array:
        """The Hessian at x times a vector."""
        return self.hessian_products(point, np.asarray(direction, dtype=np.float64)[None])[0]

    def hessian_products(self, point: Array, directions: Array) -> Array:
        """The Hessian at x times each of `directions` (k, n)."""
        self.at(point)
        if self.slope is None:
            self.slope = self.weighted(None, create=True)
        return self.products(self.slope, np.ascontiguousarray(directions))

    def hessian(self, point: Array) -> Array:
        """The whole Hessian."""
        return self.hessian_products(point, np.eye(len(point)))


class Constraint(Function):
    """A vector function whose values are bounded."""

    def numbers(self, point: Array) -> Array:
        """c(x), one vector."""
        return self.at(point).numpy(force=True).copy()

    def jacobian(self, point: Array) -> Array:
        """The Jacobian, dense."""
        value = self.at(point)
        m = value.numel()
        if not value.requires_grad or not m:
            return np.zeros((m, len(point)))
        (found,) = gradients(
            value, self.leaf, wrap(np.eye(m)), retain_graph=True, is_grads_batched=True,
            materialize_grads=True,
        )  # fmt: skip
        return found.numpy(force=True)

    def hessian(self, point: Array, weights: Array) -> Any:
        """The Hessian of weights . c(x), as an operator."""
        from scipy.sparse.linalg import LinearOperator

        self.at(point)
        slope = self.weighted(wrap(np.array(weights, dtype=np.float64)), create=True)
        n = len(point)

        def product(p: Array) -> Array:
            return self.products(slope, np.array(p, dtype=np.float64).reshape(1, n))[0]

        return LinearOperator((n, n), matvec=product, rmatvec=product, dtype=np.float64)


# ---------------------------------------------------------------- what is handed to SciPy
class Setting:
    """What the constraints of one call need."""

    def __init__(self, vector: Vector, sparse: bool) -> None:
        self.vector = vector
        self.sparse = sparse
        self.optimize = scipy_optimize()

    def jacobian(self, constraint: Constraint) -> Any:
        """The function that gives the Jacobian of a constraint."""
        if not self.sparse:
            return constraint.jacobian
        derivative = SparseDerivative(constraint.of_vector, "sparse_jacobian", "auto", True, None)
        return lambda point: derivative(wrap(np.array(point, dtype=np.float64)))

    def constraint(self, given: Any) -> Any:
        """A constraint on Tensors as one on a vector."""
        if isinstance(given, self.optimize.LinearConstraint):
            return given
        if isinstance(given, self.optimize.NonlinearConstraint):
            mine = Constraint(given.fun, self.vector, (), "a constraint")
            return self.optimize.NonlinearConstraint(
                mine.numbers, *map(flat_bound, (given.lb, given.ub)), jac=self.jacobian(mine),
                hess=mine.hessian, keep_feasible=given.keep_feasible,
            )  # fmt: skip
        if isinstance(given, dict) and {"type", "fun"} <= given.keys():
            mine = Constraint(given["fun"], self.vector, tuple(given.get("args", ())),
                              "a constraint")  # fmt: skip
            return {"type": given["type"], "fun": mine.numbers, "jac": self.jacobian(mine)}
        raise ArgumentTypeError(
            with_site(
                "minimize: needs constraints to be dicts with 'type' and 'fun', or scipy's "
                f"NonlinearConstraint or LinearConstraint, got {type(given).__name__}", 4
            )
        )


def flat_bound(bound: Any) -> Any:
    """A bound of any shape as a vector, or a number."""
    array = np.asarray(bound.numpy(force=True) if isinstance(bound, Tensor) else bound, dtype=float)
    return array.reshape(-1) if array.ndim else array


def seen_by_user(callback: Callable[..., Any], vector: Vector) -> Callable[..., Any]:
    """A callback that gets Tensors; SciPy tells its two kinds apart by the name of an argument."""
    if list(inspect.signature(callback).parameters) == ["intermediate_result"]:

        def with_result(intermediate_result: Any) -> Any:
            copy = type(intermediate_result)(intermediate_result)
            copy.x = vector.result(copy.x)
            return callback(intermediate_result=copy)

        return with_result

    def with_point(point: Array, *state: Any) -> Any:
        return callback(vector.result(point), *state)

    return with_point


def minimize(
    f: Callable[..., Any], x0: Any, args: Any = (), method: Any = None, *, bounds: Any = None,
    constraints: Any = (), sparse: bool = False, callback: Callable[..., Any] | None = None,
    **more: Any,
) -> Any:  # fmt: skip
    """`scipy.optimize.minimize` for a function of Tensors, with its exact derivatives.

    f: (x, *args) -> Tensor with one element, where x is like x0.
    x0: Tensor of any shape, or nested tuples, lists and dicts of Tensors; real floating dtypes.
        SciPy works on one float64 vector; f gets its parts in the dtypes of x0.
    method: any of SciPy's.  Newton-CG, trust-ncg, trust-krylov and trust-constr get products with
        the Hessian; dogleg and trust-exact the Hessian; methods without derivatives none.
    bounds: scipy Bounds (arrays of any shape with as many elements as x), or as SciPy takes them.
    constraints: one or several of {"type": "eq" or "ineq", "fun": c, "args": ...} and
        NonlinearConstraint(c, lb, ub), where c: x -> Tensor of any shape; they get exact Jacobians
        (and, for trust-constr, Hessians).  A LinearConstraint acts on the flattened x.
    sparse: Jacobians of constraints for trust-constr, and the Hessian of f, as sparse matrices with
        a traced pattern (see func.sparse_jacobian for what that asks of a function).
    callback: as SciPy's; gets Tensors.
    more: further arguments for SciPy (tol, options); jac, hess and hessp are ours.

    Returns SciPy's OptimizeResult, with x like x0.

    Raises TypeError, ValueError and RuntimeError for arguments that do not fit;
    NotImplementedError without SciPy.

    >>> import pullback
    >>> from pullback.optimize import minimize
    >>> target = pullback.tensor([[1.0, 2.0]])
    >>> result = minimize(lambda x: ((x - target) ** 2).sum(), pullback.zeros(1, 2))
    >>> pullback.allclose(result.x, target, atol=1e-4)
    True
    """
    ours = sorted({"jac", "hess", "hessp"} & more.keys())
    if ours:
        raise ArgumentValueError(
            with_site(f"minimize: computes derivatives itself: leave out {', '.join(ours)}")
        )
    setting = Setting(Vector(x0), sparse)
    vector, optimize = setting.vector, setting.optimize
    args = args if isinstance(args, tuple) else (args,)
    objective = Objective(f, vector, args, "f")
    kind = method.lower() if isinstance(method, str) else ""
    if sparse and kind != "trust-constr":
        raise ArgumentValueError(
            with_site(f"minimize: sparse=True needs method='trust-constr', got {method!r}")
        )
    several = isinstance(constraints, Sequence)
    theirs = [setting.constraint(c) for c in (constraints if several else [constraints])]
    if isinstance(bounds, optimize.Bounds):
        lower, upper = (
            np.broadcast_to(flat_bound(b), vector.start.shape) for b in (bounds.lb, bounds.ub)
        )
        feasible = np.broadcast_to(bounds.keep_feasible, np.shape(bounds.lb)).reshape(-1)
        bounds = optimize.Bounds(lower, upper, feasible)
    given: dict[str, Any] = {**more, "method": method, "bounds": bounds, "constraints": theirs}
    if callback is not None:
        given["callback"] = seen_by_user(callback, vector)
    if kind in WITHOUT_GRADIENT:
        result = optimize.minimize(objective.number, vector.start, **given)
    else:
        given["jac"] = True
        if sparse:
            hessian = SparseDerivative(objective.of_vector, "sparse_hessian", "forward", True, None)
            given["hess"] = lambda point: hessian(wrap(np.array(point, dtype=np.float64)))
            given["options"] = {"sparse_jacobian": True, **(more.get("options") or {})}
        elif kind in WITH_PRODUCTS:
            given["hessp"] = objective.hessian_product
        elif kind in WITH_HESSIAN:
            given["hess"] = objective.hessian
        result = optimize.minimize(objective.value_and_gradient, vector.start, **given)
    result.x = vector.result(result.x)
    return result


def value_and_grad(f: Callable[..., Any]) -> Callable[..., tuple[float, Array]]:
    """A function of Tensors as the function of NumPy arrays that optimisers want (`jac=True`).

    f: (Tensor of any shape, *args) -> Tensor with one element.

    Returns the function (array, *args) -> (float, gradient in the shape of the array, float64).
    The array is copied, as float64.

    Raises RuntimeError for results that are no scalars.

    >>> import numpy as np
    >>> from pullback.optimize import value_and_grad
    >>> value_and_grad(lambda x: (x**2).sum())(np.array([1.0, 2.0]))
    (5.0, array([2., 4.]))
    """

    @functools.wraps(f)
    def both(x: Array, *args: Any) -> tuple[float, Array]:
        start = wrap(np.array(x, dtype=np.float64))
        objective = Objective(f, Vector(start), args, "f")
        value, slope = objective.value_and_gradient(start._data.reshape(-1))
        return value, slope.reshape(start._data.shape)

    return both
