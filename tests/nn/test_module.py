"""`nn.Module`: what is registered under which name, what goes through it, copies and errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import pullback as torch
from pullback import nn


class Model(nn.Module):
    """Parameters, buffers of both kinds, a tied module, and None of each."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.register_parameter("nothing", None)
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)
        self.first = nn.Linear(2, 2)
        self.again = self.first
        self.empty = None

    def forward(self, x: Any) -> Any:
        return self.first(x) * self.scale


def names(pairs: Any) -> list[str]:
    return [name for name, _ in pairs]


def test_what_an_attribute_is_decides_where_it_goes() -> None:
    m = Model()
    assert names(m.named_parameters()) == ["scale", "first.weight", "first.bias"]
    assert names(m.named_parameters(recurse=False, prefix="m")) == ["m.scale"]
    assert names(m.named_parameters(remove_duplicate=False))[-2:] == ["again.weight", "again.bias"]
    assert names(m.named_buffers()) == ["count", "scratch"]
    assert names(m.named_children()) == ["first"]
    assert names(m.named_modules(remove_duplicate=False)) == ["", "first", "again"]
    assert list(m.state_dict()) == [
        "scale", "count", "first.weight", "first.bias", "again.weight", "again.bias",
    ]  # fmt: skip
    assert m.nothing is None and "nothing" not in m.state_dict()
    assert {"scale", "count", "first"} <= set(dir(m)) and "scale" not in vars(m)


def test_an_attribute_changes_its_kind() -> None:
    m = Model()
    m.count = nn.Parameter(torch.zeros(1))
    assert "count" not in dict(m.named_buffers()) and "count" in dict(m.named_parameters())
    m.first = nn.Identity()
    assert names(m.named_children()) == ["first", "again"]  # its place is kept
    m.plain = 3
    m.plain = nn.Buffer(torch.ones(2), persistent=False)
    assert "plain" in dict(m.named_buffers()) and "plain" not in m.state_dict()
    m.scale = None
    assert "scale" in m._parameters and m.scale is None
    del m.first
    assert not hasattr(m, "first")


def test_buffers_take_tensors_and_parameters_do_not() -> None:
    m = Model()
    m.count = torch.ones(4)
    assert dict(m.named_buffers())["count"].shape == (4,)
    before = m.scale
    with pytest.raises(TypeError, match="cannot assign 'torch.FloatTensor' as parameter 'scale'"):
        m.scale = torch.zeros(2)
    with pytest.raises(TypeError, match="as child module 'first'"):
        m.first = 3
    assert m.scale is before and isinstance(m.first, nn.Linear)


def test_the_base_must_be_set_up_first() -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.w = nn.Parameter(torch.ones(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call") as error:
        Early()
    assert "self.w = nn.Parameter" in str(error.value), "the message shows the user's line"


def test_names_that_cannot_be_used() -> None:
    m = Model()
    for name, words in (("a.b", "can't contain"), ("", "empty string"), ("forward", "exists")):
        with pytest.raises(KeyError, match=words):
            m.register_parameter(name, None)
        with pytest.raises(KeyError, match=words):
            m.register_buffer(name, None)
        with pytest.raises(KeyError, match=words):
            m.add_module(name, None)
    with pytest.raises(TypeError, match="should be a string. Got int"):
        m.register_buffer(3, None)
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'missing'"):
        _ = m.missing
    part = nn.Parameter(torch.ones(2))[:1]
    part.__class__ = nn.Parameter
    with pytest.raises(ValueError, match="non-leaf"):
        m.register_parameter("part", part)


def test_paths() -> None:
    m = nn.Sequential(Model(), nn.Sequential(nn.Linear(1, 1)))
    assert m.get_submodule("1.0") is m[1][0] and m.get_submodule("") is m
    assert m.get_parameter("0.first.weight") is m[0].first.weight
    assert m.get_buffer("0.count") is m[0].count
    with pytest.raises(AttributeError, match="`weight` is not an nn.Module"):
        m.get_submodule("1.0.weight")
    with pytest.raises(AttributeError, match="has no attribute `x`"):
        m.get_parameter("1.x")
    with pytest.raises(AttributeError, match="`first` is not a buffer"):
        m.get_buffer("0.first")
    m.set_submodule("1.0", nn.Identity())
    assert isinstance(m[1][0], nn.Identity)
    with pytest.raises(AttributeError):
        m.set_submodule("1.7", nn.Identity(), strict=True)


def test_modes_and_dtypes() -> None:
    m = Model()
    weight = m.first.weight
    m(torch.ones(1, 2)).sum().backward()
    m.register_buffer("index", torch.tensor([1]))
    assert m.double() is m
    assert m.first.weight is weight and weight.dtype == torch.float64 == weight.grad.dtype
    assert m.index.dtype == torch.int64 and m.count.dtype == torch.float64
    m.to(torch.zeros(1, dtype=torch.float16))
    assert weight.dtype == torch.float16 and weight.is_leaf and weight.requires_grad
    with pytest.raises(TypeError, match="only accepts floating point or complex"):
        m.to(torch.int32)
    with pytest.raises(AssertionError, match="CUDA"):
        m.cuda()
    assert not m.eval().training and not m.first.training and m.train().first.training
    with pytest.raises(ValueError, match="expected to be boolean"):
        m.train("yes")
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())


def test_apply_goes_from_the_inside_out() -> None:
    m = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    seen: list[str] = []
    m.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["ReLU", "Sequential", "Tanh", "Sequential"]


def test_zero_grad() -> None:
    m = nn.Linear(2, 1)
    m(torch.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.weight.grad.tolist() == [[0.0, 0.0]]
    m.zero_grad()
    assert m.weight.grad is None


def test_copies_have_memory_of_their_own() -> None:
    m = Model()
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other.again is other.first and isinstance(other.scale, nn.Parameter)
        assert repr(other) == repr(m) and names(other.named_buffers()) == names(m.named_buffers())
        with torch.no_grad():
            other.first.weight.fill_(7)
        assert (m.first.weight != 7).all()
        assert torch.equal(other(torch.ones(1, 2)), other.again(torch.ones(1, 2)))


def test_a_pickle_of_an_older_module_gets_what_is_new() -> None:
    m = nn.ReLU()
    state = dict(vars(m))
    del state["_backward_pre_hooks"]
    other = nn.ReLU.__new__(nn.ReLU)
    other.__setstate__(state)
    assert other(torch.tensor([-1.0])).item() == 0


def test_text() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Sequential(nn.Linear(1, 2), nn.ReLU())
            self.b = None
            self.register_module("c", None)

        def extra_repr(self) -> str:
            return "one\ntwo"

    assert repr(Two()) == (
        "Two(\n  one\n  two\n  (a): Sequential(\n"
        "    (0): Linear(in_features=1, out_features=2, bias=True)\n    (1): ReLU()\n  )\n"
        "  (c): None\n)"
    )


def test_a_module_without_forward() -> None:
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        nn.Module()(1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        nn.Module(x=1)


def test_what_is_not_built_says_so() -> None:
    with pytest.raises(AttributeError, match="'NoSuchLayer': it is not built yet"):
        _ = nn.NoSuchLayer
    assert "Linear" in dir(nn)


def test_every_module_of_nn_is_documented() -> None:
    for name in nn.__all__:
        assert getattr(nn, name).__doc__, name
