"""The Tensor: a payload and its autograd state (layer 3).

Methods and operators arrive from `api/methods.py`; here is only the state and what guards it.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import dispatch, dtypes
from pullback.core.callsite import here, outside, with_site
from pullback.core.device import CPU, device
from pullback.core.dispatch import INTERPRETERS
from pullback.core.size import Size
from pullback.eager.node import AccumulateGrad, Node, Origin, next_sequence
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, GradWarning, GraphError

_new = object.__new__
_getframe = sys._getframe


class Rare:
    """What few tensors have, made on demand: hooks, view information, the accumulator."""

    __slots__ = ("base", "chain", "views", "hooks", "post_hooks", "accumulator", "retains", "multi",
                 "retained_at", "born")  # fmt: skip

    def __init__(self) -> None:
        self.base: Tensor | None = None  # the tensor whose memory a view shows
        self.chain: tuple[Any, ...] = ()  # view primitives from base to here
        self.views: list[weakref.ref[Tensor]] | None = None  # of a base: its live views
        self.hooks: dict[int, Any] | None = None  # of a leaf
        self.post_hooks: dict[int, Any] | None = None  # of a leaf, after accumulation
        self.accumulator: weakref.ref[AccumulateGrad] | None = None
        self.retains: bool = False
        self.retained_at: tuple[Node, int] | None = None
        self.multi: bool = False  # one of several outputs of one view operation
        self.born: int = 0  # the innermost vmap in which a constructor made it


class LazyEdge:
    """An edge that is worked out when somebody needs it (a view after its base was changed)."""

    __slots__ = ()

    def resolve(self, tensor: Tensor) -> tuple[Node, int]:
        """The edge; the caller stores it."""
        raise NotImplementedError



class Tensor:
    """An array whose derivatives can be asked for.

    `_data` is the payload (an ndarray, or the value of a transform); `_edge` is the `(node, output
    number)` that produced it, a `LazyEdge`, or for a tensor without grad an `Origin` or None.
    """

    __slots__ = (
        "_data", "_requires_grad", "_edge", "_grad", "_counter", "_rare", "__weakref__", "__dict__",
    )  # fmt: skip

    _data: Any
    _requires_grad: bool
    _edge: Any
    _grad: Tensor | None
    _counter: list[Any] | None
    _rare: Rare | None

    if TYPE_CHECKING:  # methods and operators are installed by api/methods.py

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, key: Any) -> Tensor: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __bool__(self) -> bool: ...
        def __float__(self) -> float: ...
        def __int__(self) -> int: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __hash__(self) -> int: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __iadd__(self, other: Any) -> Tensor: ...
        def __isub__(self, other: Any) -> Tensor: ...
        def __imul__(self, other: Any) -> Tensor: ...
        def __itruediv__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...

    # An ndarray on the left of an operator lets the Tensor on the right decide.
    __array_ufunc__ = None
    __array_priority__ = 1000

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        INTERPRETERS[cls] = INTERPRETERS[Tensor]

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        """PyTorch's legacy constructor: sizes give an uninitialised tensor, data is copied."""
        self = _new(cls)
        fill(self, legacy_array(args))
        return self

    # ------------------------------------------------------------ autograd state
    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        set_requires_grad(self, value)

    @property
    def is_leaf(self) -> bool:
        """True when no recorded operation made it."""
        return not self._requires_grad or not isinstance(self._edge, (tuple, LazyEdge))

    @property
    def grad_fn(self) -> Node | None:
        """The node that produced the tensor; None for a leaf."""
        if not self._requires_grad or self.is_leaf:
            return None
        return gradient_edge(self)[0]

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` it is."""
        return 0 if self.grad_fn is None else gradient_edge(self)[1]

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient; None before any backward.

        Reading it on a non-leaf that does not retain its gradient warns, as in PyTorch.
        """
        found = self._grad
        if found is None and self._requires_grad and not self.is_leaf and not self.retains_grad:
            warn_non_leaf_grad(self)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        check_grad_assignment(self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether a non-leaf keeps its gradient (`retain_grad` was called)."""
        return self._rare is not None and self._rare.retains

    @property
    def _version(self) -> int:
        """How many in-place changes its memory has seen."""
        return 0 if self._counter is None else self._counter[0]

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this one is a view of."""
        return self._rare.base if self._rare is not None else None

    def _is_view(self) -> bool:
        """Whether autograd knows it as a view."""
        return self._base is not None

    @property
    def data(self) -> Tensor:
        """The same memory, without history and with a version counter of its own."""
        return wrap(untangled(self._data))

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                with_site(f"Variable data has to be a tensor, but got {type(value).__name__}")
            )
        if self._requires_grad and not dtypes.is_differentiable(value._data.dtype):
            raise ArgumentRuntimeError(
                with_site(
                    f"data of dtype {dtypes.public(value._data.dtype)} cannot be set on a tensor "
                    "that requires grad: only floating point and complex tensors have gradients"
                )
            )
        self._data = value._data

    # ------------------------------------------------------------ the payload
    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return Size(self._data.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        found: int = self._data.ndim
        return found

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.FROM_NUMPY[self._data.dtype]

    @property
    def device(self) -> device:
        """Always the CPU."""
        return CPU

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        found: int = self._data.dtype.itemsize
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        found: int = self._data.size * self._data.dtype.itemsize
        return found


def fill(tensor: Tensor, payload: Any) -> None:
    """Give a bare instance the state of a fresh tensor that requires no grad."""
    tensor._data = payload
    tensor._requires_grad = False
    tensor._edge = None
    tensor._grad = None
    tensor._counter = None
    tensor._rare = None


def wrap(payload: Any) -> Tensor:
    """A new tensor around a payload, with no history."""
    tensor = _new(Tensor)
    tensor._data = payload
    tensor._requires_grad = False
    tensor._edge = None
    tensor._grad = None
    tensor._counter = None
    tensor._rare = None
    return tensor


dispatch.WRAP = wrap


def untangled(payload: Any) -> Any:
    """The payload without the tangents that it carries."""
    while type(payload) is not np.ndarray and hasattr(payload, "primal"):
        payload = payload.primal._data
    return payload


def wrap_with_edge(payload: Any, edge: tuple[Node, int]) -> Tensor:
    """A new tensor around a payload that `edge` produced."""
    tensor = wrap(payload)
    tensor._requires_grad = True
    tensor._edge = edge
    return tensor


def rare_of(tensor: Tensor) -> Rare:
    """The record of rare things, made on demand."""
    if tensor._rare is None:
        tensor._rare = Rare()
    return tensor._rare


def counter_of(tensor: Tensor) -> list[Any]:
    """The version counter, made on demand; everything that shares the memory shares it."""
    counter = tensor._counter
    if counter is None:
        counter = tensor._counter = [0]
    return counter


def bump_version(tensor: Tensor, depth: int = 2) -> None:
    """Note an in-place change of the tensor's memory, and the user's line that made it."""
    frame = outside(_getframe(depth))
    counter = counter_of(tensor)
    counter[:] = (counter[0] + 1, frame.f_code, frame.f_lasti)


def retain(tensor: Tensor) -> None:
    """Keep the gradient of a non-leaf at its present node (and no longer at an earlier one)."""
    rare = rare_of(tensor)
    earlier = rare.retained_at
    if earlier is not None:
        node, number = earlier
        held = node.get_extras().retains.get(number)
        if held is not None and held() is tensor:
            del node.get_extras().retains[number]
    node, number = gradient_edge(tensor)
    node.get_extras().retains[number] = weakref.ref(tensor)
    rare.retains, rare.retained_at = True, (node, number)


_accumulator_lock = threading.Lock()


def gradient_edge(tensor: Tensor) -> tuple[Node, int]:
    """The edge of a tensor that requires grad; a leaf's accumulator is made on demand."""
    edge = tensor._edge
    if type(edge) is tuple:
        return edge
    if isinstance(edge, LazyEdge):
        resolved = edge.resolve(tensor)
        tensor._edge = resolved
        return resolved
    rare = rare_of(tensor)
    found = rare.accumulator() if rare.accumulator is not None else None
    if found is None:
        with _accumulator_lock:  # two threads must not give one leaf two accumulators
            found = rare.accumulator() if rare.accumulator is not None else None
            if found is None:
                found = new_accumulator(tensor)
                rare.accumulator = weakref.ref(found)
    return (found, 0)


def new_accumulator(tensor: Tensor) -> AccumulateGrad:
    """The end of the graph for a leaf."""
    node = _new(AccumulateGrad)
    node.variable = tensor
    node.shape = tensor._data.shape
    node.dtype = tensor._data.dtype
    node.sequence = next_sequence()
    node._extras = None
    return node


def set_requires_grad(
    tensor: Tensor, value: bool, refusal: str = "only Tensors of floating point and complex dtype"
) -> None:
    """The rules of `requires_grad = value`; `refusal` begins the error for integers."""
    if value and not dtypes.is_differentiable(tensor._data.dtype):
        raise GraphError(
            with_site(
                f"{refusal} can require gradients; this one "
                f"has dtype {dtypes.public(tensor._data.dtype)}: convert it first, for instance "
                "with .float()")
        )
    if not tensor.is_leaf:
        if value:
            return
        raise GraphError(
            with_site(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach().")
        )
    if value and not tensor._requires_grad:
        tensor._edge = None
    tensor._requires_grad = bool(value)


def check_grad_assignment(tensor: Tensor, value: Any) -> None:
    """PyTorch's refusals for `tensor.grad = value`."""
    if value is None:
        return
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(
            with_site(
                "assigned grad expected to be a Tensor or None but got grad of type "
                f"{type(value).__name__}")
        )
    if value is tensor:
        raise GraphError(with_site("can't assign Variable as its own grad"))
    if value._data.shape != tensor._data.shape:
        raise GraphError(
            with_site(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of "
                f"size '{list(tensor.shape)}'. Please ensure that the gradient and the tensor are "
                "the same size")
        )
    if value._data.dtype != tensor._data.dtype:
        raise GraphError(
            with_site(
                f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with "
                f"grad_dtype '{tensor.dtype}'. The gradient must match the tensor's dtype")
        )


def warn_non_leaf_grad(tensor: Tensor) -> None:
    """PyTorch's UserWarning, placed at the user's line."""
    site = here(2)
    node = gradient_edge(tensor)[0]
    warnings.warn_explicit(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
        "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
        f"It was made by {node.name()} at {node.call_site}\n  read at {site}",
        GradWarning,
        site.file,
        site.line,
    )


def legacy_array(args: tuple[Any, ...]) -> Any:
    """What `Tensor(...)` holds: sizes give uninitialised float memory, data is copied."""
    if not args:
        return np.empty((0,), dtypes.FLOAT32)
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0]._data
    if all(isinstance(a, int) for a in args):
        return np.empty(args, dtypes.FLOAT32)
    if len(args) == 1 and isinstance(args[0], (Size, tuple)) and isinstance(args[0], Size):
        return np.empty(tuple(args[0]), dtypes.FLOAT32)
    return np.array(args[0], dtypes.FLOAT32)


def note_origin(out: Tensor, reason: str, depth: int = 2) -> None:
    """Remember on a tensor without grad why the graph was cut, and at which line."""
    frame = outside(_getframe(depth))
    out._edge = Origin(reason, frame.f_code, frame.f_lasti)
