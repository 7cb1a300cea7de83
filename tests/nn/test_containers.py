"""Sequential, lists and dicts of modules and parameters."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import pullback as torch
from pullback import nn


def kinds(modules: Any) -> str:
    return " ".join(type(m).__name__ for m in modules)


def test_sequential_is_a_list() -> None:
    s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert kinds(s[1:]) == "Tanh Sigmoid" and isinstance(s[-1], nn.Sigmoid) and len(s) == 3
    s.append(nn.ELU()).insert(0, nn.GELU()).extend([nn.CELU()])
    assert kinds(s) == "GELU ReLU Tanh Sigmoid ELU CELU"
    del s[1:3]
    assert list(s._modules) == ["0", "1", "2", "3"] and kinds(s) == "GELU Sigmoid ELU CELU"
    assert isinstance(s.pop(0), nn.GELU)
    s[0] = nn.Mish()
    assert kinds(s + nn.Sequential(nn.ReLU())) == "Mish ELU CELU ReLU"
    assert kinds(2 * nn.Sequential(nn.ReLU(), nn.Tanh())) == "ReLU Tanh ReLU Tanh"
    s += nn.Sequential(nn.SELU())
    s *= 2
    assert len(s) == 8
    assert nn.Sequential()(5) == 5


def test_sequential_errors() -> None:
    s = nn.Sequential(nn.ReLU())
    with pytest.raises(IndexError, match="index 3 is out of range"):
        _ = s[3]
    with pytest.raises(IndexError, match="Index out of range: 9"):
        s.insert(9, nn.ReLU())
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        s.append(3)
    with pytest.raises(ValueError, match="only objects of Sequential class"):
        s + 3
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        s * 0
    assert kinds(s) == "ReLU"


def test_sequential_of_names() -> None:
    s = nn.Sequential(OrderedDict(a=nn.Linear(1, 2), b=nn.ReLU()))
    assert s.a is s[0] and list(s.state_dict()) == ["a.weight", "a.bias"]
    assert list(s[:1]._modules) == ["a"]


def test_module_list() -> None:
    m = nn.ModuleList(nn.Linear(1, 1) for _ in range(3))
    m.insert(0, nn.ReLU())
    del m[-1]
    m += [nn.Tanh()]
    m[3] = nn.Sigmoid()
    assert kinds(m) == "ReLU Linear Linear Sigmoid" and len(list(m.parameters())) == 4
    assert kinds(m[1:3] + [nn.ReLU()]) == "Linear Linear ReLU"
    assert repr(m[1:]) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
        "  (2): Sigmoid()\n)"
    )
    with pytest.raises(TypeError, match="iterable"):
        m.extend(3)
    with pytest.raises(NotImplementedError):
        m(1)


def test_module_dict() -> None:
    d = nn.ModuleDict([("b", nn.ReLU()), ("a", nn.Linear(1, 1))])
    d["c"] = nn.Tanh()
    d.update({"d": nn.ELU()})
    assert list(d) == ["b", "a", "c", "d"] and "a" in d and len(d) == 4
    assert isinstance(d.pop("c"), nn.Tanh) and kinds(d.values()) == "ReLU Linear ELU"
    del d["b"]
    with pytest.raises(KeyError):
        _ = d["b"]
    with pytest.raises(ValueError, match="has length 3; 2 is required"):
        d.update([(1, 2, 3)])
    d.clear()
    assert repr(d) == "ModuleDict()"


def test_parameter_list() -> None:
    p = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1)), "text"])
    assert isinstance(p[0], nn.Parameter) and p[-1] == "text" and len(p[:2]) == 2
    p.append(torch.ones(1, 3))
    p += [nn.Parameter(torch.ones(1))]
    assert [n for n, _ in p.named_parameters()] == ["0", "1", "3", "4"]
    assert repr(p).splitlines()[1] == "    (0): Parameter containing: [torch.float32 of size 2]"
    with pytest.raises(RuntimeError, match="should not be called"):
        p(1)
    with pytest.raises(IndexError, match="out of range"):
        _ = p[9]
    with pytest.raises(TypeError, match="iterable"):
        p.extend(torch.ones(2))


def test_parameter_dict() -> None:
    p = nn.ParameterDict({"b": torch.ones(2), "a": nn.Parameter(torch.zeros(1))})
    assert list(p) == ["a", "b"] and isinstance(p["b"], nn.Parameter)
    p.update(OrderedDict(z=torch.ones(1), c=torch.ones(1)))
    assert list(p) == ["a", "b", "z", "c"] and list(reversed(p))[0] == "c"
    assert p.setdefault("a") is p["a"] and p.get("q", 5) == 5 and p.popitem()[0] == "c"
    both = p | nn.ParameterDict({"n": torch.ones(1)})
    assert list(both) == ["a", "b", "z", "n"] and both["a"] is p["a"]
    assert list(p.fromkeys(["k"], torch.ones(1))) == ["k"] and p.pop("z").shape == (1,)
    with pytest.raises(TypeError, match="not a string"):
        p[3] = torch.ones(1)
    p.clear()
    assert not list(p.parameters()) and repr(p) == "ParameterDict()"
