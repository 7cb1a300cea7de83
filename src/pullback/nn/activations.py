"""Activations as modules (layer 6)."""

from __future__ import annotations

import warnings
from typing import Any

from pullback.api.creation import empty
from pullback.core.callsite import here, with_site
from pullback.errors import ArgumentValueError
from pullback.nn import functional as F  # noqa: N812
from pullback.nn import init as first_values
from pullback.nn.module import Module
from pullback.nn.parameter import Parameter


class ReLU(Module):
    """x, or 0 below 0."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        return "inplace=True" if self.inplace else ""


class Hardsigmoid(Module):
    """(x + 3) / 6 kept between 0 and 1."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """x hardsigmoid(x)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.hardswish(input, self.inplace)


class SiLU(Module):
    """x sigmoid(x)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.silu(input, self.inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        return "inplace=True" if self.inplace else ""


class Mish(Module):
    """x tanh(softplus(x))."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.mish(input, self.inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        return "inplace=True" if self.inplace else ""


class SELU(Module):
    """Scaled `ELU` that keeps mean 0 and variance 1."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.selu(input, self.inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        return "inplace=True" if self.inplace else ""


class ELU(Module):
    """x, or alpha (exp(x) - 1) below 0."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(Module):
    """x, or alpha (exp(x / alpha) - 1) below 0."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class LeakyReLU(Module):
    """x, or negative_slope x below 0."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """x above the threshold, `value` elsewhere."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        inplace = ", inplace=True" if self.inplace else ""
        return f"threshold={self.threshold}, value={self.value}{inplace}"


class Hardtanh(Module):
    """x kept between two bounds."""

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
        min_value: float | None = None, max_value: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.min_val = _renamed("min_value", "min_val", min_value, min_val)
        self.max_val = _renamed("max_value", "max_val", max_value, max_val)
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(
                with_site(
                    f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
                )
            )

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        inplace = ", inplace=True" if self.inplace else ""
        return f"min_val={self.min_val}, max_val={self.max_val}{inplace}"


def _renamed(old: str, new: str, given: float | None, value: float) -> float:
    if given is None:
        return value
    site = here(2)
    warnings.warn_explicit(
        f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning,
        site.file, site.line,
    )  # fmt: skip
    return given


class ReLU6(Hardtanh):
    """x kept between 0 and 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """What was chosen."""
        return "inplace=True" if self.inplace else ""


class PReLU(Module):
    """x, or weight x below 0, where weight is learnt: one number, or one for each channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Puts the first value back."""
        first_values.constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (n, c, ...)."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"num_parameters={self.num_parameters}"


class GELU(Module):
    """x times the normal distribution function at x."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + exp(beta x)) / beta; linear above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardshrink(Module):
    """0 between -lambd and lambd, x elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"{self.lambd}"


class Softshrink(Module):
    """x moved towards 0 by lambd, 0 where it would pass it."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"{self.lambd}"


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.logsigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.tanh(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.tanhshrink(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.softsign(input)


class GLU(Module):
    """a sigmoid(b), where a and b are the halves of x along `dim`."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"dim={self.dim}"


class Softmax(Module):
    """exp(x) over its sum along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"dim={self.dim}"


class Softmin(Module):
    """exp(-x) over its sum along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.softmin(input, self.dim)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of `Softmax`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """What was chosen."""
        return f"dim={self.dim}"


class Softmax2d(Module):
    """`Softmax` over the channels of (n, c, h, w) or (c, h, w)."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (n, c, h, w) or (c, h, w)."""
        if input.ndim not in (3, 4):
            raise ArgumentValueError(
                with_site(
                    f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead"
                )
            )
        return F.softmax(input, -3)
