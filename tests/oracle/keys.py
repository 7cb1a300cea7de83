"""Random keys, read and written, for any torch-like module.

A key is drawn as a description, which `build` makes into Python, NumPy and tensor objects of the
module.  Most keys fit the shape; some do not, on purpose.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

from tests.oracle.programs import builtin_name

SHAPES = ((), (3,), (0,), (1,), (2, 3), (3, 3), (0, 3), (3, 0), (2, 3, 2), (1, 2, 3), (2, 0, 3),
          (2, 2, 2))  # fmt: skip
INDEX_DTYPES = ("int64", "int64", "int64", "int32", "uint8", "bool", "int16", "float32")
ARRAY_DTYPES = ("int64", "int64", "int32", "uint8", "bool", "int8", "float64", "uint16")


class Case(NamedTuple):
    """One key for one shape, and what is written there."""

    shape: tuple[int, ...]
    key: Any
    value: tuple[str, float]


class Draw:
    """Parts of keys for a shape, used from the first dim on."""

    def __init__(self, choose: random.Random, shape: tuple[int, ...]) -> None:
        self.choose, self.shape, self.axis = choose, shape, 0
        self.lists = 0
        self.common = choose.choice(((), (1,), (2,), (2,), (3,), (0,), (2, 1), (1, 2)))

    def n(self) -> int:
        """The size of the dim in turn."""
        return self.shape[self.axis] if self.axis < len(self.shape) else 2

    def number(self) -> int:
        """An index, mostly within the dim."""
        n = self.n()
        slack = self.choose.random() < 0.03
        return self.choose.randint(-n - slack, max(n - 1 + slack, -n))

    def nested(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Nested lists of numbers."""
        if shape:
            return [self.nested(shape[1:], dtype) for _ in range(shape[0])]
        if dtype == "bool":
            return self.choose.random() < 0.5
        number = self.number()
        return number % 2 if dtype == "uint8" else max(number, 0) if dtype == "uint16" else number

    def array(self, dtypes: tuple[str, ...]) -> tuple[Any, str]:
        """Numbers for an index array, or the elements of a mask."""
        dtype = self.choose.choice(dtypes)
        shape = self.common if self.choose.random() < 0.8 else self.choose.choice(((), (1,), (2,)))
        taken = 1
        if dtype in ("bool", "uint8"):
            taken = self.choose.randint(0 if self.choose.random() < 0.2 else 1, 2)
            shape = self.shape[self.axis : self.axis + taken]
            if self.choose.random() < 0.05:
                shape = (*shape, 1) if self.choose.random() < 0.5 else tuple(n + 1 for n in shape)
        found = self.nested(shape, dtype)
        self.axis += taken
        return found, dtype

    def part(self) -> Any:
        """One part of a key."""
        kind = self.choose.choice((
            "int", "int", "slice", "slice", "none", "dots", "bool", "list", "list", "tensor",
            "tensor", "tensor", "array", "npint", "range", "npbool", "odd",
        ))  # fmt: skip
        if kind in ("int", "npint"):
            found = (kind, self.number())
        elif kind == "slice":
            n = self.n()
            ends = [self.choose.choice((None, self.choose.randint(-n - 1, n + 1))) for _ in "ab"]
            step = self.choose.choice((None, None, 1, 2, 3, 0 if self.choose.random() < 0.1 else 1))
            backwards = self.shape and self.choose.random() < 0.02
            found = (kind, (*ends, -1 if backwards else step))
        elif kind in ("none", "dots"):
            return (kind, None)
        elif kind in ("bool", "npbool"):
            # NumPy's own bools are refused
            numpy = kind == "npbool" and self.choose.random() < 0.1
            return ("npbool" if numpy else "bool", self.choose.random() < 0.6)
        elif kind == "odd":
            if self.choose.random() < 0.8:
                return ("slice", (None, None, None))
            return (kind, self.choose.choice((1.0, "a", 1j, {}, [None], [1.5, 0], [[0], [0, 1]])))
        elif kind == "tensor":
            return (kind, self.array(INDEX_DTYPES))
        elif kind == "array":
            return (kind, self.array(ARRAY_DTYPES))
        elif kind == "list":
            numbers, _ = self.array(("int64", "int64", "bool"))
            self.lists += 1
            return (kind, self.choose.choice((tuple, list))(numbers) if isinstance(numbers, list)
                    else [numbers])  # fmt: skip
        else:
            found = (kind, self.choose.randint(0, max(self.n(), 0)))
        self.axis += 1
        return found

    def key(self) -> Any:
        """A whole key: one part, a tuple, or a list that may be read as one."""
        how = self.choose.random()
        if how < 0.15:
            return ("single", self.part())
        parts = [self.part() for _ in range(self.choose.randint(0, len(self.shape) + 2))]
        while how < 0.92 and self.axis > len(self.shape) and parts and self.choose.random() < 0.9:
            parts = self.shorter(parts)
        if self.lists:  # PyTorch's skip is wrong after masks given as lists
            parts = [p for p in parts if p[0] != "dots"]
        if how > 0.95:  # a list of NumPy's bools is a matter of `tensor`, not of keys
            return ("list", [p for p in parts if p[0] != "npbool"])
        return ("tuple", parts)

    def shorter(self, parts: list[Any]) -> list[Any]:
        """One part fewer, of a key that is too long."""
        self.axis -= 1
        place = next((k for k, p in enumerate(parts) if p[0] not in ("none", "dots", "bool")), 0)
        return parts[:place] + parts[place + 1 :]


def case(seed: int) -> Case:
    """The case of that number."""
    choose = random.Random(seed)
    shape = choose.choice(SHAPES)
    kind = choose.choice((
        "number", "number", "scalar", "fitting", "fitting", "fitting", "ones", "part", "wrong",
        "long", "complex", "big", "array", "none", "float32", "float32 scalar",
    ))  # fmt: skip
    return Case(shape, Draw(choose, shape).key(), (kind, choose.random()))


def build(T: Any, described: Any) -> Any:
    """The key itself."""
    kind, what = described
    if kind == "single":
        return build(T, what)
    if kind in ("tuple", "list") and (not what or isinstance(what[0], tuple)
                                      and what[0] and isinstance(what[0][0], str)):  # fmt: skip
        parts = [build(T, p) for p in what]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "tensor":
        numbers, dtype = what
        return T.tensor(numbers, dtype=getattr(T, dtype))
    if kind == "array":
        numbers, dtype = what
        return np.array(numbers, dtype=dtype)
    simple = {"none": lambda: None, "dots": lambda: ..., "slice": lambda: slice(*what),
              "npint": lambda: np.int64(what), "npbool": lambda: np.bool_(what),
              "range": lambda: range(what)}  # fmt: skip
    return simple[kind]() if kind in simple else what


def numbers(shape: tuple[int, ...], start: float) -> Any:
    """Numbers that all differ."""
    return np.arange(start, start + int(np.prod(shape)), dtype=np.float64).reshape(shape)


def listed(t: Any) -> Any:
    """A tensor's shape and elements; None for None."""
    return None if t is None else (tuple(t.shape), t.tolist())


def read(T: Any, c: Case) -> Any:
    """What reading gives: an error's type, or all there is to see of the result."""
    x = T.tensor(numbers(c.shape, 1.0), requires_grad=True)
    try:
        y = x[build(T, c.key)]
    except Exception as error:
        return builtin_name(error)
    (y * T.tensor(numbers(tuple(y.shape), 2.0))).sum().backward()
    return listed(y), y._is_view(), y.requires_grad, listed(x.grad)


def value_for(T: Any, place: tuple[int, ...], kind: str, c: float) -> Any:
    """What is written at a place of that shape."""
    shapes = {"fitting": place, "ones": (1, 1, *place), "scalar": (), "wrong": (*place, 2),
              "part": place[1:] if c < 0.5 else tuple(1 if k % 2 else n for k, n in
                                                      enumerate(place))}  # fmt: skip
    if kind in shapes:
        return T.tensor(numbers(shapes[kind], 100.0), requires_grad=True)
    if kind == "float32":
        return T.ones(place, dtype=T.float32, requires_grad=True)
    if kind == "float32 scalar":
        return T.tensor(5.0, dtype=T.float32, requires_grad=True)
    return {"number": 7 if c < 0.5 else 2.5, "long": T.ones(place, dtype=T.int64), "big": 2**70,
            "complex": 1j if c < 0.5 else 2 + 0j, "array": np.ones(place),
            "none": None}[kind]  # fmt: skip


def write(T: Any, c: Case) -> Any:
    """What writing leaves: an error's type, or the tensor and both gradients."""
    x = T.tensor(numbers(c.shape, 1.0), requires_grad=True)
    target = x * 1
    try:
        place = tuple(target.detach()[build(T, c.key)].shape)
    except Exception:
        place = ()
    value = value_for(T, place, *c.value)
    try:
        target[build(T, c.key)] = value
    except Exception as error:
        if T.__name__ != "torch":  # which may stop half-way
            assert target.tolist() == x.tolist()
        return builtin_name(error), target._version
    (target * T.tensor(numbers(c.shape, 2.0))).sum().backward()
    return listed(target), listed(x.grad), listed(getattr(value, "grad", None)), target._version
