"""Functions of neural networks (layer 4): `pullback.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments, elementwise, linalg, reduce
from pullback.core.callsite import with_site
from pullback.eager.apply import apply, unary
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentValueError,
    ShapeError,
    UnsupportedError,
)
from pullback.ops import indexing, movement, nn
from pullback.ops import linalg as linalg_ops

relu, sigmoid, tanh = elementwise.relu, elementwise.sigmoid, elementwise.tanh


def _axis_function(name: str, primitive: Any) -> Any:
    def function(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:  # noqa: A002
        x = arguments.tensor(input, name)
        if dtype is not None:
            x = x.to(dtype)
        if dim is None:
            dim = 0 if x.ndim in (0, 1, 3) else 1
        a = arguments.dim(dim, x.ndim)
        if x._data.dtype.kind not in "f":
            raise UnsupportedError(
                with_site(
                    f'"{name}_lastdim_kernel_impl" not implemented for '
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
    if w.ndim != 2 or not x.ndim or x._data.shape[-1] != w._data.shape[-1]:
        raise ShapeError(
            with_site(
                f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, x.shape))} and "
                f"{'x'.join(map(str, reversed(w.shape)))})"
            )
        )
    linalg._same_dtype("linear", x, w)
    if bias is None:
        return linalg.matmul(x, apply(movement.permute, (w,), {"perm": (1, 0)}, "TBackward0"))
    b = arguments.tensor(bias, "linear", "bias")
    if b._data.ndim > 1 or b._data.size not in (1, w._data.shape[0]):
        raise ShapeError(
            with_site(
                f"linear(): bias of shape {list(b.shape)} does not fit {w.shape[0]} outputs"
            )
        )
    linalg._same_dtype("linear", x, b)
    if x._data.ndim == 2:
        return apply(linalg_ops.linear, (x, w, b), {})
    rows = x.reshape(-1, x._data.shape[-1])
    out = apply(linalg_ops.linear, (rows, w, b), {})
    return out.reshape(*x._data.shape[:-1], w._data.shape[0])


# ---------------------------------------------------------------- activations
def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Tensor:  # noqa: A002
    """log(1 + exp(beta x)) / beta; linear above the threshold."""
    x = arguments.tensor(input, "softplus")
    return apply(nn.softplus, (x,), {"beta": beta, "threshold": threshold})


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:  # noqa: A002
    """x, or negative_slope * x below 0."""
    x = arguments.tensor(input, "leaky_relu")
    return apply(nn.leaky_relu, (x,), {"negative_slope": negative_slope})


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:  # noqa: A002
    """x, or alpha * (exp(x) - 1) below 0."""
    x = arguments.tensor(input, "elu")
    below = elementwise.expm1(elementwise.clamp(x, max=0)) * alpha
    return elementwise.where(x > 0, x, below)


def silu(input: Any, inplace: bool = False) -> Tensor:  # noqa: A002
    """x * sigmoid(x)."""
    x = arguments.tensor(input, "silu")
    return x * sigmoid(x)


def logsigmoid(input: Any) -> Tensor:  # noqa: A002
    """log(sigmoid(x)), without overflow."""
    return -softplus(-arguments.tensor(input, "logsigmoid"))


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


# ---------------------------------------------------------------- losses
def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return reduce.mean(loss)
    if reduction == "sum":
        return reduce.sum(loss)
    if reduction == "none":
        return loss
    raise ArgumentValueError(with_site(f"{reduction} is not a valid value for reduction"))


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:  # noqa: A002
    """(input - target)^2, its mean, or its sum."""
    return _reduced(elementwise.square(input - target), reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:  # noqa: A002
    """|input - target|, its mean, or its sum."""
    return _reduced(elementwise.absolute(input - target), reduction)


def _class_axis(x: Tensor) -> int:
    return 0 if x.ndim == 1 else 1


def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: Any = None,  # noqa: A002
    ignore_index: int = -100, reduce_: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-probability of the target class: (n, c, ...) and (n, ...) integers."""
    x, t = arguments.tensor(input, "nll_loss"), arguments.tensor(target, "nll_loss", "target")
    if t._data.dtype.kind not in "iu":
        raise ArgumentRuntimeError(
            with_site(
                "expected scalar type Long but found "
                f"{arguments.PYTORCH_NAMES[t._data.dtype.name]}"
            )
        )
    axis = _class_axis(x)
    if x.shape[:axis] + x.shape[axis + 1 :] != t.shape:
        raise ArgumentValueError(
            with_site(
                f"Expected input batch_size ({x.shape[0]}) to match target batch_size "
                f"({t.shape[0] if t.ndim else 1}): shapes {list(x.shape)} and {list(t.shape)}."
            )
        )
    labels = t._data
    ignored: Any = None
    classes = x._data.shape[axis]
    plain = type(labels) is np.ndarray and labels.size > 0
    if plain and not all_classes(labels, classes, ignore_index):
        low, high = int(np.minimum.reduce(labels, None)), int(np.maximum.reduce(labels, None))
        if low <= ignore_index <= high:
            found = labels == ignore_index
            ignored = found if found.any() else None
            valid = labels[~found]
            low, high = (int(valid.min()), int(valid.max())) if valid.size else (0, 0)
        if low < 0 or high >= classes:
            raise target_error(low if low < 0 else high, classes)
    if weight is None and ignored is None:
        if reduction not in ("mean", "sum", "none"):
            return _reduced(x, reduction)  # which refuses it
        return apply(nn.nll, (x, t), {"axis": axis, "reduction": reduction})
    has_ignored = ignored is not None
    index = wrap(np.where(ignored, 0, labels)) if has_ignored else t
    picked = apply(indexing.pick, (x, index), {"axis": axis, "keepdims": False}, "NllLossBackward0")
    w = wrap(np.ones((), x._data.dtype)) if weight is None else weight[index]
    if has_ignored:
        w = elementwise.where(wrap(~ignored), w, 0.0)
    loss = -(picked * w)
    if reduction != "mean":
        return _reduced(loss, reduction)
    return reduce.sum(loss) / reduce.sum(w)


def all_classes(labels: Any, classes: int, ignore_index: int) -> bool:
    """Whether every label is a class that counts: one look, as negative numbers read as huge."""
    if labels.dtype != np.int64 or ignore_index >= 0:
        return False
    return bool(np.maximum.reduce(labels.view(np.uint64), None) < classes)


def target_error(bad: int, classes: int) -> Exception:
    """PyTorch's IndexError for a label that is no class."""
    from pullback.errors import DimensionError

    return DimensionError(
        with_site(
            f"Target {bad} is out of bounds: there are {classes} classes (0 to {classes - 1})"
        )
    )


def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None,  # noqa: A002
    ignore_index: int = -100, reduce_: Any = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """The loss of logits (n, c, ...) against classes (n, ...) or probabilities (n, c, ...)."""
    x = arguments.tensor(input, "cross_entropy")
    t = arguments.tensor(target, "cross_entropy", "target")
    axis = _class_axis(x)
    logp = apply(nn.log_softmax, (x,), {"axis": axis})
    if t._data.dtype.kind == "f":
        loss = -reduce.sum(logp * t if weight is None else logp * t * weight, axis)
        return reduce.sum(loss) / (x._data.size // x._data.shape[axis]) if reduction == "mean" \
            else _reduced(loss, reduction)  # fmt: skip
    hard = nll_loss(logp, t, weight, None, ignore_index, None, reduction)
    if not label_smoothing:
        return hard
    smooth = _reduced(-reduce.mean(logp, axis), reduction)
    return hard * (1 - label_smoothing) + smooth * label_smoothing


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean",  # noqa: A002
) -> Tensor:  # fmt: skip
    """-(target log p + (1 - target) log(1 - p)); logarithms are kept above -100."""
    low = elementwise.clamp(elementwise.log(input), min=-100)
    high = elementwise.clamp(elementwise.log1p(-input), min=-100)
    loss = -(target * low + (1 - target) * high)
    return _reduced(loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None,  # noqa: A002
) -> Tensor:  # fmt: skip
    """The loss of logits, without overflow."""
    x = arguments.tensor(input, "binary_cross_entropy_with_logits")
    scale = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * x + scale * softplus(-x)
    return _reduced(loss if weight is None else loss * weight, reduction)


# ---------------------------------------------------------------- normalising, looking up
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05,  # noqa: A002
) -> Tensor:  # fmt: skip
    """Zero mean and unit variance over the last dims, then weight * x + bias."""
    x = arguments.tensor(input, "layer_norm")
    shape = tuple(normalized_shape)
    if tuple(x._data.shape[x.ndim - len(shape) :]) != shape:
        raise ArgumentRuntimeError(
            with_site(
                f"Given normalized_shape={list(shape)}, expected input with shape "
                f"[*, {', '.join(map(str, shape))}], but got input of size{list(x.shape)}"
            )
        )
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    centred = x - reduce.mean(x, dims, True)
    scale = elementwise.rsqrt(reduce.mean(elementwise.square(centred), dims, True) + eps)
    out = centred * scale
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Tensor:  # noqa: A002
    """The rows of weight at integer positions: (...) and (n, d) -> (..., d)."""
    from pullback.api.indexing import getitem

    index = arguments.tensor(input, "embedding")
    return getitem(arguments.tensor(weight, "embedding", "weight"), index)


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
    n = int(x._data.max()) + 1 if num_classes < 0 else num_classes
    if x._data.size and (x._data.min() < 0 or x._data.max() >= n):
        raise ArgumentRuntimeError(with_site("Class values must be smaller than num_classes."))
    return wrap((x._data[..., None] == np.arange(n)).astype(np.int64))


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:  # noqa: A002
    """x over its p-norm along `dim`."""
    size = reduce.norm(input, p, dim, True)
    return input / elementwise.clamp(size, min=eps)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: A002
    """Each element set to 0 with probability p, the others scaled by 1 / (1 - p)."""
    x = arguments.tensor(input, "dropout")
    if not 0 <= p <= 1:
        raise ArgumentValueError(
            with_site(f"dropout probability has to be between 0 and 1, but got {p}")
        )
    if not training or p == 0:
        return x
    from pullback.api.random import dropout_mask

    return x * dropout_mask(x, p)
