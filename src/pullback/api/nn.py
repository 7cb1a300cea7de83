"""Functions of neural networks (layer 4): `pullback.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments, elementwise, linalg
from pullback.api.convert import concrete
from pullback.api.inplace import in_place
from pullback.core.callsite import with_site
from pullback.eager.apply import apply, unary
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    DimensionError,
    DtypeError,
    ShapeError,
    UnsupportedError,
)
from pullback.ops import linalg as linalg_ops
from pullback.ops import movement, nn

sigmoid, tanh = elementwise.sigmoid, elementwise.tanh


def _axis_function(name: str, primitive: Any) -> Any:
    def function(
        input: Any, dim: Any = arguments.UNSET, dtype: Any = None, *, axis: Any = arguments.UNSET,  # noqa: A002
    ) -> Tensor:  # fmt: skip
        x = arguments.tensor(input, name)
        dim = arguments.either(dim, axis)
        if dim is arguments.UNSET:
            raise ArgumentTypeError(
                with_site(f'{name}() missing 1 required positional arguments: "dim"')
            )
        if dtype is not None:
            x = x.to(dtype)
        a = arguments.dim(dim, x.ndim)
        if x._data.dtype.kind not in "f":
            where = "lastdim_" if a == max(x.ndim, 1) - 1 else ""
            raise UnsupportedError(
                with_site(
                    f'"{name}_{where}kernel_impl" not implemented for '
                    f"'{arguments.PYTORCH_NAMES[x._data.dtype.name]}'"
                )
            )
        return apply(primitive, (x,), {"axis": a})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc}: `dim`."
    return function


softmax = _axis_function("softmax", nn.softmax)
log_softmax = _axis_function("log_softmax", nn.log_softmax)


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:  # noqa: A002
    """(..., k) @ (m, k)^T + (m,) -> (..., m)."""
    x = arguments.tensor(input, "linear")
    w = arguments.tensor(weight, "linear", "weight")
    shape, size, dtype = x._data.shape, w._data.shape, x._data.dtype
    if len(size) != 2 or not shape or shape[-1] != size[1]:
        rows = shape if len(shape) != 1 else (1, *shape)
        raise ShapeError(
            with_site(
                f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, rows))} and "
                f"{'x'.join(map(str, reversed(size)))})"
            )
        )
    if dtype is not w._data.dtype and dtype != w._data.dtype:
        names = [arguments.PYTORCH_NAMES[v._data.dtype.name] for v in (x, w)]
        raise DtypeError(
            with_site(
                f"mat1 and mat2 must have the same dtype, but got {names[0]} and {names[1]}: "
                "convert one with .to()"
            )
        )
    if bias is None:
        return linalg.matmul(x, apply(movement.permute, (w,), {"perm": (1, 0)}, "TBackward0"))
    b = arguments.tensor(bias, "linear", "bias")
    if b._data.ndim > 1 or b._data.size not in (1, size[0]):
        raise ShapeError(
            with_site(
                f"linear(): bias of shape {list(b.shape)} does not fit {size[0]} outputs"
            )
        )
    linalg._same_dtype("linear", x, b)
    if len(shape) == 2:
        return apply(linalg_ops.linear, (x, w, b), {})
    out = apply(linalg_ops.linear, (x.reshape(-1, shape[-1]), w, b), {})
    return out.reshape(*shape[:-1], size[0])


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """(..., i), (..., j), (k, i, j), (k,) -> (..., k): sums of input1 weight input2, plus bias."""
    a = arguments.tensor(input1, "bilinear", "input1")
    b = arguments.tensor(input2, "bilinear", "input2")
    w = arguments.tensor(weight, "bilinear", "weight")
    for name, x, k in (("input1", a, 1), ("input2", b, 2)):
        if w.ndim != 3 or not x.ndim or x.shape[-1] != w.shape[k]:
            raise ShapeError(
                with_site(
                    f"bilinear(): {name} size does not match weight size: got {list(x.shape)} for "
                    f"a weight of {list(w.shape)}"
                )
            )
    out = linalg.einsum("...i,kij,...j->...k", a, w, b)
    return out if bias is None else out + bias


# ---------------------------------------------------------------- activations
def floating(value: Any, function: str, kernel: str) -> Tensor:
    """A floating tensor; PyTorch's NotImplementedError for other dtypes."""
    x = arguments.tensor(value, function)
    if x._data.dtype.kind != "f":
        raise UnsupportedError(
            with_site(
                f'"{kernel}" not implemented for '
                f"'{arguments.PYTORCH_NAMES[x._data.dtype.name]}'"
            )
        )
    return x


def relu(input: Any, inplace: bool = False) -> Tensor:  # noqa: A002
    """x, or 0 below 0."""
    return in_place(elementwise.relu, input) if inplace else elementwise.relu(input)


def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Tensor:  # noqa: A002
    """log(1 + exp(beta x)) / beta; linear above the threshold."""
    x = arguments.tensor(input, "softplus")
    return apply(nn.softplus, (x,), {"beta": beta, "threshold": threshold})


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:  # noqa: A002
    """x, or negative_slope * x below 0."""
    if inplace:
        return in_place(leaky_relu, input, negative_slope)
    x = arguments.tensor(input, "leaky_relu")
    return apply(nn.leaky_relu, (x,), {"negative_slope": negative_slope})


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:  # noqa: A002
    """x, or alpha * (exp(x) - 1) below 0."""
    if inplace:
        return in_place(elu, input, alpha)
    x = floating(input, "elu", "elu_cpu")
    return apply(nn.elu, (x,), {"alpha": alpha, "scale": 1.0, "rate": 1.0})


def silu(input: Any, inplace: bool = False) -> Tensor:  # noqa: A002
    """x * sigmoid(x)."""
    if inplace:
        return in_place(silu, input)
    x = arguments.tensor(input, "silu")
    return x * sigmoid(x)


def logsigmoid(input: Any) -> Tensor:  # noqa: A002
    """log(sigmoid(x)), without overflow."""
    return -softplus(-arguments.tensor(input, "logsigmoid"), threshold=math.inf)


def gelu(input: Any, approximate: str = "none") -> Tensor:  # noqa: A002
    """x times the normal distribution function at x; "tanh" for the usual approximation."""
    x = arguments.tensor(input, "gelu")
    if approximate == "tanh":
        inner = (x + 0.044715 * (x * x * x)) * math.sqrt(2 / math.pi)
        return 0.5 * x * (1 + elementwise.tanh(inner))
    if approximate != "none":
        raise ArgumentRuntimeError(
            with_site("approximate argument must be either none or tanh.")
        )
    return 0.5 * x * (1 + _erf(x * math.sqrt(0.5)))


_erf = unary(nn.erf)


def erf(input: Any) -> Tensor:  # noqa: A002
    """The error function (its values come from SciPy)."""
    return _erf(arguments.tensor(input, "erf"))


# ---------------------------------------------------------------- looking up, padding, dropping
def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Tensor:  # noqa: A002
    """The rows of weight at integer positions: (...) and (n, d) -> (..., d)."""
    from pullback.api.indexing import getitem

    index = arguments.tensor(input, "embedding")
    table = arguments.tensor(weight, "embedding", "weight")
    if index._data.dtype.name not in ("int64", "int32"):
        raise ArgumentRuntimeError(
            with_site(
                "Expected tensor for argument #1 'indices' to have one of the following scalar "
                "types: Long, Int; but got "
                f"torch.{arguments.PYTORCH_NAMES[index._data.dtype.name]}Tensor instead (while "
                "checking arguments for embedding)"
            )
        )
    if type(index._data) is np.ndarray and index._data.size:
        if index._data.min() < 0 or index._data.max() >= table.shape[0]:
            raise DimensionError(
                with_site(
                    f"index out of range in self: the table has {table.shape[0]} rows, the indices "
                    f"go from {index._data.min()} to {index._data.max()}"
                )
            )
    rows = getitem(table, index)
    if padding_idx is None:
        return rows
    row = padding_idx + (table.shape[0] if padding_idx < 0 else 0)
    return elementwise.where((index == row).unsqueeze(-1), rows.detach(), rows)  # not learned


def pad(
    input: Any, pad: Any, mode: str = "constant", value: float | None = None  # noqa: A002
) -> Tensor:
    """Elements put around the last dims: (before, after) of the last one first."""
    x = arguments.tensor(input, "pad")
    amounts = arguments.size((pad,), "pad")
    if mode != "constant":
        raise UnsupportedError(with_site(f"pad(mode={mode!r}): only 'constant' is built"))
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise ArgumentRuntimeError(
            with_site(
                f"Padding length must be divisible by 2 and at most twice the number of dims: got "
                f"{list(amounts)} for {x.ndim} dims"
            )
        )
    pairs = [(amounts[i], amounts[i + 1]) for i in range(0, len(amounts), 2)]
    widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    for axis, (before, after) in enumerate(widths):  # negative amounts cut
        if before < 0 or after < 0:
            stop = x._data.shape[axis] + min(after, 0)
            start = -min(before, 0)
            params = {"axis": axis, "start": start, "stop": max(stop, start)}
            x = apply(movement.cut, (x,), params)
    grow = tuple((max(b, 0), max(a, 0)) for b, a in widths)
    out = apply(movement.pad_zeros, (x,), {"widths": grow})
    if not value:
        return out
    inside = wrap(np.pad(np.ones(x._data.shape, bool), grow))
    return elementwise.where(inside, out, value)


def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Integers as rows with a single 1."""
    x = arguments.tensor(tensor, "one_hot", "tensor")
    if x._data.dtype.name != "int64":
        raise ArgumentRuntimeError(
            with_site("one_hot is only applicable to index tensor of type LongTensor.")
        )
    if not x._data.size and num_classes <= 0:
        raise ArgumentRuntimeError(
            with_site("Can not infer total number of classes from empty tensor.")
        )
    if type(x._data) is not np.ndarray and num_classes > 0:  # inside a transform
        return (x.unsqueeze(-1) == wrap(np.arange(num_classes))).long()
    concrete(x, "one_hot")
    if x._data.size and x._data.min() < 0:
        raise ArgumentRuntimeError(with_site("Class values must be non-negative."))
    n = int(x._data.max()) + 1 if num_classes < 0 else num_classes
    if x._data.size and x._data.max() >= n:
        raise ArgumentRuntimeError(with_site("Class values must be smaller than num_classes."))
    return wrap((x._data[..., None] == np.arange(n)).astype(np.int64))


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
    """Each element set to 0 with probability p, the others scaled by 1 / (1 - p)."""
    if inplace:
        return in_place(dropout, input, p, training)
    x = arguments.tensor(input, "dropout")
    if not 0 <= p <= 1:
        raise ArgumentValueError(
            with_site(f"dropout probability has to be between 0 and 1, but got {p}")
        )
    if not training or p == 0:
        return x
    from pullback.api.random import dropout_mask

    return x * dropout_mask(x, p)
