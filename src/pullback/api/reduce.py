"""Reductions and running sums (layer 4), with PyTorch's signatures."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pullback.api import arguments
from pullback.api.arguments import UNSET
from pullback.api.elementwise import into
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.refusal import Refusal, kernel
from pullback.eager.apply import apply
from pullback.eager.batched import by_example
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, DimensionError
from pullback.ops import broadcast, indexing, movement, reduce


def _source(input: Any, function: str, dtype: Any = None) -> Tensor:  # noqa: A002
    x = input if type(input) is Tensor else arguments.tensor(input, function)
    return x if dtype is None else converted(x, dtype)


def converted(x: Tensor, dtype: Any) -> Tensor:
    """x in the dtype of a result; history does not go through integers."""
    if x._requires_grad and x._data.dtype.kind not in "biu":
        numpy = dtypes.to_numpy(dtype)
        if numpy.kind in "biu":
            name = arguments.PYTORCH_NAMES[numpy.name]
            raise ArgumentRuntimeError(with_site(f"Autograd not support dtype: {name}"))
    return x.to(dtype)


def _both(
    function: str, dim: Any, axis: Any, keepdim: Any, keepdims: Any
) -> tuple[Any, bool]:
    """`dim`/`keepdim` under either of their names."""
    keep = keepdim if keepdims is UNSET else keepdims
    if keep is not True and keep is not False:
        keep = arguments.flag(keep, function, "keepdim")
    return (dim if axis is UNSET else axis), keep


_ALL: dict[int, tuple[int, ...]] = {n: tuple(range(n)) for n in range(65)}
_TOTAL = {n: {"axis": axes, "keepdims": False} for n, axes in _ALL.items()}


def sum(  # noqa: A001
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None,  # noqa: A002
    axis: Any = UNSET, keepdims: Any = UNSET,
) -> Tensor:  # fmt: skip
    """The sum over `dim` (an int, a sequence, or None for all); int64 for integers."""
    x = input if type(input) is Tensor else arguments.tensor(input, "sum")
    if dtype is not None or x._data.dtype.kind in "biu":
        x = x.to(dtypes.int64) if dtype is None else converted(x, dtype)
    if dim is None and axis is UNSET and keepdim is False and keepdims is UNSET:
        result = apply(broadcast.sum_, (x,), _TOTAL[x._data.ndim], "SumBackward0")
        return result if out is None else into(out, result)
    dim, keep = _both("sum", dim, axis, keepdim, keepdims)
    axes = arguments.dims(dim, x._data.ndim)
    return into(out, apply(broadcast.sum_, (x,), {"axis": axes, "keepdims": keep}, "SumBackward1"))


def mean(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None,  # noqa: A002
    axis: Any = UNSET, keepdims: Any = UNSET,
) -> Tensor:  # fmt: skip
    """The mean over `dim`.  Raises RuntimeError for integer tensors (give `dtype`)."""
    if dtype is not None:
        arguments.differentiable_dtype(dtypes.to_numpy(dtype, "dtype", "mean"), "mean dtype")
    x = _source(input, "mean", dtype)
    arguments.differentiable_dtype(x._data.dtype, "mean")
    dim, keep = _both("mean", dim, axis, keepdim, keepdims)
    axes = arguments.dims(dim, x._data.ndim)
    name = "MeanBackward0" if dim is None else "MeanBackward1"
    return into(out, apply(reduce.mean, (x,), {"axis": axes, "keepdims": keep}, name))


@arguments.numpy_names
def nansum(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:  # noqa: A002
    """The sum with NaN counted as 0."""
    from pullback.api.elementwise import isnan, masked_fill

    x = arguments.tensor(input, "nansum")
    arguments.refuse(x, Refusal("c", "nansum on CPU does not support complex inputs"))
    present = masked_fill(x, isnan(x), 0)
    if present._data.dtype.kind in "biu":
        present = present.to(dtypes.int64)
    axes = arguments.dims(dim, x.ndim)
    params = {"axis": axes, "keepdims": arguments.flag(keepdim, "nansum", "keepdim")}
    return apply(broadcast.sum_, (present,), params, "NansumBackward0")


def prod(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None,  # noqa: A002
    axis: Any = UNSET, keepdims: Any = UNSET,
) -> Tensor:  # fmt: skip
    """The product over one dim, or all; the gradient is right where factors are 0."""
    x = _source(input, "prod", dtype)
    if dtype is None and x._data.dtype.kind in "biu":
        x = x.to(dtypes.int64)
    dim, keep = _both("prod", dim, axis, keepdim, keepdims)
    axes = tuple(range(x.ndim)) if dim is None else (arguments.dim(dim, x.ndim),)
    axes = axes if x.ndim else ()
    name = "ProdBackward0" if dim is None else "ProdBackward1"
    return into(out, apply(reduce.prod, (x,), {"axis": axes, "keepdims": keep}, name))


# ---------------------------------------------------------------- extremes
class ValuesIndices(NamedTuple):
    """What a reduction along one dim gives; prints as PyTorch's return types do."""

    values: Tensor
    indices: Tensor


def return_type(name: str) -> Any:
    """A named tuple `torch.return_types.<name>` of values and indices."""

    def text(self: Any) -> str:
        return f"torch.return_types.{name}(\nvalues={self.values!r},\nindices={self.indices!r})"

    return type(name, (ValuesIndices,), {"__slots__": (), "__repr__": text,
                                         "__module__": "torch.return_types"})  # fmt: skip


RETURN_TYPES = {n: return_type(n) for n in ("max", "min", "sort", "topk", "median", "kthvalue",
                                            "mode", "cummax", "cummin", "nanmedian")}  # fmt: skip


def refuse_empty(x: Tensor, function: str, axes: tuple[int, ...]) -> None:
    """No element is the largest of none."""
    if x._data.size == 0 and math.prod(x._data.shape[a] for a in axes) == 0:
        raise (DimensionError if axes else ArgumentRuntimeError)(
            with_site(
                f"{function}(): Expected reduction dim to be specified for input.numel() == 0. "
                f"Specify the reduction dim with the 'dim' argument; got shape {list(x.shape)}"
            )
        )


def _nan_aware(x: Any, axis: int, largest: bool) -> Any:
    """Index of the extreme element; the first NaN counts as extreme, as in PyTorch."""
    return np.argmax(x, axis) if largest else np.argmin(x, axis)


def _extreme(name: str, whole: Any, largest: bool, pairwise: str) -> Any:
    def function(
        input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None,  # noqa: A002
        axis: Any = UNSET, keepdims: Any = UNSET,
    ) -> Any:  # fmt: skip
        x = arguments.tensor(input, name)
        dim, keep = _both(name, dim, axis, keepdim, keepdims)
        if isinstance(dim, Tensor):
            from pullback.api import elementwise

            return getattr(elementwise, pairwise)(x, dim, out=out)
        if dim is None:
            axes = tuple(range(x.ndim))
            if x._data.size == 0:
                raise ArgumentRuntimeError(
                    with_site(
                        f"{name}(): Expected reduction dim to be specified for input.numel() == "
                        "0. Specify the reduction dim with the 'dim' argument."
                    )
                )
            return into(out, apply(whole, (x,), {"axis": axes, "keepdims": False}))
        a = arguments.dim(dim, x.ndim)
        refuse_empty(x, name, (a,) if x.ndim else ())
        arguments.refuse(x, Refusal("c", f"{name}(): does not support complex input"))
        if x._data.dtype.kind == "b":  # whose order NumPy knows as that of uint8
            found = function(x.to(dtypes.uint8), dim, keepdim)
            return RETURN_TYPES[name](found.values.to(dtypes.bool_), found.indices)
        primitive = reduce.argmax if largest else reduce.argmin
        index = (
            apply(primitive, (x.detach(),), {"axis": a, "keepdims": False})
            if x.ndim else wrap(np.zeros((), np.int64))
        )  # fmt: skip
        index = wrap(index._data)
        values = apply(
            indexing.pick, (x, index), {"axis": a, "keepdims": keep}, f"{name.title()}Backward0"
        )
        if keep and x.ndim:
            index = index.unsqueeze(a)
        return RETURN_TYPES[name](values, index)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {'largest' if largest else 'smallest'} element of all (ties share the gradient); "
        "along `dim`, values and indices; of two tensors, elementwise."
    )
    return function


max = _extreme("max", reduce.largest, True, "maximum")  # noqa: A001
min = _extreme("min", reduce.smallest, False, "minimum")  # noqa: A001


def _amax(name: str, primitive: Any) -> Any:
    def function(
        input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None,  # noqa: A002
        axis: Any = UNSET, keepdims: Any = UNSET,
    ) -> Tensor:  # fmt: skip
        x = arguments.tensor(input, name)
        dim, keep = _both(name, dim, axis, keepdim, keepdims)
        axes = arguments.dims(dim, x.ndim)
        refuse_empty(x, name, axes)
        return into(out, apply(primitive, (x,), {"axis": axes, "keepdims": keep}))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc}; over any dims."
    return function


amax, amin = _amax("amax", reduce.amax), _amax("amin", reduce.amin)


def _arg(name: str, primitive: Any) -> Any:
    def function(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:  # noqa: A002
        x = arguments.tensor(input, name)
        arguments.refuse(x, *primitive.refuses)
        a = None if dim is None else arguments.dim(dim, x.ndim)
        if x._data.size == 0:
            refuse_empty(x, name, tuple(range(x.ndim)) if a is None else (a,))
        if not x.ndim:
            return wrap(np.zeros((), np.int64))
        keep = arguments.flag(keepdim, name, "keepdim")
        return apply(primitive, (x,), {"axis": a, "keepdims": keep})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc}; of all elements when dim is None."
    return function


argmax = arguments.numpy_names(_arg("argmax", reduce.argmax))
argmin = arguments.numpy_names(_arg("argmin", reduce.argmin))


# ---------------------------------------------------------------- truth
def _truth(name: str, primitive: Any) -> Any:
    def function(
        input: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        out: Any = None,  # noqa: A002
    ) -> Tensor:
        x = arguments.tensor(input, name)
        axes = arguments.dims(dim, x.ndim)
        keep = arguments.flag(keepdim, name, "keepdim")
        return into(out, apply(primitive, (x,), {"axis": axes, "keepdims": keep}))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc}, over `dim` or all."
    return function


any = arguments.numpy_names(_truth("any", reduce.any_))  # noqa: A001
all = arguments.numpy_names(_truth("all", reduce.all_))  # noqa: A001


@arguments.numpy_names
def count_nonzero(input: Any, dim: Any = None) -> Tensor:  # noqa: A002
    """How many elements are not 0."""
    x = arguments.tensor(input, "count_nonzero")
    return wrap(np.asarray(np.count_nonzero(x._data, axis=arguments.dims(dim, x.ndim))))


# ---------------------------------------------------------------- logsumexp, variance, norms
@arguments.numpy_names
def logsumexp(input: Any, dim: Any, keepdim: bool = False, *, out: Any = None) -> Tensor:  # noqa: A002
    """log(sum(exp(input))) over `dim`, without overflow."""
    x = arguments.tensor(input, "logsumexp")
    if dim is None:
        raise ArgumentTypeError(
            with_site(
                "logsumexp(): argument 'dim' (position 2) must be tuple of ints, not NoneType"
            )
        )
    axes = arguments.dims(dim, x.ndim)
    keep = arguments.flag(keepdim, "logsumexp", "keepdim")
    return into(out, apply(reduce.logsumexp, (x,), {"axis": axes, "keepdims": keep}))


def _spread(
    name: str,
    primitive: Any,
    input: Any,
    dim: Any,
    unbiased: Any,
    correction: Any,
    keepdim: Any,  # noqa: A002
    node: str | None = None,
) -> Any:
    x = arguments.tensor(input, name)
    arguments.differentiable_dtype(x._data.dtype, name)
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if correction is UNSET or correction is None:
        correction = 1 if unbiased is UNSET or unbiased else 0
    axes = arguments.dims(dim, x.ndim)
    keep = arguments.flag(keepdim, name, "keepdim")
    params = {"axis": axes, "keepdims": keep, "correction": correction}
    return apply(primitive, (x,), params, node)


def var(
    input: Any, dim: Any = None, unbiased: Any = UNSET, keepdim: bool = False, *,  # noqa: A002
    correction: Any = UNSET, out: Any = None, axis: Any = UNSET, keepdims: Any = UNSET,
) -> Tensor:  # fmt: skip
    """The variance over `dim`, divided by n - correction (1 unless given)."""
    dim, keep = _both("var", dim, axis, keepdim, keepdims)
    return into(out, _spread("var", reduce.var, input, dim, unbiased, correction, keep))


def std(
    input: Any, dim: Any = None, unbiased: Any = UNSET, keepdim: bool = False, *,  # noqa: A002
    correction: Any = UNSET, out: Any = None, axis: Any = UNSET, keepdims: Any = UNSET,
) -> Tensor:  # fmt: skip
    """The standard deviation over `dim`: the root of `var`."""
    dim, keep = _both("std", dim, axis, keepdim, keepdims)
    return into(out, _spread("std", reduce.std, input, dim, unbiased, correction, keep))


def var_mean(
    input: Any, dim: Any = None, unbiased: Any = UNSET, keepdim: bool = False, *,  # noqa: A002
    correction: Any = UNSET,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The variance and the mean over `dim`."""
    return _with_mean("var_mean", reduce.var, input, dim, unbiased, correction, keepdim)


def _with_mean(
    name: str, primitive: Any, input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: Any  # noqa: A002
) -> tuple[Tensor, Tensor]:
    node = f"{name.title().replace('_', '')}Backward0"
    spread = _spread(name, primitive, input, dim, unbiased, correction, keepdim, node)
    axes = arguments.dims(None if isinstance(dim, bool) else dim, input.ndim)
    params = {"axis": axes, "keepdims": bool(keepdim)}
    return spread, apply(reduce.mean, (input,), params, node)


def std_mean(
    input: Any, dim: Any = None, unbiased: Any = UNSET, keepdim: bool = False, *,  # noqa: A002
    correction: Any = UNSET,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The standard deviation and the mean over `dim`."""
    return _with_mean("std_mean", reduce.std, input, dim, unbiased, correction, keepdim)


@arguments.numpy_names
def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None,  # noqa: A002
    dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The p-norm of the elements over `dim`; "fro" is the 2-norm."""
    return into(out, norm_of(_source(input, "norm", dtype), p, dim, keepdim))


def norm_of(x: Tensor, p: Any, dim: Any, keepdim: Any, node: str | None = None) -> Tensor:
    """The p-norm of the elements over `dim`."""
    arguments.differentiable_dtype(x._data.dtype, "norm" if node != "DistBackward0" else "dist")
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise ArgumentRuntimeError(with_site(f"linalg.matrix_norm: Order {p} not supported."))
    order = 2.0 if p in ("fro", None) else float(p)
    axes = arguments.dims(dim, x.ndim)
    params = {"p": order, "axis": axes, "keepdims": arguments.flag(keepdim, "norm", "keepdim")}
    return apply(reduce.norm, (x,), params, node)


# ---------------------------------------------------------------- running sums and products
def _running(name: str, primitive: Any) -> Any:
    def function(input: Any, dim: Any, *, dtype: Any = None, out: Any = None) -> Tensor:  # noqa: A002
        x = _source(input, name, dtype)
        if dtype is None and x._data.dtype.kind in "biu":
            x = x.to(dtypes.int64)
        a = arguments.dim(dim, x.ndim)
        return into(out, apply(primitive, (x,), {"axis": a}))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc}; int64 for integers."
    return function


cumsum = arguments.numpy_names(_running("cumsum", reduce.cumsum))
cumprod = arguments.numpy_names(_running("cumprod", reduce.cumprod))


@arguments.numpy_names
def logcumsumexp(input: Any, dim: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """Running log(sum(exp(input))) along dim, without overflow."""
    x = arguments.tensor(input, "logcumsumexp")
    return into(out, apply(reduce.logcumsumexp, (x,), {"axis": arguments.dim(dim, x.ndim)}))


def _so_far(data: Any, axis: int, largest: bool) -> Any:
    """Where the extreme of the elements so far is: the last of ties; a NaN stays."""
    best = (np.maximum if largest else np.minimum).accumulate(data, axis)
    new = data == best if data.dtype.kind != "f" else (data == best) | (data != data)
    shape = [-1 if k == axis else 1 for k in range(data.ndim)]
    places = np.arange(data.shape[axis]).reshape(shape)
    return np.maximum.accumulate(np.where(new, places, 0), axis)


def _running_extreme(name: str, largest: bool) -> Any:
    def function(input: Any, dim: Any) -> Any:  # noqa: A002
        x = arguments.tensor(input, name)
        a = arguments.dim(dim, x.ndim)
        arguments.refuse(x, kernel("c", f"{name}_cpu"))
        node = f"{name.title()}Backward0"
        if not x.ndim:
            return of_scalar(name, x, node)
        index = by_example(x, lambda data, axis: _so_far(data, axis, largest), a)
        return RETURN_TYPES[name](apply(indexing.gather, (x, index), {"axis": a}, node), index)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The {'largest' if largest else 'smallest'} element so far along dim, and its index (the "
        "last of ties)."
    )
    return function


cummax = arguments.numpy_names(_running_extreme("cummax", True))
cummin = arguments.numpy_names(_running_extreme("cummin", False))


# ---------------------------------------------------------------- sorting
@arguments.numpy_names
def sort(
    input: Any, dim: int = -1, descending: bool = False, stable: Any = UNSET,  # noqa: A002
) -> Any:  # fmt: skip
    """Values in order along `dim`, and the indices they came from: stable in any case."""
    x = arguments.tensor(input, "sort")
    a = arguments.dim(dim, x.ndim)
    descending = arguments.flag(descending, "sort", "descending")
    arguments.refuse(x, Refusal("c", "Sort does not support complex dtypes on CPU"))
    node = f"SortBackward{int(stable is not UNSET)}"
    if not x.ndim:
        return of_scalar("sort", x, node)
    index = by_example(x, lambda data, axis: order(data, axis, descending), a)
    values = apply(indexing.gather, (x, index), {"axis": a}, node)
    return RETURN_TYPES["sort"](values, index)


def order(data: Any, axis: int, descending: bool) -> Any:
    """The indices that sort an array along an axis, equal elements in the order they have."""
    if not descending:
        return np.argsort(data, axis, kind="stable")
    # sort the reversed axis, then reverse
    backwards = np.flip(np.argsort(np.flip(data, axis), axis, kind="stable"), axis)
    return data.shape[axis] - 1 - backwards


def middle(data: Any, axis: int) -> Any:
    """Where the median along an axis is; the first NaN, where there is one."""
    index = np.take(order(data, axis, False), (data.shape[axis] - 1) // 2, axis)
    if data.dtype.kind == "f":
        nan = np.isnan(data)
        index = np.where(nan.any(axis), nan.argmax(axis), index)
    return index


@arguments.numpy_names
def argsort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False,  # noqa: A002
) -> Tensor:  # fmt: skip
    """The indices that put the elements in order along `dim`: stable in any case."""
    return sort(input, dim, descending).indices


def msort(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """Values in order along the first dim."""
    return into(out, sort(input, 0).values)


def of_scalar(name: str, x: Tensor, node: str) -> Any:
    """The value and the index of what is chosen from one element."""
    value = apply(movement.clone, (x,), {}, node)
    return RETURN_TYPES[name](value, wrap(np.zeros((), np.int64)))


@arguments.numpy_names
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002
    """The k largest (or smallest) elements along `dim`, in order, and their indices."""
    x = arguments.tensor(input, "topk")
    a = arguments.dim(dim, x.ndim)
    k = arguments.integer(k, "topk", "k")
    largest = arguments.flag(largest, "topk", "largest")
    arguments.refuse(x, Refusal("b", "topk does not support bool dtypes on CPU"),
                     Refusal("c", "topk does not support complex dtypes on CPU"))  # fmt: skip
    if not 0 <= k <= (x.shape[a] if x.ndim else 1):
        raise ArgumentRuntimeError(with_site("selected index k out of range"))
    if x.ndim:
        index = by_example(
            x, lambda data, axis: np.take(order(data, axis, largest), np.arange(k), axis), a
        )
    else:
        index = sort(x.detach(), a, largest).indices
    values = apply(indexing.gather, (x, index), {"axis": a}, "TopkBackward0")
    return RETURN_TYPES["topk"](values, index)


@arguments.numpy_names
def median(input: Any, dim: Any = None, keepdim: bool = False) -> Any:  # noqa: A002
    """The middle element (of two the lower; ties share gradients); along `dim`, and its index."""
    x = arguments.tensor(input, "median")
    if dim is None:
        params = {"axis": tuple(range(x.ndim)), "keepdims": False}
        return apply(reduce.middle, (x,), params)
    a = arguments.dim(dim, x.ndim)
    arguments.refuse(x, kernel("bc", "median_out"))
    if not x.ndim:
        return of_scalar("median", x, "MedianBackward1")
    positions = by_example(x, middle, a)
    keepdim = arguments.flag(keepdim, "median", "keepdim")
    values = apply(indexing.pick, (x, positions), {"axis": a, "keepdims": keepdim},
                   "MedianBackward1")  # fmt: skip
    if keepdim:
        positions = positions.unsqueeze(a)
    return RETURN_TYPES["median"](values, positions)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:  # noqa: A002
    """How often each non-negative integer occurs (or the sum of its weights)."""
    x = arguments.tensor(input, "bincount")
    arguments.refuse(x, kernel("bfc", "bincount_cpu"))
    if x._data.dtype.kind not in "iu" or x.ndim != 1 or (x._data.size and x._data.min() < 0):
        raise ArgumentRuntimeError(
            with_site("bincount only supports 1-d non-negative integral inputs.")
        )
    w = None if weights is None else weights._data
    return wrap(np.bincount(x._data, w, minlength))
