"""Dtypes that a function does not take, with PyTorch's exception and words (layer 1)."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.core.callsite import with_site
from pullback.core.dtypes import PYTORCH_NAMES
from pullback.errors import ArgumentRuntimeError, PullbackError, UnsupportedError
from pullback.typing import NumpyDtype


class Refusal(NamedTuple):
    """What is said of operands whose dtype is of one of the `kinds` (NumPy's letters).

    `each`: the dtype of any operand counts, and not only the one they are computed in.
    """

    kinds: str
    text: str
    error: type[PullbackError] = ArgumentRuntimeError
    each: bool = False


Refusals = tuple[Refusal, ...]


def kernel(kinds: str, name: str) -> Refusal:
    """A dtype that PyTorch has no code for: NotImplementedError with the name of that code."""
    return Refusal(kinds, f"\"{name}\" not implemented for '{{dtype}}'", UnsupportedError)


def unsupported(kinds: str, text: str) -> Refusal:
    """NotImplementedError with a text of its own."""
    return Refusal(kinds, text, UnsupportedError)


def refuse(refusals: Refusals, dtype: NumpyDtype, operands: tuple[Any, ...] | list[Any]) -> None:
    """Raise what is said of a dtype, or of the operands' own, if anything is."""
    for r in refusals:
        if dtype.kind in r.kinds or (r.each and any(_is_of(r.kinds, v) for v in operands)):
            raise r.error(with_site(r.text.format(dtype=PYTORCH_NAMES[dtype.name])))


def _is_of(kinds: str, value: Any) -> bool:
    if isinstance(value, bool):
        return "b" in kinds
    data = getattr(value, "_data", value)
    return hasattr(data, "dtype") and data.dtype.kind in kinds
