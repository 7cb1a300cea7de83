"""Shapes, views, joining and splitting (layer 4), with PyTorch's signatures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.core.callsite import with_site
from pullback.core.shapes import broadcast_shapes, infer_size
from pullback.core.size import Size
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentRuntimeError, DimensionError, ShapeError
from pullback.ops import movement as ops
from pullback.ops.broadcast import broadcast_to
from pullback.ops.broadcast import reshape as reshape_
from pullback.typing import Shape


def _reshaped(x: Tensor, shape: Shape, name: str) -> Tensor:
    return apply(reshape_, (x,), {"shape": shape}, name)


def reshape(input: Any, *shape: Any) -> Tensor:  # noqa: A002
    """The same elements in another shape, one size may be -1; a view where strides allow."""
    x = arguments.tensor(input, "reshape")
    wanted = infer_size(arguments.size(shape, "shape"), x._data.size)
    return _reshaped(x, wanted, "ViewBackward0" if can_view(x._data, wanted)
                     else "UnsafeViewBackward0")  # fmt: skip


def can_view(array: Any, shape: Shape) -> bool:
    """Whether an array has the elements of `shape` without a copy."""
    if type(array) is not np.ndarray or array.flags.c_contiguous:
        return True
    return bool(np.may_share_memory(array.reshape(shape), array))  # a copy has its own memory


def view(input: Any, *shape: Any) -> Tensor:  # noqa: A002
    """The same memory in another shape; `view(dtype)` reads the bytes as another dtype.

    Raises RuntimeError where strides do not allow it (use `reshape`).
    """
    x = arguments.tensor(input, "view")
    if len(shape) == 1 and not isinstance(shape[0], (int, tuple, list, Tensor, np.integer)):
        from pullback.api.convert import view_dtype

        return view_dtype(x, shape[0])
    wanted = infer_size(arguments.size(shape), x._data.size)
    if not can_view(x._data, wanted):
        raise ShapeError(
            with_site(
                "view size is not compatible with input tensor's size and stride (at least one "
                "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            )
        )
    return _reshaped(x, wanted, "ViewBackward0")


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:  # noqa: A002
    """Dims start_dim to end_dim made one."""
    x = arguments.tensor(input, "flatten")
    if not x.ndim:
        return _reshaped(x, (1,), "ViewBackward0")
    first, last = arguments.dim(start_dim, x.ndim), arguments.dim(end_dim, x.ndim)
    if first > last:
        raise ArgumentRuntimeError(
            with_site("flatten() has invalid args: start_dim cannot come after end_dim")
        )
    if first == last:
        return x
    shape = x._data.shape
    merged = math.prod(shape[first : last + 1])
    return reshape(x, (*shape[:first], merged, *shape[last + 1 :]))


def unflatten(input: Any, dim: int, sizes: Any) -> Tensor:  # noqa: A002
    """One dim split into several; one size may be -1."""
    x = arguments.tensor(input, "unflatten")
    a = arguments.dim(dim, x.ndim)
    parts = infer_size(arguments.size((sizes,)), x._data.shape[a])
    return _reshaped(x, (*x._data.shape[:a], *parts, *x._data.shape[a + 1 :]), "ViewBackward0")


def squeeze(input: Any, dim: Any = None) -> Tensor:  # noqa: A002
    """Without the dims of size 1: all of them, or those given."""
    x = arguments.tensor(input, "squeeze")
    shape = x._data.shape
    if dim is None:
        return _reshaped(x, tuple(n for n in shape if n != 1), "SqueezeBackward0")
    axes = arguments.dims(dim, x.ndim) if not isinstance(dim, int) else (
        arguments.dim(dim, x.ndim),)  # fmt: skip
    name = "SqueezeBackward1" if isinstance(dim, int) else "SqueezeBackward2"
    kept = tuple(n for i, n in enumerate(shape) if i not in axes or n != 1)
    return _reshaped(x, kept, name)


def unsqueeze(input: Any, dim: int) -> Tensor:  # noqa: A002
    """With a dim of size 1 put in."""
    x = arguments.tensor(input, "unsqueeze")
    a = arguments.dim(dim, x.ndim + 1)
    shape = x._data.shape
    return _reshaped(x, (*shape[:a], 1, *shape[a:]), "UnsqueezeBackward0")


def permute(input: Any, *dims: Any) -> Tensor:  # noqa: A002
    """Dims in another order (a view)."""
    x = arguments.tensor(input, "permute")
    order = arguments.size(dims, "dims")
    if len(order) != x.ndim:
        raise ArgumentRuntimeError(
            with_site(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the "
                f"length of the desired ordering of dimensions i.e. input.dim() = {x.ndim} is not "
                f"equal to len(dims) = {len(order)}"
            )
        )
    perm = tuple(arguments.dim(d, x.ndim) for d in order)
    if len(set(perm)) != len(perm):
        raise ArgumentRuntimeError(with_site("permute(): duplicate dims are not allowed."))
    return apply(ops.permute, (x,), {"perm": perm})


def transpose(input: Any, dim0: Any, dim1: Any) -> Tensor:  # noqa: A002
    """Two dims exchanged (a view)."""
    x = arguments.tensor(input, "transpose")
    a, b = arguments.dim(dim0, x.ndim), arguments.dim(dim1, x.ndim)
    perm = list(range(x.ndim))
    if x.ndim:
        perm[a], perm[b] = b, a
    return apply(ops.permute, (x,), {"perm": tuple(perm)}, "TransposeBackward0")


def t(input: Any) -> Tensor:  # noqa: A002
    """The transpose of a matrix; a vector itself."""
    x = arguments.tensor(input, "t")
    if x.ndim > 2:
        raise ArgumentRuntimeError(
            with_site(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
        )
    perm = (1, 0) if x.ndim == 2 else tuple(range(x.ndim))
    return apply(ops.permute, (x,), {"perm": perm}, "TBackward0")


def movedim(input: Any, source: Any, destination: Any) -> Tensor:  # noqa: A002
    """Dims moved to other places, the rest in order."""
    x = arguments.tensor(input, "movedim")
    old = [source] if isinstance(source, int) else list(source)
    new = [destination] if isinstance(destination, int) else list(destination)
    if len(old) != len(new):
        raise ArgumentRuntimeError(
            with_site(
                "movedim: Invalid source or destination dims: source ("
                f"{old} dims) should contain the same number of dims as destination ({new} dims)"
            )
        )
    old = [arguments.dim(d, x.ndim) for d in old]
    new = [arguments.dim(d, x.ndim) for d in new]
    rest = iter(i for i in range(x.ndim) if i not in old)
    perm = tuple(old[new.index(i)] if i in new else next(rest) for i in range(x.ndim))
    return apply(ops.permute, (x,), {"perm": perm})


def expand(input: Any, *sizes: Any) -> Tensor:  # noqa: A002
    """Size-1 dims repeated without a copy; -1 keeps a size, new dims come first."""
    x = arguments.tensor(input, "expand")
    wanted = arguments.size(sizes)
    shape = x._data.shape
    extra = len(wanted) - len(shape)
    if extra < 0:
        raise ArgumentRuntimeError(
            with_site(
                f"expand({c_type(x)}{{{list(shape)}}}, size={list(wanted)}): the number of sizes "
                f"provided ({len(wanted)}) must be greater or equal to the number of dimensions "
                f"in the tensor ({len(shape)})"
            )
        )
    result = []
    for i, n in enumerate(wanted):
        have = shape[i - extra] if i >= extra else 1
        if n == -1 and i >= extra:
            n = have
        elif n < 0 or (have not in (1, n)):
            raise ArgumentRuntimeError(
                with_site(
                    f"The expanded size of the tensor ({n}) must match the existing size "
                    f"({have}) at non-singleton dimension {i}.  Target sizes: {list(wanted)}.  "
                    f"Tensor sizes: {list(shape)}"
                )
            )
        result.append(n)
    return apply(broadcast_to, (x,), {"shape": tuple(result)})


def c_type(x: Tensor) -> str:
    """PyTorch's class name of a CPU tensor."""
    return f"torch.{arguments.PYTORCH_NAMES[x._data.dtype.name]}Tensor"


def expand_as(input: Any, other: Any) -> Tensor:  # noqa: A002
    """`expand` to the shape of another tensor."""
    return expand(input, other._data.shape)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    xs = arguments.tensor_list(tensors, "broadcast_tensors")
    shape = broadcast_shapes([x._data.shape for x in xs])
    return tuple(expand(x, shape) for x in xs)


def broadcast_shapes_(*shapes: Any) -> Size:
    """The common shape of several shapes."""
    return Size(broadcast_shapes([arguments.size((s,)) for s in shapes]))


def cat(tensors: Any, dim: Any = 0, *, out: Any = None) -> Tensor:
    """Tensors joined along an existing dim; their dtypes are promoted."""
    from pullback.api.elementwise import into

    xs = arguments.tensor_list(tensors, "cat")
    if not xs:
        raise ArgumentRuntimeError(with_site("torch.cat(): expected a non-empty list of Tensors"))
    if any(x.ndim == 0 for x in xs):
        place = next(i for i, x in enumerate(xs) if x.ndim == 0)
        raise ArgumentRuntimeError(
            with_site(f"zero-dimensional tensor (at position {place}) cannot be concatenated")
        )
    # PyTorch skips 1-d empty tensors whatever the other shapes are
    real = tuple(x for x in xs if x._data.shape != (0,)) or xs[:1]
    first = real[0]
    a = arguments.dim(dim, first.ndim)
    for i, x in enumerate(real):
        if x.ndim != first.ndim:
            raise ArgumentRuntimeError(
                with_site(
                    "Tensors must have same number of dimensions: got "
                    f"{first.ndim} and {x.ndim}"
                )
            )
        for k in range(x.ndim):
            if k != a and x._data.shape[k] != first._data.shape[k]:
                raise ArgumentRuntimeError(
                    with_site(
                        f"Sizes of tensors must match except in dimension {a}. Expected size "
                        f"{first._data.shape[k]} but got size {x._data.shape[k]} for tensor "
                        f"number {i} in the list."
                    )
                )
    return into(out, apply(ops.cat, real, {"axis": a}))


def stack(tensors: Any, dim: Any = 0, *, out: Any = None) -> Tensor:
    """Tensors of one shape joined along a new dim."""
    from pullback.api.elementwise import into

    xs = arguments.tensor_list(tensors, "stack")
    if not xs:
        raise ArgumentRuntimeError(with_site("stack expects a non-empty TensorList"))
    for i, x in enumerate(xs):
        if x._data.shape != xs[0]._data.shape:
            raise ArgumentRuntimeError(
                with_site(
                    f"stack expects each tensor to be equal size, but got {list(xs[0].shape)} at "
                    f"entry 0 and {list(x.shape)} at entry {i}"
                )
            )
    a = arguments.dim(dim, xs[0].ndim + 1)
    return into(out, apply(ops.stack, xs, {"axis": a}))


def hstack(tensors: Sequence[Any]) -> Tensor:
    """Joined along the first dim of vectors, the second of anything larger."""
    xs = [atleast_1d(x) for x in arguments.tensor_list(tensors, "hstack")]
    return cat(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Tensor:
    """Joined as rows."""
    return cat([atleast_2d(x) for x in arguments.tensor_list(tensors, "vstack")], 0)


def atleast_1d(input: Any) -> Tensor:  # noqa: A002
    """With at least one dim."""
    return reshape(input, 1) if input.ndim == 0 else input


def atleast_2d(input: Any) -> Tensor:  # noqa: A002
    """With at least two dims, new ones first."""
    return reshape(input, (1, -1)) if input.ndim < 2 else input


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of one size (the last may be smaller) or of given sizes; views."""
    x = arguments.tensor(tensor, "split", "tensor")
    a = arguments.dim(dim, x.ndim)
    if not x.ndim:
        raise ArgumentRuntimeError(with_site("split expects at least a 1-dimensional tensor"))
    n = x._data.shape[a]
    if isinstance(split_size_or_sections, int):
        step = split_size_or_sections
        if step == 0 and n:
            raise ArgumentRuntimeError(
                with_site(
                    "split_size can only be 0 if dimension size is 0, but got dimension size of "
                    f"{n}"
                )
            )
        if step < 0:
            raise ArgumentRuntimeError(
                with_site(
                    "split expects split_size be non-negative, but got split_size="
                    f"{split_size_or_sections}"
                )
            )
        sizes = tuple(min(step, n - i) for i in range(0, n, step)) if n else (0,)
        name = "SplitBackward0"
    else:
        sizes = tuple(int(s) for s in split_size_or_sections)
        if sum(sizes) != n or any(s < 0 for s in sizes):
            raise ArgumentRuntimeError(
                with_site(
                    f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's "
                    f"size at dimension {a}), but got split_sizes={list(sizes)}"
                )
            )
        name = "SplitWithSizesBackward0"
    return apply(ops.split, (x,), {"sizes": sizes, "axis": a}, name)


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:  # noqa: A002
    """At most `chunks` pieces of equal size (the last may be smaller)."""
    x = arguments.tensor(input, "chunk")
    if chunks <= 0:
        raise ArgumentRuntimeError(
            with_site(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        )
    if not x.ndim:
        raise ArgumentRuntimeError(with_site("chunk expects at least a 1-dimensional tensor"))
    a = arguments.dim(dim, x.ndim)
    n = x._data.shape[a]
    return split(x, max(-(-n // chunks), 1), a) if n else split(x, [0] * chunks, a)


def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:  # noqa: A002
    """The slices along a dim, without it; views."""
    x = arguments.tensor(input, "unbind")
    a = arguments.dim(dim, x.ndim)
    if not x.ndim:
        raise DimensionError(
            with_site("Dimension specified as 0 but tensor has no dimensions (unbind)")
        )
    return apply(ops.unbind, (x,), {"axis": a})


def flip(input: Any, *dims: Any) -> Tensor:  # noqa: A002
    """Elements in reverse order along dims (a copy)."""
    x = arguments.tensor(input, "flip")
    axes = arguments.size(dims, "dims")
    return apply(ops.flip, (x,), {"axis": tuple(arguments.dim(d, x.ndim) for d in axes)})


def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor:  # noqa: A002
    """Elements moved along dims, the last coming first; over the flat tensor without dims."""
    x = arguments.tensor(input, "roll")
    moves = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if dims is None:
        flat = reshape(x, -1)
        moved = apply(ops.roll, (flat,), {"shifts": moves, "axis": (0,)})
        return reshape(moved, x._data.shape)
    axes = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(axes) != len(moves):
        raise ArgumentRuntimeError(
            with_site(
                f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(axes)}"
            )
        )
    return apply(
        ops.roll, (x,), {"shifts": moves, "axis": tuple(arguments.dim(d, x.ndim) for d in axes)}
    )


def repeat(input: Any, *sizes: Any) -> Tensor:  # noqa: A002
    """Copies laid side by side; new dims come first."""
    x = arguments.tensor(input, "repeat")
    reps = arguments.size(sizes, "repeats")
    if len(reps) < x.ndim:
        raise ArgumentRuntimeError(
            with_site(
                "Number of dimensions of repeat dims can not be smaller than number of dimensions "
                "of tensor"
            )
        )
    return apply(ops.tile, (x,), {"reps": reps})


def tile(input: Any, dims: Any) -> Tensor:  # noqa: A002
    """As `repeat`, but missing repeats count as 1."""
    reps = arguments.size((dims,), "dims")
    return repeat(input, (1,) * (input.ndim - len(reps)) + reps)


def repeat_interleave(input: Any, repeats: Any, dim: Any = None) -> Tensor:  # noqa: A002
    """Each element (along `dim`) repeated in place."""
    from pullback.api.indexing import index_select
    from pullback.eager.tensor import wrap

    x = arguments.tensor(input, "repeat_interleave")
    if dim is None:
        x, dim = reshape(x, -1), 0
    a = arguments.dim(dim, x.ndim)
    counts = repeats._data if isinstance(repeats, Tensor) else repeats
    return index_select(x, a, wrap(np.repeat(np.arange(x._data.shape[a]), counts)))


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:  # noqa: A002
    """The diagonal of two dims, put last (a view)."""
    x = arguments.tensor(input, "diagonal")
    a, b = arguments.dim(dim1, x.ndim), arguments.dim(dim2, x.ndim)
    if a == b:
        raise ArgumentRuntimeError(
            with_site(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
        )
    return apply(ops.diagonal, (x,), {"offset": offset, "axis1": a, "axis2": b})


def diag(input: Any, diagonal: int = 0) -> Tensor:  # noqa: A002
    """The diagonal of a matrix; of a vector, the matrix that has it."""
    x = arguments.tensor(input, "diag")
    if x.ndim == 1:
        n = x._data.shape[0] + abs(diagonal)
        return apply(
            ops.diagonal_scatter, (x,),
            {"shape": (n, n), "offset": diagonal, "axis1": 0, "axis2": 1},
        )  # fmt: skip
    if x.ndim != 2:
        raise ArgumentRuntimeError(
            with_site(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")
        )
    return globals()["diagonal"](x, diagonal)


def tril(input: Any, diagonal: int = 0) -> Tensor:  # noqa: A002
    """The lower triangle of matrices, zeros above."""
    return apply(ops.tril, (arguments.tensor(input, "tril"),), {"k": diagonal})


def triu(input: Any, diagonal: int = 0) -> Tensor:  # noqa: A002
    """The upper triangle of matrices, zeros below."""
    return apply(ops.triu, (arguments.tensor(input, "triu"),), {"k": diagonal})


def clone(input: Any, *, memory_format: Any = None) -> Tensor:  # noqa: A002
    """A copy that autograd sees through."""
    return apply(ops.clone, (arguments.tensor(input, "clone"),), {})


def contiguous(input: Any, memory_format: Any = None) -> Tensor:  # noqa: A002
    """Itself when it lies in C order, else a copy that does."""
    x = arguments.tensor(input, "contiguous")
    if type(x._data) is not np.ndarray or x._data.flags.c_contiguous:
        return x
    out = clone(x)
    out._data = np.ascontiguousarray(out._data)
    return out


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate grids from vectors; `indexing` "ij" (default) or "xy"."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    xs = [atleast_1d(x) for x in arguments.tensor_list(tensors, "meshgrid")]
    if indexing not in (None, "ij", "xy"):
        raise ArgumentRuntimeError(
            with_site(
                'torch.meshgrid: indexing must be one of "xy" or "ij", but received: '
                f"{indexing}"
            )
        )
    shape = tuple(x._data.shape[0] for x in xs)
    grids = [
        expand(reshape(x, (1,) * i + (-1,) + (1,) * (len(xs) - i - 1)), shape)
        for i, x in enumerate(xs)
    ]
    if indexing == "xy" and len(xs) > 1:
        grids = [transpose(g, 0, 1) for g in grids]
    return tuple(grids)

