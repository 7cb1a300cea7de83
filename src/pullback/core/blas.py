"""The BLAS that NumPy's wheels bring along (layer 1), for the one thing NumPy does not expose.

NumPy needs two passes over memory and a temporary for `y += a * x`; BLAS does it in one.  It has to
be NumPy's own library: a second one (SciPy's) keeps threads of its own, and the two sets get in
each other's way (a training step was seen to take 16 ms in place of 7).
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
from collections.abc import Callable

import numpy as np

from pullback.typing import Array


@functools.cache
def axpy(itemsize: int) -> Callable[[float, Array, Array], None] | None:
    """`f(a, x, y)` computes y += a * x for contiguous arrays of float32 (4) or float64 (8).

    None where NumPy was built with another BLAS: use NumPy's own operations then.
    """
    folder = pathlib.Path(np.__file__).parent.parent / "numpy.libs"
    kind = ctypes.c_float if itemsize == 4 else ctypes.c_double
    name = f"scipy_cblas_{'s' if itemsize == 4 else 'd'}axpy64_"
    for path in folder.glob("*openblas64*"):
        try:
            function = getattr(ctypes.CDLL(str(path)), name)
        except (OSError, AttributeError):
            continue
        whole, address = ctypes.c_int64, ctypes.c_void_p
        function.argtypes = (whole, kind, address, whole, address, whole)
        function.restype = None

        def update(a: float, x: Array, y: Array, call: Callable[..., None] = function) -> None:
            call(x.size, a, x.__array_interface__["data"][0], 1,
                 y.__array_interface__["data"][0], 1)  # fmt: skip

        return update
    return None
