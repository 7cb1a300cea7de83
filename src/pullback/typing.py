"""Names for the types that annotations use (layer 0)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:  # importing it costs some milliseconds
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
Shape: TypeAlias = tuple[int, ...]
Axes: TypeAlias = tuple[int, ...]
Number: TypeAlias = bool | int | float | complex
NumpyDtype: TypeAlias = np.dtype[Any]
Params: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[..., Any]
Key: TypeAlias = Hashable
IntSequence: TypeAlias = Sequence[int]
