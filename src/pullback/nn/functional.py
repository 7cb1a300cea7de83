"""`pullback.nn.functional`: activations, losses, layers as functions (layer 6)."""

from __future__ import annotations

from pullback.api.nn import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    dropout,
    elu,
    embedding,
    gelu,
    l1_loss,
    layer_norm,
    leaky_relu,
    linear,
    log_softmax,
    logsigmoid,
    mse_loss,
    nll_loss,
    normalize,
    one_hot,
    pad,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "dropout", "elu",
    "embedding", "gelu", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax",
    "logsigmoid", "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "relu", "sigmoid", "silu",
    "softmax", "softplus", "tanh",
]  # fmt: skip
