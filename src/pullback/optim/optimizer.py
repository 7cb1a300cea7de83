"""`Optimizer`: parameters in groups, and what is remembered of each (layer 6)."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from pullback.api.hooks import RemovableHandle
from pullback.api.modes import enable_grad, set_grad_enabled
from pullback.core.callsite import here, with_site
from pullback.eager.tensor import Tensor
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    UnsupportedError,
)
from pullback.nn.module import zero_gradient

Group = dict[str, Any]


class Optimizer:
    """The base of all optimisers: a class has `step`, and puts what it remembers into `state`.

    params: tensors, (name, tensor) pairs, or dicts with "params" and options of their own.
    defaults: the options of groups that have none of their own.

    Raises TypeError for what is no tensor, ValueError for no tensors, tensors that were computed,
    and tensors in two groups.
    """

    state: defaultdict[Any, dict[str, Any]]
    param_groups: list[Group]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._start_hooks()
        if isinstance(params, Tensor):
            raise ArgumentTypeError(
                with_site(
                    "params argument given to the optimizer should be an iterable of Tensors or "
                    f"dicts, but got {params.type()}"
                )
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ArgumentValueError(with_site("optimizer got an empty parameter list"))
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def _start_hooks(self) -> None:
        self._step_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Any] = OrderedDict()

    # ------------------------------------------------------------ groups
    def add_param_group(self, param_group: Group) -> None:
        """More parameters, with options of their own."""
        if not isinstance(param_group, dict):
            raise ArgumentTypeError(
                with_site(f"param_group must be a dict, but got {type(param_group)}")
            )
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise ArgumentTypeError(
                with_site(
                    "optimizer parameters need to be organized in ordered collections, but the "
                    "ordering of tensors in sets will change between runs. Please use a list "
                    "instead."
                )
            )
        params, names = _named(list(params))
        for p in params:
            self._check_parameter(p)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if len({id(p) for p in params}) != len(params):
            site = here(1)
            warnings.warn_explicit(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error", UserWarning, site.file, site.line,
            )  # fmt: skip
        if any(id(p) in known for p in params):
            raise ArgumentValueError(
                with_site("some parameters appear in more than one parameter group")
            )
        if names is not None:
            param_group["param_names"] = names
        for name, value in self.defaults.items():
            param_group.setdefault(name, value)
        param_group["params"] = params
        self.param_groups.append(param_group)

    def _check_parameter(self, p: Any) -> None:
        if not isinstance(p, Tensor):
            raise ArgumentTypeError(
                with_site(
                    f"optimizer can only optimize Tensors, but one of the params is "
                    f"{type(p).__name__}", 3,
                )
            )  # fmt: skip
        if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
            raise ArgumentValueError(with_site("can't optimize a non-leaf Tensor", 3))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Takes the gradients of all parameters away, or writes zeros into them."""
        for group in self.param_groups:
            for p in group["params"]:
                zero_gradient(p, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves the parameters; `closure` computes the loss anew."""
        raise UnsupportedError(
            with_site(f"{type(self).__name__} is missing the required 'step' function")
        )

    # ------------------------------------------------------------ state
    def state_dict(self) -> dict[str, Any]:
        """What is remembered of each parameter, and the groups; parameters as numbers."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()
        }
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what `state_dict` gave; tensors come in the dtype of their parameter.

        Raises ValueError when the groups are of other sizes.
        """
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ArgumentValueError(
                with_site("loaded state dict has a different number of parameter groups")
            )
        if any(
            len(mine["params"]) != len(theirs["params"])
            for mine, theirs in zip(self.param_groups, saved, strict=True)
        ):
            raise ArgumentValueError(
                with_site(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
            )
        owners = {
            number: p
            for mine, theirs in zip(self.param_groups, saved, strict=True)
            for number, p in zip(theirs["params"], mine["params"], strict=True)
        }
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            owner = owners.get(key)
            state[key if owner is None else owner] = (
                value if owner is None else _fitted(value, owner, None)
            )
        for mine, theirs in zip(self.param_groups, saved, strict=True):
            theirs["params"] = mine["params"]
            if "param_names" in mine:
                theirs["param_names"] = mine["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults, "state": self.state, "param_groups": self.param_groups,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_step_pre_hooks" not in self.__dict__:
            self._start_hooks()

    # ------------------------------------------------------------ hooks
    def register_step_pre_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before `step`; it may return (args, kwargs)."""
        handle = RemovableHandle(self._step_pre_hooks)
        self._step_pre_hooks[handle.id] = hook
        return handle

    def register_step_post_hook(self, hook: Any) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after `step`."""
        handle = RemovableHandle(self._step_post_hooks)
        self._step_post_hooks[handle.id] = hook
        return handle

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {k}: {group[k]}\n" for k in sorted(group) if k != "params")
        return text + ")"


def _named(params: list[Any]) -> tuple[list[Any], list[str] | None]:
    """The tensors, and their names where pairs were given."""
    pairs = [isinstance(p, tuple) for p in params]
    if not any(pairs):
        return params, None
    if not all(pairs):
        raise ArgumentValueError(
            with_site(
                "all optimizer params should be with/without names. Some param names are missing",
                3,
            )
        )
    return [p for _, p in params], [name for name, _ in params]


def _fitted(value: Any, owner: Tensor, key: Any) -> Any:
    """A remembered value for its parameter: floating tensors in its dtype, but for step counts."""
    if isinstance(value, Tensor):
        return value.to(owner.dtype) if key != "step" and owner._data.dtype.kind in "fc" else value
    if isinstance(value, dict):
        return {k: _fitted(v, owner, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_fitted(v, owner, key) for v in value])
    return value


def _with_hooks(step: Any) -> Any:
    """`step` with the hooks that are registered around it."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        for hook in list(self._step_pre_hooks.values()):
            changed = hook(self, (self, *args), kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise ArgumentRuntimeError(
                        with_site(
                            f"{type(self).__name__}.step must return None or a tuple of (new_args, "
                            f"new_kwargs), but got {changed}."
                        )
                    )
                (_, *args), kwargs = changed  # type: ignore[assignment]
        result = step(self, *args, **kwargs)
        for hook in list(self._step_post_hooks.values()):
            hook(self, (self, *args), kwargs)
        return result

    return hooked


# ---------------------------------------------------------------- for the classes
def evaluated(closure: Callable[[], Any] | None) -> Any:
    """The loss that a closure computes, with recording on."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def recording(optimizer: Optimizer) -> set_grad_enabled:
    """Steps are not recorded, unless the optimiser is `differentiable`."""
    return set_grad_enabled(bool(optimizer.defaults.get("differentiable", False)))


def at_least_zero(**values: Any) -> None:
    """ValueError for a negative option; `lr` may be a tensor with one element."""
    for name, value in values.items():
        if isinstance(value, Tensor) and value._data.size != 1:
            raise ArgumentValueError(with_site("Tensor lr must be 1-element", 3))
        if not value >= 0.0:
            raise ArgumentValueError(
                with_site(f"Invalid {name.replace('_rate', ' rate')}: {value}", 3)
            )


def one_implementation(foreach: Any, fused: Any) -> None:
    """PyTorch's variants give the same numbers; both at once are refused."""
    if foreach and fused:
        raise ArgumentRuntimeError(
            with_site("`fused` and `foreach` cannot be `True` together.", 3)
        )
