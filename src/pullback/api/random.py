"""Random tensors and the default generator (layer 4), with PyTorch's signatures.

Inside `vmap` its `randomness` decides: "different" draws the numbers of all examples in one go,
their axis in front; "same" draws those of one example for all of them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.api.creation import finish
from pullback.config import Defaults
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.generator import Generator, default_generator
from pullback.eager.batched import LEVELS, Batched, Level, aligned, outer, to_batch
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    TracingError,
    UnsupportedError,
)
from pullback.ops import random as ops
from pullback.ops.movement import stack


def stream(generator: Any) -> Generator:
    """The generator given, or the default one."""
    if generator is None:
        return default_generator
    if isinstance(generator, Generator):
        return generator
    raise ArgumentTypeError(
        with_site(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    )


def _floating(dtype: Any, function: str) -> Any:
    numpy = arguments.dtype(dtype, Defaults.dtype)
    if numpy.kind not in "fc":
        raise UnsupportedError(
            with_site(f'"{function}" not implemented for \'{arguments.PYTORCH_NAMES[numpy.name]}\'')
        )
    return numpy


# ---------------------------------------------------------------- inside vmap
def _levels() -> tuple[Level, ...]:
    """The running `vmap`s, all of which must allow random operations."""
    levels = LEVELS.get()
    for level in levels:
        if level.randomness == "error":
            raise TracingError(
                with_site(
                    "vmap: called random operation while in randomness error mode. Please either "
                    "use the 'same' or 'different' randomness flags on vmap or perform the "
                    "randomness operation out of vmap",
                    3,
                )
            )
    return levels


def drawn(shape: tuple[int, ...], draw: Callable[[tuple[int, ...]], Any]) -> Any:
    """The payload of a tensor of that shape, its numbers drawn by `draw(shape)`."""
    different = [level for level in _levels() if level.randomness == "different"]
    if not different:
        return draw(shape)
    out = wrap(draw((*(level.size for level in different), *shape)))
    for level in different:
        out = to_batch(out, 0, level)
    return out._data


def drawn_for(
    operands: tuple[Tensor, ...], draw: Callable[..., Any], shaped: bool = False,
    inplace: bool = False,
) -> Any:  # fmt: skip
    """The payload of `draw(*arrays)`, which follows the operands.

    shaped: of the first operand only the shape matters, so that examples may share one draw
    inplace: the result will be written into the first operand
    """
    levels = _levels()
    if not levels:
        return draw(*(x._data for x in operands))
    return _descend(tuple(x.detach() for x in operands), levels, draw, shaped, inplace)._data


def _descend(
    operands: tuple[Tensor, ...], levels: tuple[Level, ...], draw: Callable[..., Any],
    shaped: bool, inplace: bool,
) -> Tensor:  # fmt: skip
    """The draw of the innermost `vmap`, by way of those around it."""
    if not levels:
        return wrap(draw(*(x._data for x in operands)))
    level = levels[-1]
    operands = tuple(outer(x, level.number) for x in operands)
    mapped = [type(x._data) is Batched and x._data.level == level.number for x in operands]
    if level.randomness == "same":
        if any(mapped[1:] if shaped else mapped):
            raise TracingError(
                with_site(
                    "Vmap does not currently support same randomness with a batched tensor input: "
                    "use randomness='different'",
                    3,
                )
            )
        one = tuple(x._data.value[0] if m else x for x, m in zip(operands, mapped, strict=True))
        return _descend(one, levels[:-1], draw, shaped, inplace)
    if inplace and not mapped[0]:
        raise TracingError(
            with_site(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor: all "
                "examples share it. Fill a mapped one (torch.empty_like(x), x.new_empty(...))",
                3,
            )
        )
    ndim = max(x.ndim for x in operands)
    whole = []
    for x, m in zip(operands, mapped, strict=True):
        value = x._data.value if m else _repeated(x, level.size)
        whole.append(aligned(value, True, ndim))
    return to_batch(_descend(tuple(whole), levels[:-1], draw, shaped, inplace), 0, level)


def _repeated(x: Tensor, size: int) -> Tensor:
    """`x` once for each example, in memory that a draw can follow."""
    return stack(*(x,) * size, axis=0) if size else x.expand(0, *x._data.shape)


@contextlib.contextmanager
def _outside_of_vmap() -> Iterator[None]:
    token = LEVELS.set(())
    try:
        yield
    finally:
        LEVELS.reset(token)


# ---------------------------------------------------------------- seeds
def manual_seed(seed: int) -> Generator:
    """Start the default stream of a seed (what `int()` takes); returns the default generator."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start an unpredictable stream; returns its seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default stream."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """(5056,) uint8 - the state of the default stream, as PyTorch lays it out."""
    return wrap(default_generator.get_state_array())


def set_rng_state(new_state: Any) -> None:
    """Continue the default stream from a state."""
    default_generator.set_state(new_state)


# ---------------------------------------------------------------- tensors
def rand(
    *size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Evenly spread over [0, 1)."""
    numpy = _floating(dtype, "check_uniform_bounds")
    source = stream(generator)
    array = drawn(arguments.size(size), lambda shape: ops.uniform(source, shape, numpy))
    return finish(array, requires_grad, device, layout)


def randn(
    *size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normally distributed, mean 0 and variance 1."""
    numpy = _floating(dtype, "normal_kernel_cpu")
    source = stream(generator)
    array = drawn(arguments.size(size), lambda shape: ops.normal(source, shape, numpy))
    return finish(array, requires_grad, device, layout)


def randint(
    *args: Any, size: Any = None, low: Any = None, high: Any = None, generator: Any = None,
    out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Integers in [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    values = list(args)
    if size is None:
        size = values.pop()
    bounds = ([] if low is None else [low]) + values + ([] if high is None else [high])
    if len(bounds) == 1:
        bounds = [0, *bounds]
    if len(bounds) != 2:
        raise ArgumentTypeError(
            with_site(f"randint(): needs (high, size) or (low, high, size), got {args}")
        )
    first, last = (arguments.integer(b, "randint", n) for b, n in zip(bounds, ("low", "high"),
                                                                      strict=True))  # fmt: skip
    numpy = arguments.dtype(dtype, dtypes.INT64)
    source = stream(generator)
    array = drawn(
        arguments.size((size,)), lambda shape: ops.randint(source, first, last, shape, numpy)
    )
    return finish(array, requires_grad, device, layout)


def randperm(
    n: int, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The numbers 0 to n - 1 in random order."""
    count = arguments.integer(n, "randperm", "n")
    source, numpy = stream(generator), arguments.dtype(dtype, dtypes.INT64)

    def draw(shape: tuple[int, ...]) -> Any:
        rows = [ops.randperm(source, count, numpy) for _ in range(math.prod(shape[:-1]))]
        return np.array(rows, numpy).reshape(shape)

    array = drawn((count,), draw)
    return finish(array, requires_grad, device, layout)


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None,
    dtype: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Normally distributed; mean and std are numbers (with `size`) or tensors."""
    source = stream(generator)
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise ArgumentTypeError(with_site("normal(): needs size when mean and std are numbers"))
        numpy = _floating(dtype, "normal_kernel_cpu")
        array = drawn(
            arguments.size((size,)),
            lambda shape: ops.normal(source, shape, numpy, float(mean), float(std)),
        )
        return finish(array, requires_grad, device)
    given = tuple(x for x in (mean, std) if isinstance(x, Tensor))

    def draw(*arrays: Any) -> Any:
        values = iter(arrays)
        m, s = (next(values) if isinstance(x, Tensor) else x for x in (mean, std))
        return ops.normal_like(source, m, s)

    return wrap(drawn_for(given, draw))


def _like(function: Any, name: str) -> Any:
    def like(input: Any, *args: Any, dtype: Any = None, **options: Any) -> Tensor:  # noqa: A002
        x = arguments.tensor(input, name)
        chosen = x.dtype if dtype is None else dtype
        options.pop("memory_format", None)
        grad = options.pop("requires_grad", False)

        def draw(shape: tuple[int, ...]) -> Any:
            with _outside_of_vmap():
                return function(*args, shape, dtype=chosen, **options)._data

        array = drawn_for((x,), lambda a: ops.in_memory_order(a, draw), shaped=True)
        return finish(array, grad)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = f"`{function.__name__}` of the shape and dtype of `input`."
    return like


rand_like = _like(rand, "rand_like")
randint_like = _like(randint, "randint_like")


def randn_like(
    input: Any, *, dtype: Any = None, generator: Any = None, device: Any = None,  # noqa: A002
    layout: Any = None, requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """`randn` of the shape and dtype of `input`."""
    x = arguments.tensor(input, "randn_like")
    source = stream(generator)
    numpy = _floating(x.dtype if dtype is None else dtype, "normal_kernel_cpu")

    def draw(a: Any) -> Any:
        plain = bool(a.flags.c_contiguous)
        return ops.in_memory_order(
            a, lambda shape: ops.normal(source, shape, numpy, 0.0, 1.0, plain)
        )

    return finish(drawn_for((x,), draw, shaped=True), requires_grad, device, layout)


def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:  # noqa: A002
    """1 with the probability that stands at each place of input (or p everywhere), else 0."""
    x = arguments.tensor(input, "bernoulli")
    source, numpy = stream(generator), x._data.dtype
    if p is None:
        return wrap(drawn_for((x,), lambda a: ops.bernoulli(source, a, numpy)))
    return wrap(drawn_for((x,), lambda a: ops.bernoulli(source, float(p), numpy, a.shape)))


def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None,  # noqa: A002
    out: Any = None,
) -> Tensor:  # fmt: skip
    """Indices drawn by the weights in each row."""
    x = arguments.tensor(input, "multinomial")
    if x.ndim not in (1, 2):
        raise ArgumentRuntimeError(with_site("prob_dist must be 1 or 2 dim"))
    if num_samples <= 0:
        raise ArgumentRuntimeError(with_site("cannot sample n_sample <= 0 samples"))
    source = stream(generator)

    def draw(a: Any) -> Any:
        rows = a if a.ndim < 3 else a.reshape(-1, a.shape[-1])
        found = ops.multinomial(source, rows, num_samples, replacement)
        return found.reshape(*a.shape[:-1], num_samples)

    return wrap(drawn_for((x,), draw))


def dropout_mask(x: Tensor, p: float) -> Tensor:
    """1 / (1 - p) with probability 1 - p, else 0."""
    numpy = x._data.dtype

    def draw(shape: tuple[int, ...]) -> Any:
        return ops.dropout_mask(default_generator, shape, p, numpy)

    return wrap(drawn_for((x,), lambda a: ops.in_memory_order(a, draw), shaped=True))


# ---------------------------------------------------------------- in place
def _drawn(self: Tensor, draw: Any) -> Tensor:
    """`self` filled by `draw(shape)`, in the order in which its memory lies."""
    from pullback.api.inplace import random_fill

    def in_order(a: Any) -> Any:
        return ops.in_memory_order(a, draw)

    return random_fill(self, drawn_for((self,), in_order, shaped=True, inplace=True))


def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
    """Filled with numbers evenly spread over [from, to)."""
    g, dtype = stream(generator), self._data.dtype
    return _drawn(self, lambda shape: ops.uniform(g, shape, dtype, float(from_), float(to)))


def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Filled with normally distributed numbers."""
    g, dtype = stream(generator), self._data.dtype

    def draw(a: Any) -> Any:
        plain = bool(a.flags.c_contiguous)
        return ops.in_memory_order(
            a, lambda shape: ops.normal(g, shape, dtype, float(mean), float(std), plain)
        )

    from pullback.api.inplace import random_fill

    return random_fill(self, drawn_for((self,), draw, shaped=True, inplace=True))


def random_(self: Tensor, *bounds: Any, generator: Any = None) -> Tensor:
    """Filled with integers: all that the dtype holds, or `random_(to)`, `random_(from, to)`."""
    g, dtype = stream(generator), self._data.dtype
    if not bounds:
        return _drawn(self, lambda shape: ops.random_integers(g, shape, dtype))
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
    return _drawn(self, lambda shape: ops.randint(g, low, high, shape, dtype))


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Filled with 1 with probability p (a number or a tensor), else 0."""
    g, dtype = stream(generator), self._data.dtype
    if isinstance(p, Tensor):
        from pullback.api.inplace import random_fill

        def draw(a: Any, chances: Any) -> Any:
            return ops.in_memory_order(
                a, lambda shape, chance: ops.bernoulli(g, chance, dtype), chances
            )

        return random_fill(self, drawn_for((self, p), draw, shaped=True, inplace=True))
    return _drawn(self, lambda shape: ops.bernoulli(g, float(p), dtype, shape))


def exponential_(self: Tensor, lambd: float = 1, *, generator: Any = None) -> Tensor:
    """Filled with exponentially distributed numbers of rate lambd."""
    g, dtype = stream(generator), self._data.dtype
    return _drawn(self, lambda shape: ops.exponential(g, shape, dtype, float(lambd)))


def geometric_(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Filled with the number of trials up to the first success of probability p."""
    g, dtype = stream(generator), self._data.dtype
    return _drawn(self, lambda shape: ops.geometric(g, shape, dtype, float(p)))


def cauchy_(
    self: Tensor, median: float = 0, sigma: float = 1, *, generator: Any = None
) -> Tensor:
    """Filled with numbers of a Cauchy distribution."""
    g, dtype = stream(generator), self._data.dtype
    return _drawn(self, lambda shape: ops.cauchy(g, shape, dtype, float(median), float(sigma)))


def log_normal_(
    self: Tensor, mean: float = 1, std: float = 2, *, generator: Any = None
) -> Tensor:
    """Filled with numbers whose logarithm is normally distributed."""
    g, dtype = stream(generator), self._data.dtype
    return _drawn(self, lambda shape: ops.log_normal(g, shape, dtype, float(mean), float(std)))


def poisson(input: Any, generator: Any = None) -> Tensor:  # noqa: A002
    """Counts of a Poisson distribution whose rate stands at each place."""
    x = arguments.tensor(input, "poisson")
    source = stream(generator)
    return wrap(drawn_for((x,), lambda a: ops.poisson(source, a)))
