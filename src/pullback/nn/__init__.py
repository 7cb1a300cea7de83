"""`pullback.nn`: modules, parameters, and the functions of `nn.functional` (layer 6)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pullback.nn import functional, parameter
from pullback.nn.parameter import Buffer, Parameter

# what loads on first use: where it is, and the names there
_PLACES = {
    "pullback.nn.activations": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid "
        "LogSoftmax Mish PReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus "
        "Softshrink Softsign Tanh Tanhshrink Threshold"
    ),
    "pullback.nn.layers": (
        "AlphaDropout Bilinear Dropout Dropout1d Dropout2d Dropout3d Embedding FeatureAlphaDropout "
        "Flatten Identity Linear Unflatten"
    ),
    "pullback.nn.losses": (
        "BCELoss BCEWithLogitsLoss CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss "
        "GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss "
        "NLLLoss PairwiseDistance PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss"
    ),
    "pullback.nn.module": "Module",
    "pullback.nn.normalization": (
        "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d LayerNorm RMSNorm"
    ),
    "pullback.nn.containers": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
}
_LAZY = {name: place for place, names in _PLACES.items() for name in names.split()}
_MODULES = ("init", "utils")

__all__ = ["Buffer", "Parameter", "functional", "parameter", *_LAZY, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"pullback.nn.{name}")
    if name not in _LAZY:
        raise AttributeError(
            f"module 'pullback.nn' has no attribute {name!r}: it is not built yet"
        )
    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})
