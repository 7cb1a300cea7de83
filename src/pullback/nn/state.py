"""What a module keeps, as a flat dict and back (layer 6): `state_dict` and `load_state_dict`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pullback.api.modes import no_grad
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError
from pullback.nn.parameter import Parameter

if TYPE_CHECKING:
    from pullback.nn.module import Module

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """What `load_state_dict` did not find, and what it found besides."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )

    def __str__(self) -> str:
        return repr(self)


# ---------------------------------------------------------------- saving
def collect(module: Module, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """The entries of a module and of those inside it, put into `destination`."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()  # type: ignore[attr-defined]
    own = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = own
    for hook in list(module._state_dict_pre_hooks.values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    for number, hook in list(module._state_dict_hooks.items()):
        changed = hook(module, destination, prefix, own)
        if changed is None:
            continue
        if number in module._state_dict_hooks_returning_none:
            raise ArgumentRuntimeError(with_site("state_dict post-hook must return None"))
        destination = changed
    return destination


def kept(module: Module) -> dict[str, Any]:
    """The parameters of a module itself, and the buffers that are saved."""
    mine: dict[str, Any] = dict(module._parameters)
    for name, buffer in module._buffers.items():
        if name not in module._non_persistent_buffers_set:
            mine[name] = buffer
    return {name: value for name, value in mine.items() if value is not None}


def has_extra(module: Module, method: str) -> bool:
    """Whether a class has an extra state of its own."""
    from pullback.nn.module import Module

    return getattr(type(module), method) is not getattr(Module, method)


def save(module: Module, destination: Any, prefix: str, keep_vars: bool) -> None:
    """The entries of one module."""
    for name, value in kept(module).items():
        destination[prefix + name] = value if keep_vars else value.detach()
    if has_extra(module, "get_extra_state"):
        destination[prefix + EXTRA] = module.get_extra_state()


# ---------------------------------------------------------------- loading
def load_all(module: Module, state_dict: Any, strict: bool, assign: bool) -> _IncompatibleKeys:
    """Loads a module and those inside it; see `Module.load_state_dict`."""
    if not isinstance(state_dict, Mapping):
        raise ArgumentTypeError(
            with_site(f"Expected state_dict to be dict-like, got {type(state_dict)}.", 3)
        )
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    values = OrderedDict(state_dict)
    if metadata is not None:
        values._metadata = metadata  # type: ignore[attr-defined]

    def load(module: Module, values: Any, prefix: str) -> None:
        own = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            own["assign_to_params_buffers"] = assign
        module._load_from_state_dict(values, prefix, own, True, missing, unexpected, errors)
        for name, child in module._modules.items():
            if child is not None:
                inner = f"{prefix}{name}."
                load(child, {k: v for k, v in values.items() if k.startswith(inner)}, inner)
        found = _IncompatibleKeys(missing, unexpected)
        for hook in list(module._load_state_dict_post_hooks.values()):
            if hook(module, found) is not None:
                raise ArgumentRuntimeError(
                    with_site(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                        "expected to return new values, if incompatible_keys need to be modified, "
                        "it should be done inplace."
                    )
                )

    load(module, values, "")
    if strict:
        head = []
        if missing:
            head.append(f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if unexpected:
            head.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
        errors[:0] = head
    if errors:
        text = "\n\t".join(errors)
        raise ArgumentRuntimeError(
            with_site(
                f"Error(s) in loading state_dict for {module.__class__.__name__}:\n\t{text}", 3
            )
        )
    return _IncompatibleKeys(missing, unexpected)


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def load_own(
    module: Module, state_dict: Any, prefix: str, metadata: Any, strict: bool,
    missing: list[str], unexpected: list[str], errors: list[str],
) -> None:  # fmt: skip
    """The entries of one module; what goes wrong is noted in the lists."""
    for hook in list(module._load_state_dict_pre_hooks.values()):
        hook(state_dict, prefix, metadata, strict, missing, unexpected, errors)
    assign = metadata.get("assign_to_params_buffers", False)
    mine = kept(module)
    for name, value in mine.items():
        key = prefix + name
        if key in state_dict:
            problem = _load_one(module, name, key, value, state_dict[key], assign)
            if problem:
                errors.append(problem)
        elif strict:
            missing.append(key)
    extra = prefix + EXTRA
    if has_extra(module, "set_extra_state"):
        if extra in state_dict:
            module.set_extra_state(state_dict[extra])
        elif strict:
            missing.append(extra)
    elif strict and extra in state_dict:
        unexpected.append(extra)
    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != extra:
                first, dot, _ = key[len(prefix) :].partition(".")
                if first not in (module._modules if dot else mine):
                    unexpected.append(key)


def _load_one(
    module: Module, name: str, key: str, value: Tensor, given: Any, assign: bool
) -> str | None:
    """Loads one entry; what is wrong with it, if anything is."""
    if not isinstance(given, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(given)}"
        )
    if not value.ndim and tuple(given.shape) == (1,):
        given = given[0]  # files of old versions
    if given.shape != value.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {value.shape}."
        )
    try:
        with no_grad():
            if assign:
                _assign(module, name, value, given)
            else:
                value.copy_(given)
    except Exception as error:
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{value.shape} and whose dimensions in the checkpoint are {given.shape}, an exception "
            f"occurred : {error.args}."
        )
    return None


def _assign(module: Module, name: str, value: Tensor, given: Tensor) -> None:
    if isinstance(value, Parameter):
        if isinstance(given, Parameter):
            given.requires_grad_(value.requires_grad)
        else:
            given = Parameter(given, requires_grad=value.requires_grad)
    setattr(module, name, given)
