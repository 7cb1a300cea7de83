"""Random calls of scatter, index and reduce functions, good and bad, for any torch-like module."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

from tests.oracle.programs import builtin_name

# What PyTorch has no code for.
BEYOND = (
    "not support automatic", "not implemented for", "Autograd not support dtype",
    "Double backward is unsupported", "Expected isFloatingType", "INDICES element",
)  # fmt: skip
FUNCTIONS = (
    "scatter", "scatter value", "scatter_add", "scatter_reduce", "index_add", "index_copy",
    "index_fill", "index_reduce", "gather", "index_select", "take", "take_along_dim", "scatter_",
    "scatter_add_", "index_add_", "scatter_reduce_", "index_reduce_", "scatter reduce=",
)  # fmt: skip
MODES = ("sum", "mean", "prod", "amax", "amin", "foo")


class Call(NamedTuple):
    """One call: arrays x and src, an index, and the parameters."""

    name: str
    x: Any
    index: Any
    src: Any
    dim: int
    mode: str
    include_self: bool


def call(seed: int) -> Call:
    """The call of that number: most are good, with many ties, zeros and duplicates."""
    choose = random.Random(seed)
    fault = choose.choice([""] * 8 + ["ndim", "size", "range", "index dtype", "dtype", "mode"])
    name = choose.choice(FUNCTIONS)
    ndim = choose.choice((0, 1, 1, 2, 2, 3))
    shape = [choose.randint(1, 3) for _ in range(ndim)]
    dim = choose.randrange(-ndim, ndim) if ndim else 0
    vector = name.startswith("index_")
    index_shape = list(shape)
    if ndim:
        index_shape[dim] = choose.randint(0, 4)
    src_shape = list(index_shape)
    if choose.random() < 0.3 and ndim and not vector:
        src_shape[choose.randrange(ndim)] += 1  # larger than the index: legal
        index_shape = [max(n - (choose.random() < 0.3), 0) for n in index_shape]
    if not ndim:
        index_shape = src_shape = choose.choice(([], [1]))
    elif fault == "ndim":
        (src_shape if choose.random() < 0.5 else index_shape).append(2)
    if fault == "size" and src_shape and ndim:
        src_shape[choose.randrange(len(src_shape))] += 1
    rng = np.random.default_rng(seed)
    high = shape[dim] if ndim else 1
    low = 0
    if fault == "range" and name != "take_along_dim":
        low, high = choose.choice(((-1, high), (0, high + 1)))
    lengths = [index_shape[dim]] if vector and ndim and len(index_shape) == ndim else index_shape
    index = rng.integers(low, high, lengths).astype(
        choose.choice(["int32", "uint8", "float32"] if fault == "index dtype" else ["int64"])
    )
    dtype = choose.choice(["float64"] * 6 + ["float32", "int64", "bool", "complex128"])
    numbers = [0.0, 1.0, 2.0, -1.0, 0.5, 3.0]
    if choose.random() < 0.1:
        numbers.append(float("nan"))
    with np.errstate(invalid="ignore"):
        x = rng.choice(numbers, shape).astype(dtype)
        src = rng.choice(numbers, src_shape).astype(
            "float16" if fault == "dtype" else dtype
        )
    mode = choose.choice(MODES if fault == "mode" else MODES[:5])
    return Call(name, x, index, src, dim, mode, choose.random() < 0.5)


def apply(T: Any, c: Call, x: Any, i: Any, s: Any) -> Any:
    """The call itself."""
    name = c.name
    if name == "scatter value":
        return T.scatter(x, c.dim, i, 2.5)
    if name == "scatter reduce=":
        return T.scatter(x, c.dim, i, s, reduce="multiply" if c.include_self else "add")
    if name == "index_fill":
        return T.index_fill(x, c.dim, i, s.sum() if c.include_self else 2.5)
    if name == "take":
        return T.take(x, i)
    if name == "take_along_dim":
        return T.take_along_dim(x, i, c.dim)
    if name in ("gather", "index_select"):
        return getattr(T, name)(x, c.dim, i)
    if name in ("scatter_reduce", "index_reduce"):
        return getattr(T, name)(x, c.dim, i, s, c.mode, include_self=c.include_self)
    if name in ("scatter_reduce_", "index_reduce_"):
        return getattr(x * 1, name)(c.dim, i, s, c.mode, include_self=c.include_self)
    if name.endswith("_"):
        return getattr(x * 1, name)(c.dim, i, s)
    return getattr(T, name)(x, c.dim, i, s)


def run(T: Any, c: Call, second: bool = True) -> Any:
    """The value, node, gradients and second derivatives; or the exception."""
    x, s = T.tensor(c.x), T.tensor(c.src)
    leaves = [v.requires_grad_() for v in (x, s) if v.is_floating_point() or v.is_complex()]
    try:
        out = apply(T, c, x, T.tensor(c.index), s)
    except Exception as error:
        return f"{builtin_name(error)}: {error}"
    found = [out.detach().numpy()]
    node = None if out.grad_fn is None else type(out.grad_fn).__name__
    words = ""
    try:
        if out.requires_grad:
            weights = T.tensor(np.arange(1.0, out.numel() + 1).reshape(tuple(out.shape)))
            seed = (weights.to(out.dtype) * 0.5).requires_grad_()
            grads = T.autograd.grad(out, leaves, seed, create_graph=True, allow_unused=True)
            found += [np.zeros(1) if g is None else g.detach().numpy() for g in grads]
            again = [g for g in grads if g is not None and g.requires_grad]
            if again and second:
                total = sum(
                    (g * g.conj() * (k + 1)).real.sum() if g.is_complex()
                    else (g * g * (k + 1)).sum() for k, g in enumerate(again)
                )  # fmt: skip
                more = T.autograd.grad(total, (*leaves, seed), allow_unused=True)
                found += [np.zeros(1) if g is None else g.numpy() for g in more]
    except (RuntimeError, IndexError) as error:
        words = f"{builtin_name(error)}: {str(error).splitlines()[0][:60]}"
    return node, words, found


def same(want: Any, got: Any, c: Call) -> bool:
    """Whether two runs agree.

    Gradients are not compared where PyTorch's are wrong: of a source larger than its index, and of
    extremes without x that an element of x happens to equal.
    """
    empty = c.mode in ("amax", "amin") and c.x.dtype.kind == "c"  # then PyTorch runs no code
    if empty or any(w in str(want) for w in BEYOND):
        return True  # complex and bool, that PyTorch has no code for
    if isinstance(want, str) or isinstance(got, str):
        kind = isinstance(want, str) and isinstance(got, str)
        outside = "out of bounds" in want or "must match self tensor shape" in want
        return kind and (outside or want.split(":")[0] == got.split(":")[0])
    if "index out of range in self" in want[1]:
        return True  # index_fill counts from the end, but its gradient does not
    larger = c.src.shape != c.index.shape and "scatter" in c.name
    tied = c.mode in ("amax", "amin") and "reduce" in c.name and not c.include_self
    unknown = np.isnan(c.x).any() or np.isnan(c.src).any()
    if larger or tied or unknown or "index_fill_()" in want[1]:
        a, b = want[2][0], got[2][0]
        return want[0] == got[0] and a.shape == b.shape and np.array_equal(a, b, equal_nan=True)
    if want[:2] != got[:2] or len(want[2]) != len(got[2]):
        return False
    for a, b in zip(want[2], got[2], strict=True):
        if a.dtype != b.dtype or not (a.any() or b.any()) and a.size and b.size:
            continue  # PyTorch has zeros where there is no gradient, or none
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-6, equal_nan=True):
            return False
    return True
