"""`Module`: parameters, buffers and modules inside it, under the names of attributes (layer 6).

What a module keeps is in `nn/state.py`, calls with hooks in `nn/calls.py`.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from pullback.api import convert
from pullback.api.creation import empty, empty_like
from pullback.api.hooks import RemovableHandle
from pullback.api.modes import no_grad
from pullback.core import dtypes
from pullback.core.callsite import here, with_site
from pullback.core.device import check_device
from pullback.eager.tensor import Tensor
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    GraphError,
    MissingAttributeError,
    MissingKeyError,
    UnsupportedError,
)
from pullback.nn import calls, state
from pullback.nn.parameter import Buffer, Parameter

Members = Iterator[tuple[str, Any]]
HOOKS = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks", "_state_dict_hooks_returning_none", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


def kind(value: Any) -> str:
    """The type of a value as PyTorch's messages name it."""
    return value.type() if isinstance(value, Tensor) else type(value).__name__


class Module:
    """The base of all layers and models: assign parameters and modules to attributes.

    A class calls `super().__init__()` first, then assigns; `forward` says what a call computes.

    >>> import pullback
    >>> class Twice(pullback.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = pullback.nn.Linear(2, 3)
    ...     def forward(self, x):
    ...         return 2 * self.inner(x)
    >>> Twice()
    Twice(
      (inner): Linear(in_features=2, out_features=3, bias=True)
    )
    """

    dump_patches: bool = False
    _version: int = 1
    call_super_init: bool = False

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _is_full_backward_hook: bool | None
    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_hooks_returning_none: OrderedDict[int, bool]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            name = type(self).__name__
            if kwargs:
                words = f"got an unexpected keyword argument '{next(iter(kwargs))}'"
            else:
                words = f"takes 1 positional argument but {len(args) + 1} were given"
            raise ArgumentTypeError(with_site(f"{name}.__init__() {words}"))
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_modules"] = {}
        own["_is_full_backward_hook"] = None
        for name in HOOKS:
            own[name] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ------------------------------------------------------------ calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_hooks or self._forward_pre_hooks
            or self._backward_hooks or self._backward_pre_hooks
        ):  # fmt: skip
            return calls.call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _missing_forward(self, *args: Any) -> Any:
        """What a call computes; a class that is to be called has its own."""
        raise UnsupportedError(
            with_site(f'Module [{type(self).__name__}] is missing the required "forward" function')
        )

    forward: Callable[..., Any] = _missing_forward

    # ------------------------------------------------------------ attributes
    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise _too_early("parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise ArgumentTypeError(
                    with_site(
                        f"cannot assign '{kind(value)}' as parameter '{name}' "
                        "(torch.nn.Parameter or None expected)"
                    )
                )
            self.register_parameter(name, None)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise _too_early("module")
            self._forget(name, "_modules")
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise ArgumentTypeError(
                    with_site(
                        f"cannot assign '{kind(value)}' as child module '{name}' "
                        "(torch.nn.Module or None expected)"
                    )
                )
            modules[name] = None
            return
        buffers = own.get("_buffers")
        if isinstance(value, Buffer) or (buffers is not None and name in buffers):
            self._set_buffer(name, value)
            return
        object.__setattr__(self, name, value)

    def _forget(self, name: str, kept: str) -> None:
        """Whatever the attribute was before; where it was of the same kind, it keeps its place."""
        own = self.__dict__
        own.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != kept:
                own[table].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def _set_buffer(self, name: str, value: Any) -> None:
        buffers = self.__dict__.get("_buffers")
        if buffers is None:
            raise _too_early("buffer")
        if value is not None and not isinstance(value, Tensor):
            raise ArgumentTypeError(
                with_site(
                    f"cannot assign '{kind(value)}' as buffer '{name}' (torch.nn.Buffer, "
                    "torch.Tensor or None expected)"
                )
            )
        if isinstance(value, Buffer):
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        else:
            buffers[name] = value

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            found = own.get(table)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self
        )

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        names.update(self._parameters, self._modules, self._buffers)
        return sorted(n for n in names if not n[:1].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in HOOKS:
            self.__dict__.setdefault(name, OrderedDict())

    # ------------------------------------------------------------ registering
    def _check_name(self, what: str, name: Any, table: Mapping[str, Any]) -> None:
        if "_parameters" not in self.__dict__:
            raise _too_early(what, 3)
        if not isinstance(name, str):
            raise ArgumentTypeError(
                with_site(f"{what} name should be a string. Got {type(name).__name__}")
            )
        if "." in name:
            got = f", got: {name}" if what == "module" else ""
            raise MissingKeyError(with_site(f'{what} name can\'t contain "."{got}'))
        if not name:
            raise MissingKeyError(with_site(f'{what} name can\'t be empty string ""'))
        if name not in table and hasattr(self, name):
            raise MissingKeyError(with_site(f"attribute '{name}' already exists"))

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """A parameter (or None) under a name, which becomes an attribute.

        Raises KeyError for a name with a dot, an empty one or one that is taken, TypeError for
        what is no Parameter, ValueError for one that was computed.
        """
        self._check_name("parameter", name, self.__dict__.get("_parameters", {}))
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentTypeError(
                with_site(
                    f"cannot assign '{kind(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            )
        if param is not None and not param.is_leaf:
            raise ArgumentValueError(
                with_site(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method."
                )
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """A tensor (or None) that is state but not learnt, under a name.

        persistent: whether it is part of `state_dict`.
        """
        self._check_name("buffer", name, self.__dict__.get("_buffers", {}))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentTypeError(
                with_site(
                    f"cannot assign '{kind(tensor)}' object to buffer '{name}' (torch Tensor or "
                    "None required)"
                )
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """A module (or None) inside this one, under a name."""
        if module is not None and not isinstance(module, Module):
            raise ArgumentTypeError(
                with_site(f"{type(module).__name__} is not a Module subclass")
            )
        self._check_name("module", name, self.__dict__.get("_modules", {}))
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of `add_module`."""
        self.add_module(name, module)

    # ------------------------------------------------------------ finding
    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; "" is this one.  Raises AttributeError where none is."""
        found: Any = self
        for name in target.split(".") if target else ():
            found = _member(found, name)
            if not isinstance(found, Module):
                raise MissingAttributeError(with_site(f"`{name}` is not an nn.Module"))
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path; `strict`: only in place of one that is there."""
        if not target:
            raise ArgumentValueError(
                with_site("Cannot set the submodule without a target name!")
            )
        if not isinstance(module, Module):
            raise ArgumentValueError(
                with_site(f"`module` is not an nn.Module, found {type(module)}")
            )
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            if not isinstance(_member(parent, name), Module):
                raise MissingAttributeError(with_site(f"`{name}` is not an nn.Module"))
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path.  Raises AttributeError where none is."""
        path, _, name = target.rpartition(".")
        found = _member(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise MissingAttributeError(with_site(f"`{name}` is not an nn.Parameter"))
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path.  Raises AttributeError where none is."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        found = _member(owner, name)
        if name not in owner._buffers:
            raise MissingAttributeError(with_site(f"`{name}` is not a buffer"))
        return found

    # ------------------------------------------------------------ going through
    def _named_members(
        self, get_members_fn: Callable[[Module], Any], prefix: str = "", recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Members:  # fmt: skip
        """(name, member) for the members that a function gives of each module."""
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules if recurse else [(prefix, self)]:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) for all parameters; those of modules inside too with `recurse`."""
        return self._named_members(
            lambda m: m._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer) for all buffers."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) for the modules right inside this one, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules right inside this one, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(path, module) for this module and all inside it, outer ones first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all inside it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    # ------------------------------------------------------------ state
    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """An OrderedDict of all parameters and persistent buffers by their paths.

        They share memory with the module, and have no history unless `keep_vars`.
        """
        if args:
            site = here(1)
            warnings.warn_explicit(
                "Positional args are being deprecated, use kwargs instead.", FutureWarning,
                site.file, site.line,
            )  # fmt: skip
            given = [destination, prefix, keep_vars]
            given[: len(args)] = args
            destination, prefix, keep_vars = given
        return state.collect(self, destination, prefix, keep_vars)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """The entries of this module itself: what a class may override."""
        state.save(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copies a state dict into parameters and buffers.

        strict: whether its keys must be exactly those of `state_dict()`.
        assign: put its tensors in place of the module's, which keep their memory otherwise.
        Returns (missing_keys, unexpected_keys).  Raises RuntimeError that lists all that does not
        fit; what fits is loaded then all the same, as in PyTorch.
        """
        return state.load_all(self, state_dict, strict, assign)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Loads the entries of this module itself: what a class may override."""
        state.load_own(
            self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
            error_msgs,
        )  # fmt: skip

    def get_extra_state(self) -> Any:
        """What besides tensors goes into the state dict; for a class to override."""
        raise _no_extra_state("get")

    def set_extra_state(self, state: Any) -> None:
        """Takes what `get_extra_state` gave; for a class to override."""
        raise _no_extra_state("set")

    # ------------------------------------------------------------ changing all
    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls `fn` with every module inside, then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """`fn` on every parameter, its gradient and every buffer; parameters stay the same ones."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            with no_grad():
                parameter.data = fn(parameter)
                if parameter._grad is not None:
                    parameter._grad.data = fn(parameter._grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Floating (and complex) parameters and buffers in another dtype: `to(dtype)`, `to(x)`.

        Raises TypeError for a dtype that is not floating or complex, AssertionError for a device
        that is not there.
        """
        convert.to(empty(0), *args, **kwargs)  # refuses what does not fit
        wanted = kwargs.get("dtype")
        for a in args:
            if isinstance(a, (dtypes.dtype, Tensor)):
                wanted = a if isinstance(a, dtypes.dtype) else a.dtype
        if wanted is None:
            return self
        if not dtypes.is_differentiable(wanted.numpy):
            raise ArgumentTypeError(
                with_site(
                    "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                    f"dtype={wanted}"
                )
            )
        if wanted.numpy.kind == "c":
            site = here(1)
            warnings.warn_explicit(
                "Complex modules are a new feature under active development whose design may "
                "change, and some modules might not work as expected when using complex tensors "
                "as parameters or buffers.", UserWarning, site.file, site.line,
            )  # fmt: skip
        return self._apply(lambda t: t.to(wanted) if t._data.dtype.kind in "fc" else t)

    def float(self) -> Self:
        """Floating parameters and buffers as float32."""
        return self._apply(lambda t: t.float() if t._data.dtype.kind == "f" else t)

    def double(self) -> Self:
        """Floating parameters and buffers as float64."""
        return self._apply(lambda t: t.double() if t._data.dtype.kind == "f" else t)

    def half(self) -> Self:
        """Floating parameters and buffers as float16."""
        return self._apply(lambda t: t.half() if t._data.dtype.kind == "f" else t)

    def type(self, dst_type: Any) -> Self:
        """All parameters and buffers in a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Self:
        """The module itself: there is no other device."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Refused: AssertionError, as PyTorch without a GPU."""
        check_device("cuda" if device is None else device)
        return self

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """All parameters and buffers in memory of their own that holds anything."""
        check_device(device)
        return self._apply(empty_like, recurse)

    def share_memory(self) -> Self:
        """The module itself: threads share memory anyway, and there are no shared processes."""
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets the mode in which dropout and batch statistics work, here and inside."""
        if not isinstance(mode, bool):
            raise ArgumentValueError(with_site("training mode is expected to be boolean"))
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """`train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Whether operations on the parameters are recorded."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Takes the gradients of all parameters away, or writes zeros into them."""
        for parameter in self.parameters():
            zero_gradient(parameter, set_to_none)

    # ------------------------------------------------------------ text
    def extra_repr(self) -> str:
        """What the text of the module says besides the modules inside; for a class to override."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        inside = [
            f"({name}): {indented(repr(module), 2)}" for name, module in self._modules.items()
        ]
        if not inside and len(lines) < 2:
            return f"{self._get_name()}({extra})"
        body = "\n  ".join(lines + inside)
        return f"{self._get_name()}(\n  {body}\n)"

    # ------------------------------------------------------------ hooks
    def register_forward_pre_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before `forward`; what it returns replaces the arguments.

        with_kwargs: `hook(module, args, kwargs)` is called, and may return (args, kwargs).
        """
        notes = {"_forward_pre_hooks_with_kwargs": with_kwargs}
        return self._add_hook("_forward_pre_hooks", hook, prepend, notes)

    def register_forward_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:  # fmt: skip
        """Calls `hook(module, args, output)` after `forward`; what it returns replaces the output.

        with_kwargs: `hook(module, args, kwargs, output)` is called.
        always_call: it is called after an error too, with None for the output.
        """
        notes = {
            "_forward_hooks_with_kwargs": with_kwargs,
            "_forward_hooks_always_called": always_call,
        }
        return self._add_hook("_forward_hooks", hook, prepend, notes)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the inputs' gradients are there.

        What it returns replaces grad_input.  It is called with what came to the results when no
        input requires grad; entries for what is no tensor, and for keyword arguments, are None.
        """
        self._one_kind_of_hook(True)
        return self._add_hook("_backward_hooks", hook, prepend)

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_output)` when gradients come to the results, and may replace."""
        return self._add_hook("_backward_pre_hooks", hook, prepend)

    def register_backward_hook(self, hook: Any) -> RemovableHandle:
        """The older kind of backward hook: on the last node of `forward` only."""
        self._one_kind_of_hook(False)
        return self._add_hook("_backward_hooks", hook)

    def _one_kind_of_hook(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise ArgumentRuntimeError(
                with_site(
                    "Cannot use both regular backward hooks and full backward hooks on a single "
                    "Module. Please use only one of them."
                )
            )
        self._is_full_backward_hook = full

    def register_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before the state dict is made."""
        return self._add_hook("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)`, which may change the dict."""
        return self._add_hook(
            "_state_dict_hooks", hook, False, {"_state_dict_hooks_returning_none": True}
        )

    def _register_state_dict_hook(self, hook: Any) -> RemovableHandle:
        """As the post-hook; what it returns replaces the dict."""
        return self._add_hook("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before this module is loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Any, with_module: bool = False
    ) -> RemovableHandle:
        return self._add_hook(
            "_load_state_dict_pre_hooks", BoundHook(hook, self) if with_module else hook
        )

    def register_load_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after this module was loaded."""
        return self._add_hook("_load_state_dict_post_hooks", hook)

    def _add_hook(
        self, table: str, hook: Any, prepend: bool = False, notes: dict[str, bool] | None = None
    ) -> RemovableHandle:
        hooks = self.__dict__[table]
        notes = notes or {}
        handle = RemovableHandle(hooks, *(self.__dict__[note] for note in notes))
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        for note, holds in notes.items():
            if holds:
                self.__dict__[note][handle.id] = True
        return handle


class BoundHook:
    """A hook that is called with a module first; it follows the module into copies."""

    def __init__(self, hook: Any, module: Module) -> None:
        self.hook = hook
        self.module = module

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module, *args)


def zero_gradient(parameter: Tensor, set_to_none: bool) -> None:
    """Takes a gradient away, or makes it zeros without history."""
    grad = parameter._grad
    if grad is None:
        return
    if set_to_none:
        parameter._grad = None
        return
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()


def indented(text: str, spaces: int) -> str:
    """The text with all lines but the first moved to the right."""
    return text.replace("\n", "\n" + " " * spaces)


def _member(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise MissingAttributeError(
            with_site(f"{module._get_name()} has no attribute `{name}`", 3)
        )
    return getattr(module, name)


def _too_early(what: str, depth: int = 2) -> Exception:
    return MissingAttributeError(
        with_site(f"cannot assign {what} before Module.__init__() call", depth)
    )


def _no_extra_state(verb: str) -> Exception:
    return GraphError(
        with_site(
            f"Reached a code path in Module.{verb}_extra_state() that should never be called: a "
            "class that calls it must override it"
        )
    )
