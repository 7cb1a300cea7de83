"""Random tensors and the default generator (layer 4), with PyTorch's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.api.creation import finish
from pullback.config import Defaults
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.generator import Generator, default_generator
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError
from pullback.ops import random as ops


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
        raise ArgumentRuntimeError(
            with_site(f'"{function}" not implemented for \'{arguments.PYTORCH_NAMES[numpy.name]}\'')
        )
    return numpy


# ---------------------------------------------------------------- seeds
def manual_seed(seed: int) -> Generator:
    """Start the default stream of a seed; returns the default generator."""
    return default_generator.manual_seed(seed)


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
    numpy = _floating(dtype, "uniform_")
    array = ops.uniform(stream(generator), arguments.size(size), numpy)
    return finish(array, requires_grad, device, layout)


def randn(
    *size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normally distributed, mean 0 and variance 1."""
    numpy = _floating(dtype, "normal_kernel_cpu")
    array = ops.normal(stream(generator), arguments.size(size), numpy)
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
    array = ops.randint(stream(generator), first, last, arguments.size((size,)), numpy)
    return finish(array, requires_grad, device, layout)


def randperm(
    n: int, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The numbers 0 to n - 1 in random order."""
    count = arguments.integer(n, "randperm", "n")
    array = ops.randperm(stream(generator), count, arguments.dtype(dtype, dtypes.INT64))
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
        array = ops.normal(source, arguments.size((size,)), numpy, float(mean), float(std))
        return finish(array, requires_grad, device)
    m = mean._data if isinstance(mean, Tensor) else mean
    s = std._data if isinstance(std, Tensor) else std
    if np.any(np.asarray(s) < 0):
        raise ArgumentRuntimeError(with_site("normal expects all elements of std >= 0.0"))
    shape = np.broadcast_shapes(np.shape(m), np.shape(s))
    numpy = mean._data.dtype if isinstance(mean, Tensor) else std._data.dtype
    return wrap((ops.normal(source, shape, numpy) * s + m).astype(numpy, copy=False))


def _like(function: Any, name: str) -> Any:
    def like(input: Any, *args: Any, dtype: Any = None, **options: Any) -> Tensor:  # noqa: A002
        x = arguments.tensor(input, name)
        chosen = x.dtype if dtype is None else dtype
        options.pop("memory_format", None)
        return function(*args, tuple(x._data.shape), dtype=chosen, **options)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = f"`{function.__name__}` of the shape and dtype of `input`."
    return like


rand_like, randn_like = _like(rand, "rand_like"), _like(randn, "randn_like")
randint_like = _like(randint, "randint_like")


def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:  # noqa: A002
    """1 with the probability that stands at each place of input (or p everywhere), else 0."""
    x = arguments.tensor(input, "bernoulli")
    probability = x._data if p is None else np.full(x._data.shape, p, np.float64)
    return wrap(ops.bernoulli(stream(generator), probability, x._data.dtype))


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
    return wrap(ops.multinomial(stream(generator), x._data, num_samples, replacement))


def dropout_mask(x: Tensor, p: float) -> Tensor:
    """1 / (1 - p) with probability 1 - p, else 0."""
    keep = np.full(x._data.shape, 1 - p, np.float64)
    drawn = ops.bernoulli(default_generator, keep, x._data.dtype)
    return wrap(drawn / (1 - p) if p < 1 else drawn)


# ---------------------------------------------------------------- in place
def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
    """Filled with numbers evenly spread over [from, to)."""
    return _fill(self, ops.uniform(stream(generator), self._data.shape, self._data.dtype,
                                   float(from_), float(to)))  # fmt: skip


def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Filled with normally distributed numbers."""
    return _fill(self, ops.normal(stream(generator), self._data.shape, self._data.dtype,
                                  float(mean), float(std)))  # fmt: skip


def random_(self: Tensor, *bounds: int, generator: Any = None) -> Tensor:
    """Filled with integers: all that the dtype holds, or `random_(to)`, `random_(from, to)`."""
    source = stream(generator)
    if not bounds:
        return _fill(self, ops.random_integers(source, self._data.shape, self._data.dtype))
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
    return _fill(self, ops.randint(source, low, high, self._data.shape, self._data.dtype))


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Filled with 1 with probability p (a number or a tensor), else 0."""
    chance = p._data if isinstance(p, Tensor) else np.asarray(p, np.float64)
    wide = np.broadcast_to(chance, self._data.shape)
    return _fill(self, ops.bernoulli(stream(generator), wide, self._data.dtype))


def exponential_(self: Tensor, lambd: float = 1, *, generator: Any = None) -> Tensor:
    """Filled with exponentially distributed numbers of rate lambd."""
    return _fill(self, ops.exponential(stream(generator), self._data.shape, self._data.dtype,
                                       float(lambd)))  # fmt: skip


def _fill(self: Tensor, array: Any) -> Tensor:
    from pullback.api.inplace import random_fill

    return random_fill(self, array)
