"""`pullback.nn.init`: first values of parameters, PyTorch's own for each seed (layer 6)."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pullback.api.creation import empty_like
from pullback.api.modes import no_grad
from pullback.core.callsite import here, with_site
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentValueError

LINEAR = (
    "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d sigmoid"
).split()


def _filled(tensor: Any, fill: Any) -> Any:
    """`fill()` writes into the tensor, which may require grad: it is not recorded."""
    with no_grad():
        fill()
    return tensor


def _warn(words: str) -> None:
    site = here(2)
    warnings.warn_explicit(words, UserWarning, site.file, site.line)


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """By how much a nonlinearity shrinks what it is given: the factor that makes up for it.

    param: the negative slope of "leaky_relu".
    """
    if nonlinearity in LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ArgumentValueError(with_site(f"negative_slope {param} not a valid number"))
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ArgumentValueError(with_site(f"Unsupported nonlinearity {nonlinearity}"))


# ---------------------------------------------------------------- plain fillings
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Evenly spread over [a, b)."""
    _check_range(a, b)
    return _filled(tensor, lambda: tensor.uniform_(a, b, generator=generator))


def _check_range(a: float, b: float) -> None:
    if a > b:
        raise ArgumentRuntimeError(
            with_site(
                f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}", 3
            )
        )


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Normally distributed."""
    if std < 0:
        raise ArgumentRuntimeError(
            with_site(f"normal expects std >= 0.0, but found std {std}")
        )
    return _filled(tensor, lambda: tensor.normal_(mean, std, generator=generator))


def constant_(tensor: Any, val: float) -> Any:
    """One number everywhere."""
    return _filled(tensor, lambda: tensor.fill_(val))


def ones_(tensor: Any) -> Any:
    """Ones."""
    return _filled(tensor, lambda: tensor.fill_(1.0))


def zeros_(tensor: Any) -> Any:
    """Zeros."""
    return _filled(tensor, lambda: tensor.zero_())


def eye_(tensor: Any) -> Any:
    """(n, m): ones on the diagonal, zeros elsewhere."""
    _two_dims(tensor)
    return _filled(
        tensor, lambda: tensor.copy_(wrap(np.eye(*tensor.shape, dtype=tensor._data.dtype)))
    )


def _two_dims(tensor: Any) -> None:
    if tensor.ndim != 2:
        raise ArgumentValueError(with_site("Only tensors with 2 dimensions are supported", 3))


# ---------------------------------------------------------------- by the number of connections
def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has, by (out, in, ...)."""
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ArgumentValueError(
            with_site(
                "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions",
                3,
            )
        )
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Evenly spread, with variance gain^2 2 / (fan in + fan out) (Glorot and Bengio 2010)."""
    std = gain * math.sqrt(2.0 / float(sum(fans(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal, with variance gain^2 2 / (fan in + fan out) (Glorot and Bengio 2010)."""
    std = gain * math.sqrt(2.0 / float(sum(fans(tensor))))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        _warn("Initializing zero-element tensors is a no-op")
        return None
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentValueError(
            with_site(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']", 3)
        )
    fan = fans(tensor)[0 if mode == "fan_in" else 1]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:  # fmt: skip
    """Evenly spread, with variance gain^2 / fan (He et al. 2015); `a` is the negative slope."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:  # fmt: skip
    """Normal, with variance gain^2 / fan (He et al. 2015); `a` is the negative slope."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


# ---------------------------------------------------------------- by rejection, products, masks
ENOUGH = 0.3  # the share of the normal law in [a, b] above which its own draws are used


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
    generator: Any = None,
) -> Any:  # fmt: skip
    """Normally distributed, without what lies outside [a, b]."""
    _check_range(a, b)
    if mean < a - 2 * std or mean > b + 2 * std:
        _warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect."
        )

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    with no_grad():
        if below(b) - below(a) > ENOUGH:
            _reject_normal(tensor, mean, std, a, b, generator)
        else:
            _reject_uniform(tensor, mean, std, a, b, generator)
    return tensor


def _reject_normal(
    tensor: Any, mean: float, std: float, a: float, b: float, generator: Any
) -> None:
    """All drawn anew while some lie outside; those that lay inside stay."""
    tensor.normal_(mean, std, generator=generator)
    fresh = empty_like(tensor)
    while True:
        outside = (tensor < a) | (tensor > b)
        if not bool(outside.any()):
            return
        fresh.normal_(mean, std, generator=generator)
        tensor.masked_scatter_(outside, fresh[outside])


def _reject_uniform(
    tensor: Any, mean: float, std: float, a: float, b: float, generator: Any
) -> None:
    """Draws spread over [a, b], each taken with the probability that its density asks for."""
    highest = min(max(mean, a), b)
    drawn, chance = empty_like(tensor), empty_like(tensor)
    missing = empty_like(tensor).fill_(1) > 0
    while bool(missing.any()):
        drawn.uniform_(a, b, generator=generator)
        chance.uniform_(0, 1, generator=generator)
        exponent = -0.5 * ((drawn - mean) / std) ** 2 + 0.5 * ((highest - mean) / std) ** 2
        taken = (chance <= exponent.exp()) & missing
        tensor.masked_scatter_(taken, drawn[taken])
        missing = missing & ~taken


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """(n, m, ...): rows or columns at right angles, of length gain (Saxe et al. 2013)."""
    if tensor.ndim < 2:
        raise ArgumentValueError(
            with_site("Only tensors with 2 or more dimensions are supported")
        )
    if not tensor._data.size:
        return tensor
    rows = tensor.shape[0]
    with no_grad():
        flat = empty_like(tensor.detach().reshape(rows, -1)).normal_(0, 1, generator=generator)
        matrix = flat._data if rows >= flat.shape[1] else flat._data.T
        q, r = np.linalg.qr(matrix)
        q = q * np.sign(np.diagonal(r))
        found = q if rows >= flat.shape[1] else q.T
        tensor.copy_(wrap(np.ascontiguousarray(found).reshape(tensor.shape))).mul_(gain)
    return tensor


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """(n, m): normal, with a share of zeros in each column (Martens 2010)."""
    from pullback.api.random import randperm

    _two_dims(tensor)
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for j in range(columns):
            tensor[randperm(rows)[:zeros], j] = 0
    return tensor
