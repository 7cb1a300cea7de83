"""Moving elements without computing: permuting, joining, splitting, repeating (layer 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.primitive import Primitive, RuleSpec
from pullback.ops.broadcast import broadcast_to, reshape, shape_of, sum_
from pullback.ops.kinds import conj, linear
from pullback.typing import Axes, Shape


def inverse(perm: Axes) -> Axes:
    """The permutation that undoes `perm`."""
    found = [0] * len(perm)
    for i, p in enumerate(perm):
        found[p] = i
    return tuple(found)


def _batch_permute(size: int, x: Any, *, perm: Axes) -> Any:
    return permute(x, perm=(0, *(p + 1 for p in perm)))


permute = linear(
    "permute", lambda x, *, perm: x.transpose(perm),
    transpose=dict(x=lambda g, perm: permute(g, perm=inverse(perm))),
    batch=_batch_permute, view=True, doc="axes in another order (a view)",
)  # fmt: skip


def swap_axes(x: Any, a: int, b: int) -> Any:
    """`x` (of any kind) with two axes exchanged; axes may be negative."""
    if type(x) is np.ndarray:
        return x.swapaxes(a, b)
    perm = list(range(x.ndim))
    perm[a], perm[b] = perm[b], perm[a]
    return permute(x, perm=tuple(perm))


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return conj(swap_axes(x, -1, -2))


flip = linear(
    "flip", lambda x, *, axis: np.flip(x, axis).copy(),
    transpose=dict(x=lambda g, axis: flip(g, axis=axis)), batch="axes",
    doc="elements in reverse order along axes",
)  # fmt: skip
roll = linear(
    "roll", lambda x, *, shifts, axis: np.roll(x, shifts, axis),
    transpose=dict(x=lambda g, shifts, axis: roll(g, shifts=tuple(-s for s in shifts), axis=axis)),
    batch="axes", doc="elements moved along axes, the last coming first",
)  # fmt: skip


# ---------------------------------------------------------------- joining and splitting
def _cat_back(g: Any, xs_shapes: tuple[Shape, ...], axis: int, needs: tuple[bool, ...]) -> Any:
    found, start = [], 0
    for shape, need in zip(xs_shapes, needs, strict=True):
        stop = start + (shape[axis] if len(shape) > axis else 0)
        found.append(cut(g, axis=axis, start=start, stop=stop) if need else None)
        start = stop
    return found


cat = linear(
    "cat", lambda *xs, axis: np.concatenate(xs, axis), joint=_cat_back, batch="join",
    promotion="arithmetic", doc="tensors joined along an axis",
)  # fmt: skip


def _stack_back(g: Any, axis: int, needs: tuple[bool, ...]) -> Any:
    parts = unbind(g, axis=axis)
    return [p if need else None for p, need in zip(parts, needs, strict=True)]


stack = linear(
    "stack", lambda *xs, axis: np.stack(xs, axis), joint=_stack_back, batch="join",
    promotion="arithmetic", doc="tensors joined along a new axis",
)  # fmt: skip


def _cut(x: Any, *, axis: int, start: int, stop: int) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _uncut_shape(x_shape: Shape, axis: int, start: int, stop: int) -> list[tuple[int, int]]:
    widths = [(0, 0)] * len(x_shape)
    widths[axis] = (start, x_shape[axis] - stop)
    return widths


def _cut_back(g: Any, x_shape: Shape, axis: int, start: int, stop: int) -> Any:
    return pad_zeros(g, widths=tuple(_uncut_shape(x_shape, axis, start, stop)))


cut = linear(
    "cut", _cut, transpose=dict(x=_cut_back), batch="axes", view=True, node_name="SliceBackward0",
    doc="x from start to stop along one axis (a view)",
)  # fmt: skip


def _pad_back(g: Any, x_shape: Shape, widths: tuple[tuple[int, int], ...]) -> Any:
    for axis, (before, after) in enumerate(widths):
        if before or after:
            g = cut(g, axis=axis, start=before, stop=before + x_shape[axis])
    return g


def _batch_pad(size: int, x: Any, *, widths: Any) -> Any:
    return pad_zeros(x, widths=((0, 0), *widths))


pad_zeros = linear(
    "pad_zeros", lambda x, *, widths: np.pad(x, widths), transpose=dict(x=_pad_back),
    batch=_batch_pad, node_name="ConstantPadNdBackward0", doc="x with zeros around it",
)  # fmt: skip


def _split(x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
    found, start = [], 0
    for n in sizes:
        found.append(_cut(x, axis=axis, start=start, stop=start + n))
        start += n
    return tuple(found)


split = Primitive(
    "split", _split, kind="linear", inputs=("x",), params=("sizes", "axis"), outputs=None,
    vjps={"x": RuleSpec(lambda g, axis: cat(*g, axis=axis), ("axis",))}, jvp="linear",
    batch="axes", view=True, doc="x cut into pieces of given sizes (views)",
)  # fmt: skip
unbind = Primitive(
    "unbind", lambda x, *, axis: tuple(np.moveaxis(x, axis, 0)[i, ...] for i in range(x.shape[axis])),
    kind="linear", inputs=("x",), params=("axis",), outputs=None,
    vjps={"x": RuleSpec(lambda g, axis: stack(*g, axis=axis), ("axis",))}, jvp="linear",
    batch="axes", view=True, doc="the slices of x along an axis (views)",
)  # fmt: skip


# ---------------------------------------------------------------- repeating
def _tile_back(g: Any, x_shape: Shape, reps: tuple[int, ...]) -> Any:
    extra = len(reps) - len(x_shape)
    split_shape: list[int] = []
    for i, r in enumerate(reps):
        split_shape += [r, x_shape[i - extra] if i >= extra else 1]
    axes = tuple(range(0, 2 * len(reps), 2))
    return reshape(sum_(reshape(g, shape=tuple(split_shape)), axis=axes, keepdims=False),
                   shape=x_shape)  # fmt: skip


def _batch_tile(size: int, x: Any, *, reps: tuple[int, ...]) -> Any:
    shape = shape_of(x)
    missing = len(reps) - (len(shape) - 1)
    if missing > 0:
        x = reshape(x, shape=(shape[0], *(1,) * missing, *shape[1:]))
    return tile(x, reps=(1, *reps))


tile = linear(
    "tile", lambda x, *, reps: np.tile(x, reps), transpose=dict(x=_tile_back), batch=_batch_tile,
    node_name="RepeatBackward0", doc="x repeated along each axis",
)  # fmt: skip


# ---------------------------------------------------------------- diagonals and triangles
def _diagonal(x: Any, *, offset: int, axis1: int, axis2: int) -> Any:
    out = np.diagonal(x, offset, axis1, axis2)
    out.flags.writeable = x.flags.writeable
    return out


def _diagonal_back(g: Any, x_shape: Shape, offset: int, axis1: int, axis2: int) -> Any:
    return diagonal_scatter(g, shape=x_shape, offset=offset, axis1=axis1, axis2=axis2)


def _batch_diagonal(size: int, x: Any, *, offset: int, axis1: int, axis2: int) -> Any:
    return diagonal(x, offset=offset, axis1=axis1 + 1, axis2=axis2 + 1)


diagonal = linear(
    "diagonal", _diagonal, transpose=dict(x=_diagonal_back), batch=_batch_diagonal, view=True,
    doc="the diagonal of two axes, put last (a view)",
)  # fmt: skip


def _diagonal_scatter(x: Any, *, shape: Shape, offset: int, axis1: int, axis2: int) -> Any:
    out = np.zeros(shape, x.dtype)
    view = np.diagonal(out, offset, axis1, axis2)
    view.flags.writeable = True
    view[...] = x
    return out


def _batch_diagonal_scatter(
    size: int, x: Any, *, shape: Shape, offset: int, axis1: int, axis2: int
) -> Any:
    return diagonal_scatter(
        x, shape=(size, *shape), offset=offset, axis1=axis1 + 1, axis2=axis2 + 1
    )


diagonal_scatter = linear(
    "diagonal_scatter", _diagonal_scatter,
    transpose=dict(x=lambda g, offset, axis1, axis2: diagonal(
        g, offset=offset, axis1=axis1, axis2=axis2)),
    batch=_batch_diagonal_scatter, node_name="DiagEmbedBackward0",
    doc="zeros with x on the diagonal of two axes",
)  # fmt: skip
tril = linear(
    "tril", lambda x, *, k: np.tril(x, k), transpose=dict(x=lambda g, k: tril(g, k=k)),
    batch="leading", doc="the lower triangle of the last two axes, zeros above",
)  # fmt: skip
triu = linear(
    "triu", lambda x, *, k: np.triu(x, k), transpose=dict(x=lambda g, k: triu(g, k=k)),
    batch="leading", doc="the upper triangle of the last two axes, zeros below",
)  # fmt: skip
clone = linear(
    "clone", lambda x: x.copy(order="K"), transpose=dict(x=lambda g: g), batch="elementwise",
    doc="a copy",
)  # fmt: skip
alias = linear(
    "alias", lambda x: x[...], transpose=dict(x=lambda g: g), batch="elementwise", view=True,
    doc="the same memory under another tensor",
)  # fmt: skip


def _batch_bundle(size: int, *xs: Any, batched: tuple[bool, ...]) -> Any:
    return tuple(
        alias(x) if b else broadcast_to(x, shape=(size, *shape_of(x)))
        for x, b in zip(xs, batched, strict=True)
    )


bundle = linear(
    "bundle", lambda *xs: tuple(x[...] for x in xs), joint=lambda g: list(g), outputs=None,
    materialize=False, batch=_batch_bundle, node_name="BackwardHookFunctionBackward",
    doc="the tensors themselves, as the outputs of one node",
)  # fmt: skip
