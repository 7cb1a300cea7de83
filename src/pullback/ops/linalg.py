"""Products of vectors and matrices (layer 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.primitive import Primitive, RuleSpec
from pullback.core.refusal import kernel
from pullback.errors import ShapeError
from pullback.ops.broadcast import broadcast_to, reshape, shape_of, sum_
from pullback.ops.kinds import conj
from pullback.ops.movement import adjoint, clone, swap_axes


def _dims(*args: Any) -> str:
    return " and ".join("x".join(map(str, np.shape(a))) or "0-d" for a in args)


def _explain_dot(args: list[Any], params: Any, error: Exception) -> Exception | None:
    return ShapeError(
        with_site(
            "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number "
            "of elements, but got {} and {} elements respectively".format(
                *(args[0].shape + args[1].shape), args[0].size, args[1].size
            ))
    )


def _batch_dot(size: int, a: Any, b: Any) -> Any:
    """Either operand may lack the batch axis."""
    return sum_(a * b, axis=(1,), keepdims=False)


dot = Primitive(
    "dot", np.dot, kind="bilinear", inputs=("a", "b"),
    vjps={"a": RuleSpec(lambda g, b: g * conj(b), ("b",)),
          "b": RuleSpec(lambda g, a: g * conj(a), ("a",))},
    jvp="bilinear", batch=_batch_dot, explain=_explain_dot,
    doc="the inner product of two vectors (not conjugated)", refuses=(kernel("b", "dot"),),
)  # fmt: skip


def _explain_mm(args: list[Any], params: Any, error: Exception) -> Exception | None:
    return ShapeError(
        with_site(
            f"mat1 and mat2 shapes cannot be multiplied ({_dims(*args[-2:])})"
        )
    )


def _batch_mv(size: int, a: Any, b: Any) -> Any:
    if a.ndim == 2:  # one product instead of many
        return matmul(b, swap_axes(a, -1, -2))
    if b.ndim == 1:
        rows = mv(reshape(a, shape=(a.shape[0] * a.shape[1], a.shape[2])), b)
        return reshape(rows, shape=shape_of(a)[:-1])
    column = matmul(a, reshape(b, shape=(*shape_of(b), 1)))
    return reshape(column, shape=shape_of(column)[:-1])


mv = Primitive(
    "mv", np.matmul, kind="bilinear", inputs=("a", "b"),
    vjps={"a": RuleSpec(lambda g, b: outer(g, conj(b)), ("b",)),
          "b": RuleSpec(lambda g, a: mv(adjoint(a), g), ("a",))},
    jvp="bilinear", batch=_batch_mv, explain=_explain_mm, doc="a matrix times a vector",
    refuses=(kernel("b", "addmv_impl_cpu"),),
)  # fmt: skip


def outer(a: Any, b: Any) -> Any:
    """The matrix of products a_i b_j, of vectors of any kind."""
    return reshape(a, shape=(*shape_of(a), 1)) * reshape(b, shape=(1, *shape_of(b)))


def _batch_matmul(size: int, a: Any, b: Any, *, batched: tuple[bool, ...]) -> Any:
    x, y = shape_of(a), shape_of(b)
    if not batched[1] and len(x) == 3 and len(y) == 2:  # one tall product instead of many
        rows = matmul(reshape(a, shape=(x[0] * x[1], x[2])), b)
        return reshape(rows, shape=(*x[:2], y[1]))
    missing = len(x) - batched[0] - (len(y) - batched[1])  # dims of one example
    if missing > 0 and batched[1]:
        b = reshape(b, shape=(y[0], *(1,) * missing, *y[1:]))
    elif missing < 0 and batched[0]:
        a = reshape(a, shape=(x[0], *(1,) * -missing, *x[1:]))
    if x[-1] == 1 == y[-2]:  # a column times a row, as the gradients of weights are: half the time
        return a * b
    return matmul(a, b)


matmul = Primitive(
    "matmul", np.matmul, kind="bilinear", inputs=("a", "b"),
    vjps={"a": RuleSpec(lambda g, b: g @ adjoint(b), ("b",)),
          "b": RuleSpec(lambda g, a: adjoint(a) @ g, ("a",))},
    jvp="bilinear", batch=_batch_matmul, broadcasts=True, explain=_explain_mm,
    node_name="MmBackward0", doc="products of matrices (2-d or stacked)",
    refuses=(kernel("b", "addmm_impl_cpu_"),),
)  # fmt: skip


def _addmm(c: Any, a: Any, b: Any, *, beta: Any, alpha: Any) -> Any:
    out = np.matmul(a, b)
    if alpha != 1:
        out *= alpha
    if beta == 0:
        return out
    if beta == 1 and c.ndim <= 2:
        out += c
        return out
    return out + c * beta


def _scaled(g: Any, factor: Any) -> Any:
    return g if factor == 1 else g * factor


def _batch_addmm(
    size: int, c: Any, a: Any, b: Any, *, beta: Any, alpha: Any, batched: tuple[bool, ...]
) -> Any:
    product = _scaled(a @ b, alpha)
    if batched[0]:  # a number, a vector or a matrix for each example
        shape = shape_of(c)[1:]
        c = reshape(c, shape=(size, *(1,) * (2 - len(shape)), *shape))
    if beta == 0:  # c does not count, not even its NaNs
        shape = shape_of(product)
        return product if len(shape) == 3 else clone(broadcast_to(product, shape=(size, *shape)))
    return product + _scaled(c, beta)


addmm = Primitive(
    "addmm", _addmm, kind="general", inputs=("c", "a", "b"), params=("beta", "alpha"),
    vjps={
        "c": RuleSpec(_scaled, ("beta",)),
        "a": RuleSpec(lambda g, b, alpha: _scaled(g @ adjoint(b), alpha),
                      ("b", "alpha")),
        "b": RuleSpec(lambda g, a, alpha: _scaled(adjoint(a) @ g, alpha),
                      ("a", "alpha")),
    },
    jvp={
        "c": RuleSpec(_scaled, ("beta",)),
        "a": RuleSpec(lambda t, b, alpha: _scaled(matmul(t, b), alpha), ("b", "alpha")),
        "b": RuleSpec(lambda t, a, alpha: _scaled(matmul(a, t), alpha), ("a", "alpha")),
    },
    batch=_batch_addmm, broadcasts=True, explain=_explain_mm, doc="beta * c + alpha * (a @ b)",
)  # fmt: skip


def _linear(x: Any, w: Any, b: Any) -> Any:
    out = np.matmul(x, w.T)
    out += b
    return out


def _batch_linear(size: int, x: Any, w: Any, b: Any, *, batched: tuple[bool, ...]) -> Any:
    if batched[2]:  # a bias for each example
        b = reshape(b, shape=(size, 1, shape_of(b)[-1]))
    return x @ swap_axes(w, -1, -2) + b


def _sum_rows(g: Any) -> Any:
    return sum_(g, axis=(0,), keepdims=False)


# The product with a transposed weight, as one operation: the gradient of the weight then comes out
# in the weight's own memory order, and needs no copy.
linear = Primitive(
    "linear", _linear, kind="general", inputs=("x", "w", "b"),
    vjps={
        "x": RuleSpec(lambda g, w: g @ conj(w), ("w",)),
        "w": RuleSpec(lambda g, x: swap_axes(g, -1, -2) @ conj(x), ("x",)),
        "b": RuleSpec(_sum_rows, ()),
    },
    jvp={
        "x": RuleSpec(lambda t, w: t @ swap_axes(w, -1, -2), ("w",)),
        "w": RuleSpec(lambda t, x: x @ swap_axes(t, -1, -2), ("x",)),
        "b": RuleSpec(lambda t: t, ()),
    },
    batch=_batch_linear, broadcasts=True, explain=_explain_mm, node_name="AddmmBackward0",
    doc="x @ w.T + b for matrices x and w, and a vector b",
)  # fmt: skip


# ---------------------------------------------------------------- einsum
def _einsum(*xs: Any, equation: str) -> Any:
    return np.einsum(equation, *xs, optimize=len(xs) > 1)


def _einsum_back(g: Any, xs: Any, equation: str, needs: tuple[bool, ...]) -> Any:
    """Each operand's cotangent is the einsum of g with the others: the equation is canonical,
    with every index of an operand in the result or in another operand, and none twice in one."""
    left, result = equation.split("->")
    terms = left.split(",")
    found: list[Any] = []
    for i, need in enumerate(needs):
        if not need:
            found.append(None)
            continue
        rest = [(t, x) for j, (t, x) in enumerate(zip(terms, xs, strict=True)) if j != i]
        text = ",".join([result, *(t for t, _ in rest)]) + "->" + terms[i]
        found.append(einsum(g, *(conj(x) for _, x in rest), equation=text))
    return found


def _batch_einsum(size: int, *xs: Any, equation: str, batched: tuple[bool, ...]) -> Any:
    left, result = equation.split("->")
    free = next(c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                if c not in equation)  # fmt: skip
    terms = [free + t if b else t for t, b in zip(left.split(","), batched, strict=True)]
    return einsum(*xs, equation=",".join(terms) + "->" + free + result)


einsum = Primitive(
    "einsum", _einsum, kind="multilinear", inputs=("xs",), params=("equation",), variadic=True,
    joint=RuleSpec(_einsum_back, ("xs", "equation", "needs")), jvp="multilinear",
    batch=_batch_einsum, node_name="EinsumBackward0", promotion="arithmetic",
    doc="sums of products over named indices",
)  # fmt: skip
