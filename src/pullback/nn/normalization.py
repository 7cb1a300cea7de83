"""Layers that normalise (layer 6)."""

from __future__ import annotations

import warnings
from typing import Any

from pullback.api.creation import empty, ones, tensor, zeros
from pullback.core.callsite import here, with_site
from pullback.core.dtypes import int64
from pullback.errors import ArgumentValueError
from pullback.nn import functional as F  # noqa: N812
from pullback.nn import init
from pullback.nn.module import Module
from pullback.nn.parameter import Parameter


def _learnt(module: Module, name: str, shape: Any, wanted: bool, device: Any, dtype: Any) -> None:
    """A parameter of that name, or None in its place."""
    value = Parameter(empty(shape, device=device, dtype=dtype)) if wanted else None
    module.register_parameter(name, value)


def _start(module: Any) -> None:
    """weight 1 and bias 0, where they are."""
    if module.weight is not None:
        init.ones_(module.weight)
    if getattr(module, "bias", None) is not None:
        init.zeros_(module.bias)


class _LastDims(Module):
    """What layers over the last dims share."""

    normalized_shape: tuple[int, ...]
    eps: Any  # a number; None in RMSNorm: that of the dtype

    def __init__(self, normalized_shape: Any, eps: float | None, elementwise_affine: bool) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine

    def reset_parameters(self) -> None:
        """weight 1 and bias 0."""
        _start(self)


class LayerNorm(_LastDims):
    """Zero mean and unit variance over the last dims, then weight * x + bias."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-05, elementwise_affine: bool = True,
        bias: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(normalized_shape, eps, elementwise_affine)
        shape = self.normalized_shape
        _learnt(self, "weight", shape, elementwise_affine, device, dtype)
        _learnt(self, "bias", shape, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (..., *normalized_shape)."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """What was chosen."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_LastDims):
    """x over its root mean square over the last dims, times weight."""

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(normalized_shape, eps, elementwise_affine)
        _learnt(self, "weight", self.normalized_shape, elementwise_affine, device, dtype)
        self.reset_parameters()

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (..., *normalized_shape)."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """What was chosen."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Zero mean and unit variance in each group of channels of each example."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-05, affine: bool = True,
        device: Any = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentValueError(
                with_site(
                    f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
                )
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        _learnt(self, "weight", num_channels, affine, device, dtype)
        _learnt(self, "bias", num_channels, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """weight 1 and bias 0."""
        _start(self)

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (n, num_channels, ...)."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """What was chosen."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


# ---------------------------------------------------------------- running statistics
class _Running(Module):
    """What layers with running means and variances share."""

    _version = 2
    dims: tuple[int, ...] = ()  # how many dims an input may have

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool,
        track_running_stats: bool, device: Any, dtype: Any, bias: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        _learnt(self, "weight", num_features, affine, device, dtype)
        _learnt(self, "bias", num_features, affine and bias, device, dtype)
        kept: Any = (None, None, None)
        if track_running_stats:
            kept = (
                zeros(num_features, device=device, dtype=dtype),
                ones(num_features, device=device, dtype=dtype),
                tensor(0, dtype=int64),
            )
        for name, value in zip(_STATISTICS, kept, strict=True):
            self.register_buffer(name, value)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Means 0, variances 1, and no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """weight 1 and bias 0, and statistics of no batch."""
        self.reset_running_stats()
        _start(self)

    def _check_input_dim(self, input: Any) -> None:  # noqa: A002
        if input.ndim not in self.dims:
            words = " or ".join(f"{n}D" for n in self.dims)
            raise ArgumentValueError(
                with_site(f"expected {words} input (got {input.ndim}D input)")
            )

    def extra_repr(self) -> str:
        """What was chosen."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats:
            # files of version 1 did not count batches
            state_dict.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class _BatchNorm(_Running):
    """Zero mean and unit variance in each channel, over the batch."""

    def __init__(
        self, num_features: int, eps: float = 1e-05, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (n, num_features, ...)."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if running else None,
            self.running_var if running else None,
            self.weight,
            self.bias,
            self.training or (self.running_mean is None and self.running_var is None),
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Zero mean and unit variance in each channel of (n, c) or (n, c, l), over the batch.

    In training the statistics are the batch's, and running ones follow them; `eval()` uses these.
    """

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for (n, c, h, w)."""

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for (n, c, d, h, w)."""

    dims = (5,)


class _InstanceNorm(_Running):
    """Zero mean and unit variance in each channel of each example."""

    def __init__(
        self, num_features: int, eps: float = 1e-05, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (n, num_features, ...), or without the first dim."""
        self._check_input_dim(input)
        single = input.ndim == self.dims[0]
        axis = 0 if single else 1
        if input.shape[axis] != self.num_features:
            self._wrong_size(axis, input.shape[axis])
        x = input.unsqueeze(0) if single else input
        out = F.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip
        return out.squeeze(0) if single else out

    def _wrong_size(self, axis: int, given: int) -> None:
        if self.affine:
            raise ArgumentValueError(
                with_site(
                    f"expected input's size at dim={axis} to match num_features "
                    f"({self.num_features}), but got: {given}."
                )
            )
        site = here(1)
        warnings.warn_explicit(
            f"input's size at dim={axis} does not match num_features. You can silence this warning "
            "by not passing in num_features, which is not used because affine=False", UserWarning,
            site.file, site.line,
        )  # fmt: skip


class InstanceNorm1d(_InstanceNorm):
    """Zero mean and unit variance in each channel of (n, c, l) or (c, l), for each example."""

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for (n, c, h, w) or (c, h, w)."""

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for (n, c, d, h, w) or (c, d, h, w)."""

    dims = (4, 5)
