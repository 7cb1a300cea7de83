"""The random generator (layer 1): PyTorch's CPU stream, draw for draw.

It is the Mersenne Twister MT19937, seeded with the low 32 bits of the seed in the classical way, as
NumPy's legacy seeding does.  The state is laid out in bytes as PyTorch lays it out, so that a state
saved by one library continues in the other.

`lock` may be taken again by the thread that holds it: a draw takes it, and a fill of several draws
(`pullback.ops.random`) holds it throughout, so that threads never interleave within one array.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.device import check_device, device
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    DeviceError,
)
from pullback.typing import Array

DEFAULT_SEED = 67280421310721
WORDS = 624  # of the twister's state

# PyTorch's CPUGeneratorImplState: the twister with its position, then cached normal samples.
LAYOUT = np.dtype(
    [
        ("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"),
        ("state", "<u8", WORDS), ("normal_x", "<f8"), ("normal_y", "<f8"), ("normal_rho", "<f8"),
        ("normal_is_valid", "<i4"), ("pad1", "<i4"), ("float_normal", "<f4"),
        ("float_normal_is_valid", "u1"), ("pad2", "u1", 3),
    ]
)  # fmt: skip


class Generator:
    """A stream of random numbers; safe to share between threads, copied and pickled by its state.

    device: None, "cpu" or a CPU `device` - others raise RuntimeError

    >>> import pullback
    >>> pullback.rand(2, generator=pullback.Generator().manual_seed(0))
    tensor([0.4963, 0.7682])
    """

    def __init__(self, device: Any = "cpu") -> None:
        try:
            check_device(device)
        except DeviceError:  # elsewhere an AssertionError; a generator is refused as PyTorch does
            kind = str(device).partition(":")[0].upper()
            raise ArgumentRuntimeError(
                with_site(
                    f"Cannot get {kind} generator: Pullback runs on the CPU only, got device "
                    f"{str(device)!r}; use device='cpu'"
                )
            ) from None
        self.lock = threading.RLock()
        self._seed = DEFAULT_SEED
        self._engine: Any = None  # made on first use: importing numpy.random takes 16 ms
        self._fresh = True
        self.next_normal: float | None = None  # the second of a pair of normal samples
        self.next_float_normal: float | None = None  # only carried along: no CPU kernel reads it

    @property
    def device(self) -> device:
        """Always the CPU."""
        return device("cpu")

    # ------------------------------------------------------------ seeds
    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of a seed; returns self.

        seed: int in [-2**63, 2**64) - negative ones wrap modulo 2**64

        Raises RuntimeError for what is not an int, ValueError for an int out of range.
        """
        # NumPy's integers count, its booleans do not: they have no __index__
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise ArgumentRuntimeError(
                with_site(f"manual_seed expected a long, but got {type(seed).__name__}")
            )
        number = seed.__index__()
        if not -(2**63) <= number < 2**64:
            raise ArgumentValueError(
                with_site(f"Overflow when unpacking long long: seed {number} needs over 64 bits")
            )
        with self.lock:
            self._seed = number % 2**64
            self._engine, self._fresh = None, True
            self.next_normal = self.next_float_normal = None
        return self

    def initial_seed(self) -> int:
        """The seed of the stream, in [0, 2**64)."""
        return self._seed

    def seed(self) -> int:
        """Start the stream of an unpredictable seed, and return the seed."""
        number = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(number)
        return number

    # ------------------------------------------------------------ draws
    def _ready(self) -> Any:
        if self._engine is None:
            from numpy.random import MT19937

            self._engine = MT19937()
            self._engine._legacy_seeding(self._seed & 0xFFFFFFFF)
        return self._engine

    def draw32(self, n: int) -> Array:
        """(n,) uint64 - the next n words of 32 bits."""
        with self.lock:
            engine = self._ready()
            if n:
                self._fresh = False
            return np.asarray(engine.random_raw(n), np.uint64)

    def draw64(self, n: int) -> Array:
        """(n,) uint64 - the next n numbers of 64 bits, of two words each, the high one first."""
        words = self.draw32(2 * n)
        return (words[0::2] << np.uint64(32)) | words[1::2]

    def peek64(self, n: int) -> Array:
        """(n,) uint64 - what `draw64(n)` would return; the stream stays where it is."""
        with self.lock:
            engine, fresh = self._ready(), self._fresh
            before = engine.state
            found = self.draw64(n)
            engine.state, self._fresh = before, fresh
            return found

    # ------------------------------------------------------------ state
    def get_state_array(self) -> Array:
        """(5056,) uint8 - the state in PyTorch's layout."""
        record = np.zeros((), LAYOUT)
        with self.lock:
            state = self._ready().state["state"]
            position = int(state["pos"])
            fresh = self._fresh and position == WORDS
            record["seed"], record["seeded"] = self._seed, 1
            record["left"] = 1 if fresh else WORDS + 1 - position
            record["next"] = 0 if fresh else position
            record["state"] = state["key"]
            if self.next_normal is not None:
                record["normal_y"], record["normal_is_valid"] = self.next_normal, 1
            if self.next_float_normal is not None:
                record["float_normal"] = self.next_float_normal
                record["float_normal_is_valid"] = 1
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    def set_state_array(self, state: Array) -> None:
        """Continue a stream from its state.

        state: (5056,) uint8 - as `get_state_array` or PyTorch gives it

        Raises TypeError for another dtype, RuntimeError for another size or an impossible state.
        """
        if state.dtype != np.uint8:
            raise ArgumentTypeError(
                with_site(f"RNG state must be a torch.ByteTensor, got {state.dtype}")
            )
        if state.size != LAYOUT.itemsize:
            raise ArgumentRuntimeError(
                with_site(
                    f"Expected a CPUGeneratorImplState of size {LAYOUT.itemsize} but found the "
                    f"input RNG state size to be {state.size}"
                )
            )
        record = np.frombuffer(np.ascontiguousarray(state).tobytes(), LAYOUT)[0]
        if not (record["seeded"] and 1 <= record["left"] <= WORDS and record["next"] <= WORDS):
            raise ArgumentRuntimeError(with_site("Invalid mt19937 state"))
        with self.lock:
            self._seed = int(record["seed"])
            self._engine = None
            engine = self._ready()
            # NumPy counts the words taken; a twister that has to turn first has taken them all
            self._fresh = int(record["next"]) == 0
            position = WORDS if int(record["left"]) == 1 else int(record["next"])
            engine.state = {
                "bit_generator": "MT19937",
                "state": {"key": record["state"].astype(np.uint32), "pos": position},
            }
            self.next_normal = self.next_float_normal = None
            if record["normal_is_valid"]:
                self.next_normal = float(record["normal_y"])
            if record["float_normal_is_valid"]:
                self.next_float_normal = float(record["float_normal"])

    def get_state(self) -> Any:
        """The state, as a uint8 tensor of 5056 bytes."""
        from pullback.core import dispatch

        return dispatch.WRAP(self.get_state_array())

    def set_state(self, new_state: Any) -> None:
        """Continue from a state that `get_state` (of either library) gave; see `set_state_array`.

        new_state: (5056,) uint8 - a tensor or an ndarray
        """
        if not hasattr(new_state, "dtype"):
            raise ArgumentTypeError(
                with_site(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
            )
        self.set_state_array(np.asarray(new_state))

    def clone_state(self) -> Generator:
        """A new generator that goes on as this one would."""
        other = Generator()
        other.set_state_array(self.get_state_array())
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self.get_state_array(),)


def restored(state: Array) -> Generator:
    """A generator from its pickled state."""
    generator = Generator()
    generator.set_state_array(state)
    return generator


# Unseeded programs draw other numbers in every process, as in PyTorch.
default_generator = Generator()
default_generator.seed()
