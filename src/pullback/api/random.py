"""Random tensors and the default generator (layer 4), with PyTorch's signatures."""

from __future__ import annotations

from typing import Any

from pullback.api import arguments
from pullback.api.creation import finish
from pullback.config import Defaults
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.generator import Generator, default_generator
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, UnsupportedError
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
        raise UnsupportedError(
            with_site(f'"{function}" not implemented for \'{arguments.PYTORCH_NAMES[numpy.name]}\'')
        )
    return numpy


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
    return wrap(ops.normal_like(source, m, s))


def _like(function: Any, name: str) -> Any:
    def like(input: Any, *args: Any, dtype: Any = None, **options: Any) -> Tensor:  # noqa: A002
        x = arguments.tensor(input, name)
        chosen = x.dtype if dtype is None else dtype
        options.pop("memory_format", None)
        grad = options.pop("requires_grad", False)

        def draw(shape: tuple[int, ...]) -> Any:
            return function(*args, shape, dtype=chosen, **options)._data

        return finish(ops.in_memory_order(x._data, draw), grad)

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
    x = arguments.tensor(input, "randn_like")._data
    source, plain = stream(generator), bool(x.flags.c_contiguous)
    numpy = _floating(dtypes.public(x.dtype) if dtype is None else dtype, "normal_kernel_cpu")

    def draw(shape: tuple[int, ...]) -> Any:
        return ops.normal(source, shape, numpy, 0.0, 1.0, plain)

    return finish(ops.in_memory_order(x, draw), requires_grad, device, layout)


def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:  # noqa: A002
    """1 with the probability that stands at each place of input (or p everywhere), else 0."""
    x = arguments.tensor(input, "bernoulli")
    if p is None:
        return wrap(ops.bernoulli(stream(generator), x._data, x._data.dtype))
    return wrap(ops.bernoulli(stream(generator), float(p), x._data.dtype, x._data.shape))


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
    data = x._data
    return wrap(
        ops.in_memory_order(
            data, lambda shape: ops.dropout_mask(default_generator, shape, p, data.dtype)
        )
    )


# ---------------------------------------------------------------- in place
def _drawn(self: Tensor, draw: Any) -> Tensor:
    """`self` filled by `draw(shape)`, in the order in which its memory lies."""
    from pullback.api.inplace import random_fill

    return random_fill(self, ops.in_memory_order(self._data, draw))


def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
    """Filled with numbers evenly spread over [from, to)."""
    g, dtype = stream(generator), self._data.dtype
    return _drawn(self, lambda shape: ops.uniform(g, shape, dtype, float(from_), float(to)))


def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Filled with normally distributed numbers."""
    g, dtype = stream(generator), self._data.dtype
    plain = bool(self._data.flags.c_contiguous)
    return _drawn(
        self, lambda shape: ops.normal(g, shape, dtype, float(mean), float(std), plain)
    )


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

        drawn = ops.in_memory_order(
            self._data, lambda shape, chance: ops.bernoulli(g, chance, dtype), p._data
        )
        return random_fill(self, drawn)
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
    return wrap(ops.poisson(stream(generator), x._data))
