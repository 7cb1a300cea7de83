"""Products and distances beyond the matrix product (layer 4), with PyTorch's signatures."""

from __future__ import annotations

from typing import Any

from pullback.api import arguments, reduce
from pullback.api.elementwise import into
from pullback.api.linalg import tensordot
from pullback.api.movement import broadcast_tensors, reshape, roll, unsqueeze
from pullback.core.callsite import with_site
from pullback.core.refusal import Refusal, kernel
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError
from pullback.ops import broadcast as broadcast_ops
from pullback.ops import elementwise as ops


def inner(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """Sums of products over the last dim of both; the product where one is 0-d."""
    a = arguments.tensor(input, "inner")
    b = arguments.tensor(other, "inner", "other")
    if not a.ndim or not b.ndim:
        return into(out, a * b)
    if a.shape[-1] != b.shape[-1]:
        raise ArgumentRuntimeError(
            with_site(
                "inner() the last dimension must match on both input tensors but got shapes "
                f"{list(a.shape)} and {list(b.shape)}"
            )
        )
    return into(out, tensordot(a, b, ([-1], [-1])))


def kron(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """The Kronecker product: blocks of `other` scaled by the elements of input."""
    a = arguments.tensor(input, "kron")
    b = arguments.tensor(other, "kron", "other")
    ndim = max(a.ndim, b.ndim)
    first = (1,) * (ndim - a.ndim) + tuple(a.shape)
    second = (1,) * (ndim - b.ndim) + tuple(b.shape)
    wide = reshape(a, tuple(n for m in first for n in (m, 1)))
    fine = reshape(b, tuple(n for m in second for n in (1, m)))
    shape = tuple(m * n for m, n in zip(first, second, strict=True))
    params = {"shape": shape}
    return into(out, apply(broadcast_ops.reshape, (wide * fine,), params, "UnsafeViewBackward0"))


@arguments.numpy_names
def cross(input: Any, other: Any, dim: Any = None, *, out: Any = None) -> Tensor:  # noqa: A002
    """The cross product along a dim of size 3 (the first one when not given)."""
    a = arguments.tensor(input, "cross")
    b = arguments.tensor(other, "cross", "other")
    if a.ndim != b.ndim:
        raise ArgumentRuntimeError(
            with_site(
                "inconsistent tensors dimensions input: "
                f"{a.ndim} other: {b.ndim}; linalg.cross: inputs must have the same number of "
                "dimensions."
            )
        )
    arguments.refuse(a, kernel("b", "cross"))
    if a._data.dtype != b._data.dtype:
        names = arguments.PYTORCH_NAMES
        raise ArgumentRuntimeError(
            with_site(
                f"expected scalar type {names[a._data.dtype.name]} but found "
                f"{names[b._data.dtype.name]}"
            )
        )
    a, b = broadcast_tensors(a, b)
    if dim is None:
        found = next((i for i, n in enumerate(a.shape) if n == 3), None)
        if found is None:
            raise ArgumentRuntimeError(with_site("no dimension of size 3 in input"))
        dim = found
    axis = arguments.dim(dim, a.ndim)
    if not a.ndim or a.shape[axis] != 3:
        raise ArgumentRuntimeError(
            with_site(
                f"linalg.cross: inputs dimension {dim} must have length 3. Got shapes "
                f"{list(a.shape)} and {list(b.shape)}"
            )
        )
    first = roll(a, -1, axis) * roll(b, -2, axis)
    second = roll(a, -2, axis) * roll(b, -1, axis)
    return into(out, apply(ops.sub, (first, second), {}, "LinalgCrossBackward0"))


def cdist(
    x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """(..., n, k) and (..., m, k) -> (..., n, m): p-norms of all differences of rows."""
    a, b = arguments.tensor(x1, "cdist", "x1"), arguments.tensor(x2, "cdist", "x2")
    for name, x in (("X1", a), ("X2", b)):
        if x.ndim < 2:
            raise ArgumentRuntimeError(
                with_site(
                    f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D"
                )
            )
    for name, x in (("X1", a), ("X2", b)):
        said = f"cdist only supports floating-point dtypes, {name} got: {{dtype}}"
        arguments.refuse(x, Refusal("biuc", said))
    if a._data.dtype != b._data.dtype:
        raise ArgumentRuntimeError(
            with_site(
                f"expected scalar type {arguments.PYTORCH_NAMES[a._data.dtype.name]} but found "
                f"{arguments.PYTORCH_NAMES[b._data.dtype.name]}"
            )
        )
    if a.shape[-1] != b.shape[-1]:
        raise ArgumentRuntimeError(
            with_site(
                "X1 and X2 must have the same number of columns. X1: "
                f"{a.shape[-1]} X2: {b.shape[-1]}"
            )
        )
    if p < 0:
        raise ArgumentRuntimeError(with_site("cdist only supports non-negative p values"))
    difference = unsqueeze(a, -2) - unsqueeze(b, -3)
    return reduce.norm_of(difference, p, -1, False, "CdistBackward0")


def dist(input: Any, other: Any, p: float = 2) -> Tensor:  # noqa: A002
    """The p-norm of input - other."""
    a, b = arguments.tensor(input, "dist"), arguments.tensor(other, "dist", "other")
    return reduce.norm_of(a - b, p, None, False, "DistBackward0")
