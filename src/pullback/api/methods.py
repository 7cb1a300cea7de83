"""The methods and operators of Tensor (layer 4), installed once when the package is imported."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.api import (
    arguments,
    autograd,
    convert,
    creation,
    elementwise,
    hooks,
    indexing,
    inplace,
    joining,
    linalg,
    movement,
    nn,
    products,
    random,
    reduce,
    reshaping,
    slices,
    special,
    statistics,
    storage,
    text,
)
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.size import Size
from pullback.eager.apply import apply, binary, mark_origin, unary
from pullback.eager.batched import mapped_like
from pullback.eager.inplace import detach_in_place
from pullback.eager.node import Node
from pullback.eager.overlap import at_places, by_order, by_place
from pullback.eager.tensor import Tensor, set_requires_grad, untangled, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, GraphError
from pullback.ops import elementwise as ops
from pullback.ops.movement import permute

NUMBERS = (bool, int, float, complex)
_matmul_fast = linalg.matmul


# ---------------------------------------------------------------- history
def detach(self: Tensor) -> Tensor:
    """The same memory without history: gradients do not flow back through it, nor tangents on."""
    out = wrap(untangled(self._data))
    out._counter = self._counter if self._counter is not None else fresh_counter(self)
    if self._requires_grad:
        mark_origin(out, "detach")
    return out


def fresh_counter(tensor: Tensor) -> list[Any]:
    """A version counter: shared from now on by tensors of one memory."""
    tensor._counter = [0]
    return tensor._counter


def resolved(input: Tensor) -> Tensor:  # noqa: A002
    """The tensor itself: conjugation and negation are done at once here."""
    return arguments.tensor(input, "resolve_conj")


def detach_(self: Tensor) -> Tensor:
    """Cuts this tensor's own history.  Raises RuntimeError for a view."""
    return detach_in_place(self)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Starts (or stops) recording operations on this leaf; returns it."""
    set_requires_grad(self, requires_grad, "only Tensors of floating point dtype")
    return self


# ---------------------------------------------------------------- copies
def deepcopy(self: Tensor, memo: dict[Any, Any]) -> Tensor:
    """A leaf with its own memory and a copy of `.grad`.

    Tensors that share memory share it in the copy, with the same strides: a storage is copied once
    in each call of `copy.deepcopy`.
    """
    if not self.is_leaf:
        raise GraphError(
            with_site(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment.  If you were attempting to deepcopy a module, this may "
                "be because of a torch.nn.utils.weight_norm usage; use .detach().clone() instead"
            )
        )
    if id(self) in memo:
        return memo[id(self)]
    out = object.__new__(type(self))
    _restore_state(out, storage.copied(convert.concrete(self, "deepcopy"), memo),
                   self._requires_grad, None, {})  # fmt: skip
    memo[id(self)] = out
    if self._counter is not None:  # those who shared it see each other's changes in the copy too
        key = ("version", id(self._counter))
        out._counter = memo.setdefault(key, (self._counter, [0]))[1]
    if self._grad is not None:
        out._grad = copy.deepcopy(self._grad, memo)
    out.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return out


def shallow_copy(self: Tensor) -> Tensor:
    """`copy.copy`: another tensor over the same memory, a leaf that keeps `.grad`."""
    out = object.__new__(type(self))
    _restore_state(out, self._data, self._requires_grad, self._grad, dict(self.__dict__))
    return out


def _restore_state(
    out: Tensor, data: Any, requires_grad: bool, grad: Tensor | None, attributes: dict[str, Any]
) -> None:
    out._data, out._requires_grad, out._grad = data, requires_grad, grad
    out._edge = out._counter = out._rare = None
    if attributes:
        out.__dict__.update(attributes)


def rebuild(
    cls: type, data: Any, requires_grad: bool, grad: Tensor | None, attributes: dict[str, Any],
    order: tuple[int, ...] | None = None,
) -> Tensor:  # fmt: skip
    """A tensor from its pickled state; `order` is that of its dims in memory."""
    out: Tensor = object.__new__(cls)
    native = dtypes.FROM_NUMPY[data.dtype].numpy
    data = data if data.dtype is native else data.view(native)
    if order is not None:
        data = data.transpose(np.argsort(order))
    _restore_state(out, data, requires_grad, grad, attributes)
    return out


def reduce_state(self: Tensor, protocol: Any) -> tuple[Any, ...]:
    """For pickle: values in their memory order, flag and `.grad`; a non-leaf becomes a leaf."""
    data = convert.concrete(self, "pickle")
    order = storage.memory_order(data)
    dense = np.ascontiguousarray(data.transpose(order)).reshape([data.shape[i] for i in order])
    return rebuild, (type(self), dense, self._requires_grad, self._grad, dict(self.__dict__),
                     order)  # fmt: skip


# ---------------------------------------------------------------- operators
def _compare(primitive: Any) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if isinstance(other, (Tensor, *NUMBERS)):
            return apply(primitive, (self, other), {})
        if isinstance(other, (np.generic, np.ndarray)):
            return apply(primitive, (self, arguments.operand(other, primitive.name)), {})
        return NotImplemented

    method.__doc__ = f"{primitive.doc}, elementwise."
    return method


def _rsub(self: Tensor, other: Any) -> Any:
    """other - self."""
    if not isinstance(other, (*NUMBERS, np.generic, np.ndarray, Tensor)):
        return NotImplemented
    return elementwise.rsub(self, other)


_reciprocal = unary(ops.reciprocal)
_mul = binary(ops.mul)


def _rdiv(self: Tensor, other: Any) -> Any:
    """other / self."""
    if not isinstance(other, (*NUMBERS, np.generic, np.ndarray)):
        return NotImplemented
    return _mul(_reciprocal(self), other)


def _pow(self: Tensor, other: Any) -> Any:
    """self ** other."""
    if not isinstance(other, (*NUMBERS, np.generic, np.ndarray, Tensor)):
        return NotImplemented
    return elementwise.power(self, other)


def _rpow(self: Tensor, other: Any) -> Any:
    """other ** self."""
    if not isinstance(other, (*NUMBERS, np.generic, np.ndarray)):
        return NotImplemented
    return elementwise.power(other, self)


def _reflected(function: Any) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (*NUMBERS, np.generic, np.ndarray)):
            return NotImplemented
        return function(other, self)

    return method


def _straight(function: Any) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (*NUMBERS, np.generic, np.ndarray, Tensor)):
            return NotImplemented
        return function(self, other)

    return method


def _matmul(self: Tensor, other: Any) -> Any:
    """self @ other."""
    if not isinstance(other, Tensor):
        if not isinstance(other, np.ndarray):
            return NotImplemented
        return _matmul_fast(*_one_dtype(self, wrap(other)))
    return _matmul_fast(self, other)


def _rmatmul(self: Tensor, other: Any) -> Any:
    """other @ self."""
    if not isinstance(other, np.ndarray):
        return NotImplemented
    return _matmul_fast(*_one_dtype(wrap(other), self))


def _one_dtype(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two factors, one of them an array: NumPy's products promote, where PyTorch's refuse."""
    numpy = dtypes.promote_types(a._data.dtype, b._data.dtype)
    return convert.to(a, dtypes.public(numpy)), convert.to(b, dtypes.public(numpy))


def _logical(primitive: Any, bitwise: Any) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (*NUMBERS, np.generic, np.ndarray, Tensor)):
            return NotImplemented
        return apply(bitwise, (self, arguments.operand(other, primitive)), {})

    return method


def iterate(self: Tensor) -> Iterator[Tensor]:
    """The slices along the first dim."""
    if not self.ndim:
        raise ArgumentTypeError(with_site("iteration over a 0-d tensor"))
    return iter(movement.unbind(self, 0))


def contains(self: Tensor, value: Any) -> bool:
    """`value in x`: whether any element equals it."""
    if isinstance(value, (Tensor, *NUMBERS)):
        return bool(apply(ops.eq, (self, value), {})._data.any())
    raise ArgumentRuntimeError(
        with_site(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(value)}."
        )
    )


def refuse_deletion(self: Tensor, key: Any) -> None:
    """`del x[key]`: a tensor does not shrink."""
    raise ArgumentTypeError(with_site("Tensor does not support deleting items"))


def _turned(self: Tensor) -> Tensor:
    """Dims in reverse order (of a matrix: its transpose)."""
    perm = tuple(reversed(range(self.ndim)))
    return apply(permute, (self,), {"perm": perm}, "PermuteBackward0")


def _adjoint(self: Tensor) -> Tensor:
    """The conjugate transpose of the last two dims."""
    return elementwise.conj(movement.transpose(self, -2, -1))


# ---------------------------------------------------------------- sizes
def size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dim."""
    if dim is None:
        return Size(self._data.shape)
    return self._data.shape[arguments.dim(dim, self.ndim)]


def _new(function: Any) -> Any:
    """`x.new_zeros(...)`: as the constructor, with the dtype of x."""

    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        if options.get("dtype") is None:
            options["dtype"] = self.dtype
        out = function(*args, **options)
        return out if type(self._data) is np.ndarray else mapped_like(self, out)

    method.__name__ = f"new_{function.__name__}"
    method.__doc__ = f"`{function.__name__}` with the dtype of this tensor."
    return method


def polygamma_(self: Tensor, n: int) -> Tensor:
    """`polygamma` of order n, stored in the tensor itself."""
    return inplace.out_of_place(lambda x: special.polygamma(n, x))(self)


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """`x[key] = value`, recorded."""
    indexing.setitem(self, key, value)


# ---------------------------------------------------------------- tables
FUNCTIONS: dict[Any, str] = {
    elementwise: (
        "add sub mul div true_divide floor_divide fmod remainder atan2 maximum minimum fmax "
        "fmin eq ne lt le gt ge logical_and logical_or logical_xor logical_not bitwise_and "
        "bitwise_or bitwise_xor bitwise_not neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt "
        "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid reciprocal sign "
        "sgn angle floor ceil trunc isnan isinf isfinite relu positive frac round square clamp "
        "nan_to_num lerp addcmul addcdiv masked_fill isclose allclose equal logaddexp hypot "
        "float_power"
    ),
    reduce: (
        "sum mean nansum prod max min amax amin argmax argmin any all count_nonzero logsumexp var "
        "std norm cumsum cumprod cummax cummin logcumsumexp msort sort argsort topk median bincount"
    ),
    linalg: "dot vdot mv mm bmm matmul outer addmm addmv addr baddbmm trace",
    movement: (
        "reshape view flatten unflatten squeeze unsqueeze permute transpose t movedim expand "
        "expand_as split chunk unbind flip roll repeat tile repeat_interleave diagonal diag tril "
        "triu clone contiguous fliplr flipud rot90 ravel"
    ),
    joining: "tensor_split hsplit vsplit dsplit",
    slices: (
        "unfold narrow diag_embed select_scatter slice_scatter diagonal_scatter masked_scatter "
        "scatter_reduce index_reduce broadcast_to"
    ),
    statistics: (
        "kthvalue mode nanmean nanmedian aminmax quantile nanquantile diff cov corrcoef histc "
        "unique unique_consecutive"
    ),
    special: (
        "erfc lgamma digamma logit xlogy sinc deg2rad rad2deg ldexp copysign heaviside gcd lcm "
        "nextafter signbit"
    ),
    products: "inner kron cross dist",
    reshaping: "squeeze_ unsqueeze_ t_ transpose_",
    indexing: (
        "gather scatter scatter_add index_select index_add index_copy index_fill index_put "
        "masked_select take nonzero select take_along_dim"
    ),
    nn: "softmax log_softmax erf",
    convert: "to cuda item tolist numpy stride data_ptr",
}  # fmt: skip
ALIASES = {
    "abs": "absolute", "absolute": "absolute", "multiply": "mul", "subtract": "sub",
    "divide": "div", "negative": "neg",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "arctan2": "atan2", "clip": "clamp", "swapaxes": "transpose",
    "swapdims": "transpose", "moveaxis": "movedim", "greater": "gt", "greater_equal": "ge",
    "less": "lt", "less_equal": "le", "not_equal": "ne", "fix": "trunc", "ger": "outer",
    "swapdims_": "transpose_", "swapaxes_": "transpose_",
}  # fmt: skip
IN_PLACE_ONE = (
    "neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh sigmoid reciprocal sign sgn floor ceil trunc relu square logical_not "
    "bitwise_not"
)
IN_PLACE_TWO = {
    "mul_": "mul", "fmod_": "fmod", "remainder_": "remainder",
    "floor_divide_": "floor_divide", "atan2_": "atan2", "logical_and_": "logical_and",
    "logical_or_": "logical_or", "logical_xor_": "logical_xor", "bitwise_and_": "bitwise_and",
    "bitwise_or_": "bitwise_or", "bitwise_xor_": "bitwise_xor", "hypot_": "hypot",
    "bitwise_left_shift_": "left_shift", "bitwise_right_shift_": "right_shift",
}  # fmt: skip
# those whose second operand is a Tensor
OF_TENSORS = ("atan2_", "logical_and_", "logical_or_", "logical_xor_", "hypot_")
# in-place methods made of the functions out of place
OUT_OF_PLACE: dict[Any, str] = {
    elementwise: "frac nan_to_num round",
    special: "erfc lgamma digamma logit xlogy sinc deg2rad rad2deg ldexp copysign heaviside gcd "
    "lcm nextafter",
    nn: "erf", reduce: "cumsum cumprod", movement: "tril triu",
    linalg: "addmm addmv addr baddbmm",
}  # fmt: skip
IN_PLACE_ALIASES = (
    "absolute:abs multiply:mul subtract:sub divide:div true_divide:div negative:neg arcsin:asin "
    "arccos:acos arctan:atan arcsinh:asinh arccosh:acosh arctanh:atanh arctan2:atan2 greater:gt "
    "greater_equal:ge less:lt less_equal:le not_equal:ne fix:trunc"
)
IN_PLACE_OPERATORS = {
    "__iadd__": ("add", "AddBackward0"), "__isub__": ("sub", None), "__imul__": ("mul", None),
    "__itruediv__": ("div", None), "__ifloordiv__": ("floor_divide", None),
    "__imod__": ("remainder", None), "__iand__": ("bitwise_and", None),
    "__ior__": ("bitwise_or", None), "__ixor__": ("bitwise_xor", None),
    "__ilshift__": ("left_shift", None), "__irshift__": ("right_shift", None),
}  # fmt: skip
OPERATORS: dict[str, Any] = {
    "__add__": binary(ops.add), "__radd__": binary(ops.add), "__sub__": binary(ops.sub),
    "__rsub__": _rsub, "__mul__": _mul, "__rmul__": _mul, "__truediv__": binary(ops.div),
    "__rtruediv__": _rdiv, "__pow__": _pow, "__rpow__": _rpow,
    "__floordiv__": _straight(elementwise.floor_divide),
    "__rfloordiv__": _reflected(elementwise.floor_divide),
    "__mod__": _straight(elementwise.remainder), "__rmod__": _reflected(elementwise.remainder),
    "__matmul__": _matmul, "__rmatmul__": _rmatmul, "__neg__": elementwise.neg,
    "__pos__": elementwise.positive, "__abs__": unary(ops.abs_),
    "__invert__": elementwise.bitwise_not,
    "__and__": _straight(elementwise.bitwise_and), "__rand__": _straight(elementwise.bitwise_and),
    "__or__": _straight(elementwise.bitwise_or), "__ror__": _straight(elementwise.bitwise_or),
    "__xor__": _straight(elementwise.bitwise_xor), "__rxor__": _straight(elementwise.bitwise_xor),
    "__lshift__": _straight(elementwise.bitwise_left_shift),
    "__rshift__": _straight(elementwise.bitwise_right_shift),
    "__rlshift__": _reflected(elementwise.bitwise_left_shift),
    "__rrshift__": _reflected(elementwise.bitwise_right_shift),
    "__eq__": _compare(ops.eq), "__ne__": _compare(ops.ne), "__lt__": _compare(ops.lt),
    "__le__": _compare(ops.le), "__gt__": _compare(ops.gt), "__ge__": _compare(ops.ge),
    "__hash__": object.__hash__, "__getitem__": indexing.getitem, "__setitem__": setitem,
    "__delitem__": refuse_deletion,
    "__reversed__": lambda self: movement.flip(self, *range(self.ndim)),
    "__iter__": iterate, "__contains__": contains, "__len__": convert.length,
    "__bool__": convert.truth, "__float__": convert.number(float), "__int__": convert.number(int),
    "__complex__": convert.number(complex), "__index__": convert.index,
    "__array__": convert.array, "__dlpack__": convert.dlpack,
    "__dlpack_device__": lambda self: (1, 0), "__deepcopy__": deepcopy, "__copy__": shallow_copy,
    "__reduce_ex__": reduce_state, "__repr__": text.representation, "__format__": text.formatted,
    "__str__": text.representation,
}  # fmt: skip
METHODS: dict[str, Any] = {
    "backward": autograd.tensor_backward, "detach": detach, "detach_": detach_,
    "requires_grad_": requires_grad_, "register_hook": hooks.register_hook,
    "register_post_accumulate_grad_hook": hooks.register_post_accumulate_grad_hook,
    "retain_grad": hooks.retain_grad, "size": size, "add_": inplace.add_, "sub_": inplace.sub_,
    "div_": inplace.div_, "float_power_": inplace.float_power_, "pow_": inplace.pow_,
    "polygamma_": polygamma_, "copy_": inplace.copy_,
    "fill_": inplace.fill_, "zero_": inplace.zero_,
    "clamp_": inplace.clamp_, "masked_fill_": inplace.masked_fill_,
    "dim": lambda self: self.ndim, "numel": lambda self: self._data.size,
    "nelement": lambda self: self._data.size, "element_size": lambda self: self.itemsize,
    "is_contiguous": lambda self, memory_format=None: bool(self._data.flags.c_contiguous),
    "is_floating_point": lambda self: self._data.dtype.kind == "f",
    "is_complex": lambda self: self._data.dtype.kind == "c",
    "is_signed": lambda self: self._data.dtype.kind in "ifc", "cpu": lambda self: self,
    "is_conj": lambda self: False, "is_neg": lambda self: False,
    "is_inference": lambda self: False, "storage_offset": text.storage_offset,
    "bitwise_left_shift": elementwise.bitwise_left_shift,
    "bitwise_right_shift": elementwise.bitwise_right_shift,
    "polygamma": lambda self, n: special.polygamma(n, self), "pow": elementwise.power,
    "conj": elementwise.conj, "type": convert.type_name,
    "type_as": lambda self, other: convert.to(self, other.dtype),
    "float": convert.typed("float32"), "double": convert.typed("float64"),
    "half": convert.typed("float16"), "long": convert.typed("int64"),
    "int": convert.typed("int32"), "short": convert.typed("int16"),
    "char": convert.typed("int8"), "byte": convert.typed("uint8"), "bool": convert.typed("bool"),
    "cfloat": convert.typed("complex64"), "cdouble": convert.typed("complex128"),
    "view_as": lambda self, other: movement.view(self, other._data.shape),
    "reshape_as": lambda self, other: movement.reshape(self, other._data.shape),
    "where": lambda self, condition, other: elementwise.where(condition, self, other),
    "adjoint": _adjoint, "resolve_conj": resolved, "resolve_neg": resolved,
    "new_zeros": _new(creation.zeros), "new_ones": _new(creation.ones),
    "new_empty": _new(creation.empty), "new_full": _new(creation.full),
    "new_tensor": _new(creation.tensor),
    "scatter_": inplace.out_of_place(indexing.scatter, check=by_place),
    "scatter_add_": inplace.out_of_place(indexing.scatter_add, "ScatterAddBackward0", by_place),
    "index_add_": inplace.out_of_place(indexing.index_add, "IndexAddBackward0", by_place),
    "index_copy_": inplace.out_of_place(indexing.index_copy, "IndexCopyBackward0", by_place),
    "index_fill_": inplace.out_of_place(indexing.index_fill, check=at_places("index_fill_")),
    "masked_scatter_": inplace.out_of_place(
        slices.masked_scatter, "MaskedScatterBackward0", by_order
    ),
    "scatter_reduce_": inplace.out_of_place(
        slices.scatter_reduce, "ScatterReduceBackward0", by_place
    ),
    "index_reduce_": inplace.out_of_place(slices.index_reduce, "IndexReduceBackward0", by_place),
    "index_put_": inplace.out_of_place(
        indexing.index_put, "IndexPutBackward0", at_places("index_put_")
    ),
    "addcmul_": inplace.out_of_place(elementwise.addcmul),
    "addcdiv_": inplace.out_of_place(elementwise.addcdiv),
    "lerp_": inplace.out_of_place(elementwise.lerp),
    "uniform_": random.uniform_, "normal_": random.normal_, "random_": random.random_,
    "bernoulli_": random.bernoulli_, "exponential_": random.exponential_,
    "geometric_": random.geometric_, "cauchy_": random.cauchy_,
    "log_normal_": random.log_normal_,
    "bernoulli": random.bernoulli, "multinomial": random.multinomial,
    "abs_": inplace.one_real(ops.abs_, "abs_"), "clip_": inplace.clamp_,
}  # fmt: skip
DOCS = {
    "dim": "The number of dims.", "numel": "The number of elements.",
    "nelement": "The number of elements.", "element_size": "Bytes of one element.",
    "is_contiguous": "Whether the elements lie in C order.",
    "is_floating_point": "Whether the dtype is floating.",
    "is_complex": "Whether the dtype is complex.", "is_signed": "Whether the dtype has a sign.",
    "cpu": "The tensor itself: there is no other device.",
    "is_conj": "False: conjugation is done at once.", "is_neg": "False: negation is done at once.",
    "is_inference": "False: there are no inference tensors.",
    "polygamma": "The derivative of order n of digamma.",
    "type_as": "In the dtype of another tensor.", "view_as": "`view` in another tensor's shape.",
    "reshape_as": "`reshape` to another tensor's shape.",
    "where": "This tensor where condition holds, other elsewhere.",
}  # fmt: skip
PROPERTIES: dict[str, Any] = {
    "T": _turned, "mT": lambda self: movement.transpose(self, -2, -1), "H": _adjoint,
    "mH": _adjoint, "real": elementwise.real, "imag": elementwise.imag,
    "layout": lambda self: text.STRIDED, "is_sparse": lambda self: False,
    "is_cuda": lambda self: False, "is_quantized": lambda self: False,
    "is_meta": lambda self: False, "names": lambda self: (None,) * self.ndim,
}  # fmt: skip


def install() -> None:
    """Give Tensor everything above."""
    for module, names in FUNCTIONS.items():
        for name in names.split():
            setattr(Tensor, name, getattr(module, name))
    for alias, name in ALIASES.items():
        function = elementwise.absolute if name == "absolute" else getattr(Tensor, name)
        setattr(Tensor, alias, function)
    for name in IN_PLACE_ONE.split():
        primitive = getattr(ops, name)
        setattr(Tensor, f"{name}_", inplace.one(primitive, f"{name}_"))
    for name, primitive_name in IN_PLACE_TWO.items():
        method = inplace.two(getattr(ops, primitive_name), name, name not in OF_TENSORS)
        setattr(Tensor, name, method)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"{name}_", inplace.comparison(getattr(elementwise, name)))
    for module, names in OUT_OF_PLACE.items():
        for name in names.split():
            setattr(Tensor, f"{name}_", inplace.out_of_place(getattr(module, name)))
    for name, (primitive_name, node) in IN_PLACE_OPERATORS.items():
        setattr(Tensor, name, inplace.operator(getattr(ops, primitive_name), name, node))
    for name, function in {**OPERATORS, **METHODS}.items():
        setattr(Tensor, name, function)
    for pair in IN_PLACE_ALIASES.split():
        alias, _, name = pair.partition(":")
        setattr(Tensor, f"{alias}_", getattr(Tensor, f"{name}_"))
    for name, text_ in DOCS.items():
        METHODS[name].__doc__ = text_
    for name, function in PROPERTIES.items():
        setattr(Tensor, name, property(function))
    for owner, name, function in (
        (Tensor, "__ipow__", inplace.pow_),
        (Node, "register_hook", hooks.node_register_hook),
        (Node, "register_prehook", hooks.node_register_prehook),
    ):
        setattr(owner, name, function)


install()
