"""The number of threads that programs ask for (layer 1)."""

from __future__ import annotations

import os

from pullback.core.callsite import with_site
from pullback.errors import ArgumentRuntimeError


class Threads:
    """What was asked for; None until then."""

    number: int | None = None


def get_num_threads() -> int:
    """The number last set, else the number of cores."""
    return Threads.number or os.cpu_count() or 1


def set_num_threads(number: int) -> None:
    """Remembers a number for `get_num_threads`.

    NumPy's matrix products take theirs from OMP_NUM_THREADS (or OPENBLAS_NUM_THREADS) when Python
    starts, and cannot change it later.  Raises RuntimeError for what is no positive int.
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise ArgumentRuntimeError(
            with_site(f"set_num_threads expects an int, but got {type(number).__name__}")
        )
    if number <= 0:
        raise ArgumentRuntimeError(with_site("set_num_threads expects a positive integer"))
    Threads.number = number
