"""`squeeze_`, `t_` and their like (layer 4): a tensor that becomes a view of what it was."""

from __future__ import annotations

from typing import Any

from pullback.api import movement
from pullback.config import MODE, NO_GRAD
from pullback.eager.apply import apply
from pullback.eager.inplace import check_writable
from pullback.eager.tensor import Tensor, bump_version, gradient_edge, wrap, wrap_with_edge
from pullback.eager.view import family, keep_fresh, steps
from pullback.ops.broadcast import reshape
from pullback.ops.movement import inverse


def _changing(name: str, function: Any) -> Any:
    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        check_writable(self, 0)
        data = self._data
        recording = self._requires_grad and not MODE.get() & NO_GRAD
        # what came before lives on as another tensor: its node is the new one's input
        before = wrap_with_edge(data, gradient_edge(self)) if recording else wrap(data)
        after = function(before, *args, **options)
        self._data = after._data
        bump_version(self)
        step = None if after._rare is None else after._rare.chain[1:]
        if step is not None:
            _move_views(self, step, data.shape)
        if recording:
            edge = after._edge
            if step is not None:
                name = IN_PLACE[type(edge[0]).__name__]
                edge = apply(step[0], (before,), step[1], name)._edge
            self._edge = edge  # the base of a view keeps its own
            if self._rare is not None and self._rare.base is not None:
                keep_fresh(self)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name[:-1]}`, of this tensor itself."
    return method


# PyTorch counts the backward functions of an operation: those of the in-place forms come later.
IN_PLACE = {
    "TBackward0": "TBackward1", "TransposeBackward0": "TransposeBackward1",
    "UnsqueezeBackward0": "UnsqueezeBackward1", "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4", "SqueezeBackward2": "SqueezeBackward5",
}  # fmt: skip


def _move_views(tensor: Tensor, step: Any, shape: tuple[int, ...]) -> None:
    """A view is one step further from its base; the views of a base begin with a step back."""
    rare = tensor._rare
    if rare is not None and rare.base is not None:
        rare.chain = (rare.chain, *step)
        return
    primitive, params, _ = step
    back = {"shape": shape} if primitive is reshape else {"perm": inverse(params["perm"])}
    for view in family(tensor)[1]:
        chain: Any = (None, primitive, back, None)
        for _, *later in steps(view._rare.chain):  # type: ignore[union-attr]
            chain = (chain, *later)
        view._rare.chain = chain  # type: ignore[union-attr]


squeeze_ = _changing("squeeze_", movement.squeeze)
unsqueeze_ = _changing("unsqueeze_", movement.unsqueeze)
t_ = _changing("t_", movement.t)
transpose_ = _changing("transpose_", movement.transpose)
