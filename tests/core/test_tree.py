"""Nested containers: what is flattened comes back as it was."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, NamedTuple

import pytest

import pullback as torch
from pullback import func
from pullback.core import tree


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Model:
    weight: Any
    bias: Any
    name: str = dataclasses.field(default="m", metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Checked:
    value: Any

    def __post_init__(self) -> None:
        if not isinstance(self.value, torch.Tensor):
            raise TypeError("a tensor is needed")


X, Y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
TREES = [
    X, (X, Y), [X, [Y]], {"b": X, "a": (Y,)}, Pair(X, [Y]), (), {}, ((), X),
    collections.OrderedDict(b=X, a=Y), collections.defaultdict(list, {"a": X}),
    collections.deque([X, Y], maxlen=3), Model(X, {"deep": Y}, "other"), Checked(X),
]  # fmt: skip


@pytest.mark.parametrize("value", TREES, ids=lambda v: type(v).__name__)
def test_there_and_back(value: Any) -> None:
    leaves, structure = tree.flatten(value)
    again = tree.unflatten(structure, leaves)
    assert type(again) is type(value)
    other, same = tree.flatten(again)
    assert same == structure
    assert all(a is b for a, b in zip(leaves, other, strict=True))
    numbered = tree.unflatten(structure, list(range(len(leaves))))
    assert tree.flatten(numbered) == (list(range(len(leaves))), structure)


def test_what_containers_carry_besides() -> None:
    kept = tree.map_leaves(lambda x: x * 2, collections.defaultdict(list, {"a": X}))
    assert kept["missing"] == []
    assert tree.map_leaves(lambda x: x, collections.deque([X], maxlen=3)).maxlen == 3
    found = tree.map_leaves(lambda x: x * 2, Model(X, Y, "other"))
    assert found.name == "other"
    assert found.bias.tolist() == [6.0, 8.0]


def test_structures_differ() -> None:
    assert tree.flatten((X,))[1] != tree.flatten([X])[1]
    assert tree.flatten({"a": X})[1] != tree.flatten({"b": X})[1]
    assert tree.flatten(Model(X, Y, "a"))[1] != tree.flatten(Model(X, Y, "b"))[1]


def test_transforms_take_and_return_them() -> None:
    model = Model(X, Y, "linear")

    def loss(m: Model, x: torch.Tensor) -> torch.Tensor:
        assert m.name == "linear"
        return ((m.weight * x + m.bias) ** 2).sum()

    found = func.grad(loss)(model, X)
    assert type(found) is Model
    assert found.bias.equal(2 * (X * X + Y))
    rows = func.vmap(lambda m: collections.OrderedDict(out=m.weight * 2))(model)
    assert type(rows) is collections.OrderedDict
    assert rows["out"].equal(2 * X)
