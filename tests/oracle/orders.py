"""Random calls of functions that sort, choose or tell values apart, with ties and NaN."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

from tests.oracle.programs import builtin_name

FUNCTIONS = {
    "sort": lambda T, x, d, k, b: T.sort(x, dim=d, descending=b, stable=True),
    "sort unstable": lambda T, x, d, k, b: T.sort(x, d, b),
    "argsort": lambda T, x, d, k, b: T.argsort(x, dim=d, descending=b, stable=True),
    "topk": lambda T, x, d, k, b: T.topk(x, k, d, b),
    "kthvalue": lambda T, x, d, k, b: T.kthvalue(x, k, d, b),
    "mode": lambda T, x, d, k, b: T.mode(x, d, b),
    "median": lambda T, x, d, k, b: T.median(x, d, b),
    "median all": lambda T, x, d, k, b: T.median(x),
    "nanmedian": lambda T, x, d, k, b: T.nanmedian(x, d, b),
    "nanmedian all": lambda T, x, d, k, b: T.nanmedian(x),
    "max": lambda T, x, d, k, b: T.max(x, d, b), "min": lambda T, x, d, k, b: T.min(x, d, b),
    "max all": lambda T, x, d, k, b: T.max(x), "min all": lambda T, x, d, k, b: T.min(x),
    "amax": lambda T, x, d, k, b: T.amax(x, d, b), "amin": lambda T, x, d, k, b: T.amin(x, d, b),
    "aminmax": lambda T, x, d, k, b: T.aminmax(x, dim=d, keepdim=b),
    "argmax": lambda T, x, d, k, b: T.argmax(x, d, b), "argmin": lambda T, x, d, k, b: T.argmin(x),
    "unique": lambda T, x, d, k, b: T.unique(x, return_inverse=b, return_counts=k > 1),
    "unique dim": lambda T, x, d, k, b: T.unique(x, return_inverse=b, return_counts=k > 1, dim=d),
    "unique_consecutive": lambda T, x, d, k, b: T.unique_consecutive(
        x, return_inverse=b, return_counts=k > 1),
    "unique_consecutive dim": lambda T, x, d, k, b: T.unique_consecutive(
        x, return_inverse=b, return_counts=k > 1, dim=d),
    "cummax": lambda T, x, d, k, b: T.cummax(x, d), "cummin": lambda T, x, d, k, b: T.cummin(x, d),
    "logcumsumexp": lambda T, x, d, k, b: T.logcumsumexp(x, d),
    "cumsum": lambda T, x, d, k, b: T.cumsum(x, d),
    "cumprod": lambda T, x, d, k, b: T.cumprod(x, d),
    "msort": lambda T, x, d, k, b: T.msort(x),
    "fmax": lambda T, x, d, k, b: T.fmax(x, x.flip(0)) if x.ndim else T.fmax(x, x * 2),
    "fmin": lambda T, x, d, k, b: T.fmin(x, x.flip(0)) if x.ndim else T.fmin(x, x * 2),
    "maximum": lambda T, x, d, k, b: T.maximum(x, x.flip(0)) if x.ndim else T.maximum(x, x * 2),
}  # fmt: skip


# In PyTorch NaN comes first in one and last in another, or gradients lose it.
ORDERS_NAN_ITS_OWN_WAY = ("mode", "unique dim", "cumprod")


class Call(NamedTuple):
    """One call."""

    name: str
    x: Any
    dim: int
    k: int
    flag: bool


def call(seed: int) -> Call:
    """The call of that number."""
    choose = random.Random(seed)
    name = choose.choice(list(FUNCTIONS))
    ndim = choose.choice((0, 1, 1, 2, 2, 3))
    shape = [choose.choice((0, 1, 2, 3, 5) if choose.random() < 0.2 else (1, 2, 3, 5))
             for _ in range(ndim)]  # fmt: skip
    dim = choose.randrange(-max(ndim, 1), max(ndim, 1))
    numbers = [0.0, 1.0, 2.0, -1.0, 3.0]
    if choose.random() < 0.4 and name not in ORDERS_NAN_ITS_OWN_WAY:
        numbers.append(float("nan"))
    special = choose.random() < 0.2 and name != "cumprod"
    numbers += [float("inf"), float("-inf")] if special else []
    dtype = choose.choice(["float64"] * 5 + ["float32", "int64", "uint8"]
                          + ["bool"] * (ndim > 0 and "median" not in name))
    rng = np.random.default_rng(seed)
    with np.errstate(invalid="ignore"):
        finite = numbers if dtype[0] == "f" else numbers[:3]
        x = rng.choice(finite, shape).astype(dtype)
    if choose.random() < 0.05:
        dim += 5
    return Call(name, x, dim, choose.choice((1, 1, 2, 2, 3, 0)), choose.random() < 0.5)


def run(T: Any, c: Call) -> Any:
    """Values, indices, nodes and gradients; or the exception."""
    x = T.tensor(c.x)
    x.requires_grad_(x.is_floating_point())
    try:
        out = FUNCTIONS[c.name](T, x, c.dim, c.k, c.flag)
    except Exception as error:
        return f"{builtin_name(error)}: {error}"
    outs = out if isinstance(out, tuple) else (out,)
    found = [o.detach().numpy() for o in outs]
    names = [type(o.grad_fn).__name__ for o in outs if o.grad_fn is not None]
    words = ""
    try:
        parts = [(o * T.tensor(np.arange(1.0, o.numel() + 1).reshape(tuple(o.shape)))).sum()
                 for o in outs if o.requires_grad]  # fmt: skip
        if parts:
            sum(parts).backward()
            found.append(x.grad.numpy())
    except RuntimeError as error:
        words = f"{builtin_name(error)}: {str(error).splitlines()[0][:50]}"
    return names, words, found, type(out).__name__


def same(want: Any, got: Any, c: Call) -> bool:
    """Whether two runs agree; which of equal elements was chosen is PyTorch's affair."""
    if isinstance(want, str) or isinstance(got, str):
        kind = isinstance(want, str) and isinstance(got, str)
        return kind and want.split(":")[0] == got.split(":")[0]
    if want[:2] != got[:2] or len(want[2]) != len(got[2]) or want[3] != got[3]:
        return False
    free = c.name in ("topk", "kthvalue", "median", "nanmedian", "mode") and len(want[2]) > 1
    for k, (a, b) in enumerate(zip(want[2], got[2], strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if k and free:
            continue
        if not np.allclose(a, b, rtol=1e-5, equal_nan=True):
            return False
    return True
