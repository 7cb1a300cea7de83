"""The memory below tensors, as copying and pickling see it (layer 4)."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np


def root_of(array: Any) -> Any:
    """The array at the end of the chain of views."""
    while type(array.base) is np.ndarray:
        array = array.base
    return array


class Bytes:
    """Bytes of memory for `np.asarray`, keeping their owner alive."""

    def __init__(self, owner: Any, start: int, length: int) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (start, True), "shape": (length,), "typestr": "|u1", "version": 3,
        }  # fmt: skip


def copied(array: Any, memo: dict[Any, Any]) -> Any:
    """`array` over a copy of its whole storage, made once per `memo`; strides are kept.

    Of a mapped file only the part that the array shows is copied.
    """
    if not array.size:
        return np.empty(array.shape, array.dtype)
    root = root_of(array)
    if isinstance(root, np.memmap) or isinstance(root.base, (mmap.mmap, np.memmap)):
        return array.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(root)
    key = ("storage", id(root))
    if key not in memo:  # the root itself is kept too: its id must not be given to another
        memo[key] = root, np.asarray(Bytes(root, low, high - low)).copy()
    start = array.__array_interface__["data"][0] - low
    return np.ndarray(array.shape, array.dtype, memo[key][1], start, array.strides)


def memory_order(array: Any) -> tuple[int, ...]:
    """The dims from the longest stride to the shortest."""
    return tuple(sorted(range(array.ndim), key=lambda i: -abs(array.strides[i])))
