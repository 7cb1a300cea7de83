"""The four objectives of ADBench, written from their definitions, on any torch-like module.

Srajer, Kukelova & Fitzgibbon, "A benchmark of selected algorithmic differentiation tools on some
problems in computer vision and machine learning" (2018) chose them:

    gmm    the log posterior of a mixture of Gaussians; gradient
    ba     reprojection errors of bundle adjustment; sparse Jacobian
    hand   residuals of hand tracking by linear blend skinning; dense (or bordered) Jacobian
    lstm   the loss of a diagonal LSTM over a sequence of characters; gradient

Every module has `instance(rng, ...)`, which makes random data by NumPy, and `problem(torch, data)`,
which takes PyTorch or Pullback as `torch`.  `python -m bench.adbench` prints times as ratios.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Problem(NamedTuple):
    """One objective on one instance."""

    inputs: list[Any]  # Tensors, float64
    value: Callable[..., Any]  # (*inputs) -> Tensor
    derivative: Callable[[], list[Any]]  # Tensors: blocks of the Jacobian, in a form of its own
    dense: Callable[[list[Any]], Any]  # those blocks -> the Jacobian, an array (outputs, inputs)


def tensors(torch: Any, data: dict[str, Any]) -> dict[str, Any]:
    """The arrays of an instance as tensors; other entries as they are."""
    return {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in data.items()}


def leaves(inputs: list[Any]) -> list[Any]:
    """Copies to differentiate in."""
    return [x.clone().requires_grad_() for x in inputs]


def gradient_of(torch: Any, inputs: list[Any], value: Callable[..., Any]) -> list[Any]:
    """The gradient of a scalar by one backward pass."""
    mine = leaves(inputs)
    return list(torch.autograd.grad(value(*mine), mine))


def one_row(blocks: list[Any]) -> Any:
    """A gradient as a Jacobian of one row."""
    return np.concatenate([g.numpy().reshape(-1) for g in blocks])[None]
