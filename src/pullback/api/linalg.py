"""Products of vectors and matrices (layer 4), with PyTorch's signatures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.api.data import fill_value
from pullback.api.elementwise import c_name, into
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.refusal import kernel
from pullback.eager.apply import apply, binary
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, DtypeError, ShapeError
from pullback.ops import elementwise as elementwise_ops
from pullback.ops import linalg, movement
from pullback.ops.broadcast import reshape, sum_, zeros_like

_NONE: dict[str, Any] = {}
# products of two tensors of one dtype go the fast way of elementwise operations
_dot, _mm = binary(linalg.dot), binary(linalg.matmul, "MmBackward0")


def _same_dtype(function: str, a: Tensor, b: Tensor) -> None:
    """Products refuse mixed dtypes, as in PyTorch."""
    if function == "addmv" and a._data.dtype != b._data.dtype:
        names = [arguments.PYTORCH_NAMES[v._data.dtype.name] for v in (b, a, b)]
        raise DtypeError(
            with_site(
                "addmv input tensors must have the same dtype, but got {}, {}, and {}; convert one "
                "with .to()".format(*names)
            )
        )
    if a._data.dtype is not b._data.dtype and a._data.dtype != b._data.dtype:
        raise DtypeError(
            with_site(
                f"expected m1 and m2 to have the same dtype, but got: "
                f"{c_name(a)} != {c_name(b)} in {function}(); convert one with .to()"
            )
        )


def dot(input: Any, tensor: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """The inner product of two vectors of one length and dtype (not conjugated)."""
    a = input if type(input) is Tensor else arguments.tensor(input, "dot")
    b = tensor if type(tensor) is Tensor else arguments.tensor(tensor, "dot", "tensor")
    x, y = a._data, b._data
    if x.ndim != 1 or y.ndim != 1 or x.dtype is not y.dtype:
        _vectors(a, b)
    result = _dot(a, b)
    return result if out is None else into(out, result)


def _vectors(a: Tensor, b: Tensor) -> None:
    """Two vectors of one dtype."""
    x, y = a._data, b._data
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(
            with_site(f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
        )
    if x.dtype is not y.dtype:
        raise DtypeError(
            with_site(
                "dot : expected both vectors to have same dtype, but found "
                f"{arguments.PYTORCH_NAMES[x.dtype.name]} and "
                f"{arguments.PYTORCH_NAMES[y.dtype.name]}"
            )
        )


def vdot(input: Any, other: Any) -> Tensor:  # noqa: A002
    """The inner product with the first vector conjugated."""
    from pullback.api.elementwise import conj

    a = arguments.tensor(input, "vdot")
    b = arguments.tensor(other, "vdot", "other")
    _vectors(a, b)
    return apply(linalg.dot, (conj(a), b), _NONE, "VdotBackward0")


def mv(input: Any, vec: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """(n, m) @ (m,) -> (n,)."""
    a, b = arguments.tensor(input, "mv"), arguments.tensor(vec, "mv", "vec")
    if a.ndim != 2 or b.ndim != 1:
        raise ShapeError(
            with_site(
                f"vector + matrix @ vector expected, got {b.ndim}, {a.ndim}, {b.ndim}"
            )
        )
    _same_dtype("addmv", a, b)
    if a.shape[1] != b.shape[0]:
        raise ShapeError(
            with_site(
                f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec "
                f"({b.shape[0]})"
            )
        )
    return into(out, apply(linalg.mv, (a, b), _NONE))


def mm(input: Any, mat2: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """(n, k) @ (k, m) -> (n, m)."""
    a, b = arguments.tensor(input, "mm"), arguments.tensor(mat2, "mm", "mat2")
    if a.ndim != 2:
        raise ShapeError(with_site(f"self must be a matrix, got {a.ndim} dimensions"))
    if b.ndim != 2:
        raise ShapeError(with_site(f"mat2 must be a matrix, got {b.ndim} dimensions"))
    _same_dtype("mm", a, b)
    return into(out, apply(linalg.matmul, (a, b), _NONE, "MmBackward0"))


def bmm(input: Any, mat2: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """(b, n, k) @ (b, k, m) -> (b, n, m)."""
    a, b = arguments.tensor(input, "bmm"), arguments.tensor(mat2, "bmm", "mat2")
    if a.ndim != 3 or b.ndim != 3:
        which = 1 if a.ndim != 3 else 2
        raise ShapeError(
            with_site(f"batch{which} must be a 3D tensor, got {a.ndim}D and {b.ndim}D")
        )
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ShapeError(
            with_site(
                "Expected size for first two dimensions of batch2 tensor to be: "
                f"[{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
            )
        )
    arguments.refuse(a, kernel("b", "bmm"))
    if a._data.dtype != b._data.dtype:
        first, second = (arguments.PYTORCH_NAMES[v._data.dtype.name] for v in (a, b))
        raise DtypeError(
            with_site(f"expected scalar type {first} but found {second}: convert one with .to()")
        )
    return into(out, apply(linalg.matmul, (a, b), _NONE, "BmmBackward0"))


def matmul(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """The matrix product with NumPy's rules for vectors and leading (batch) dims."""
    a = input if type(input) is Tensor else arguments.tensor(input, "matmul")
    b = other if type(other) is Tensor else arguments.tensor(other, "matmul", "other")
    m, n = a._data.ndim, b._data.ndim
    if m == 2 and n == 2:
        _same_dtype("matmul", a, b)
        result = _mm(a, b)
        return result if out is None else into(out, result)
    if m == 0 or n == 0:
        raise ShapeError(
            with_site(
                "both arguments to matmul need to be at least 1D, but they are "
                f"{m}D and {n}D"
            )
        )
    if m == 1 and n == 1:
        return dot(a, b, out=out)
    _same_dtype("matmul", a, b)
    if m == 2 and n == 1:
        return mv(a, b, out=out)
    if m == 1:
        row = apply(reshape, (a,), {"shape": (1, a._data.shape[0])}, "UnsqueezeBackward0")
        product = apply(linalg.matmul, (row, b), _NONE, "MmBackward0")
        shape = product._data.shape
        return into(out, apply(reshape, (product,), {"shape": (*shape[:-2], shape[-1])},
                               "SqueezeBackward4"))  # fmt: skip
    if n == 1:
        column = apply(reshape, (b,), {"shape": (b._data.shape[0], 1)}, "UnsqueezeBackward0")
        product = apply(linalg.matmul, (a, column), _NONE, "UnsafeViewBackward0")
        return into(out, apply(reshape, (product,), {"shape": product._data.shape[:-1]},
                               "UnsafeViewBackward0"))  # fmt: skip
    name = "UnsafeViewBackward0" if m != 3 or n != 3 else "BmmBackward0"
    return into(out, apply(linalg.matmul, (a, b), _NONE, name))


def outer(input: Any, vec2: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """(n,) and (m,) -> (n, m): all products."""
    a, b = arguments.tensor(input, "outer"), arguments.tensor(vec2, "outer", "vec2")
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(
            with_site(
                "outer: Expected 1-D argument self and vec2, but got "
                f"{a.ndim}-D and {b.ndim}-D"
            )
        )
    column = apply(reshape, (a,), {"shape": (*a._data.shape, 1)}, "ViewBackward0")
    return into(out, column * b)


def addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None,  # noqa: A002
) -> Tensor:  # fmt: skip
    """beta * input + alpha * (mat1 @ mat2), input broadcast to the product."""
    c = arguments.tensor(input, "addmm")
    a, b = arguments.tensor(mat1, "addmm", "mat1"), arguments.tensor(mat2, "addmm", "mat2")
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(with_site(f"mat1 must be a matrix, got {a.ndim}-D and {b.ndim}-D tensors"))
    if a.shape[1] != b.shape[0]:
        raise ShapeError(
            with_site(
                f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and "
                f"{b.shape[0]}x{b.shape[1]})"
            )
        )
    _same_dtype("addmm", a, b)
    _same_dtype("addmm", c, a)
    product = (a.shape[0], b.shape[1])
    if c.ndim > 2 or np.broadcast_shapes(c._data.shape, product) != product:
        raise ShapeError(
            with_site(
                f"The expanded size of the tensor {list(c.shape)} must match the product's "
                f"{list(product)}"
            )
        )
    arguments.refuse(a, kernel("b", "addmm_impl_cpu_"))
    beta, alpha = (v if v == 1 else fill_value(v, c._data.dtype).item() for v in (beta, alpha))
    return into(out, apply(linalg.addmm, (c, a, b), {"beta": beta, "alpha": alpha}))


def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:  # noqa: A002
    """beta * input + alpha * (mat @ vec)."""
    return _sum_of("addmv", input, mv(mat, vec), beta, alpha)


def _sum_of(name: str, input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:  # noqa: A002
    """beta * input + alpha * product; where beta is 0 the input does not count."""
    x = arguments.tensor(input, name)
    _same_dtype(name, x, product)
    if x._data.dtype.kind == "b":  # numbers are truth values there
        first, second = (v if s else v ^ v for v, s in ((x, beta), (product, alpha)))
        return first | second
    kind = x._data.dtype
    beta, alpha = (v if v == 1 else fill_value(v, kind).item() for v in (beta, alpha))
    second = product if alpha == 1 else product * alpha
    first = x if beta == 1 else x * beta if beta else zeros_like(x)
    return apply(elementwise_ops.add, (first, second), _NONE, f"{name.title()}Backward0")


def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:  # noqa: A002
    """beta * input + alpha * outer(vec1, vec2)."""
    return _sum_of("addr", input, outer(vec1, vec2), beta, alpha)


def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:  # noqa: A002
    """beta * input + alpha * bmm(batch1, batch2)."""
    return _sum_of("baddbmm", input, bmm(batch1, batch2), beta, alpha)


def trace(input: Any) -> Tensor:  # noqa: A002
    """The sum of the diagonal of a matrix."""
    x = arguments.tensor(input, "trace")
    if x.ndim != 2:
        raise ShapeError(with_site(f"trace: expected a matrix, but got tensor with dim {x.ndim}"))
    arguments.refuse(x, kernel("b", "trace"))
    x = x.to(dtypes.int64) if x._data.dtype.kind in "iu" else x
    diagonal = apply(movement.diagonal, (x,), {"offset": 0, "axis1": 0, "axis2": 1})
    return apply(sum_, (diagonal,), {"axis": (0,), "keepdims": False}, "TraceBackward0")


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Tensor:
    """Sums of products over pairs of dims: a number of trailing/leading dims, or two lists."""
    x, y = arguments.tensor(a, "tensordot", "a"), arguments.tensor(b, "tensordot", "b")
    if isinstance(dims, int):
        if dims < 0 or dims > min(x.ndim, y.ndim):
            raise ArgumentRuntimeError(
                with_site(f"tensordot expects dims {'>= 0' if dims < 0 else '< ndim_a or ndim_b'}, "
                          f"but got dims={dims}")
            )  # fmt: skip
        left = list(range(x.ndim - dims, x.ndim))
        right = list(range(dims))
    else:
        if not isinstance(dims, (tuple, list)) or len(dims) != 2:
            raise ArgumentRuntimeError(
                with_site(
                    "tensordot expects dims to be int or tuple[list[int], list[int]] or "
                    f"list[list[int]] containing two lists, but got dims={dims!r}"
                )
            )
        first, second = ([d] if isinstance(d, int) else d for d in dims)
        left = [arguments.dim(d, x.ndim) for d in first]
        right = [arguments.dim(d, y.ndim) for d in second]
    if x._data.dtype != y._data.dtype:
        raise DtypeError(with_site("both inputs should have same dtype: convert one with .to()"))
    for i, j in zip(left, right, strict=True):
        if x.shape[i] != y.shape[j]:
            raise ShapeError(
                with_site(
                    "contracted dimensions need to match, but first has size "
                    f"{x.shape[i]} in dim {i} and second has size {y.shape[j]} in dim {j}"
                )
            )
    keep_x = [i for i in range(x.ndim) if i not in left]
    keep_y = [j for j in range(y.ndim) if j not in right]
    if not keep_x and not keep_y:
        arguments.refuse(x, kernel("b", "dot"))
    inner = math.prod(x.shape[i] for i in left)
    rows = apply(movement.permute, (x,), {"perm": (*keep_x, *left)})
    columns = apply(movement.permute, (y,), {"perm": (*right, *keep_y)})
    shape = tuple(x.shape[i] for i in keep_x), tuple(y.shape[j] for j in keep_y)
    rows = apply(reshape, (rows,), {"shape": (math.prod(shape[0]), inner)})
    columns = apply(reshape, (columns,), {"shape": (inner, math.prod(shape[1]))})
    product = mm(rows, columns)
    return into(out, apply(reshape, (product,), {"shape": shape[0] + shape[1]}))


# ---------------------------------------------------------------- einsum
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products of elements, over the indices that the result does not name.

    equation: str such as "bij,bjk->bik", with "..." for leading dims; or the sublist form.
    Raises RuntimeError when the equation does not fit the operands.
    """
    if not isinstance(equation, str):
        equation, operands = _from_sublists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    tensors = arguments.tensor_list(tuple(operands), "einsum", "operands")
    if len(tensors) > 1:
        arguments.refuse(tensors[0], kernel("b", "bmm"))
    terms, result = _parse(equation, tensors)
    canonical, xs = [], []
    used = [set(t) for t in terms]
    for i, (term, x) in enumerate(zip(terms, tensors, strict=True)):
        term, x = _diagonals(term, x)
        elsewhere = set(result).union(*(u for j, u in enumerate(used) if j != i))
        alone = tuple(k for k, c in enumerate(term) if c not in elsewhere)
        if alone:
            x = apply(sum_, (x,), {"axis": alone, "keepdims": False}, "SumBackward1")
            term = "".join(c for k, c in enumerate(term) if k not in alone)
        canonical.append(term)
        xs.append(x)
    return apply(linalg.einsum, tuple(xs),
                 {"equation": ",".join(canonical) + "->" + result})  # fmt: skip


def _from_sublists(arguments_: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    operands = arguments_[0:-1:2] if len(arguments_) % 2 else arguments_[0::2]
    lists = list(arguments_[1::2])

    def text(items: Any) -> str:
        return "".join("..." if i is Ellipsis else _LETTERS[i] for i in items)

    equation = ",".join(text(s) for s in lists)
    if len(arguments_) % 2:
        equation += "->" + text(arguments_[-1])
    return equation, tuple(operands)


def _parse(equation: str, tensors: tuple[Tensor, ...]) -> tuple[list[str], str]:
    """Terms and result with "..." written out as letters, sizes checked."""
    text = equation.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        more = "more" if len(tensors) > len(terms) else "fewer"
        raise ArgumentRuntimeError(
            with_site(
                f"einsum(): {more} operands were provided than specified in the equation: "
                f"{len(tensors)} for {equation!r}"
            )
        )
    bad = next((c for c in left.replace("...", "") + result.replace("...", "")
                if c not in _LETTERS + ","), None)  # fmt: skip
    if bad is not None:
        raise ArgumentRuntimeError(
            with_site(
                f"einsum(): invalid subscript given at index {text.index(bad)} in the equation "
                f"string, subscripts must be in [a-zA-Z]: got {bad!r}"
            )
        )
    free = [c for c in _LETTERS if c not in text]
    extras = [x.ndim - len(t.replace("...", "")) if "..." in t else 0
              for t, x in zip(terms, tensors, strict=True)]  # fmt: skip
    widest = max(extras, default=0)
    dots = "".join(free[:widest])
    full: list[str] = []
    for t, x, n in zip(terms, tensors, extras, strict=True):
        t = t.replace("...", dots[widest - n :]) if n >= 0 else t
        if len(t) != x.ndim:
            raise ArgumentRuntimeError(
                with_site(
                    "einsum(): the number of subscripts in the equation "
                    f"({len(t)}) does not match the number of dimensions ({x.ndim}) for operand "
                    f"{len(full)} and no ellipsis was given"
                )
            )
        full.append(t)
    if arrow:
        result = result.replace("...", dots)
    else:
        counts = {c: left.count(c) for c in left if c.isalpha()}
        result = dots + "".join(sorted(c for c, n in counts.items() if n == 1))
    for c in result:
        if not any(c in t for t in full):
            raise ArgumentRuntimeError(
                with_site(
                    f"einsum(): output subscript {c} does not appear in the equation for any "
                    "input operand"
                )
            )
        if result.count(c) > 1:
            raise ArgumentRuntimeError(
                with_site(f"einsum(): output subscript {c} appears more than once in the output")
            )
    _check_sizes(full, tensors)
    return full, result


def _check_sizes(terms: list[str], tensors: tuple[Tensor, ...]) -> None:
    sizes: dict[str, int] = {}
    for i, (t, x) in enumerate(zip(terms, tensors, strict=True)):
        for c, n in zip(t, x.shape, strict=True):
            have = sizes.setdefault(c, n)
            if have != n and 1 not in (have, n):
                raise ArgumentRuntimeError(
                    with_site(
                        f"einsum(): operands do not broadcast with remapped shapes "
                        f"[original->remapped]: subscript {c} has size {n} for operand {i} which "
                        f"does not broadcast with previously seen size {have}"
                    )
                )
            sizes[c] = max(have, n) if 1 in (have, n) else have


def _diagonals(term: str, x: Tensor) -> tuple[str, Tensor]:
    """An index that stands twice in one operand means its diagonal."""
    while True:
        twice = next((c for c in term if term.count(c) > 1), None)
        if twice is None:
            return term, x
        first = term.index(twice)
        second = term.index(twice, first + 1)
        x = apply(movement.diagonal, (x,), {"offset": 0, "axis1": first, "axis2": second})
        term = "".join(c for k, c in enumerate(term) if k not in (first, second)) + twice


__all__ = [
    "addmm", "addmv", "addr", "baddbmm", "bmm", "dot", "einsum", "matmul", "mm",
    "mv", "outer", "tensordot", "trace", "vdot",
]  # fmt: skip
