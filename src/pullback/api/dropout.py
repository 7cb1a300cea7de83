"""Dropping whole channels, and dropping that keeps mean and variance (layer 4)."""

from __future__ import annotations

import warnings
from typing import Any

from pullback.api import arguments
from pullback.api.inplace import in_place
from pullback.api.random import bernoulli
from pullback.core.callsite import here, with_site
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, ArgumentValueError


def checked(p: Any) -> Any:
    """A probability; ValueError for what is none."""
    if p < 0.0 or p > 1.0:
        raise ArgumentValueError(
            with_site(f"dropout probability has to be between 0 and 1, but got {p}", 3)
        )
    return p


def _kept(x: Tensor, p: float, features: bool) -> Tensor:
    """1 with probability 1 - p, else 0: for each element, or for each channel (n, c, 1, ...)."""
    if not features:
        return bernoulli(x.detach(), 1 - p)
    if x.ndim < 2:
        raise ArgumentRuntimeError(
            with_site("Feature dropout requires at least 2 dimensions in the input", 3)
        )
    few = (slice(None), slice(None), *(slice(0, 1),) * (x.ndim - 2))
    return bernoulli(x.detach()[few], 1 - p)


def _channels(x: Tensor, p: float, training: bool) -> Tensor:
    if not training or p == 0 or not x._data.size:
        return x
    if p == 1:
        return x * 0.0
    return x * (_kept(x, p, True) / (1 - p))


def dropout1d(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False  # noqa: A002
) -> Tensor:
    """Each channel of (n, c, l) or (c, l) set to 0 with probability p, else times 1 / (1 - p)."""
    checked(p)
    x = arguments.tensor(input, "dropout1d")
    if inplace:
        return in_place(dropout1d, x, p, training)
    if x.ndim not in (2, 3):
        raise ArgumentRuntimeError(
            with_site(
                f"dropout1d: Expected 2D or 3D input, but received a {x.ndim}D input. Note that "
                "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial "
                "dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D "
                "inputs)."
            )
        )
    if x.ndim == 2:
        return _channels(x.unsqueeze(0), p, training).squeeze(0)
    return _channels(x, p, training)


def _warn(words: str) -> None:
    site = here(3)
    warnings.warn_explicit(words, UserWarning, site.file, site.line)


def _wrong_ndim(function: str, ndim: int, spatial: int) -> None:
    _warn(
        f"{function}: Received a {ndim}-D input to {function}, which is deprecated and will result "
        "in an error in a future release. To retain the behavior and silence this warning, please "
        f"use dropout instead. Note that {function} exists to provide channel-wise dropout on "
        f"inputs with {spatial} spatial dimensions, a channel dimension, and an optional batch "
        f"dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs)."
    )


def dropout2d(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False  # noqa: A002
) -> Tensor:
    """Each channel of (n, c, h, w) set to 0 with probability p, else times 1 / (1 - p)."""
    checked(p)
    x = arguments.tensor(input, "dropout2d")
    if inplace:
        return in_place(dropout2d, x, p, training)
    if x.ndim not in (3, 4):
        _wrong_ndim("dropout2d", x.ndim, 2)
    if x.ndim == 3:
        _warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead."
        )
    return _channels(x, p, training)


def dropout3d(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False  # noqa: A002
) -> Tensor:
    """Each channel of (n, c, d, h, w) or (c, d, h, w) set to 0 with probability p."""
    checked(p)
    x = arguments.tensor(input, "dropout3d")
    if inplace:
        return in_place(dropout3d, x, p, training)
    if x.ndim not in (4, 5):
        _wrong_ndim("dropout3d", x.ndim, 3)
    if x.ndim == 5:
        return _channels(x, p, training)
    return _channels(x.unsqueeze(0), p, training).squeeze(0)


# Where selu saturates: minus its scale times its alpha (Klambauer et al. 2017, section 3).
SATURATION = 1.7580993408473766


def _alpha(x: Tensor, p: float, training: bool, features: bool) -> Tensor:
    if not training or p == 0 or not x._data.size:
        return x
    if p == 1:
        return x * 0.0
    a = 1 / ((SATURATION * SATURATION * p + 1) * (1 - p)) ** 0.5
    kept = _kept(x, p, features)
    return x * (kept * a) + ((kept - 1) * (SATURATION * a) + SATURATION * a * p)


def alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False  # noqa: A002
) -> Tensor:
    """Elements set to where `selu` saturates, then scaled and moved: mean and variance stay."""
    checked(p)
    x = arguments.tensor(input, "alpha_dropout")
    if inplace:
        return in_place(alpha_dropout, x, p, training)
    return _alpha(x, p, training, False)


def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False  # noqa: A002
) -> Tensor:
    """`alpha_dropout` of whole channels."""
    checked(p)
    x = arguments.tensor(input, "feature_alpha_dropout")
    if inplace:
        return in_place(feature_alpha_dropout, x, p, training)
    return _alpha(x, p, training, True)
