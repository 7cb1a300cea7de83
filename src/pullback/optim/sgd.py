"""Stochastic gradient descent (layer 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentValueError
from pullback.optim.optimizer import (
    Optimizer,
    at_least_zero,
    evaluated,
    one_implementation,
    recording,
)


class SGD(Optimizer):
    """Each parameter moves against its gradient, times lr.

    momentum: how much of the last move is made again.
    dampening: how much of the gradient does not enter the move that is remembered.
    weight_decay: times the parameter, added to its gradient.
    nesterov: the gradient counts once more after the momentum.
    maximize: moves along the gradient.

    Raises ValueError for a negative option, and for nesterov without momentum.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        at_least_zero(learning_rate=lr)
        if momentum < 0.0:
            raise ArgumentValueError(with_site(f"Invalid momentum value: {momentum}"))
        if weight_decay < 0.0:
            raise ArgumentValueError(with_site(f"Invalid weight_decay value: {weight_decay}"))
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ArgumentValueError(
                with_site("Nesterov momentum requires a momentum and zero dampening")
            )
        one_implementation(foreach, fused)
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "dampening": dampening,
                "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
                "foreach": foreach, "differentiable": differentiable, "fused": fused,
            },
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (
                ("nesterov", False), ("maximize", False), ("foreach", None),
                ("differentiable", False), ("fused", None),
            ):  # fmt: skip
                group.setdefault(name, value)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One move of every parameter that has a gradient; returns what `closure` gave."""
        with recording(self):
            loss = evaluated(closure)
            for group in self.param_groups:
                for p in group["params"]:
                    if p._grad is not None:
                        self._move(p, p._grad, group)
        return loss

    def _move(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        momentum = group["momentum"]
        if group["maximize"]:
            g = -g
        if group["weight_decay"]:
            g = g.add(p, alpha=group["weight_decay"])
        if momentum:
            state = self.state[p]
            last = state.get("momentum_buffer")
            if last is None:
                last = state["momentum_buffer"] = g.detach().clone()
            else:
                last.mul_(momentum).add_(g, alpha=1 - group["dampening"])
            g = g.add(last, alpha=momentum) if group["nesterov"] else last
        lr = group["lr"]
        if isinstance(lr, Tensor) and group["differentiable"]:
            p.sub_(g * lr)
        else:
            p.add_(g, alpha=-float(lr))
