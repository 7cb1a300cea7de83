"""Taylor mode as a transform (layer 5): all derivatives along a direction in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.series import SeriesLevel, derivatives, expand
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError
from pullback.transforms.inputs import matched


def taylor(func: Callable[..., Any], x: Any, v: Any, order: int) -> tuple[Any, ...]:
    """The derivatives of `func(x + t v)` in t at t = 0, from order 0 (the value) to `order`.

    x, v: of one structure and equal shapes: a tensor, or a tree of tensors; a tuple stands for
        several arguments, `func(*x)`.
    order: int, at least 0.

    Returns `order + 1` results, each of the structure and shapes of the output of `func`: the k-th
    is `D^k func(x)[v, ..., v]`.  (Divided by k! it is the Taylor coefficient.)

    One pass on truncated power series: the time grows with the square or cube of the order, where
    nested `jvp` doubles with each.  Every primitive with a jvp rule has this one; it composes with
    grad, jvp and vmap.  PyTorch has no equivalent.  (Griewank and Walther, Evaluating
    Derivatives, ch. 13.)

    Raises TypeError for what is no floating point or complex tensor, ValueError for the order,
    RuntimeError for structures and shapes that differ and for outputs that are no tensors.

    >>> import pullback
    >>> x, v = pullback.tensor(0.0), pullback.tensor(1.0)
    >>> pullback.func.taylor(pullback.sin, x, v, 3)
    (tensor(0.), tensor(1.), tensor(-0.), tensor(-1.))
    """
    if isinstance(order, bool) or not isinstance(order, int):
        raise ArgumentTypeError(with_site(f"taylor: order must be int, got {order!r}"))
    if order < 0:
        raise ArgumentValueError(with_site(f"taylor: order must be at least 0, got {order}"))
    several = isinstance(x, tuple)
    arguments, directions = (x, v) if several else ((x,), (v,))
    if several and not isinstance(v, tuple):
        raise ArgumentRuntimeError(
            with_site(f"taylor: x is a tuple of arguments, v must be one, got {type(v).__name__}")
        )
    values, slopes, structure = matched(arguments, directions, "taylor(f, x, v, order)", "x", "v")
    level = SeriesLevel(order)
    try:
        if order:
            moving = [expand(p, t, level) for p, t in zip(values, slopes, strict=True)]
        else:
            moving = values
        outputs, shape = tree.flatten(func(*tree.unflatten(structure, moving)))
        found = []
        for out in outputs:
            if not isinstance(out, Tensor):
                raise ArgumentRuntimeError(
                    with_site(
                        "taylor(f, x, v, order): Expected f to return only tensors, or nested "
                        f"containers of them; got {type(out).__name__}")
                )
            found.append(derivatives(out, level))
    finally:
        level.end()
    return tuple(tree.unflatten(shape, [d[k] for d in found]) for k in range(order + 1))
