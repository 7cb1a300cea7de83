"""Reductions (layer 2): `axis` is a sorted tuple of non-negative axes, `keepdims` a bool."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.refusal import Refusal, kernel
from pullback.ops.broadcast import cast, is_complex, reshape, shape_of, sum_, unsum, zeros_like
from pullback.ops.elementwise import (
    abs_,
    exp,
    log,
    pow_,
    real,
    sgn,
    sign,
    where,
)
from pullback.ops.kinds import conj, general, linear
from pullback.typing import Axes, Shape

# the ufuncs' own method, without the overhead of np.sum and its like
_add_reduce: Any = np.add.reduce
_multiply_reduce: Any = np.multiply.reduce
_maximum_reduce: Any = np.maximum.reduce
_minimum_reduce: Any = np.minimum.reduce
_REDUCTION: dict[str, Any] = {"batch": "reduction"}


def kept_shape(shape: Shape, axis: Axes) -> Shape:
    """The shape with the reduced axes kept as 1."""
    return tuple(1 if i in axis else n for i, n in enumerate(shape))


def restore(value: Any, shape: Shape, axis: Axes, keepdims: bool) -> Any:
    """A reduced value with its axes back as size 1, so that it broadcasts against the input."""
    if keepdims or not shape:
        return value
    return reshape(value, shape=kept_shape(shape, axis))


def count(shape: Shape, axis: Axes) -> int:
    """The number of elements that are reduced into one."""
    return math.prod(shape[i] for i in axis)


def accumulator(x: Any) -> Any:
    """float16 adds up in float32, as in PyTorch."""
    return np.float32 if x.dtype == np.float16 else None


def _mean(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    total = _add_reduce(x, axis=axis, keepdims=keepdims, dtype=accumulator(x))
    n = count(x.shape, axis)
    return np.asarray(total / n if n else total * math.nan).astype(x.dtype, copy=False)


mean = linear(
    "mean", _mean,
    transpose=dict(x=lambda g, x_shape, axis, keepdims: unsum(
        g / max(count(x_shape, axis), 1), x_shape, axis, keepdims)),
    reference="statistics.fmean", doc="the mean over axes", **_REDUCTION,
)  # fmt: skip


# ---------------------------------------------------------------- products
def may_hold_zero(x: Any) -> bool:
    """Whether an element is 0; True where the values are not at hand (a batch, a trace)."""
    data = getattr(x, "_data", x)
    return not isinstance(data, np.ndarray) or not data.all()


def others(x: Any, axis: int) -> Any:
    """x with a new axis before `axis`: row k holds x with element k replaced by 1."""
    shape = shape_of(x)
    n = shape[axis]
    spread = reshape(x, shape=(*shape[:axis], 1, *shape[axis:]))
    mask = np.eye(n, dtype=bool).reshape(n, n, *(1,) * (len(shape) - axis - 1))
    return where(mask, 1, spread)


def _prod_back(g: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    shape = shape_of(x)
    g, o = restore(g, shape, axis, keepdims), restore(out, shape, axis, keepdims)
    if not may_hold_zero(x):
        return g * conj(o / x)
    return g * conj(_product_of_others(x, axis))


def _product_of_others(x: Any, axis: Axes) -> Any:
    shape = shape_of(x)
    if not shape:
        return zeros_like(x) + 1
    if len(axis) == 1:
        return prod(others(x, axis[0]), axis=(axis[0] + 1,), keepdims=False)
    assert len(axis) == len(shape), "prod reduces one axis, or all"
    flat = reshape(x, shape=(math.prod(shape),))
    return reshape(_product_of_others(flat, (0,)), shape=shape)


def _prod_forward_rule(t: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    return sum_(t * _product_of_others(x, axis), axis=axis, keepdims=keepdims)


prod = general(
    "prod", lambda x, *, axis, keepdims: _multiply_reduce(x, axis=axis, keepdims=keepdims),
    vjp=dict(x=_prod_back), jvp=dict(x=_prod_forward_rule),
    reference="math.prod", doc="the product over one axis, or all", **_REDUCTION,
)  # fmt: skip


# ---------------------------------------------------------------- extremes
def _among(x: Any, o: Any, axis: Axes) -> tuple[Any, Any]:
    """Which elements are the chosen one `o` (or NaN, where it is), as 0 and 1, and how many."""
    hits = where(o != o, x != x, x == o)
    ones = where(hits, zeros_like(x) + 1, 0)
    return ones, sum_(ones, axis=axis, keepdims=True)


def _shared_back(g: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    shape = shape_of(x)
    ones, number = _among(x, restore(out, shape, axis, keepdims), axis)
    return where(ones == 1, restore(g, shape, axis, keepdims) / number, 0)  # g may be NaN


def _shared_forward(t: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    ones, number = _among(x, restore(out, shape_of(x), axis, keepdims), axis)
    return sum_(t * ones / number, axis=axis, keepdims=keepdims)


def _extreme_weights(x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    """The share of each element; NaN for all where one is NaN, which equals nothing."""
    hits = x == restore(out, shape_of(x), axis, keepdims)
    ones = where(hits, zeros_like(x) + 1, 0)
    return ones / sum_(ones, axis=axis, keepdims=True)


def _extreme_back(g: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    return restore(g, shape_of(x), axis, keepdims) * _extreme_weights(x, out, axis, keepdims)


def _extreme_forward(t: Any, x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    return sum_(t * _extreme_weights(x, out, axis, keepdims), axis=axis, keepdims=keepdims)


def _amax(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    return _maximum_reduce(x, axis=axis, keepdims=keepdims)


def _amin(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    return _minimum_reduce(x, axis=axis, keepdims=keepdims)


amax = general(
    "amax", _amax, refuses=(kernel("c", "max_values_cpu"),), vjp=dict(x=_extreme_back), jvp=dict(x=_extreme_forward),
    doc="the largest element; ties share the gradient", **_REDUCTION,
)  # fmt: skip
amin = general(
    "amin", _amin, refuses=(kernel("c", "min_values_cpu"),), vjp=dict(x=_extreme_back), jvp=dict(x=_extreme_forward),
    doc="the smallest element; ties share the gradient", **_REDUCTION,
)  # fmt: skip
# PyTorch's max(), min() and median() differ from amax and amin: where they give NaN, all elements
# that are NaN share the gradient
largest = general(
    "largest", _amax, refuses=(kernel("c", "max_all"),), vjp=dict(x=_shared_back), jvp=dict(x=_shared_forward),
    node_name="MaxBackward1", doc="the largest element; ties, or NaNs, share the gradient",
    **_REDUCTION,
)  # fmt: skip
smallest = general(
    "smallest", _amin, refuses=(kernel("c", "min_all"),), vjp=dict(x=_shared_back), jvp=dict(x=_shared_forward),
    node_name="MinBackward1", doc="the smallest element; ties, or NaNs, share the gradient",
    **_REDUCTION,
)  # fmt: skip


def _ordered(x: Any, axis: Axes) -> Any:
    """The elements of each slice along a last axis, from the smallest to NaN."""
    rest = [i for i in range(x.ndim) if i not in axis]
    rows = x.transpose(*rest, *axis).reshape(*(x.shape[i] for i in rest), count(x.shape, axis))
    return np.sort(rows, -1)


def _of_nothing(x: Any, axis: Axes, keepdims: bool) -> Any:
    """The median of no elements: NaN, or the least integer."""
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axis)
    nothing = math.nan if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return np.full(kept_shape(x.shape, axis) if keepdims else shape, nothing, x.dtype)


def _middle(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    if not axis:
        return x.copy()
    ordered = _ordered(x, axis)
    if not ordered.shape[-1]:
        return _of_nothing(x, axis, keepdims)
    out = ordered[..., (ordered.shape[-1] - 1) // 2]
    if x.dtype.kind == "f":
        out = np.where(np.isnan(ordered[..., -1]), ordered[..., -1], out)
    return out.reshape(kept_shape(x.shape, axis)) if keepdims else out


middle = general(
    "middle", _middle, vjp=dict(x=_shared_back), jvp=dict(x=_shared_forward),
    node_name="MedianBackward0", refuses=(kernel("bc", "median_cpu"),),
    doc="the median (the lower of two); ties, or NaNs, share the gradient", **_REDUCTION,
)  # fmt: skip


def _nan_middle(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    if not axis:
        return x.copy()
    ordered = _ordered(x, axis)
    if not ordered.shape[-1]:
        return _of_nothing(x, axis, keepdims)
    present = (ordered == ordered).sum(-1, keepdims=True)
    out = np.take_along_axis(ordered, np.maximum((present - 1) // 2, 0), -1)[..., 0]
    return out.reshape(kept_shape(x.shape, axis)) if keepdims else out


nan_middle = general(
    "nan_middle", _nan_middle, vjp=dict(x=_shared_back), jvp=dict(x=_shared_forward),
    node_name="NanmedianBackward0", refuses=(kernel("bc", "median_cpu"),),
    doc="the median (the lower of two) of what is not NaN; ties share the gradient", **_REDUCTION,
)  # fmt: skip


def _no_order(name: str) -> Any:
    return (
        Refusal("b", f"{name}(): does not support bool input"),
        Refusal("c", f"{name}(): does not support complex input"),
    )


argmax = general(
    "argmax", lambda x, *, axis, keepdims: np.argmax(x, axis=axis, keepdims=keepdims),
    batch="axes", doc="where the largest element is: the first of ties",
    refuses=_no_order("argmax"),
)  # fmt: skip
argmin = general(
    "argmin", lambda x, *, axis, keepdims: np.argmin(x, axis=axis, keepdims=keepdims),
    batch="axes", doc="where the smallest element is: the first of ties",
    refuses=_no_order("argmin"),
)  # fmt: skip
def _truth(x: Any, found: Any) -> Any:
    """bool, but uint8 for uint8, which PyTorch once had in the place of bool."""
    return found if x.dtype != np.uint8 else np.asarray(found).astype(np.uint8)


any_ = general(
    "any", lambda x, *, axis, keepdims: _truth(x, np.any(x, axis=axis, keepdims=keepdims)),
    doc="whether an element is true", **_REDUCTION,
)  # fmt: skip
all_ = general(
    "all", lambda x, *, axis, keepdims: _truth(x, np.all(x, axis=axis, keepdims=keepdims)),
    doc="whether all elements are true", **_REDUCTION,
)  # fmt: skip


# ---------------------------------------------------------------- log-sum-exp
def _logsumexp(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    if not x.ndim:
        return x.copy()
    if not x.size:
        return np.log(_add_reduce(np.exp(x), axis=axis, keepdims=keepdims))
    top = _maximum_reduce(x.real, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0).astype(x.real.dtype)
    total = np.log(_add_reduce(np.exp(x - top), axis=axis, keepdims=True)) + top
    return (
        total
        if keepdims
        else total.reshape(tuple(n for i, n in enumerate(x.shape) if i not in axis))
    )


def _weights(x: Any, out: Any, axis: Axes, keepdims: bool) -> Any:
    """exp(x - out); NaN where both are the same infinity, as in PyTorch."""
    return exp(x - restore(out, shape_of(x), axis, keepdims))


logsumexp = general(
    "logsumexp", _logsumexp,
    vjp=dict(x=lambda g, x, out, axis, keepdims: restore(g, shape_of(x), axis, keepdims)
             * conj(_weights(x, out, axis, keepdims))),
    jvp=dict(x=lambda t, x, out, axis, keepdims: sum_(
        t * _weights(x, out, axis, keepdims), axis=axis, keepdims=keepdims)),
    promotion="float", doc="log(sum(exp(x))), without overflow", **_REDUCTION,
)  # fmt: skip


# ---------------------------------------------------------------- variance
def _var(x: Any, *, axis: Axes, keepdims: bool, correction: float) -> Any:
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    n = count(x.shape, axis)
    centre = wide - _add_reduce(wide, axis=axis, keepdims=True) / max(n, 1)
    squares = (centre * centre.conj()).real if x.dtype.kind == "c" else centre * centre
    total = _add_reduce(squares, axis=axis, keepdims=keepdims)
    freedom = max(n - correction, 0)
    out = total / freedom if freedom else total * 0 / np.zeros((), total.dtype)
    return np.asarray(out).astype(x.real.dtype, copy=False)


def _centred(x: Any, axis: Axes) -> Any:
    return x - mean(x, axis=axis, keepdims=True)


def _freedom(x: Any, axis: Axes, correction: float) -> float:
    return max(count(shape_of(x), axis) - correction, 0)


def _var_back(g: Any, x: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    freedom = _freedom(x, axis, correction)
    scale = 2 / freedom if freedom else math.nan
    return restore(g, shape_of(x), axis, keepdims) * _centred(x, axis) * scale


def _var_forward(t: Any, x: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    freedom = _freedom(x, axis, correction)
    product = t * conj(_centred(x, axis))
    total = sum_(real(product) if is_complex(product) else product, axis=axis, keepdims=keepdims)
    return total * (2 / freedom if freedom else math.nan)


var = general(
    "var", _var, vjp=dict(x=_var_back), jvp=dict(x=_var_forward),
    doc="the variance over axes, divided by (number - correction)", **_REDUCTION,
)  # fmt: skip


def _half_over(out: Any) -> Any:
    """1 / (2 out), and 0 where out is 0: the subgradient that PyTorch takes."""
    return where(out == 0, 0, 0.5 / where(out == 0, 1, out))


def _std_back(g: Any, x: Any, out: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    half = where(out == 0, 0, g * _half_over(out))  # also of a g that is NaN
    return _var_back(half, x, axis, keepdims, correction)


def _std_forward(t: Any, x: Any, out: Any, axis: Axes, keepdims: bool, correction: float) -> Any:
    return _var_forward(t, x, axis, keepdims, correction) * _half_over(out)


def _std(x: Any, *, axis: Axes, keepdims: bool, correction: float) -> Any:
    squares = _var(x, axis=axis, keepdims=keepdims, correction=correction)
    if squares.dtype == np.float32 and not ((squares > 1e-37) & (squares < math.inf)).all():
        # the squares leave the range of float32, their root does not
        wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        squares = _var(wide, axis=axis, keepdims=keepdims, correction=correction)
    return np.sqrt(squares).astype(x.real.dtype, copy=False)


std = general(
    "std", _std, vjp=dict(x=_std_back), jvp=dict(x=_std_forward),
    doc="the standard deviation over axes", **_REDUCTION,
)  # fmt: skip


# ---------------------------------------------------------------- norms
def _norm(x: Any, *, p: float, axis: Axes, keepdims: bool) -> Any:
    size = np.abs(x)
    if p == 2:
        if x.dtype.kind == "c":
            size = size * size
            total = _add_reduce(size, axis=axis, keepdims=keepdims)
        else:
            total = _add_reduce(x * x, axis=axis, keepdims=keepdims)
        return np.sqrt(total)
    if p == math.inf:
        return _maximum_reduce(size, axis=axis, keepdims=keepdims)
    if p == -math.inf:
        return _minimum_reduce(size, axis=axis, keepdims=keepdims)
    if p == 0:
        return _add_reduce((size != 0).astype(size.dtype), axis=axis, keepdims=keepdims)
    if p == 1:
        return _add_reduce(size, axis=axis, keepdims=keepdims)
    return np.asarray(_add_reduce(size**p, axis=axis, keepdims=keepdims) ** (1 / p)).astype(
        size.dtype, copy=False
    )


def _norm_direction(x: Any, o: Any, p: float, axis: Axes) -> Any:
    """d norm / d x (conjugated for complex x); `o` is the norm with its axes kept."""
    if p == 0:
        return zeros_like(x)
    if p == 1:
        return sgn(x)
    safe = where(o == 0, 1, o)
    if p == 2:
        return where(o == 0, 0, x / safe)
    if p in (math.inf, -math.inf):
        ones, number = _among(abs_(x), o, axis)
        return sgn(x) * (ones / number)
    size = abs_(x)
    if p < 1:
        # the infinite slope at a 0 counts as 0; but a norm that is infinite or NaN leaves no 0
        ratio = where(size == 0, 1, size) / safe
        return where(size == 0, o * 0, where(o == 0, 0, sgn(x) * ratio ** (p - 1)))
    if p < 2:  # the slope of the slope is infinite at a 0, and must not reach `o`
        return where(o == 0, 0, sgn(x) * size ** (p - 1) / safe ** (p - 1))
    return where(o == 0, 0, sgn(x) * (size / safe) ** (p - 1))


def _norm_back(g: Any, x: Any, out: Any, p: float, axis: Axes, keepdims: bool) -> Any:
    shape = shape_of(x)
    o = restore(out, shape, axis, keepdims)
    return restore(g, shape, axis, keepdims) * _norm_direction(x, o, p, axis)


def _norm_forward(t: Any, x: Any, out: Any, p: float, axis: Axes, keepdims: bool) -> Any:
    o = restore(out, shape_of(x), axis, keepdims)
    product = t * conj(_norm_direction(x, o, p, axis))
    return sum_(real(product) if is_complex(product) else product, axis=axis, keepdims=keepdims)


norm = general(
    "norm", _norm, vjp=dict(x=_norm_back), jvp=dict(x=_norm_forward),
    node_name="LinalgVectorNormBackward0", doc="the p-norm of the elements over axes",
    **_REDUCTION,
)  # fmt: skip


# ---------------------------------------------------------------- running sums and products
def _reverse_cumsum(g: Any, axis: int) -> Any:
    from pullback.ops.movement import flip

    return flip(cumsum(flip(g, axis=(axis,)), axis=axis), axis=(axis,))


cumsum = linear(
    "cumsum", lambda x, *, axis: np.cumsum(x, axis) if x.ndim else x.copy(),
    transpose=dict(x=lambda g, axis: _reverse_cumsum(g, axis) if g.ndim else g),
    batch="axes", reference="itertools.accumulate", doc="running sums along an axis",
)  # fmt: skip


def _cumprod_back(g: Any, x: Any, out: Any, axis: int) -> Any:
    if not x.ndim or x.shape[axis] == 1:
        return g
    if not may_hold_zero(x):
        return _reverse_cumsum(g * conj(out), axis) / conj(x)
    # products with element k left out: row k, running along the axis; those before k are no part
    rows = cumprod(others(x, axis), axis=axis + 1)
    n = shape_of(x)[axis]
    keep = np.triu(np.ones((n, n), bool)).reshape(n, n, *(1,) * (x.ndim - axis - 1))
    shape = shape_of(g)
    spread = reshape(g, shape=(*shape[:axis], 1, *shape[axis:]))
    return sum_(where(keep, spread * conj(rows), 0), axis=(axis + 1,), keepdims=False)


def _cumprod_forward(t: Any, x: Any, axis: int) -> Any:
    if not x.ndim:
        return t
    rows = cumprod(others(x, axis), axis=axis + 1)
    n = shape_of(x)[axis]
    keep = np.triu(np.ones((n, n), bool)).reshape(n, n, *(1,) * (x.ndim - axis - 1))
    shape = shape_of(t)
    spread = reshape(t, shape=(*shape[: axis + 1], 1, *shape[axis + 1 :]))
    return sum_(where(keep, spread * rows, 0), axis=(axis,), keepdims=False)


def _logcumsumexp_weights(x: Any, out: Any, axis: int) -> Any:
    """exp(x_i - out_j) where i <= j, 0 elsewhere: i along `axis`, j along the axis after it."""
    shape = shape_of(x)
    n = shape[axis]
    keep = np.triu(np.ones((n, n), bool)).reshape(n, n, *(1,) * (len(shape) - axis - 1))
    rows = reshape(x, shape=(*shape[: axis + 1], 1, *shape[axis + 1 :]))
    columns = reshape(out, shape=(*shape[:axis], 1, *shape[axis:]))
    return where(keep, exp(where(keep, rows - columns, 0)), 0)


def _logcumsumexp_back(g: Any, x: Any, out: Any, axis: int) -> Any:
    if not x.ndim:
        return g
    shape = shape_of(g)
    spread = reshape(g, shape=(*shape[:axis], 1, *shape[axis:]))
    weights = _logcumsumexp_weights(x, out, axis)
    return sum_(spread * weights, axis=(axis + 1,), keepdims=False)


def _logcumsumexp_forward(t: Any, x: Any, out: Any, axis: int) -> Any:
    if not x.ndim:
        return t
    shape = shape_of(t)
    spread = reshape(t, shape=(*shape[: axis + 1], 1, *shape[axis + 1 :]))
    return sum_(spread * _logcumsumexp_weights(x, out, axis), axis=(axis,), keepdims=False)


logcumsumexp = general(
    "logcumsumexp",
    lambda x, *, axis: np.logaddexp.accumulate(x, axis, dtype=x.dtype) if x.ndim else x.copy(),
    vjp=dict(x=_logcumsumexp_back), jvp=dict(x=_logcumsumexp_forward), batch="axes",
    refuses=(kernel("biuc", "logcumsumexp_out_cpu"),),
    doc="running log(sum(exp(x))) along an axis, without overflow",
)  # fmt: skip
cumprod = general(
    "cumprod", lambda x, *, axis: np.cumprod(x, axis) if x.ndim else x.copy(),
    vjp=dict(x=_cumprod_back), jvp=dict(x=_cumprod_forward), batch="axes",
    doc="running products along an axis",
)  # fmt: skip

__all__ = [
    "all_", "amax", "amin", "any_", "argmax", "argmin", "cast", "cumprod", "cumsum", "log",
    "largest", "logcumsumexp", "logsumexp", "mean", "middle", "nan_middle", "norm", "pow_", "prod",
    "sign", "smallest", "std", "sum_", "var",
]  # fmt: skip
