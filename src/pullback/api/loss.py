"""Losses (layer 4): `pullback.nn.functional`'s, as compositions of primitives."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pullback.api import arguments, elementwise, reduce
from pullback.api.nn import softplus
from pullback.core.callsite import here, with_site
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentValueError, DimensionError
from pullback.ops import indexing, nn, special


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return reduce.mean(loss)
    if reduction == "sum":
        return reduce.sum(loss)
    if reduction == "none":
        return loss
    raise ArgumentValueError(with_site(f"{reduction} is not a valid value for reduction"))


def _mode(size_average: Any, reduce_: Any, reduction: str) -> str:
    """`reduction`, or what PyTorch's older flags say in its place."""
    if size_average is None and reduce_ is None:
        return reduction
    if reduce_ is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _pair(function: str, input: Any, target: Any) -> tuple[Tensor, Tensor]:  # noqa: A002
    """Prediction and target; a warning where their shapes broadcast, as in PyTorch."""
    x, t = arguments.tensor(input, function), arguments.tensor(target, function, "target")
    if x._data.shape != t._data.shape:
        site = here(2)
        warnings.warn_explicit(
            f"Using a target size ({t.shape}) that is different to the input size ({x.shape}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they "
            "have the same size.",
            UserWarning, site.file, site.line,
        )  # fmt: skip
    return x, t


def mse_loss(
    input: Any, target: Any, size_average: Any = None, reduce_: Any = None,  # noqa: A002
    reduction: str = "mean", weight: Any = None,
) -> Tensor:  # fmt: skip
    """(input - target)^2, its mean, or its sum."""
    x, t = _pair("mse_loss", input, target)
    loss = elementwise.square(x - t)
    if weight is None:
        return _reduced(loss, _mode(size_average, reduce_, reduction))
    return _weighted(loss, weight, _mode(size_average, reduce_, reduction))


def l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce_: Any = None,  # noqa: A002
    reduction: str = "mean", weight: Any = None,
) -> Tensor:  # fmt: skip
    """|input - target|, its mean, or its sum."""
    x, t = _pair("l1_loss", input, target)
    loss = elementwise.absolute(x - t)
    if weight is None:
        return _reduced(loss, _mode(size_average, reduce_, reduction))
    return _weighted(loss, weight, _mode(size_average, reduce_, reduction))


def _weighted(loss: Tensor, weight: Any, reduction: str) -> Tensor:
    """Elements times weights; their mean is over the sum of weights."""
    total = loss * weight
    if reduction == "mean":
        return reduce.sum(total) / reduce.sum(weight)
    return _reduced(total, reduction)


def smooth_l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce_: Any = None,  # noqa: A002
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """d^2 / (2 beta) for d = |input - target| below beta, d - beta / 2 above."""
    x, t = _pair("smooth_l1_loss", input, target)
    if beta < 0:
        raise ArgumentRuntimeError(
            with_site(f"smooth_l1_loss does not support negative values for beta: got {beta}")
        )
    if beta:
        loss = apply(nn.huber, (x - t,), {"delta": beta}) / beta
    else:
        loss = elementwise.absolute(x - t)
    return _reduced(loss, _mode(size_average, reduce_, reduction))


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0,  # noqa: A002
    weight: Any = None,
) -> Tensor:  # fmt: skip
    """d^2 / 2 for d = |input - target| up to delta, delta (d - delta / 2) above."""
    x, t = _pair("huber_loss", input, target)
    if delta <= 0:
        raise ArgumentRuntimeError(
            with_site(
                f"huber_loss does not support non-positive values for delta: got {delta}"
            )
        )
    loss = apply(nn.huber, (x - t,), {"delta": delta})
    return _reduced(loss, reduction) if weight is None else _weighted(loss, weight, reduction)


def kl_div(
    input: Any, target: Any, size_average: Any = None, reduce_: Any = None,  # noqa: A002
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """target (log target - input), for log-probabilities `input`; "batchmean" divides by the batch.

    `log_target`: the target is given as logarithms.
    """
    x, t = arguments.tensor(input, "kl_div"), arguments.tensor(target, "kl_div", "target")
    if log_target:
        loss = elementwise.exp(t) * (t - x)
    else:  # a probability of 0 has no part
        loss = apply(special.xlogy, (t, t), {}) - t * x
    mode = _mode(size_average, reduce_, reduction)
    if mode == "mean":
        site = here(1)
        warnings.warn_explicit(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides only by the batch size, and aligns with the KL math definition.",
            UserWarning, site.file, site.line,
        )  # fmt: skip
    if mode == "batchmean":
        return reduce.sum(loss) / (x.shape[0] if x.ndim else 1)
    return _reduced(loss, mode)


def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False,  # noqa: A002
    size_average: Any = None, eps: float = 1e-8, reduce_: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-likelihood of counts under a Poisson rate (or its logarithm) `input`.

    `full` adds Stirling's approximation of log(target!).
    """
    x = arguments.tensor(input, "poisson_nll_loss")
    if log_input:
        loss = elementwise.exp(x) - target * x
    else:
        loss = x - target * elementwise.log(x + eps)
    if full:
        stirling = (
            target * elementwise.log(target) - target
            + elementwise.log(target * (2 * math.pi)) * 0.5
        )
        loss = loss + elementwise.masked_fill(stirling, target <= 1, 0)
    return _reduced(loss, _mode(size_average, reduce_, reduction))


def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,  # noqa: A002
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-likelihood of `target` under normal laws, whose variance is kept above eps."""
    x = arguments.tensor(input, "gaussian_nll_loss")
    spread = var if isinstance(var, Tensor) else var * wrap(np.ones(x._data.shape, x._data.dtype))
    if type(spread._data) is np.ndarray and bool((spread._data < 0).any()):
        raise ArgumentValueError(with_site("var has negative entry/entries"))
    if spread.shape != x.shape:
        if tuple(x.shape[:-1]) == tuple(spread.shape):
            spread = spread.unsqueeze(-1)
        elif spread.ndim != x.ndim or spread.shape[-1] != 1:
            raise ArgumentValueError(with_site("var is of incorrect size"))
    # clamped in the value, untouched in the gradient: as PyTorch does
    spread = spread + (elementwise.clamp(spread.detach(), min=eps) - spread.detach())
    loss = (elementwise.log(spread) + elementwise.square(x - target) / spread) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


# ---------------------------------------------------------------- margins and angles
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between x1 and x2 along `dim`; norms are kept above eps."""
    a = arguments.tensor(x1, "cosine_similarity", "x1")
    b = arguments.tensor(x2, "cosine_similarity", "x2")
    first, second = (
        v / elementwise.clamp(reduce.norm(v, 2, dim, True), min=eps)
        for v in _same_shape(a, b)
    )
    return reduce.sum(first * second, dim)


def _same_shape(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    from pullback.api.movement import broadcast_tensors

    return broadcast_tensors(a, b)


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps over the last dim."""
    a = arguments.tensor(x1, "pairwise_distance", "x1")
    b = arguments.tensor(x2, "pairwise_distance", "x2")
    return reduce.norm(a - b + eps, p, -1, keepdim)


def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None,
    reduce_: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """1 - cos for pairs of target 1, max(0, cos - margin) for those of -1."""
    a = arguments.tensor(input1, "cosine_embedding_loss", "input1")
    t = arguments.tensor(target, "cosine_embedding_loss", "target")
    epsilon = 1e-12
    product = reduce.sum(a * input2, -1)
    sizes = (reduce.sum(a * a, -1) + epsilon) * (reduce.sum(input2 * input2, -1) + epsilon)
    cosine = product / elementwise.sqrt(sizes)
    apart = elementwise.clamp(cosine - margin, min=0)
    loss = elementwise.where(t == 1, 1 - cosine, elementwise.where(t == -1, apart, 0.0))
    return _reduced(loss, _mode(size_average, reduce_, reduction))


def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: Any = None,  # noqa: A002
    reduce_: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """input where the target is 1, max(0, margin - input) where it is -1."""
    x = arguments.tensor(input, "hinge_embedding_loss")
    apart = elementwise.clamp(margin - x, min=0)
    loss = elementwise.where(target != 1, apart, 0.0) + elementwise.where(target != -1, x, 0.0)
    return _reduced(loss, _mode(size_average, reduce_, reduction))


def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None,
    reduce_: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, -target (input1 - input2) + margin)."""
    a = arguments.tensor(input1, "margin_ranking_loss", "input1")
    loss = elementwise.clamp(-target * (a - input2) + margin, min=0)
    return _reduced(loss, _mode(size_average, reduce_, reduction))


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: Any = None, reduce_: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """max(0, distance to the positive - distance to the negative + margin)."""
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = elementwise.minimum(far, pairwise_distance(positive, negative, p, eps))
    loss = elementwise.clamp(near - far + margin, min=0)
    return _reduced(loss, _mode(size_average, reduce_, reduction))


def soft_margin_loss(
    input: Any, target: Any, size_average: Any = None, reduce_: Any = None,  # noqa: A002
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """log(1 + exp(-target input))."""
    x = arguments.tensor(input, "soft_margin_loss")
    # without overflow, unlike log1p(exp(.))
    loss = softplus(-target * x, threshold=math.inf)
    return _reduced(loss, _mode(size_average, reduce_, reduction))


# ---------------------------------------------------------------- classes
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
        reduction = _mode(size_average, reduce_, reduction)
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
    """The loss of logits (n, c, ...) against classes (n, ...) or probabilities (n, c, ...).

    weight: (c,) - of each class.  label_smoothing: in [0, 1] - how much of the target is spread
    evenly over the classes.  The mean is over the weights of the classes that are not ignored.
    """
    x = arguments.tensor(input, "cross_entropy")
    t = arguments.tensor(target, "cross_entropy", "target")
    mode = _mode(size_average, reduce_, reduction)
    if not 0 <= label_smoothing <= 1:
        raise ArgumentRuntimeError(
            with_site(
                f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
            )
        )
    axis = _class_axis(x)
    logp = apply(nn.log_softmax, (x,), {"axis": axis})
    if weight is None:
        scales = logp
    else:
        shape = [1] * x.ndim
        shape[axis] = -1
        scales = logp * weight.reshape(shape)
    if t._data.dtype.kind == "f":
        return _soft_targets(scales, t, axis, mode, label_smoothing)
    hard = nll_loss(logp, t, weight, None, ignore_index, None, mode)
    if not label_smoothing:
        return hard
    counted = t != ignore_index
    smooth = elementwise.where(counted, -reduce.sum(scales, axis), 0.0)
    if mode == "mean":
        if weight is None:
            number = reduce.sum(counted)
        else:
            number = reduce.sum(weight[elementwise.where(counted, t, 0)] * counted)
        smooth = reduce.sum(smooth) / number
    else:
        smooth = _reduced(smooth, mode)
    return hard * (1 - label_smoothing) + smooth * (label_smoothing / x._data.shape[axis])


def _soft_targets(
    scaled: Tensor, target: Tensor, axis: int, reduction: str, smoothing: float
) -> Tensor:
    """Against probabilities; the mean is over the examples."""
    if scaled.shape != target.shape:
        raise ArgumentRuntimeError(
            with_site(
                f"Expected floating point type for target with class probabilities to have the "
                f"shape of the input, {list(scaled.shape)}, got {list(target.shape)}"
            )
        )
    classes = scaled._data.shape[axis]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    loss = -reduce.sum(scaled * target, axis)
    if reduction == "mean":
        return reduce.sum(loss) / (target._data.size // classes)
    return _reduced(loss, reduction)


def _same_size(x: Tensor, t: Tensor) -> None:
    if x._data.shape != t._data.shape:
        raise ArgumentValueError(
            with_site(
                f"Using a target size ({t.shape}) that is different to the input size ({x.shape}) "
                "is deprecated. Please ensure they have the same size."
            )
        )


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None,  # noqa: A002
    reduce_: Any = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """-(target log p + (1 - target) log(1 - p)); logarithms are kept above -100.

    Raises ValueError for a target of another size, RuntimeError for p outside [0, 1].
    """
    x = arguments.tensor(input, "binary_cross_entropy")
    t = arguments.tensor(target, "binary_cross_entropy", "target")
    _same_size(x, t)
    if type(x._data) is np.ndarray and not ((x._data >= 0) & (x._data <= 1)).all():
        raise ArgumentRuntimeError(
            with_site("all elements of input should be between 0 and 1")
        )
    loss = apply(nn.bce, (x, t), {})
    loss = loss if weight is None else loss * weight
    return _reduced(loss, _mode(size_average, reduce_, reduction))


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: Any = None,  # noqa: A002
    reduce_: Any = None, reduction: str = "mean", pos_weight: Any = None,
) -> Tensor:  # fmt: skip
    """The loss of logits, without overflow; `pos_weight` multiplies the positive part."""
    x = arguments.tensor(input, "binary_cross_entropy_with_logits")
    t = arguments.tensor(target, "binary_cross_entropy_with_logits", "target")
    if x._data.shape != t._data.shape:
        raise ArgumentValueError(
            with_site(f"Target size ({t.shape}) must be the same as input size ({x.shape})")
        )
    scale = 1 if pos_weight is None else (pos_weight - 1) * t + 1
    loss = (1 - t) * x + scale * softplus(-x, threshold=math.inf)
    loss = loss if weight is None else loss * weight
    return _reduced(loss, _mode(size_average, reduce_, reduction))
