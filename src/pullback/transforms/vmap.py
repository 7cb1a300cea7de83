"""`vmap`: a function of one example as a function of a batch (layer 5)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.core.generator import default_generator
from pullback.eager.batched import Batched, Level, new_level, to_batch, unbatch
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError
from pullback.ops.movement import cat

Dims = list[int | None]


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
    *, chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """`func`, written for one example, mapped over a batch in one go.

    in_dims: int, None (not mapped), or a nested container of them that fits the arguments - the
        dim of each argument that counts the examples. Keyword arguments are not mapped.
    out_dims: int, None (not mapped) or a container - where that dim goes in the results.
    randomness: "error" refuses random operations, "different" draws anew for each example, "same"
        gives all of them the same numbers.
    chunk_size: int - map at most so many examples at a time, to save memory.

    What a constructor makes inside `func` (`torch.zeros(3)`) may be written with values that differ
    between the examples, which PyTorch refuses; what `func` captures may not.

    Raises ValueError when the dims do not fit the arguments or their sizes differ, RuntimeError
    for what a batch cannot do: a Python branch on a value, a shape that depends on data, a write
    into a captured tensor.

    >>> import pullback
    >>> pullback.vmap(pullback.dot)(pullback.ones(2, 3), pullback.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise ArgumentRuntimeError(
            with_site(
                "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
                f"{randomness}"
            )
        )
    if chunk_size is not None:
        if isinstance(chunk_size, bool) or not isinstance(chunk_size, int):
            raise ArgumentTypeError(
                with_site(f"vmap: chunk_size must be int or None, got {chunk_size!r}")
            )
        if chunk_size <= 0:
            raise ArgumentValueError(
                with_site(
                    f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})"
                )
            )

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        run = _Call(func, in_dims, out_dims, randomness)
        leaves, places, structure, size = run.read(args)
        if chunk_size is None or chunk_size >= size:
            return run.whole(leaves, places, structure, size, kwargs)
        return run.in_chunks(leaves, places, structure, size, kwargs, chunk_size)

    return mapped


class _Call:
    """One call of a mapped function."""

    def __init__(self, func: Any, in_dims: Any, out_dims: Any, randomness: str) -> None:
        self.func = func
        self.name = getattr(func, "__name__", repr(func))
        self.in_dims = in_dims
        self.out_dims = out_dims
        self.randomness = randomness

    def refuse(self, words: str) -> Exception:
        """The ValueError for arguments that in_dims do not fit."""
        called = f"vmap({self.name}, in_dims={self.in_dims!r}, ...)(<inputs>): "
        return ArgumentValueError(with_site(called + words, 3))

    # ------------------------------------------------------------ arguments
    def read(self, args: tuple[Any, ...]) -> tuple[list[Any], Dims, tree.Structure, int]:
        """The leaves of the arguments, the mapped dim of each, their structure, the batch size."""
        if not isinstance(self.in_dims, (int, tuple)):
            raise self.refuse(
                "expected `in_dims` to be int or a (potentially nested) tuple matching the "
                f"structure of inputs, got: {type(self.in_dims)}; at least one argument must be "
                "mapped"
            )
        if not args:
            raise ArgumentValueError(
                with_site(
                    f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, "
                    "or you are trying to vmap over a function with no inputs. The latter is "
                    "unsupported."
                )
            )
        leaves, structure = tree.flatten(args)
        dims = spread(self.in_dims, structure)
        if dims is None:
            raise self.refuse(
                "in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                f"{described(self.in_dims)} but inputs has structure {described(args)}"
            )
        places = [self.place(x, d) for x, d in zip(leaves, dims, strict=True)]
        sizes = [x._data.shape[d] for x, d in zip(leaves, places, strict=True) if d is not None]
        if not sizes:
            raise ArgumentValueError(with_site("vmap: Expected at least one Tensor to vmap over"))
        if len(set(sizes)) > 1:
            raise ArgumentValueError(
                with_site(
                    "vmap: Expected all tensors to have the same size in the mapped dimension, "
                    f"got sizes {sizes} for the mapped dimension"
                )
            )
        return leaves, places, structure, sizes[0]

    def place(self, x: Any, d: Any) -> int | None:
        """The mapped dim of one argument, not negative."""
        if d is None:
            return None
        if isinstance(d, bool):
            raise ArgumentTypeError(with_site(f"vmap: in_dims must be int or None, got {d}", 3))
        if not isinstance(d, int):
            raise self.refuse(
                f"Got in_dim={d} for an input but in_dim must be either an integer dimension or "
                "None."
            )
        if not isinstance(x, Tensor):
            raise self.refuse(
                f"Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap "
                "over non-Tensor arguments, please use None as the respective in_dim"
            )
        n = x._data.ndim
        if not -n <= d < n:
            raise self.refuse(
                f"Got in_dim={d} for some input, but that input is a Tensor of dimensionality "
                f"{n} so expected in_dim to satisfy -{n} <= in_dim < {n}."
            )
        return d % n

    # ------------------------------------------------------------ running
    def whole(
        self, leaves: list[Any], places: Dims, structure: tree.Structure, size: int,
        kwargs: dict[str, Any],
    ) -> Any:  # fmt: skip
        """All examples at once."""
        results, shape, targets = self.run(leaves, places, structure, size, kwargs)
        return tree.unflatten(shape, results)

    def in_chunks(
        self, leaves: list[Any], places: Dims, structure: tree.Structure, size: int,
        kwargs: dict[str, Any], chunk_size: int,
    ) -> Any:  # fmt: skip
        """The results of runs of `chunk_size` examples, put together."""
        state = default_generator.get_state_array() if self.randomness == "same" else None
        parts: list[list[Any]] = []
        shape: tree.Structure = tree.LEAF
        targets: Dims = []
        for start in range(0, size, chunk_size):
            n = min(chunk_size, size - start)
            if state is not None:
                default_generator.set_state(state)
            piece = [
                x if d is None else x.narrow(d, start, n)
                for x, d in zip(leaves, places, strict=True)
            ]
            found, shape, targets = self.run(piece, places, structure, n, kwargs)
            parts.append(found)
        joined = [
            same[0] if d is None else joined_at(same, d)
            for same, d in zip(zip(*parts, strict=True), targets, strict=True)
        ]
        return tree.unflatten(shape, joined)

    def run(
        self, leaves: list[Any], places: Dims, structure: tree.Structure, size: int,
        kwargs: dict[str, Any],
    ) -> tuple[list[Any], tree.Structure, Dims]:  # fmt: skip
        """The leaves of the results, their structure, and where each has its batch."""
        with new_level(size, self.randomness) as level:
            inner = [
                x if d is None else to_batch(x, d, level)
                for x, d in zip(leaves, places, strict=True)
            ]
            result = self.func(*tree.unflatten(structure, inner), **kwargs)
            found, shape = tree.flatten(result)
            targets = self.targets(shape, result)
            out = [self.leave(r, d, level) for r, d in zip(found, targets, strict=True)]
            return out, shape, targets

    def targets(self, shape: tree.Structure, result: Any) -> Dims:
        """The out_dim of each result."""
        given = self.out_dims
        leaves = tree.flatten(given)[0]
        if any(isinstance(d, bool) or not (d is None or isinstance(d, int)) for d in leaves):
            raise ArgumentValueError(
                with_site(
                    f"vmap({self.name}, ..., out_dims={given}): `out_dims` must be an int, None "
                    "or a python collection of ints representing where in the outputs the vmapped "
                    "dimension should appear."
                )
            )
        dims = spread(given, shape)
        if dims is None and shape is tree.LEAF and type(given) is tuple and len(given) == 1:
            dims = [given[0]]  # (1,) for a function with one result
        if dims is None:
            raise ArgumentValueError(
                with_site(
                    f"vmap({self.name}, ..., out_dims={given})(<inputs>): out_dims is not "
                    "compatible with the structure of `outputs`. out_dims has structure "
                    f"{described(given)} but outputs has structure {described(result)}"
                )
            )
        return dims

    def leave(self, result: Any, dim: int | None, level: Level) -> Any:
        """One result as it is outside."""
        if dim is None:
            data = result._data if isinstance(result, Tensor) else None
            if type(data) is Batched and data.level == level.number:
                raise ArgumentValueError(
                    with_site(
                        f"vmap({self.name}, ...): `{self.name}` can not return a BatchedTensor "
                        "when out_dim is None"
                    )
                )
            return result
        if not isinstance(result, Tensor):
            raise ArgumentValueError(
                with_site(
                    f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type "
                    f"{type(result)}. Did you mean to set out_dims= to None for output?"
                )
            )
        return unbatch(result, level, dim)


def joined_at(parts: tuple[Any, ...], dim: int) -> Any:
    """The results of all chunks, in order."""
    return cat(*parts, axis=dim % parts[0].ndim)


# ---------------------------------------------------------------- structures
def spread(dims: Any, structure: tree.Structure) -> Dims | None:
    """One dim for each leaf, from a tree that the structure starts with; None if it does not."""
    leaves, given = tree.flatten(dims)
    found: Dims = []
    return found if _spread(given, iter(leaves), structure, found) else None


def _spread(
    given: tree.Structure, dims: Iterator[Any], structure: tree.Structure, found: Dims
) -> bool:
    if given.kind is None:
        found += [next(dims)] * _count(structure)
        return True
    if given.kind is not structure.kind or len(given.children) != len(structure.children):
        return False
    if given.keys and set(given.keys) != set(structure.keys):
        return False
    if given.keys:  # the leaves of dims come in the order of its own keys
        parts = dict(zip(given.keys, given.children, strict=True))
        order = dict.fromkeys(given.keys)
        for key in given.keys:
            mine: Dims = []
            child = structure.children[structure.keys.index(key)]
            if not _spread(parts[key], dims, child, mine):
                return False
            order[key] = mine  # type: ignore[assignment]
        for key in structure.keys:
            found += order[key] or []
        return True
    return all(
        _spread(part, dims, child, found)
        for part, child in zip(given.children, structure.children, strict=True)
    )


def _count(structure: tree.Structure) -> int:
    return 1 if structure.kind is None else sum(_count(s) for s in structure.children)


def described(value: Any) -> str:
    """A nested container with its leaves as stars: what messages show of it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {described(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(described(v) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return "*"
