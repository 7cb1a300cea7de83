"""Random tensors and print options, the same for PyTorch and for Pullback."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np


class Printed(NamedTuple):
    """An array, print options, and how the tensor that holds it is made."""

    array: Any
    options: dict[str, Any]
    leaf: bool  # requires_grad_()
    doubled: bool  # times two, so that it has a grad_fn


KINDS = ["f4", "f8", "f2", "i8", "i4", "u1", "?", "c8", "c16", "f4", "f4"]
LARGE = [(1001,), (50, 40), (2, 1000), (1000, 2), (11, 11, 11), (8, 8, 8, 8)]


def printed(seed: int) -> Printed:
    """The case of that number."""
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    ndim = choose.choice([0, 1, 1, 2, 2, 3, 4])
    sizes = [0, 1, 2, 3, 5, 7, 12, 40] if ndim < 3 else [1, 2, 3, 8]
    shape = tuple(choose.choice(sizes) for _ in range(ndim))
    if choose.random() < 0.1:
        shape = choose.choice(LARGE)
    kind = choose.choice(KINDS)
    values: Any = rng.normal(size=shape) * 10.0 ** choose.choice([-8, -5, -4, -3, 0, 0, 0, 1, 2, 3,
                                                                  5, 8, 9, 12])  # fmt: skip
    if choose.random() < 0.3:
        values = np.round(values)
    if choose.random() < 0.2:
        values = values * 10.0 ** rng.integers(-4, 5, size=shape)
    if choose.random() < 0.2:
        odd = choose.choice([np.nan, np.inf, -np.inf, 0.0])
        values = np.where(rng.random(shape) < 0.3, odd, values)
    with np.errstate(all="ignore"):
        if kind[0] == "c":
            values = values + 1j * rng.normal(size=shape) * choose.choice([1, 100, 0.001])
        elif kind == "?":
            values = rng.random(shape) < 0.5
        elif kind[0] in "iu":
            values = np.nan_to_num(values, nan=0, posinf=1, neginf=1)
            values = np.clip(values, 0 if kind == "u1" else -2e9, 200 if kind == "u1" else 2e9)
        array = np.asarray(values).astype(kind)
    options = {
        "precision": choose.choice([4, 4, 4, 2, 6, 8]),
        "threshold": choose.choice([1000, 1000, 10, 5]),
        "edgeitems": choose.choice([3, 3, 2, 1]),
        "linewidth": choose.choice([80, 80, 120, 40]),
        "sci_mode": choose.choice([None] * 6 + [True, False]),
    }
    floating = kind[0] in "fc"
    return Printed(array, options, floating and choose.random() < 0.5,
                   floating and choose.random() < 0.3)  # fmt: skip


def text_of(T: Any, case: Printed) -> str:
    """What the library prints."""
    T.set_printoptions(**case.options)
    try:
        tensor = T.from_numpy(case.array.copy())
        if case.leaf:
            tensor.requires_grad_()
        return repr(tensor * 2 if case.doubled else tensor)
    finally:
        T.set_printoptions(profile="default")
