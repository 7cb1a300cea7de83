"""Forward mode as transforms (layer 5): `jvp` and `linearize`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.dual import ForwardLevel, make, split
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError
from pullback.ops.broadcast import zeros_like
from pullback.transforms.inputs import matched, with_aux


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """`(output, derivative of func at primals along tangents)`; with `has_aux` also what is aside.

    primals, tangents: tuples of one structure (each entry a tensor or a tree of tensors), equal
        shapes.
    strict: an output that does not depend on the primals is an error and not a zero.

    Raises RuntimeError for other structures, shapes and outputs.

    >>> import pullback
    >>> pullback.func.jvp(pullback.sin, (pullback.tensor(0.0),), (pullback.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    values, slopes, structure = matched(
        primals, tangents, "jvp(f, primals, tangents)", "primals", "tangents"
    )
    level = ForwardLevel()
    try:
        duals = [make(p, t, level, tracked=False) for p, t in zip(values, slopes, strict=True)]
        result = func(*tree.unflatten(structure, duals))
        aux: Any = None
        if has_aux:
            result, aux = with_aux(result, "jvp(f, primals, tangents)")
            aux = tree.map_leaves(lambda x: _primal(x, level), aux)
        outputs, shape = tree.flatten(result)
        found = [_apart(out, level, strict) for out in outputs]
    finally:
        level.end()
    output = tree.unflatten(shape, [p for p, _ in found])
    tangent = tree.unflatten(shape, [t for _, t in found])
    return (output, tangent, aux) if has_aux else (output, tangent)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`(func(*primals), f)`, where `f(*tangents)` is the derivative of func at the primals.

    Each call of `f` runs `func` once more in forward mode.

    Raises RuntimeError as `jvp` does.
    """
    if not primals:
        raise ArgumentRuntimeError(with_site("linearize(f): needs at least one primal"))

    def derivative(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return func(*primals), functools.wraps(func)(derivative)


def _primal(value: Any, level: ForwardLevel) -> Any:
    return split(value, level)[0] if isinstance(value, Tensor) else value


def _apart(out: Any, level: ForwardLevel, strict: bool) -> tuple[Tensor, Tensor]:
    """One output as its primal and its tangent."""
    if not isinstance(out, Tensor):
        raise ArgumentRuntimeError(
            with_site(
                "jvp(f, primals, tangents): Expected f to return only tensors, or nested "
                f"containers of them; got {type(out).__name__}")
        )
    primal, tangent = split(out, level)
    if tangent is None:
        if strict:
            raise ArgumentRuntimeError(
                with_site(
                    "jvp(f, primals, tangents, strict=True): The output of f is independent "
                    "of the inputs. This is not allowed with strict=True.")
            )
        tangent = wrap(zeros_like(primal))
    return primal, tangent
