"""Activations (layer 4): `pullback.nn.functional`'s, as compositions of primitives.

Selections are by `where`, so that the gradient at a kink is the one-sided one that PyTorch takes.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pullback.api import arguments, elementwise
from pullback.api import nn as base
from pullback.api.inplace import in_place
from pullback.core.callsite import here, with_site
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentValueError
from pullback.ops import elementwise as elementwise_ops
from pullback.ops import nn

where = elementwise.where


# ---------------------------------------------------------------- softmax with a dim to guess
def _guessing(name: str, function: Any) -> Any:
    def guessing(
        input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None  # noqa: A002
    ) -> Tensor:
        x = arguments.tensor(input, name)
        if dim is None:
            site = here(1)
            warnings.warn_explicit(
                f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                "include dim=X as an argument.", UserWarning, site.file, site.line,
            )  # fmt: skip
            dim = 0 if x.ndim in (0, 1, 3) else 1
        return function(x, dim, dtype)

    guessing.__name__ = guessing.__qualname__ = name
    guessing.__doc__ = function.__doc__
    return guessing


def _softmin(input: Any, dim: Any, dtype: Any = None) -> Tensor:  # noqa: A002
    """exp(-x) over its sum along `dim`."""
    return base.softmax(-input, dim, dtype)


softmax = _guessing("softmax", base.softmax)
log_softmax = _guessing("log_softmax", base.log_softmax)
softmin = _guessing("softmin", _softmin)


# ---------------------------------------------------------------- pieces of lines
def _gated(name: str, inside: Tensor, x: Tensor, fixed: Any) -> Tensor:
    """x where `inside` holds, a constant elsewhere."""
    if not isinstance(fixed, Tensor):
        fixed = wrap(np.asarray(fixed).astype(x._data.dtype))
    return apply(elementwise_ops.gated, (inside, x, fixed), {}, f"{name}Backward0")


def _beyond(x: Tensor, size: float) -> Tensor:
    """Where |x| is larger, or NaN."""
    plain = x.detach()
    return elementwise.logical_not((plain >= -size) & (plain <= size))


def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False  # noqa: A002
) -> Tensor:
    """x kept between two bounds; at a bound the gradient is 0."""
    if inplace:
        return in_place(hardtanh, input, min_val, max_val)
    x = arguments.tensor(input, "hardtanh")
    if min_val > max_val:
        raise ArgumentValueError(
            with_site(f"min_val cannot be greater than max_val: got {min_val} and {max_val}")
        )
    if x._data.dtype.kind not in "fc":
        return elementwise.clamp(x, int(min_val), int(max_val))
    plain = x.detach()
    fixed = elementwise.clamp(plain, float(min_val), float(max_val))  # for NaN, too
    return _gated("Hardtanh", (plain > min_val) & (plain < max_val), x, fixed)


def relu6(input: Any, inplace: bool = False) -> Tensor:  # noqa: A002
    """x kept between 0 and 6."""
    if inplace:
        return in_place(relu6, input)
    return hardtanh(input, 0.0, 6.0)


def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:  # noqa: A002
    """(x + 3) / 6 kept between 0 and 1."""
    if inplace:
        return in_place(hardsigmoid, input)
    x = base.floating(input, "hardsigmoid", "hardsigmoid_cpu")
    fixed = elementwise.clamp(x.detach(), 0, 1)  # outside, and for NaN, a constant
    return where((x > -3) & (x < 3), (x + 3) / 6, fixed)


def hardswish(input: Any, inplace: bool = False) -> Tensor:  # noqa: A002
    """x hardsigmoid(x)."""
    if inplace:
        return in_place(hardswish, input)
    x = base.floating(input, "hardswish", "hardswish_cpu")
    inside = (x > -3) & (x < 3)
    curved = where(inside, x, 0.0)  # no inf in the part that is not chosen
    return where(inside, curved * (curved + 3) / 6, where(x <= -3, 0.0, x))


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:  # noqa: A002
    """x above the threshold, `value` elsewhere."""
    if inplace:
        return in_place(_threshold, input, threshold, value)
    x = arguments.tensor(input, "threshold")
    return _gated("Threshold", elementwise.logical_not(x.detach() <= threshold), x, value)


_threshold = threshold  # its argument has the same name


def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:  # noqa: A002
    """0 between -lambd and lambd, x elsewhere."""
    x = arguments.tensor(input, "hardshrink")
    return _gated("Hardshrink", _beyond(x, lambd), x, 0)


def softshrink(input: Any, lambd: float = 0.5) -> Tensor:  # noqa: A002
    """x moved towards 0 by lambd, 0 where it would pass it."""
    x = arguments.tensor(input, "softshrink")
    if lambd < 0:
        raise ArgumentRuntimeError(
            with_site(f"lambda must be greater or equal to 0, but found to be {lambd}.")
        )
    far = _beyond(x, lambd)
    step = where(far, elementwise.sign(x.detach()) * lambd, 0.0)
    return _gated("Softshrink", far, x, 0) - step


def prelu(input: Any, weight: Any) -> Tensor:  # noqa: A002
    """x, or weight * x below 0; weight is one number, or one for each channel (dim 1)."""
    x, w = arguments.tensor(input, "prelu"), arguments.tensor(weight, "prelu", "weight")
    if w.ndim > 1:
        raise ArgumentRuntimeError(
            with_site(
                "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                f"{w.ndim}"
            )
        )
    if w._data.size != 1:
        channels = x.shape[1] if x.ndim > 1 else 1
        if w.ndim != 1 or w._data.size != channels:
            raise ArgumentRuntimeError(
                with_site(
                    "Mismatch of parameter numbers and input channel size. Found parameter numbers "
                    f"= {w._data.size} and channel size = {channels}."
                )
            )
        w = w.reshape((1, -1) + (1,) * (x.ndim - 2))
    elif w.ndim:
        w = w.reshape(())
    return where(x > 0, x, w * where(x > 0, 0.0, x))  # no 0 * inf in the gradient of w


# ---------------------------------------------------------------- smooth ones
def softsign(input: Any) -> Tensor:  # noqa: A002
    """x / (1 + |x|)."""
    x = arguments.tensor(input, "softsign")
    return x / (elementwise.absolute(x) + 1)


def tanhshrink(input: Any) -> Tensor:  # noqa: A002
    """x - tanh(x)."""
    x = arguments.tensor(input, "tanhshrink")
    return x - elementwise.tanh(x)


def mish(input: Any, inplace: bool = False) -> Tensor:  # noqa: A002
    """x tanh(softplus(x))."""
    if inplace:
        return in_place(mish, input)
    x = base.floating(input, "mish", "mish_cpu")
    return x * elementwise.tanh(base.softplus(x, threshold=math.inf))


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:  # noqa: A002
    """x, or alpha (exp(x / alpha) - 1) below 0."""
    if inplace:
        return in_place(celu, input, alpha)
    x = base.floating(input, "celu", "elu_cpu")
    if not alpha:
        raise ArgumentRuntimeError(with_site("ZeroDivisionError: alpha cannot be 0 for CELU"))
    return apply(nn.elu, (x,), {"alpha": alpha, "scale": 1.0, "rate": 1 / alpha})


def selu(input: Any, inplace: bool = False) -> Tensor:  # noqa: A002
    """Scaled `elu` that keeps mean 0 and variance 1 (Klambauer et al. 2017)."""
    if inplace:
        return in_place(selu, input)
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    x = base.floating(input, "selu", "elu_cpu")
    return apply(nn.elu, (x,), {"alpha": alpha, "scale": scale, "rate": 1.0})


def glu(input: Any, dim: int = -1) -> Tensor:  # noqa: A002
    """a sigmoid(b), where a and b are the halves of x along `dim`."""
    from pullback.api.movement import split

    x = arguments.tensor(input, "glu")
    if not x.ndim:
        raise ArgumentRuntimeError(
            with_site("glu does not support scalars because halving size must be even")
        )
    a = arguments.dim(dim, x.ndim)
    n = x.shape[a]
    if n % 2:
        raise ArgumentRuntimeError(
            with_site(f"Halving dimension must be even, but dimension {a} is size {n}")
        )
    first, second = split(x, n // 2, a)
    return first * elementwise.sigmoid(second)
