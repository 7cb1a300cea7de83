"""`Size`, the tuple that `Tensor.shape` is (layer 1)."""

from __future__ import annotations

import math
from typing import Any


class Size(tuple):  # type: ignore[type-arg]
    """A shape: a tuple of ints that prints as PyTorch's and knows its number of elements."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:  # type: ignore[override]
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)
