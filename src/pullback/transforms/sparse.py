"""Sparse Jacobians and Hessians: pattern, colouring, few products, entries (layer 5).

The pattern is read off a trace (`sparsity.py`); its columns or rows are coloured (`colouring.py`);
the products of the Jacobian with one seed for each colour are computed in one batch, and hold every
entry.  The pattern of a Hessian is that of the Jacobian of the traced gradient: the rule of an
operation names its inputs exactly where it is nonlinear in them, so that program contains the
nonlinear interactions and nothing else, and no second table of rules is needed.

Each evaluation computes one product more than it needs, with a random vector, and compares: a
pattern that does not fit (a function that changed since it was traced) is found out, not believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pullback.api.autograd import grad as gradients
from pullback.config import MODE, NO_GRAD
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    GraphError,
    UnsupportedError,
)
from pullback.tracing import Program, trace
from pullback.transforms.colouring import colour_columns, recovery, star_colour
from pullback.transforms.sparsity import dependence
from pullback.typing import Array

MODES = ("auto", "forward", "reverse")


class Plan(NamedTuple):
    """How one matrix is computed: made once for inputs of one shape and dtype."""

    pattern: Any  # boolean csr (m, n)
    colours: Array  # of the columns, or of the rows
    rows: bool  # whether rows are coloured
    places: tuple[Array, Array]  # of each entry: (row or column, colour) in the products
    eps: float  # of the least precise dtype that the function computes in

    @property
    def products(self) -> int:
        """The number of products with the matrix that give it whole."""
        return int(self.colours.max(initial=-1)) + 1


def scipy_sparse() -> Any:
    """`scipy.sparse`, loaded when first used."""
    try:
        import scipy.sparse
    except ImportError:
        raise UnsupportedError(
            with_site("sparse derivatives need SciPy: run `pip install scipy`", 3)
        ) from None
    return scipy.sparse


# ---------------------------------------------------------------- products in a batch
def batched_gradients(outputs: Tensor, inputs: Tensor, seeds: Tensor) -> Any:
    """The cotangents of `inputs` for each of `seeds`."""
    if not outputs.requires_grad:
        return wrap(np.zeros((len(seeds), *inputs.shape), inputs._data.dtype))
    (found,) = gradients(
        outputs, inputs, seeds, retain_graph=True, is_grads_batched=True, materialize_grads=True
    )
    return found


class Products:
    """Products with the derivative of one function at one point, for many vectors at a time."""

    def __init__(self, function: Callable[[Tensor], Any], x: Tensor, rows: bool, hessian: bool):
        leaf = wrap(x._data)
        leaf._requires_grad = True
        token = MODE.set(MODE.get() & ~NO_GRAD)
        try:
            value = function(leaf)
            self.inputs, self.outputs = leaf, value
            if hessian:
                self.outputs = gradient = gradient_of(value, leaf)
            elif not rows:
                self.inputs, self.outputs = transposed(value, leaf)
        finally:
            MODE.reset(token)
        unit = _largest(x) or 1.0
        # of derivatives in which nothing cancels: the value may be what is left of larger things,
        # of the size of x at least
        self.scale = max(_largest(value) / unit, 1.0)
        if hessian:
            self.scale = max(self.scale, _largest(gradient)) / unit

    def __call__(self, seeds: Array) -> Array:
        """seeds: (k, n) or, for products from the left, (k, m); the result is (k, other size)."""
        shaped = seeds.reshape(len(seeds), *self.outputs.shape)
        found = batched_gradients(self.outputs, self.inputs, wrap(shaped))
        return np.asarray(found._data).reshape(len(seeds), -1)


def transposed(value: Tensor, leaf: Tensor) -> tuple[Tensor, Tensor]:
    """(u, J^T u): a graph that is linear in u, so its products from the left are those with J."""
    weights = wrap(np.zeros(tuple(value.shape), value._data.dtype))
    weights._requires_grad = True
    return weights, gradient_of(value, leaf, weights)


def gradient_of(value: Tensor, leaf: Tensor, weights: Tensor | None = None) -> Tensor:
    """The gradient of a value in a leaf, as a graph of its own."""
    if not value.requires_grad:
        return wrap(np.zeros(tuple(leaf.shape), leaf._data.dtype))
    (found,) = gradients(value, leaf, weights, create_graph=True, materialize_grads=True)
    return found


def precision(program: Program) -> float:
    """The largest rounding unit among the dtypes of a program."""
    dtypes = {dtype for _, dtype in program.shapes if dtype.kind == "f"}
    return max((float(np.finfo(d).eps) for d in dtypes), default=0.0)


def _largest(x: Tensor) -> float:
    """The largest finite magnitude."""
    size = np.abs(x._data)
    return float(size[np.isfinite(size)].max(initial=0))


# ---------------------------------------------------------------- the two functions
class SparseDerivative:
    """A function of `x` that gives a sparse matrix of derivatives, remembering its pattern.

    Plans (pattern and colouring) are kept by the shape and dtype of `x`.
    """

    def __init__(
        self, function: Callable[[Tensor], Any], name: str, mode: str, check: bool,
        chunk: int | None,
    ) -> None:  # fmt: skip
        if mode not in MODES:
            raise ArgumentValueError(
                with_site(f"{name}: needs mode to be one of {MODES}, got {mode!r}", 3)
            )
        if chunk is not None and chunk < 1:
            raise ArgumentValueError(
                with_site(f"{name}: needs chunk_size of at least 1, got {chunk}", 3)
            )
        self.function = function
        self.name = name
        self.mode = mode
        self.check = check
        self.chunk = chunk
        self.plans: dict[Any, Plan] = {}
        self.sparse = scipy_sparse()

    @property
    def hessian(self) -> bool:
        """Whether this gives second derivatives of a scalar."""
        return self.name == "sparse_hessian"

    def plan(self, x: Tensor) -> Plan:
        """The pattern and colouring for inputs like `x`; computed once, then remembered."""
        self._check_input(x)
        key = (tuple(x.shape), x._data.dtype)
        found = self.plans.get(key)
        if found is None:
            found = self.plans[key] = self._made(x)
        return found

    def pattern(self, x: Tensor) -> Any:
        """Boolean scipy.sparse csr_array: an entry where a derivative can be other than 0."""
        return self.plan(x).pattern

    def __call__(self, x: Tensor) -> Any:
        """The matrix at `x`: scipy.sparse csr_array; entries of the pattern that are 0 are kept."""
        plan = self.plan(x)
        products = Products(self._checked, x, plan.rows, self.hessian)
        count = plan.products
        m, n = plan.pattern.shape
        size = m if plan.rows else n
        dtype = x._data.dtype
        result = np.empty((count, n if plan.rows else m), dtype)
        chunk = self.chunk or max(1, 20_000_000 // max(m, n, 1))
        for start in range(0, count, chunk):
            stop = min(start + chunk, count)
            seeds = np.zeros((stop - start, size), dtype)
            mine = np.flatnonzero((plan.colours >= start) & (plan.colours < stop))
            seeds[plan.colours[mine] - start, mine] = 1
            result[start:stop] = products(seeds)
        position, colour = plan.places
        matrix = self.sparse.csr_array(
            (result[colour, position], plan.pattern.indices.copy(), plan.pattern.indptr.copy()),
            shape=plan.pattern.shape,
        )
        if self.check:
            self._verify(matrix, plan, products)
        return matrix

    # ------------------------------------------------------------ inside
    def _check_input(self, x: Any) -> None:
        if not isinstance(x, Tensor) or type(x._data) is not np.ndarray:
            raise ArgumentTypeError(
                with_site(f"{self.name}: needs x to be a plain Tensor, got {type(x).__name__}", 4)
            )
        if x._data.dtype.kind != "f":
            raise ArgumentRuntimeError(
                with_site(f"{self.name}: needs x of a real floating dtype, got {x.dtype}", 4)
            )

    def _checked(self, x: Tensor) -> Tensor:
        """The function, with its result checked."""
        value = self.function(x)
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                with_site(
                    f"{self.name}: needs f(x) to return one Tensor, got {type(value).__name__}"
                )
            )
        if value._data.dtype.kind != "f":
            raise ArgumentRuntimeError(
                with_site(f"{self.name}: needs f(x) of a real floating dtype, got {value.dtype}")
            )
        if self.hessian and value.ndim and value.numel() != 1:
            raise ArgumentRuntimeError(
                with_site(
                    f"{self.name}: needs f(x) to be a scalar, got shape {list(value.shape)}; "
                    "sparse_jacobian takes functions of any shape"
                )
            )
        return value.reshape(()) if self.hessian else value

    def _gradient(self, x: Tensor) -> Tensor:
        """The gradient as a function, to be traced."""
        return gradient_of(self._checked(x), x)

    def _made(self, x: Tensor) -> Plan:
        example = wrap(x._data)
        if self.hessian:
            example._requires_grad = True
            program = trace(self._gradient, example)
            pattern, eps = dependence(program), precision(program)
            pattern = (pattern + pattern.T).tocsr()
            pattern.sort_indices()
            colours = star_colour(pattern)
            return Plan(pattern, colours, False, recovery(pattern, colours), eps)
        program = trace(self._checked, example)
        pattern, eps = dependence(program), precision(program)
        options: list[tuple[Array, bool]] = []
        if self.mode != "reverse":
            options.append((colour_columns(pattern), False))
        if self.mode != "forward" and (
            # rows cannot do better than the fullest column
            not options
            or np.bincount(pattern.indices, minlength=1).max(initial=0)
            < options[0][0].max(initial=-1) + 1
        ):
            options.append((colour_columns(pattern.T.tocsr()), True))
        colours, rows = min(options, key=lambda option: option[0].max(initial=-1))
        row_of = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        column_of = pattern.indices
        places = (column_of, colours[row_of]) if rows else (row_of, colours[column_of])
        return Plan(pattern, colours, rows, places, eps)

    def _verify(self, matrix: Any, plan: Plan, products: Products) -> None:
        """Compare one product of the matrix with the derivative itself."""
        if plan.rows:
            matrix = matrix.T
        random = np.random.Generator(np.random.PCG64(matrix.nnz))
        vector = random.uniform(0.5, 1.5, matrix.shape[1]).astype(matrix.dtype)
        truth = products(vector[None])[0]
        found, size = matrix @ vector, abs(matrix) @ vector
        finite = np.isfinite(truth) & np.isfinite(found)
        # what rounding can do: in a row of its size, and where larger things cancelled
        noise = plan.eps**0.75 * size[finite].max(initial=0) + 100 * plan.eps * products.scale
        off = np.abs(np.where(finite, truth, 0) - np.where(finite, found, 0))
        wrong = off > math.sqrt(plan.eps) * np.where(finite, size, 0) + noise
        if np.any(wrong):
            which = int(np.flatnonzero(wrong)[0])
            raise GraphError(
                with_site(
                    f"{self.name}: the pattern that was traced does not fit the function any more: "
                    f"a product with the matrix differs in element {which}, {found[which]} "
                    f"instead of {truth[which]}. What the function uses besides x must not change "
                    f"between calls: make a new {self.name}(f)", 3
                )
            )


def sparse_jacobian(
    func: Callable[[Tensor], Tensor], x: Tensor | None = None, *, mode: str = "auto",
    check: bool = True, chunk_size: int | None = None,
) -> Any:  # fmt: skip
    """The Jacobian of `func` as a sparse matrix, from as few products as its pattern allows.

    func: Tensor of any shape (n elements) -> Tensor of any shape (m elements), real floats.  It is
        traced: what it does must not depend on values in `x` (RuntimeError at the line that
        branches on one), nor on anything that changes between calls.
    x: the point; without it, a function of the point is returned that remembers pattern and
        colouring for inputs of the same shape and dtype (its `pattern(x)` and
        `plan(x).products` show them).
    mode: "forward" colours columns (products J v), "reverse" rows (u^T J), "auto" the better.
    check: compare the result with one more product, with a random vector.
    chunk_size: how many products are computed at a time (memory is proportional to it).

    Returns a scipy.sparse.csr_array of shape (m, n), whose entries may be 0 where the pattern has
    one.  A derivative that is NaN or infinite can make NaN of others that share its product.
    Method: Curtis, Powell & Reid (1974); Gebremedhin, Manne & Pothen (2005).

    Raises NotImplementedError without SciPy and for patterns too dense to hold; RuntimeError for a
    function that does not fit its pattern.

    >>> import pullback
    >>> x = pullback.arange(4.0)
    >>> pullback.func.sparse_jacobian(lambda x: x[1:] * x[:-1], x).toarray().tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 1.0, 0.0], [0.0, 0.0, 3.0, 2.0]]
    """
    derivative = SparseDerivative(func, "sparse_jacobian", mode, check, chunk_size)
    return derivative if x is None else derivative(x)


def sparse_hessian(
    func: Callable[[Tensor], Tensor], x: Tensor | None = None, *, check: bool = True,
    chunk_size: int | None = None,
) -> Any:  # fmt: skip
    """The Hessian of a scalar `func` as a sparse matrix, from as few products as a star colouring
    of its pattern needs.

    func: Tensor of any shape (n elements) -> Tensor with one element.  See `sparse_jacobian` for
        the arguments and errors.

    Returns a scipy.sparse.csr_array of shape (n, n).  Entries are read directly from products with
    the Hessian (Coleman & More 1984).

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0, 3.0])
    >>> pullback.func.sparse_hessian(lambda x: (x[1:] ** 2 * x[:-1]).sum(), x).toarray().tolist()
    [[0.0, 4.0, 0.0], [4.0, 2.0, 6.0], [0.0, 6.0, 4.0]]
    """
    derivative = SparseDerivative(func, "sparse_hessian", "forward", check, chunk_size)
    return derivative if x is None else derivative(x)
