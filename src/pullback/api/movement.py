"""Shapes, views, joining and splitting (layer 4), with PyTorch's signatures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.shapes import broadcast_shapes, infer_size
from pullback.core.size import Size
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor
from pullback.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    DimensionError,
    ShapeError,
    UnsupportedError,
)
from pullback.ops import movement as ops
from pullback.ops.broadcast import broadcast_to
from pullback.ops.broadcast import reshape as reshape_
from pullback.typing import Shape


def _reshaped(x: Tensor, shape: Shape, name: str) -> Tensor:
    return apply(reshape_, (x,), {"shape": shape}, name)


def _listed(function: str, given: tuple[Any, ...], named: Any, name: str) -> tuple[Any, ...]:
    """Numbers given one by one, or one list of them, or the same under its name."""
    if named is arguments.UNSET:
        arguments.given(given, function, name)
        return given
    if given:
        raise ArgumentTypeError(
            with_site(f"{function}() received an invalid combination of arguments: '{name}' twice")
        )
    return (named,)


def reshape(input: Any, *sizes: Any, shape: Any = arguments.UNSET) -> Tensor:  # noqa: A002
    """The same elements in another shape, one size may be -1; a view where strides allow."""
    x = arguments.tensor(input, "reshape")
    given = sizes
    if not sizes or shape is not arguments.UNSET:
        given = _listed("reshape", sizes, shape, "shape")
    wanted = infer_size(arguments.size(given, "shape", "reshape"), x._data.size)
    name = "ViewBackward0"
    if type(x._data) is np.ndarray and not x._data.flags.c_contiguous:
        fits = can_view(x._data, wanted)
        name = "ReshapeAliasBackward0" if fits else "UnsafeViewBackward0"
    return _reshaped(x, wanted, name)


def can_view(array: Any, shape: Shape) -> bool:
    """Whether an array has the elements of `shape` without a copy."""
    if type(array) is not np.ndarray or array.flags.c_contiguous:
        return True
    return bool(np.may_share_memory(array.reshape(shape), array))  # a copy has its own memory


def view(input: Any, *shape: Any, dtype: Any = None) -> Tensor:  # noqa: A002
    """The same memory in another shape; `view(dtype)` reads the bytes as another dtype.

    Raises RuntimeError where strides do not allow it (use `reshape`).
    """
    x = arguments.tensor(input, "view")
    if dtype is not None:
        shape = (dtype,)
    if len(shape) == 1 and (isinstance(shape[0], (dtypes.dtype, type))):
        from pullback.api.convert import view_dtype

        return view_dtype(x, shape[0])
    arguments.given(shape, "view", "size")
    wanted = infer_size(arguments.size(shape, "size", "view"), x._data.size)
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
    first, last = arguments.dim(start_dim, x.ndim), arguments.dim(end_dim, x.ndim)
    if not x.ndim:
        return _reshaped(x, (1,), "ViewBackward0")
    if first > last:
        raise ArgumentRuntimeError(
            with_site("flatten() has invalid args: start_dim cannot come after end_dim")
        )
    if first == last:
        return x
    shape = x._data.shape
    merged = math.prod(shape[first : last + 1])
    return reshape(x, (*shape[:first], merged, *shape[last + 1 :]))


@arguments.numpy_names
def unflatten(input: Any, dim: int, sizes: Any) -> Tensor:  # noqa: A002
    """One dim split into several; one size may be -1."""
    x = arguments.tensor(input, "unflatten")
    a = arguments.dim(dim, x.ndim)
    if not isinstance(sizes, (tuple, list)):
        raise ArgumentTypeError(
            with_site(
                "unflatten(): argument 'sizes' (position 2) must be tuple of ints, not "
                f"{arguments.kind(sizes)}"
            )
        )
    given = arguments.size((sizes,), "sizes", "unflatten")
    if not given:
        raise ArgumentRuntimeError(with_site("unflatten: sizes must be non-empty"))
    n = x._data.shape[a] if x.ndim else 1
    if -1 not in given and math.prod(given) != n:
        raise ArgumentRuntimeError(
            with_site(
                f"unflatten: Provided sizes {list(given)} don't multiply up to the size of dim {a} "
                f"({n}) in the input tensor"
            )
        )
    parts = infer_size(given, n)
    return _reshaped(x, (*x._data.shape[:a], *parts, *x._data.shape[a + 1 :]), "ViewBackward0")


@arguments.numpy_names
def squeeze(input: Any, dim: Any = None) -> Tensor:  # noqa: A002
    """Without the dims of size 1: all of them, or those given."""
    x = arguments.tensor(input, "squeeze")
    shape = x._data.shape
    if dim is None:
        return _reshaped(x, tuple(n for n in shape if n != 1), "SqueezeBackward0")
    if not isinstance(dim, (tuple, list)):
        axes: tuple[int, ...] = (arguments.dim(dim, x.ndim),)
    else:
        axes = arguments.dims(dim, x.ndim) if dim else ()
    name = "SqueezeBackward1" if isinstance(dim, int) else "SqueezeBackward2"
    kept = tuple(n for i, n in enumerate(shape) if i not in axes or n != 1)
    return _reshaped(x, kept, name)


@arguments.numpy_names
def unsqueeze(input: Any, dim: int) -> Tensor:  # noqa: A002
    """With a dim of size 1 put in."""
    x = arguments.tensor(input, "unsqueeze")
    a = arguments.dim(dim, x.ndim + 1)
    shape = x._data.shape
    return _reshaped(x, (*shape[:a], 1, *shape[a:]), "UnsqueezeBackward0")


def permute(input: Any, *order_: Any, dims: Any = arguments.UNSET) -> Tensor:  # noqa: A002
    """Dims in another order (a view)."""
    x = arguments.tensor(input, "permute")
    order = arguments.size(_listed("permute", order_, dims, "dims"), "dims", "permute")
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
    for name, axes in (("source", old), ("destination", new)):
        if len(set(axes)) != len(axes):
            raise ArgumentRuntimeError(with_site(f"movedim: repeated dim in `{name}` ({axes})"))
    rest = iter(i for i in range(x.ndim) if i not in old)
    perm = tuple(old[new.index(i)] if i in new else next(rest) for i in range(x.ndim))
    return apply(ops.permute, (x,), {"perm": perm})


def expand(input: Any, *sizes: Any) -> Tensor:  # noqa: A002
    """Size-1 dims repeated without a copy; -1 keeps a size, new dims come first."""
    x = arguments.tensor(input, "expand")
    arguments.given(sizes, "expand", "size")
    wanted = arguments.size(sizes, "size", "expand")
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
        elif n == -1:
            raise ArgumentRuntimeError(
                with_site(
                    f"The expanded size of the tensor ({n}) isn't allowed in a leading, "
                    f"non-existing dimension {i}"
                )
            )
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
    return expand(input, arguments.tensor(other, "expand_as", "other")._data.shape)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    xs = arguments.tensor_list(tensors, "broadcast_tensors")
    shape = broadcast_shapes([x._data.shape for x in xs])
    return tuple(expand(x, shape) for x in xs)


def broadcast_shapes_(*shapes: Any) -> Size:
    """The common shape of several shapes."""
    given = [arguments.size((s,), "shapes", "broadcast_shapes") for s in shapes]
    if any(n < 0 for s in given for n in s):
        raise ArgumentValueError(
            with_site("Attempting to broadcast a dimension with negative length!")
        )
    return Size(broadcast_shapes(given))


def cat(
    tensors: Any, dim: Any = 0, *, out: Any = None, axis: Any = arguments.UNSET
) -> Tensor:
    """Tensors joined along an existing dim; their dtypes are promoted.

    Raises ValueError for an empty list, RuntimeError for shapes that do not fit.
    """
    from pullback.api.elementwise import into

    dim = arguments.either(dim, axis)
    xs = arguments.tensor_list(tensors, "cat")
    if not xs:
        raise ArgumentValueError(with_site("torch.cat(): expected a non-empty list of Tensors"))
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


@arguments.numpy_names
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


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of one size (the last may be smaller) or of given sizes; views."""
    x = arguments.tensor(tensor, "split", "tensor")
    a = arguments.dim(dim, x.ndim)
    if not x.ndim:
        raise ArgumentRuntimeError(with_site("split expects at least a 1-dimensional tensor"))
    n = x._data.shape[a]
    if isinstance(split_size_or_sections, int) and not isinstance(split_size_or_sections, bool):
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
        if not isinstance(split_size_or_sections, (tuple, list)):
            raise ArgumentTypeError(
                with_site(
                    "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of "
                    f"ints, not {arguments.kind(split_size_or_sections)}"
                )
            )
        sizes = arguments.size((split_size_or_sections,), "split_sizes", "split_with_sizes")
        if sum(sizes) != n or any(s < 0 for s in sizes):
            raise ArgumentRuntimeError(
                with_site(
                    f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's "
                    f"size at dimension {a}), but got split_sizes={list(sizes)}"
                )
            )
        name = "SplitWithSizesBackward0"
    return apply(ops.split, (x,), {"sizes": sizes, "axis": a}, name)


@arguments.numpy_names
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:  # noqa: A002
    """At most `chunks` pieces of equal size (the last may be smaller)."""
    x = arguments.tensor(input, "chunk")
    chunks = arguments.integer(chunks, "chunk", "chunks")
    if chunks <= 0:
        raise ArgumentRuntimeError(
            with_site(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        )
    if not x.ndim:
        raise ArgumentRuntimeError(with_site("chunk expects at least a 1-dimensional tensor"))
    a = arguments.dim(dim, x.ndim)
    n = x._data.shape[a]
    return split(x, max(-(-n // chunks), 1), a) if n else split(x, [0] * chunks, a)


@arguments.numpy_names
def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:  # noqa: A002
    """The slices along a dim, without it; views."""
    x = arguments.tensor(input, "unbind")
    a = arguments.dim(dim, x.ndim)
    if not x.ndim:
        raise DimensionError(
            with_site("Dimension specified as 0 but tensor has no dimensions")
        )
    return apply(ops.unbind, (x,), {"axis": a})


def flip(input: Any, *axes_: Any, dims: Any = arguments.UNSET) -> Tensor:  # noqa: A002
    """Elements in reverse order along dims (a copy)."""
    x = arguments.tensor(input, "flip")
    order = arguments.size(_listed("flip", axes_, dims, "dims"), "dims", "flip")
    axes = arguments.dims(order, x.ndim) if order else ()
    return apply(ops.flip, (x,), {"axis": axes})


def fliplr(input: Any) -> Tensor:  # noqa: A002
    """Columns in reverse order (a copy)."""
    x = arguments.tensor(input, "fliplr")
    if x.ndim < 2:
        raise ArgumentRuntimeError(with_site("Input must be >= 2-d."))
    return flip(x, 1)


def flipud(input: Any) -> Tensor:  # noqa: A002
    """Rows in reverse order (a copy)."""
    x = arguments.tensor(input, "flipud")
    if x.ndim < 1:
        raise ArgumentRuntimeError(with_site("Input must be >= 1-d."))
    return flip(x, 0)


def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Tensor:  # noqa: A002
    """Turned k times by 90 degrees in the plane of two dims, from the first to the second."""
    x = arguments.tensor(input, "rot90")
    k = arguments.integer(k, "rot90", "k")
    plane = arguments.size((dims,), "dims", "rot90")
    if len(plane) != 2:
        raise ArgumentRuntimeError(
            with_site(f"expected total rotation dims == 2, but got dims = {len(plane)}")
        )
    if x.ndim < 2:
        raise ArgumentRuntimeError(
            with_site(f"expected total dims >= 2, but got total dims = {x.ndim}")
        )
    a, b = (arguments.dim(d, x.ndim) for d in plane)
    if a == b:
        raise ArgumentRuntimeError(
            with_site(
                "expected rotation dims to be different, but got dim0 = "
                f"{plane[0]} and dim1 = {plane[1]}"
            )
        )
    turns = k % 4
    if turns == 2:
        turned = flip(x, a, b)
    else:
        turned = transpose(flip(x, b if turns == 1 else a), a, b) if turns else x
    return apply(ops.clone, (turned,), {}, "Rot90Backward0")


def ravel(input: Any) -> Tensor:  # noqa: A002
    """All elements in one dim (a view where strides allow)."""
    return reshape(arguments.tensor(input, "ravel"), -1)


def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor:  # noqa: A002
    """Elements moved along dims, the last coming first; over the flat tensor without dims."""
    x = arguments.tensor(input, "roll")
    moves = arguments.size((shifts,), "shifts", "roll")
    axes = () if dims is None else arguments.size((dims,), "dims", "roll")
    if not axes and len(moves) == 1:
        flat = reshape(x, -1)
        moved = apply(ops.roll, (flat,), {"shifts": moves, "axis": (0,)})
        return reshape(moved, x._data.shape)
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
    arguments.given(sizes, "repeat", "repeats")
    reps = arguments.size(sizes, "repeats", "repeat")
    if any(r < 0 for r in reps):
        raise ArgumentRuntimeError(
            with_site(f"Trying to create tensor with negative dimension: repeats {list(reps)}")
        )
    if len(reps) < x.ndim:
        raise ArgumentRuntimeError(
            with_site(
                "Number of dimensions of repeat dims can not be smaller than number of dimensions "
                "of tensor"
            )
        )
    return apply(ops.tile, (x,), {"reps": reps})


def tile(input: Any, *repeats: Any, dims: Any = arguments.UNSET) -> Tensor:  # noqa: A002
    """As `repeat`, but missing repeats count as 1."""
    x = arguments.tensor(input, "tile")
    reps = arguments.size(_listed("tile", repeats, dims, "dims"), "dims", "tile")
    return repeat(x, (1,) * (x.ndim - len(reps)) + reps)


@arguments.numpy_names
def repeat_interleave(
    input: Any, repeats: Any = None, dim: Any = None, *, output_size: Any = None  # noqa: A002
) -> Tensor:
    """Each element (along `dim`) repeated in place; of a tensor alone, its counts as indices.

    repeats: an int, or integers (1,) or (n,), n the size of `dim`.
    Raises RuntimeError for negative repeats and other shapes.
    """
    from pullback.api.indexing import index_select
    from pullback.eager.tensor import wrap

    x = arguments.tensor(input, "repeat_interleave")
    if repeats is None:
        return wrap(np.repeat(np.arange(x._data.size), repeat_counts(x, x._data.size)))
    if dim is None:
        x, dim = reshape(x, -1), 0
    a = arguments.dim(dim, x.ndim)
    n = x._data.shape[a] if x.ndim else 1
    return index_select(x, a, wrap(np.repeat(np.arange(n), repeat_counts(repeats, n))))


def repeat_counts(repeats: Any, n: int) -> Any:
    """How often each of n elements is repeated, checked."""
    counts: Any
    if isinstance(repeats, Tensor):
        counts = repeats._data
        if counts.dtype not in (np.int32, np.int64):
            raise UnsupportedError(
                with_site(
                    "\"repeat_interleave_cpu\" not implemented for "
                    f"'{arguments.PYTORCH_NAMES[counts.dtype.name]}'"
                )
            )
        if counts.ndim > 1:
            raise ArgumentRuntimeError(with_site("repeats must be 0-dim or 1-dim tensor"))
        if counts.size not in (1, n):
            raise ArgumentRuntimeError(
                with_site(
                    "repeats must have the same size as input along dim, but got "
                    f"repeats.size(0) = {counts.size} and input.size(0) = {n}"
                )
            )
    else:
        counts = np.asarray(arguments.integer(repeats, "repeat_interleave", "repeats"))
    if (counts < 0).any():
        raise ArgumentRuntimeError(with_site("Repeats must be non-negative"))
    return counts


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:  # noqa: A002
    """The diagonal of two dims, put last (a view)."""
    x = arguments.tensor(input, "diagonal")
    offset = arguments.integer(offset, "diagonal", "offset")
    a, b = arguments.dim(dim1, x.ndim), arguments.dim(dim2, x.ndim)
    if a == b:
        raise ArgumentRuntimeError(
            with_site(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
        )
    return apply(ops.diagonal, (x,), {"offset": offset, "axis1": a, "axis2": b})


def diag(input: Any, diagonal: int = 0) -> Tensor:  # noqa: A002
    """The diagonal of a matrix; of a vector, the matrix that has it."""
    x = arguments.tensor(input, "diag")
    diagonal = arguments.integer(diagonal, "diag", "diagonal")
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


def _triangle(input: Any, name: str, primitive: Any, diagonal: Any) -> Tensor:  # noqa: A002
    x = arguments.tensor(input, name)
    if x.ndim < 2:
        raise ArgumentRuntimeError(
            with_site(f"{name}: input tensor must have at least 2 dimensions")
        )
    return apply(primitive, (x,), {"k": arguments.integer(diagonal, name, "diagonal")})


def tril(input: Any, diagonal: int = 0) -> Tensor:  # noqa: A002
    """The lower triangle of matrices, zeros above."""
    return _triangle(input, "tril", ops.tril, diagonal)


def triu(input: Any, diagonal: int = 0) -> Tensor:  # noqa: A002
    """The upper triangle of matrices, zeros below."""
    return _triangle(input, "triu", ops.triu, diagonal)


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
    given = arguments.tensor_list(tensors, "meshgrid")
    if not given:
        raise ArgumentRuntimeError(with_site("meshgrid expects a non-empty TensorList"))
    for x in given:
        if x.ndim > 1:
            raise ArgumentRuntimeError(
                with_site(
                    "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                    f"{list(x.shape)}"
                )
            )
        if x._data.dtype != given[0]._data.dtype:
            raise ArgumentRuntimeError(
                with_site("meshgrid expects all tensors to have the same dtype")
            )
    xs = [reshape(x, -1) for x in given]
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

