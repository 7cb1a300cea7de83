"""Memory that would be read and written at once (layer 3): what an in-place operation refuses.

As in PyTorch, only what is cheap to see is refused: memory with gaps is not looked into.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pullback.core.callsite import here, with_site
from pullback.eager.tensor import Tensor
from pullback.errors import GraphError

APART, IN_PART, SAME = range(3)
REPEATED = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)


def repeats(array: Any) -> bool:
    """Whether an array shows one element in several places (an expanded view)."""
    if type(array) is not np.ndarray or 0 not in array.strides or not array.size:
        return False
    return any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True))


def dense(array: Any) -> bool:
    """Whether the elements fill a piece of memory, each once, in any order of dims."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    step = array.itemsize
    for stride, n in sorted(zip(array.strides, array.shape, strict=True)):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return True


def shared(a: Any, b: Any) -> int:
    """How two arrays lie in memory to each other."""
    if a is b:
        return SAME
    if not np.may_share_memory(a, b) or not (dense(a) and dense(b)):
        return APART
    if a.nbytes == b.nbytes and a.ctypes.data == b.ctypes.data:
        mine, theirs = (
            [(i, s) for i, (s, n) in enumerate(zip(x.strides, x.shape, strict=True)) if n > 1]
            for x in (a, b)
        )
        return SAME if a.ndim == b.ndim and mine == theirs else IN_PART
    return IN_PART


def identical(a: Any, b: Any) -> bool:
    """Whether two arrays show the same elements in the same places: a copy would do nothing."""
    return (
        type(a) is np.ndarray
        and type(b) is np.ndarray
        and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype)
        and a.ctypes.data == b.ctypes.data
    )


def by_element(target: Tensor, others: Any) -> None:
    """What an operation of elements refuses; an operand may be the target itself."""
    if repeats(target._data):
        raise GraphError(with_site(REPEATED))
    _refuse(target, others, (IN_PART,))


def by_place(target: Tensor, others: Any) -> None:
    """What an operation refuses that writes at places given by an index."""
    by_element(target, ())
    _refuse(target, others, (IN_PART, SAME))


def at_places(function: str) -> Any:
    """As `by_place`, for a function that PyTorch lets write into an expanded tensor."""

    def check(target: Tensor, others: Any) -> None:
        _refuse(target, others, (IN_PART, SAME))
        if repeats(target._data):
            site = here(2)
            warnings.warn_explicit(
                f"Use of {function} on expanded tensors is deprecated. Please clone() the tensor "
                "before performing this operation. This also applies to advanced indexing e.g. "
                "tensor[indices] = tensor", UserWarning, site.file, site.line,
            )

    return check


def by_order(target: Tensor, others: Any) -> None:
    """What `masked_scatter_` refuses."""
    by_element(target, ())


def anything(target: Tensor, others: Any) -> None:
    """One value everywhere is well defined."""


def _refuse(target: Tensor, others: Any, ways: tuple[int, ...]) -> None:
    data = target._data
    if type(data) is not np.ndarray:
        return
    for other in others:
        if not isinstance(other, Tensor) or type(other._data) is not np.ndarray:
            continue
        if other._data is not data and data.flags.owndata and other._data.flags.owndata:
            continue
        if shared(data, other._data) in ways:
            raise GraphError(
                with_site(
                    "unsupported operation: some elements of the input tensor and the written-to "
                    "tensor refer to a single memory location. Please clone() the tensor before "
                    "performing the operation.")
            )
