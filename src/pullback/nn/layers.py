"""Layers that multiply, look up, drop and reshape (layer 6)."""

from __future__ import annotations

import math
from typing import Any

from pullback.api.creation import empty
from pullback.api.movement import flatten, unflatten
from pullback.core.callsite import with_site
from pullback.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from pullback.nn import functional as F  # noqa: N812
from pullback.nn import init
from pullback.nn.module import Module
from pullback.nn.parameter import Parameter


class Identity(Module):
    """Gives back what it is called with; arguments of the constructor are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:  # noqa: A002
        """The input."""
        return input


class Linear(Module):
    """(..., in_features) -> (..., out_features): x weight^T + bias.

    weight: (out_features, in_features), bias: (out_features,) - spread evenly over plus and minus
    1 / sqrt(in_features).
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1]
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (..., in_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes, and whether there is a bias."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """(..., in1), (..., in2) -> (..., out): x1^T weight x2 + bias, with weight (out, in1, in2)."""

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise ArgumentValueError(
                with_site(f"in1_features must be > 0, but got (in1_features={in1_features})")
            )
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(
            empty((out_features, in1_features, in2_features), device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        """input1: (..., in1_features), input2: (..., in2_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes, and whether there is a bias."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Embedding(Module):
    """Rows of a table at integer positions: (...) -> (..., embedding_dim).

    padding_idx: a row of zeros at first, which gets no gradient.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Any = None, _freeze: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        for name, value in (
            ("max_norm", max_norm), ("scale_grad_by_freq", scale_grad_by_freq), ("sparse", sparse),
        ):  # fmt: skip
            if value:
                raise UnsupportedError(
                    with_site(f"Embedding({name}={value!r}) is not built: leave it out")
                )
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(with_site("Padding_idx must be within num_embeddings"))
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            table = empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    with_site(
                        "Shape of weight does not match num_embeddings and embedding_dim"
                    )
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draws new values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (...) integers."""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """Sizes, and the row of the padding."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """A table (n, d) that is given; `freeze`: without gradient."""
        if embeddings.ndim != 2:
            raise AssertionError(
                with_site("Embeddings parameter is expected to be 2-dimensional")
            )
        rows, columns = embeddings.shape
        return cls(
            rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight=embeddings, _freeze=freeze,
        )  # fmt: skip


# ---------------------------------------------------------------- shapes
class Flatten(Module):
    """The dims from start_dim to end_dim as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dims."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dim as several, of the sizes given."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise ArgumentTypeError(
                with_site(
                    "unflattened_size must be a tuple of ints, but found type "
                    f"{type(unflattened_size).__name__}"
                )
            )
        for i, n in enumerate(unflattened_size):
            if not isinstance(n, int):
                raise ArgumentTypeError(
                    with_site(
                        "unflattened_size must be tuple of ints, but found element of type "
                        f"{type(n).__name__} at pos {i}"
                    )
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The dim and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


# ---------------------------------------------------------------- dropping
class _Dropping(Module):
    """What the layers that drop share: a probability, and a function that uses it."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ArgumentValueError(
                with_site(f"dropout probability has to be between 0 and 1, but got {p}")
            )
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """The probability, and whether the input is changed."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropping):
    """In training each element is 0 with probability p, the others times 1 / (1 - p)."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropping):
    """`Dropout` of whole channels of (n, c, l)."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (n, c, l) or (c, l)."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropping):
    """`Dropout` of whole channels of (n, c, h, w)."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (n, c, h, w)."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropping):
    """`Dropout` of whole channels of (n, c, d, h, w)."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (n, c, d, h, w) or (c, d, h, w)."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropping):
    """Dropping that keeps mean and variance, for `SELU` networks."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: any shape."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropping):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Any) -> Any:  # noqa: A002
        """input: (n, c, ...)."""
        return F.feature_alpha_dropout(input, self.p, self.training)
