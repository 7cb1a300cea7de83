"""Modules as functions of their parameters (layer 6): `functional_call` and its companions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.api.movement import stack
from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    MissingKeyError,
)


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Calls a module with other tensors in place of its parameters and buffers.

    parameter_and_buffer_dicts: one dict of paths (`"0.weight"`) and tensors, or several that have
        no path in common; what the module puts in their place is put into the dict as well.
    args: a tuple of arguments, or one argument that is no tuple.
    tie_weights: a tensor for one name stands for all names of the same parameter.
    strict: the dicts must have all paths of the module, and no others.

    The module is as before afterwards, whatever happens.
    Raises ValueError for a path in two dicts or two tensors for tied names, TypeError for what is
    no tensor, AttributeError for a path to no module, RuntimeError where `strict` does not hold.

    >>> import pullback
    >>> layer = pullback.nn.Linear(2, 1)
    >>> new = {"weight": pullback.ones(1, 2), "bias": pullback.zeros(1)}
    >>> functional_call(layer, new, pullback.tensor([1.0, 2.0]))
    tensor([3.])
    """
    owners, values = _merged(parameter_and_buffer_dicts)
    known = _known(module)
    if strict:
        _check_strict(module, values, known)
    if tie_weights:
        values = _tied(values, known)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, values) as now:
        result = module(*args, **(kwargs or {}))
        for name, owner in owners.items():
            new = now(name)
            if isinstance(new, Tensor) and new is not owner[name]:
                owner[name] = new
    return result


def _merged(given: Any) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The dict that each path comes from, and the tensor at each path."""
    if isinstance(given, dict):
        given = (given,)
    elif not isinstance(given, Sequence):
        raise ArgumentValueError(
            with_site(
                "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but "
                f"got {type(given)}",
                3,
            )
        )
    if not all(isinstance(d, dict) for d in given):
        raise ArgumentValueError(
            with_site(
                "Expected all elements of parameter_and_buffer_dicts to be dictionaries", 3
            )
        )
    owners: dict[str, dict[str, Any]] = {}
    repeated = []
    for d in given:
        repeated += [name for name in d if name in owners]
        owners.update(dict.fromkeys(d, d))
    if repeated:
        raise ArgumentValueError(
            with_site(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
                "ambiguous",
                3,
            )
        )
    values = {name: owner[name] for name, owner in owners.items()}
    for value in values.values():
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                with_site(f"{value} is not an instance of torch.Tensor", 3)
            )
    return owners, values


def _known(module: Any) -> dict[str, Any]:
    """All parameters and buffers of a module by their paths, tied ones under each of them."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _check_strict(module: Any, values: dict[str, Any], known: dict[str, Any]) -> None:
    lines = []
    for words, names in (
        ("Unexpected", [n for n in values if n not in known]),
        ("Missing", [n for n in known if n not in values]),
    ):
        if names:
            lines.append(f"\n\t{words} key(s): {', '.join(map(repr, sorted(names)))}.")
    if lines:
        name = getattr(module, "_get_name", lambda: type(module).__name__)()
        raise ArgumentRuntimeError(
            with_site(f"Error(s) in reparametrizing for {name}:{''.join(lines)}", 3)
        )


def _tied(values: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The values with those of tied names added."""
    groups: dict[int, list[str]] = {}
    for name, tensor in known.items():
        groups.setdefault(id(tensor), []).append(name)
    found = dict(values)
    for names in groups.values():
        given = [name for name in names if name in values]
        if len(names) < 2 or not given:
            continue
        if any(values[name] is not values[given[0]] for name in given):
            raise ArgumentValueError(
                with_site(
                    f"functional_call got multiple values for keys {sorted(given)}, which are "
                    "tied. Consider using tie_weights=False",
                    3,
                )
            )
        found.update(dict.fromkeys(names, values[given[0]]))
    return found


MISSING: Any = object()


@contextmanager
def _replaced(module: Any, values: dict[str, Any]) -> Iterator[Callable[[str], Any]]:
    """The tensors in their places for a while; gives a function that reads a place."""
    places: dict[str, tuple[Any, str]] = {}
    for name in values:
        path, _, last = name.rpartition(".")
        if not last:
            raise MissingKeyError(with_site('tensor name can\'t be empty string ""', 4))
        places[name] = (module.get_submodule(path), last)
    before = []
    try:
        for name, value in values.items():
            owner, last = places[name]
            table = _table(owner, last)
            before.append((table, last, table.get(last, MISSING)))
            table[last] = value
        yield lambda name: getattr(*places[name], None)
    finally:
        for (owner, last), (table, _, old) in zip(
            reversed([places[n] for n in values][: len(before)]), reversed(before), strict=True
        ):
            for other in (owner._parameters, owner._buffers, owner.__dict__):
                if other is not table:
                    other.pop(last, None)
            if old is MISSING:
                table.pop(last, None)
            else:
                table[last] = old


def _table(owner: Any, name: str) -> Any:
    """Where a module keeps the tensor of that name."""
    for table in (owner._parameters, owner._buffers):
        if name in table:
            return table
    return owner.__dict__


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and buffers of models of one class, those of each name stacked: for `vmap`.

    Returns (parameters, buffers), leaves whose first dim counts the models.
    Raises RuntimeError for no model, or models of several classes, modes or `requires_grad`.
    """
    if len(models) == 0:
        raise ArgumentRuntimeError(
            with_site("stack_module_state: Expected at least one model, got 0.")
        )
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise ArgumentRuntimeError(
            with_site(
                "stack_module_state: Expected all models to have the same training/eval mode."
            )
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise ArgumentRuntimeError(
            with_site("stack_module_state: Expected all models to be of the same class.")
        )
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return _stacked(parameters), _stacked(buffers)


def _stacked(states: list[dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for name, first in states[0].items():
        tensors = [state[name] for state in states]
        if any(t.requires_grad != first.requires_grad for t in tensors):
            raise ArgumentRuntimeError(
                with_site(f"Expected {name} from each model to have the same .requires_grad", 3)
            )
        found[name] = stack(tensors).detach().requires_grad_(first.requires_grad)
    return found


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` as a function whose results are not the tensors that it changed.

    PyTorch rewrites changes in place here, for transforms and traces that know none; those of
    Pullback do, so that `func` runs as it is.  What is seen outside is as in PyTorch: an argument
    that `func` changes is changed for the caller too, and is returned as a copy.  A captured
    tensor may be changed as well, which PyTorch refuses.

    remove: "mutations", or "mutations_and_views", which makes no difference to values.
    Raises RuntimeError for another `remove`.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise ArgumentRuntimeError(
            with_site(
                f"functionalize(f, remove='mutations'): received invalid argument for "
                f"remove={remove}. Valid options are 'mutations' and 'mutations_and_views'"
            )
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = [x for x in tree.flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        versions = {id(x): x._version for x in given}

        def own(x: Any) -> Any:
            return x.clone() if id(x) in versions and x._version != versions[id(x)] else x

        return tree.map_leaves(own, func(*args, **kwargs))

    return wrapped
