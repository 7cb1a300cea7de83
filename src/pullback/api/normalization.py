"""Normalising over dims, channels and groups (layer 4): `pullback.nn.functional`'s."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments, elementwise, reduce
from pullback.api.modes import no_grad
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError


def normalize(
    input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None  # noqa: A002
) -> Tensor:
    """x over its p-norm along `dim`, which is kept above eps."""
    x = arguments.tensor(input, "normalize")
    size = reduce.norm(x, p, dim, True)
    return elementwise.into(out, x / elementwise.clamp(size, min=eps))


def _standardised(x: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    centred = x - reduce.mean(x, dims, True)
    return centred * elementwise.rsqrt(reduce.mean(elementwise.square(centred), dims, True) + eps)


def _affine(x: Tensor, weight: Any, bias: Any) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _last_dims(x: Tensor, normalized_shape: Any, function: str) -> tuple[int, ...]:
    """The dims that `normalized_shape` names, from the end."""
    if not isinstance(normalized_shape, (tuple, list)):
        raise ArgumentTypeError(
            with_site(
                f"{function}(): argument 'normalized_shape' (position 2) must be tuple of ints, "
                f"not {arguments.kind(normalized_shape)}"
            )
        )
    shape = arguments.size((normalized_shape,), "normalized_shape", function)
    if not shape:
        raise ArgumentRuntimeError(
            with_site(
                "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
                "one element, but got normalized_shape = []"
            )
        )
    if tuple(x._data.shape[max(x.ndim - len(shape), 0) :]) != shape:
        raise ArgumentRuntimeError(
            with_site(
                f"Given normalized_shape={list(shape)}, expected input with shape "
                f"[*, {', '.join(map(str, shape))}], but got input of size{list(x.shape)}"
            )
        )
    return tuple(range(x.ndim - len(shape), x.ndim))


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05,  # noqa: A002
) -> Tensor:  # fmt: skip
    """Zero mean and unit variance over the last dims, then weight * x + bias."""
    x = arguments.tensor(input, "layer_norm")
    dims = _last_dims(x, normalized_shape, "layer_norm")
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and tuple(value.shape) != tuple(normalized_shape):
            raise ArgumentRuntimeError(
                with_site(
                    f"Expected {name} to be of same shape as normalized_shape, but got {name} of "
                    f"shape {list(value.shape)} and normalized_shape = {list(normalized_shape)}"
                )
            )
    return _affine(_standardised(x, dims, eps), weight, bias)


def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None,  # noqa: A002
) -> Tensor:  # fmt: skip
    """x over its root mean square over the last dims, times weight; eps is the dtype's own."""
    x = arguments.tensor(input, "rms_norm")
    dims = _last_dims(x, normalized_shape, "rms_norm")
    small = float(np.finfo(x._data.dtype).eps) if eps is None else eps
    scale = elementwise.rsqrt(reduce.mean(elementwise.square(x), dims, True) + small)
    return _affine(x * scale, weight, None)


def _per_channel(value: Any, ndim: int) -> Any:
    """(c,) as (c, 1, ..., 1): beside the channels of (n, c, ...)."""
    return None if value is None else value.reshape((-1,) + (1,) * (ndim - 2))


def _check_channels(x: Tensor, **values: Any) -> None:
    """One number for each channel in whatever is given."""
    for name, value in values.items():
        if value is not None and value._data.size != x.shape[1]:
            raise ArgumentRuntimeError(
                with_site(
                    f"{name} should contain {x.shape[1]} elements not {value._data.size}", 3
                )
            )


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,  # noqa: A002
    training: bool = False, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """(n, c, ...) with zero mean and unit variance in each channel, then weight * x + bias.

    In training the statistics are those of the batch, and the running ones move towards them by
    `momentum` (the variance without bias); else the running ones are used.
    Raises ValueError when training has one value per channel.
    """
    x = arguments.tensor(input, "batch_norm")
    if x.ndim < 2:
        raise ArgumentRuntimeError(
            with_site(f"batch_norm needs (n, c, ...), got shape {list(x.shape)}")
        )
    _check_channels(x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    dims = (0, *range(2, x.ndim))
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentRuntimeError(
                with_site(
                    f"running_{'mean' if running_mean is None else 'var'} must be defined in "
                    "evaluation mode"
                )
            )
        scale = elementwise.rsqrt(_per_channel(running_var, x.ndim) + eps)
        out = (x - _per_channel(running_mean, x.ndim)) * scale
        return _affine(out, _per_channel(weight, x.ndim), _per_channel(bias, x.ndim))
    number = math.prod(x.shape[d] for d in dims)
    if number == 1:
        raise ArgumentValueError(
            with_site(
                "Expected more than 1 value per channel when training, got input size "
                f"{x.shape}"
            )
        )
    with no_grad():
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(reduce.mean(x, dims) * momentum)
        if running_var is not None:
            running_var.mul_(1 - momentum).add_(reduce.var(x, dims) * momentum)
    out = _standardised(x, dims, eps)
    return _affine(out, _per_channel(weight, x.ndim), _per_channel(bias, x.ndim))


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05  # noqa: A002
) -> Tensor:
    """(n, c, ...) with zero mean and unit variance in each group of channels of each example."""
    x = arguments.tensor(input, "group_norm")
    if x.ndim < 2:
        raise ArgumentRuntimeError(
            with_site(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
        )
    channels = x.shape[1]
    if num_groups <= 0 or channels % num_groups:
        raise ArgumentRuntimeError(
            with_site(
                "Expected number of channels in input to be divisible by num_groups, but got input "
                f"of shape {list(x.shape)} and num_groups={num_groups}"
            )
        )
    groups = x.reshape(x.shape[0], num_groups, -1)
    out = _standardised(groups, (2,), eps).reshape(tuple(x.shape))
    return _affine(out, _per_channel(weight, x.ndim), _per_channel(bias, x.ndim))


def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,  # noqa: A002
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """(n, c, ...) with zero mean and unit variance in each channel of each example."""
    x = arguments.tensor(input, "instance_norm")
    if use_input_stats and math.prod(x.shape[2:]) == 1:
        raise ArgumentValueError(
            with_site(
                f"Expected more than 1 spatial element when training, got input size {x.shape}"
            )
        )
    if not use_input_stats or running_mean is not None or running_var is not None:
        return _with_running(x, running_mean, running_var, weight, bias, use_input_stats,
                             momentum, eps)  # fmt: skip
    out = _standardised(x, tuple(range(2, x.ndim)), eps)
    return _affine(out, _per_channel(weight, x.ndim), _per_channel(bias, x.ndim))


def _with_running(
    x: Tensor, running_mean: Any, running_var: Any, weight: Any, bias: Any, use_input_stats: bool,
    momentum: float, eps: float,
) -> Tensor:  # fmt: skip
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    dims = tuple(range(2, x.ndim))
    with no_grad():  # means over the examples of each one's statistics
        if running_mean is not None:
            means = reduce.mean(reduce.mean(x, dims), 0)
            running_mean.mul_(1 - momentum).add_(means * momentum)
        if running_var is not None:
            spreads = reduce.mean(reduce.var(x, dims), 0)
            running_var.mul_(1 - momentum).add_(spreads * momentum)
    return instance_norm(x, None, None, weight, bias, True, momentum, eps)
