"""Keys that are more than slices and index arrays (random keys: tests/oracle/test_keys_live.py)."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch


def grid() -> Any:
    return torch.arange(12.0).reshape(3, 4)


def test_bools_add_a_dim() -> None:
    x = grid()
    assert x[True].shape == (1, 3, 4) and x[False].shape == (0, 3, 4)
    assert x[True, 1].shape == (1, 4)


def test_a_new_dim_beside_index_arrays() -> None:
    assert torch.zeros(2, 3, 5)[0, None, [1, 2]].shape == (1, 2, 5)


def test_byte_tensors_are_masks() -> None:
    x = grid()
    mask = torch.tensor([1, 0, 1], dtype=torch.uint8)
    with pytest.warns(UserWarning, match="torch.uint8 is now deprecated"):
        assert x[mask].tolist() == x[torch.tensor([True, False, True])].tolist()


BAD_WRITES = [
    ((0,), [1, 2], TypeError, "can't assign a list to a torch.FloatTensor"),
    ((0,), torch.ones(3), RuntimeError, "The expanded size of the tensor"),
    (([0],), torch.ones(1, 4, dtype=torch.int64), RuntimeError, "source and destination dtypes"),
    ((0, 0), 1j, RuntimeError, "without overflow"),
]


@pytest.mark.parametrize(("key", "value", "kind", "phrase"), BAD_WRITES)
def test_refused_writes_change_nothing(key: Any, value: Any, kind: type, phrase: str) -> None:
    x = grid()
    with pytest.raises(kind, match=phrase) as caught:
        x[key] = value
    assert "test_indexing.py" in str(caught.value)
    assert torch.equal(x, grid()) and x._version == 0


def test_leading_ones_of_a_written_value_are_dropped() -> None:
    x = grid()
    x[[0, 1]] = torch.zeros(1, 1, 2, 4)
    assert x[:2].sum() == 0 and x[2].sum() == 38
