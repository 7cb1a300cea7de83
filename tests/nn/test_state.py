"""State dicts: made, loaded, hooked, and all that does not fit."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import pullback as torch
from pullback import nn


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3)))


def test_entries_share_memory_and_have_no_history() -> None:
    m = model()
    state = m.state_dict()
    assert isinstance(state, OrderedDict) and not state["0.weight"].requires_grad
    state["0.weight"].fill_(3)
    assert (m[0].weight == 3).all()
    assert m.state_dict(keep_vars=True)["0.weight"] is m[0].weight
    assert state._metadata["1.0"] == {"version": 2}
    assert list(m[1].state_dict(prefix="p."))[0] == "p.0.weight"


def test_loading_copies_and_converts() -> None:
    a, b = model(), model().double()
    with torch.no_grad():
        a[0].weight.mul_(2)
    weight = b[0].weight
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert b[0].weight is weight and weight.dtype == torch.float64
    assert torch.equal(weight.float(), a[0].weight)


def test_loading_by_assignment() -> None:
    m, state = model(), {k: v + 1 for k, v in model().state_dict().items()}
    m[0].weight.requires_grad_(False)
    m.load_state_dict(state, assign=True)
    assert m[0].weight.data_ptr() == state["0.weight"].data_ptr()
    assert isinstance(m[0].weight, nn.Parameter) and not m[0].weight.requires_grad
    assert m[0].bias.requires_grad


def test_everything_that_does_not_fit_is_listed() -> None:
    m = model()
    state = m.state_dict()
    del state["0.bias"]
    state["0.weight"] = torch.zeros(2, 2)
    state["1.0.weight"] = 5
    state["x.y"] = torch.zeros(1)
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict(state)
    text = str(error.value)
    assert text.startswith("Error(s) in loading state_dict for Sequential:\n\t")
    for words in (
        'Missing key(s) in state_dict: "0.bias". ',
        'Unexpected key(s) in state_dict: "x.y". ',
        "size mismatch for 0.weight: copying a param with shape torch.Size([2, 2]) from "
        "checkpoint, the shape in current model is torch.Size([3, 2]).",
        'While copying the parameter named "1.0.weight", expected torch.Tensor',
    ):
        assert words in text
    with pytest.raises(TypeError, match="dict-like"):
        m.load_state_dict([1])


def test_what_is_missing_may_be_allowed() -> None:
    m = model()
    keys = m.load_state_dict({"0.bias": torch.ones(3), "y": torch.ones(1)}, strict=False)
    assert keys.unexpected_keys == ["y"] and keys.missing_keys[0] == "0.weight"
    assert m[0].bias.tolist() == [1.0, 1.0, 1.0]


def test_batches_were_not_counted_in_old_files() -> None:
    m = nn.BatchNorm1d(2)
    state = dict(m.state_dict())
    del state["num_batches_tracked"]
    m.load_state_dict(state)
    strict = m.state_dict()
    del strict["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        m.load_state_dict(strict)  # says that it is of version 2


class Extra(nn.Module):
    """Keeps a number besides tensors."""

    number = 0

    def get_extra_state(self) -> Any:
        return {"number": self.number}

    def set_extra_state(self, state: Any) -> None:
        self.number = state["number"]


def test_extra_state() -> None:
    a, b = nn.Sequential(Extra()), nn.Sequential(Extra())
    a[0].number = 4
    assert a.state_dict() == {"0._extra_state": {"number": 4}}
    b.load_state_dict(a.state_dict())
    assert b[0].number == 4
    with pytest.raises(RuntimeError, match="Missing key"):
        b.load_state_dict({})
    with pytest.raises(RuntimeError, match="Unexpected key"):
        nn.Sequential(nn.ReLU()).load_state_dict(a.state_dict())


def test_hooks() -> None:
    m = model()
    log: list[Any] = []
    handles = [
        m.register_state_dict_pre_hook(lambda *a: log.append(("save", a[1:]))),
        m.register_state_dict_post_hook(lambda mod, state, prefix, meta: state.update(more=1)),
        m[0].register_load_state_dict_pre_hook(
            lambda mod, state, prefix, *rest: log.append(("load", mod is m[0], prefix))
        ),
        m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear()),
    ]
    state = m.state_dict()
    assert state.pop("more") == 1
    del state["0.bias"]
    m.load_state_dict(state)  # the last hook forgives what is missing
    assert log == [("save", ("", False)), ("load", True, "0.")]
    for handle in handles:
        handle.remove()
    with pytest.raises(RuntimeError, match="Missing"):
        m.load_state_dict(state)
    m.register_state_dict_post_hook(lambda *a: 1)
    with pytest.raises(RuntimeError, match="must return None"):
        m.state_dict()
