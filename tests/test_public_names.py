"""The public surface: documented, and under PyTorch's names."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import types

import pytest

import pullback as torch

PUBLIC = sorted(
    n for n in vars(torch)
    if not n.startswith("_") and not isinstance(vars(torch)[n], types.ModuleType)
)  # fmt: skip
MODULES = [
    "pullback.autograd", "pullback.func", "pullback.nn", "pullback.nn.functional",
    "pullback.nn.utils", "pullback.optim",
]  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_function_is_documented(name: str) -> None:
    value = getattr(torch, name)
    if callable(value) and not isinstance(value, type(torch.float32)):
        assert inspect.getdoc(value), name


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_public_module_is_documented(module: str) -> None:
    m = importlib.import_module(module)
    for name in m.__all__:
        assert inspect.getdoc(getattr(m, name)), f"{module}.{name}"


def test_every_method_is_documented() -> None:
    missing = [
        n for n, v in vars(torch.Tensor).items()
        if not n.startswith("_") and callable(v) and not inspect.getdoc(v)
    ]  # fmt: skip
    assert missing == []


def test_missing_names_say_so() -> None:
    with pytest.raises(AttributeError, match="not built yet"):
        _ = torch.no_such_function


def test_lazy_names_are_listed() -> None:
    assert {"graph", "vmap", "func", "nn"} <= set(dir(torch))
    assert callable(torch.graph) and callable(torch.vmap)


def modules_with_examples() -> list[str]:
    found = []
    for info in pkgutil.walk_packages(torch.__path__, "pullback."):
        source = inspect.getsource(importlib.import_module(info.name)) if "data" not in info.name \
            else ""  # fmt: skip
        if ">>> " in source and info.name not in ("pullback.native.fuse",):
            found.append(info.name)
    return found


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.attempted and not result.failed
