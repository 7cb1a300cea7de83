"""Adam and AdamW (layer 6; Kingma and Ba 2015, Loshchilov and Hutter 2019)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.callsite import with_site
from pullback.core.quiet import quiet
from pullback.eager.tensor import Tensor, bump_version, wrap
from pullback.errors import ArgumentValueError, UnsupportedError
from pullback.ops.broadcast import zeros_like
from pullback.optim.optimizer import (
    Optimizer,
    at_least_zero,
    evaluated,
    one_implementation,
    recording,
)

BLOCK = 16384  # elements updated at a time: four arrays of them stay in the cache


class Adam(Optimizer):
    """Each parameter moves by lr times the running mean of its gradient over its running size.

    betas: how much of the running means of g and g^2 is kept at a step.
    eps: added to the size.
    weight_decay: times the parameter, added to its gradient; or, with decoupled_weight_decay,
        times lr and taken from the parameter itself.
    amsgrad: uses the largest running mean of g^2 so far.
    maximize: moves along the gradient.

    Raises ValueError for an option out of its range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        at_least_zero(learning_rate=lr)
        if not eps >= 0.0:
            raise ArgumentValueError(with_site(f"Invalid epsilon value: {eps}"))
        for i, beta in enumerate((betas[0], betas[1])):
            if not 0.0 <= beta < 1.0:
                raise ArgumentValueError(
                    with_site(f"Invalid beta parameter at index {i}: {beta}")
                )
        if not weight_decay >= 0.0:
            raise ArgumentValueError(with_site(f"Invalid weight_decay value: {weight_decay}"))
        one_implementation(foreach, fused)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
                "capturable": capturable, "differentiable": differentiable, "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )  # fmt: skip

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
        state = self.state[p]
        if not state:
            state["step"] = wrap(np.zeros((), np.float32))
            for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 2 + group["amsgrad"]]:
                state[name] = wrap(zeros_like(p._data))
        state["step"].add_(1)
        change = Change(group, float(state["step"]))
        tensors = [p, g, state["exp_avg"], state["exp_avg_sq"]]
        if group["amsgrad"]:
            tensors.append(state["max_exp_avg_sq"])
        arrays = [t._data for t in tensors]
        if group["differentiable"] or any(type(a) is not np.ndarray for a in arrays):
            change.recorded(*tensors)
            return
        quiet.run(change.by_blocks, arrays)
        for t in (p, *tensors[2:]):
            if t is p or t._counter is not None:
                bump_version(t)


class Change:
    """One move of one parameter: its numbers, and how they are applied."""

    def __init__(self, group: dict[str, Any], step: float) -> None:
        self.kept, self.kept_squares = (float(b) for b in group["betas"])
        lr = float(group["lr"])
        self.size = lr / (1 - self.kept**step)
        self.scale = math.sqrt(1 - self.kept_squares**step)
        self.eps = group["eps"]
        self.maximize = group["maximize"]
        decay = group["weight_decay"]
        self.shrink = 1 - lr * decay if decay and group["decoupled_weight_decay"] else None
        self.decay = decay if decay and not group["decoupled_weight_decay"] else None

    def by_blocks(self, arrays: list[Any]) -> None:
        """The move in place, a block at a time, so that memory is gone through once."""
        dense = [np.ascontiguousarray(a) for a in arrays]
        flat = [a.reshape(-1) for a in dense]
        if flat[0].dtype.kind == "c":  # real and imaginary parts are numbers of their own
            flat = [a.view(a.real.dtype) for a in flat]
        n = flat[0].size
        scratch = np.empty((2, min(n, BLOCK)), flat[0].dtype)
        for start in range(0, n, BLOCK):
            parts = [a[start : start + BLOCK] for a in flat]
            self._block(*parts, scratch=scratch[:, : parts[0].size])
        for k, (array, copy) in enumerate(zip(arrays, dense, strict=True)):
            if k != 1 and array.ndim and copy is not array:  # all but the gradient were written
                array[...] = copy

    def _block(
        self, p: Any, g: Any, mean: Any, squares: Any, largest: Any = None, *, scratch: Any
    ) -> None:
        t, other = scratch
        if self.maximize:
            g = np.negative(g, out=other)
        if self.shrink is not None:
            p *= self.shrink
        elif self.decay is not None:
            np.multiply(p, self.decay, out=t)
            g = np.add(g, t, out=other)
        np.subtract(g, mean, out=t)
        t *= 1 - self.kept
        mean += t
        np.multiply(g, g, out=t)
        t *= 1 - self.kept_squares
        squares *= self.kept_squares
        squares += t
        if largest is not None:
            squares = np.maximum(largest, squares, out=largest)
        np.sqrt(squares, out=t)
        t /= self.scale
        t += self.eps
        np.divide(mean, t, out=t)
        t *= self.size
        p -= t

    def recorded(
        self, p: Tensor, g: Tensor, mean: Tensor, squares: Tensor, largest: Tensor | None = None
    ) -> None:
        """The same move by tensor operations, where it is recorded or mapped."""
        if p._data.dtype.kind == "c":
            raise UnsupportedError(
                with_site("Adam of complex parameters is not built for steps that are recorded", 4)
            )
        if self.maximize:
            g = -g
        if self.shrink is not None:
            p.mul_(self.shrink)
        elif self.decay is not None:
            g = g.add(p, alpha=self.decay)
        mean.lerp_(g, 1 - self.kept)
        squares.mul_(self.kept_squares).add_(g * g, alpha=1 - self.kept_squares)
        if largest is not None:
            largest.copy_(largest.maximum(squares))
            squares = largest
        p.sub_(mean / (squares.sqrt() / self.scale + self.eps) * self.size)


class AdamW(Adam):
    """`Adam` whose weight decay acts on the parameters themselves."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *,
        maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip
