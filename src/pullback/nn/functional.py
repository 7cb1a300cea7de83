"""`pullback.nn.functional`: activations, losses, layers as functions (layer 6)."""

from __future__ import annotations

from pullback.api.activation import (
    celu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    log_softmax,
    mish,
    prelu,
    relu6,
    selu,
    softmax,
    softmin,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from pullback.api.dropout import (
    alpha_dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from pullback.api.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cosine_similarity,
    cross_entropy,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    nll_loss,
    pairwise_distance,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from pullback.api.nn import (
    bilinear,
    dropout,
    elu,
    embedding,
    gelu,
    leaky_relu,
    linear,
    logsigmoid,
    one_hot,
    pad,
    relu,
    sigmoid,
    silu,
    softplus,
    tanh,
)
from pullback.api.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    normalize,
    rms_norm,
)

__all__ = [
    "alpha_dropout", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "embedding",
    "feature_alpha_dropout", "gaussian_nll_loss", "gelu", "glu", "group_norm", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss",
    "instance_norm", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax",
    "logsigmoid", "margin_ranking_loss", "mish", "mse_loss", "nll_loss", "normalize", "one_hot",
    "pad", "pairwise_distance", "poisson_nll_loss", "prelu", "relu", "relu6", "rms_norm",
    "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin",
    "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "triplet_margin_loss",
]  # fmt: skip
