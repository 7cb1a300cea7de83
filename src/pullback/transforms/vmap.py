"""`vmap`: a function of one example as a function of a batch (layer 5)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.batched import new_level, to_batch, unbatch
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentTypeError, ArgumentValueError


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0
) -> Callable[..., Any]:
    """`func`, written for one example, mapped over a batch in one go.

    in_dims: int, None (not mapped), or a nested container of them that fits the arguments - the
        dim of each argument that counts the examples.
    out_dims: int or a container - where that dim goes in the results.

    Raises ValueError when the dims do not fit the arguments or their sizes differ.

    >>> import pullback
    >>> pullback.vmap(pullback.dot)(pullback.ones(2, 3), pullback.ones(2, 3))
    tensor([3., 3.])
    """

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten(args)
        dims = _spread(in_dims, args, "in_dims")
        others, names = tree.flatten(kwargs)
        places = _places(leaves, dims) + [
            0 if isinstance(v, Tensor) else None for v in others
        ]
        leaves = leaves + others
        sizes = {x._data.shape[d] for x, d in zip(leaves, places, strict=True) if d is not None}
        if not sizes:
            raise ArgumentValueError(
                with_site("vmap: at least one argument must be mapped: all in_dims are None")
            )
        if len(sizes) > 1:
            raise ArgumentValueError(
                with_site(
                    "vmap: Expected all tensors to have the same size in the mapped dimension, "
                    f"got sizes {sorted(sizes)} "
                    "for the mapped dimension"
                )
            )
        with new_level(sizes.pop()) as level:
            inner = [
                x if d is None else to_batch(x, d, level)
                for x, d in zip(leaves, places, strict=True)
            ]
            count = len(inner) - len(others)
            result = func(*tree.unflatten(structure, inner[:count]),
                          **tree.unflatten(names, inner[count:]))  # fmt: skip
            found, shape = tree.flatten(result)
            for r in found:
                if not isinstance(r, Tensor):
                    raise ArgumentValueError(
                        with_site(
                            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, "
                            f"got type {type(r)} as a return."
                        )
                    )
            targets = _spread(out_dims, result, "out_dims")
            return tree.unflatten(
                shape, [unbatch(r, level, d) for r, d in zip(found, targets, strict=True)]
            )

    return mapped


def _name(function: Any) -> str:
    return getattr(function, "__name__", repr(function))


def _spread(dims: Any, args: Any, argument: str) -> list[Any]:
    """One dim for each leaf of `args`, from a prefix of its structure."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tree.flatten(args)[0])
    same = isinstance(args, (tuple, list)) and isinstance(dims, (tuple, list))
    if same and len(args) == len(dims):
        return [d for part, a in zip(dims, args, strict=True) for d in _spread(part, a, argument)]
    if isinstance(dims, dict) and isinstance(args, dict) and dims.keys() == args.keys():
        return [d for key in args for d in _spread(dims[key], args[key], argument)]
    raise ArgumentValueError(
        with_site(
            f"vmap: {argument} is not compatible with the structure of the "
            f"{'inputs' if argument == 'in_dims' else 'outputs'}: got {argument}={dims!r}"
        )
    )


def _places(leaves: list[Any], dims: list[Any]) -> list[int | None]:
    """Dims as non-negative axes, checked against the tensors."""
    found: list[int | None] = []
    for i, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if not isinstance(x, Tensor):
            if d is not None and not isinstance(x, (bool, int, float, complex, str, type(None))):
                raise ArgumentValueError(
                    with_site(
                        f"vmap: Got in_dim={d} for an input but the input is of type {type(x)}. "
                        "We cannot vmap over non-Tensor arguments, please use None"
                    )
                )
            found.append(None)
            continue
        if d is None:
            found.append(None)
            continue
        if not isinstance(d, int):
            raise ArgumentTypeError(with_site(f"vmap: in_dims must be int or None, got {d!r}"))
        if not -x.ndim <= d < x.ndim:
            raise ArgumentValueError(
                with_site(
                    f"vmap: Got in_dim={d} for some input, but that input is a Tensor of "
                    f"dimensionality {x.ndim} so expected in_dim to satisfy -{x.ndim} <= in_dim < "
                    f"{x.ndim}: input {i}"
                )
            )
        found.append(d % x.ndim)
    return found
