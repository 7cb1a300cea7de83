"""Modules and parameters in lists, in dicts and one after another (layer 6)."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    DimensionError,
)
from pullback.nn.module import Module, indented
from pullback.nn.parameter import Parameter


def _position(index: Any, n: int) -> int:
    """An index of a list of n, not negative."""
    i = operator.index(index)
    if not -n <= i < n:
        raise DimensionError(with_site(f"index {i} is out of range"))
    return i % n


class _Numbered(Module):
    """What `Sequential` and `ModuleList` share: modules under the names "0", "1", ..."""

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[_position(index, len(self))]

    def _renumber(self, modules: Iterable[Any]) -> None:
        fresh = {str(i): m for i, m in enumerate(modules)}
        self._modules.clear()
        self._modules.update(fresh)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, index: Any, module: Any) -> None:
        setattr(self, self._name_at(index), module)

    def append(self, module: Any) -> Self:
        """A module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Takes out one module, or a slice of them."""
        found = self[key]  # type: ignore[index]
        del self[key]  # type: ignore[attr-defined]
        return found


class Sequential(_Numbered):
    """Modules called one after another, each with what the one before returned.

    args: modules, or one OrderedDict of names and modules.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:  # noqa: A002
        """The result of the last module."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]  # noqa: A001
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *self._checked(other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend(self._checked(other))

    @staticmethod
    def _checked(other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ArgumentValueError(
                with_site(
                    "add operator supports only objects of Sequential class, but "
                    f"{type(other)} is given."
                )
            )
        return other

    def _repeated(self, times: Any) -> list[Any]:
        if not isinstance(times, int):
            raise ArgumentTypeError(
                with_site(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
            )
        if times <= 0:
            raise ArgumentValueError(
                with_site(f"Non-positive multiplication factor {times} for {type(self)}")
            )
        return list(self) * times

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*self._repeated(other))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Self:
        self._renumber(self._repeated(other))
        return self

    def insert(self, index: int, module: Module) -> Self:
        """A module before the one at a position."""
        if not isinstance(module, Module):
            raise AssertionError(with_site(f"module should be of type: {Module}"))
        n = len(self)
        if not -n <= index <= n:
            raise DimensionError(with_site(f"Index out of range: {index}"))
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(_Numbered):
    """Modules in a list: it is indexed, and has no `forward` of its own."""

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name_at(index)]

    def __delitem__(self, index: Any) -> None:
        modules = list(self)
        if isinstance(index, slice):
            del modules[index]
        else:
            del modules[_position(index, len(self))]
        self._renumber(modules)

    def __iadd__(self, modules: Iterable[Any]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *other])

    def insert(self, index: int, module: Module) -> None:
        """A module before the one at a position."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Any]) -> Self:
        """Modules at the end."""
        if not isinstance(modules, Iterable):
            raise _not_iterable("ModuleList.extend", "an iterable", modules)
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        if not len(self):
            return f"{self._get_name()}()"
        lines: list[str] = []
        first = 0
        for text, group in itertools.groupby(repr(module) for module in self):
            n = len(list(group))
            line = f"({first}): {text}" if n == 1 else f"({first}-{first + n - 1}): {n} x {text}"
            lines.append(indented(line, 2))
            first += n
        body = "\n  ".join(lines)
        return f"{self._get_name()}(\n  {body}\n)"


class ModuleDict(Module):
    """Modules in a dict, in the order in which they came."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Takes one module out."""
        found = self[key]
        del self[key]
        return found

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """(name, module)."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Puts in what a mapping, or an iterable of pairs, holds."""
        if not isinstance(modules, Iterable):
            raise _not_iterable("ModuleDict.update", "an iterable of key/value pairs", modules)
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _not_iterable(method: str, wanted: str, given: Any) -> Exception:
    return ArgumentTypeError(
        with_site(f"{method} should be called with {wanted}, but got {type(given).__name__}", 3)
    )


def _pairs(given: Any, name: str) -> list[tuple[str, Any]]:
    if isinstance(given, (Mapping, ModuleDict, ParameterDict)):
        return list(given.items())
    found = []
    for i, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise ArgumentTypeError(
                with_site(
                    f"{name} update sequence element #{i} should be Iterable; is"
                    f"{type(pair).__name__}"
                )
            )
        values = list(pair)
        if len(values) != 2:
            raise ArgumentValueError(
                with_site(
                    f"{name} update sequence element #{i} has length {len(values)}; 2 is required"
                )
            )
        found.append((values[0], values[1]))
    return found


# ---------------------------------------------------------------- parameters
def _as_parameter(value: Any) -> Any:
    """A tensor as a Parameter; anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) \
        else value  # fmt: skip


class ParameterList(Module):
    """Parameters in a list; tensors become Parameters, other values are kept as they are."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """A value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise _not_iterable("ParameterList.extend", "an iterable", values)
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """A line for each value."""
        return "\n".join(
            f"  ({i}): {_described(v, str(v.dtype) if isinstance(v, Tensor) else '')}"
            for i, v in enumerate(self)
        )

    def __repr__(self) -> str:
        return _listed(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentRuntimeError(with_site("ParameterList should not be called."))


def _described(value: Any, element: str) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    word = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{word} containing: [{element} of size {'x'.join(map(str, value.shape))}]"


def _listed(module: Module) -> str:
    """As other modules, with a line for every value even when it is the only one."""
    extra = module.extra_repr()
    if not extra:
        return f"{module._get_name()}()"
    return f"{module._get_name()}(\n  " + extra.replace("\n", "\n  ") + "\n)"


class ParameterDict(Module):
    """Parameters in a dict; tensors become Parameters, other values are kept as they are."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._attribute(key)
        setattr(self, attribute, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    @staticmethod
    def _attribute(key: Any) -> str:
        if not isinstance(key, str):
            raise ArgumentTypeError(
                with_site(
                    "Index given to ParameterDict cannot be used as a key as it is not a string "
                    f"(type is '{type(key).__name__}')."
                )
            )
        return key

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dict of the same values."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is put in if it is not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes all values out."""
        for key in list(self):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes one value out."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Takes the last key out: (key, value)."""
        key = list(self._keys)[-1]
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict of the keys, all with one value."""
        return ParameterDict(OrderedDict((key, default) for key in keys))

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(key, value)."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Puts in what a mapping, or an iterable of pairs, holds; a plain dict in sorted order."""
        if not isinstance(parameters, Iterable):
            raise _not_iterable(
                "ParametersDict.update", "an iterable of key/value pairs", parameters
            )
        pairs = _pairs(parameters, "ParameterDict")
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(pairs, key=lambda pair: pair[0]) if plain else pairs:
            self[key] = value

    def extra_repr(self) -> str:
        """A line for each value."""
        return "\n".join(
            f"  ({k}): {_described(v, v.type() if isinstance(v, Tensor) else '')}"
            for k, v in self.items()
        )

    def __repr__(self) -> str:
        return _listed(self)

    def __call__(self, input: Any) -> Any:  # noqa: A002
        raise ArgumentRuntimeError(with_site("ParameterDict should not be called."))

    def __or__(self, other: ParameterDict) -> ParameterDict:
        found = self.copy()
        found.update(other)
        return found

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        found = other.copy()
        found.update(self)
        return found

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self
