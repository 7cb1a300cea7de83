"""Elementwise functions (layer 4), with PyTorch's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.api import arguments, data
from pullback.config import Defaults
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.refusal import kernel
from pullback.eager.apply import apply, binary, unary
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError
from pullback.ops import elementwise as ops
from pullback.ops.kinds import conj_primitive
from pullback.ops.underived import underived

_add, _sub, _mul = binary(ops.add, "AddBackward0"), binary(ops.sub), binary(ops.mul)
_div = binary(ops.div)

NUMBERS = (bool, int, float, complex)
COMPLEX = NUMBERS[3]  # the name is that of a function here


# Which operands of a function of two may be Python numbers.
NEITHER, SECOND, EITHER, BOTH = range(4)


def pair(
    function: str, input: Any, other: Any, numbers: int = EITHER, second: str = "other"  # noqa: A002
) -> tuple[Any, Any]:
    """Two operands; `numbers` says which of them may be numbers."""
    a = arguments.operand(input, function, "input")
    b = arguments.operand(other, function, second)
    if isinstance(a, Tensor):
        if numbers == NEITHER and not isinstance(b, Tensor):
            arguments.tensor(b, function, second)
        return a, b
    if numbers == NEITHER:
        arguments.tensor(a, function)
    if not isinstance(b, Tensor):
        if numbers == BOTH:
            return wrap(np.asarray(a, dtypes.dtype_of_number(a))), b
        raise invalid_combination(function, a, b)
    if numbers == SECOND:
        raise invalid_combination(function, a, b)
    return a, b


def invalid_combination(function: str, *given: Any) -> Exception:
    """PyTorch's error for arguments that none of a function's signatures takes."""
    kinds = ", ".join(arguments.kind(v) for v in given)
    return ArgumentTypeError(
        with_site(
            f"{function}() received an invalid combination of arguments - got ({kinds}), but "
            "expected Tensors, or a number in the place of one"
        )
    )


def scaled(function: str, other: Any, alpha: Any, input: Any) -> Any:  # noqa: A002
    """alpha * other, for `add(input, other, alpha=...)`.

    Raises RuntimeError for an alpha that the result's dtype cannot hold.
    """
    if alpha == 1 and not isinstance(alpha, bool):
        return other
    other = arguments.operand(other, function)
    first = arguments.operand(input, function, "input")
    kind = result_type(first, other).numpy.kind
    said = None
    if function != "add" and (is_bool(first) or is_bool(other)):
        return other  # the subtraction is refused
    if isinstance(alpha, bool) and kind != "b":
        said = "Boolean alpha only supported for Boolean results."
    elif not isinstance(alpha, int) and kind in "biu":
        said = "For integral input tensors, argument alpha must not be a floating point number."
    elif type(alpha) is COMPLEX and kind != "c":
        said = "For non-complex input tensors, argument alpha must not be a complex number."
    if said is not None:
        raise ArgumentRuntimeError(with_site(f"{said} {function}() got alpha={alpha!r}"))
    if kind == "b":  # any alpha but 0 is True
        return other if alpha else other ^ other
    return other * alpha


def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:  # noqa: A002
    """input + alpha * other, with broadcasting and type promotion."""
    a, b = pair("add", input, scaled("add", other, alpha, input), BOTH)
    return into(out, apply(ops.add, (a, b), {}, "AddBackward0"), input, other)


def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:  # noqa: A002
    """input - alpha * other."""
    a, b = pair("sub", input, scaled("sub", other, alpha, input), BOTH)
    return into(out, apply(ops.sub, (a, b), {}), input, other)


def into(out: Any, result: Tensor, *operands: Any) -> Tensor:
    """`out=`: the result stored in a tensor that must not take part in autograd.

    It may not overlap in part with the operands of an elementwise function.
    """
    if out is None:
        return result
    from pullback.api.inplace import write_out

    return write_out(out, result, operands)


def without_derivative(
    result: Tensor, function: str, node: str, *inputs: Tensor, words: str = ""
) -> Tensor:
    """A result that requires grad if an input does, and whose backward raises, as in PyTorch."""
    if not any(x._requires_grad or hasattr(x._data, "owner") for x in inputs):
        return result
    params = {"function": function, "words": words or f"the derivative for '{function}' is not "
              "implemented."}  # fmt: skip
    return apply(underived, (result, *inputs), params, node)


def _two(name: str, primitive: Any, numbers: int = EITHER) -> Any:
    def function(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
        return into(out, apply(primitive, pair(name, input, other, numbers), {}), input, other)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc}; elementwise, with broadcasting and type promotion."
    return function


def _fast_two(name: str, primitive: Any, numbers: int) -> Any:
    """A two-operand function whose common case is the operator itself."""
    fast = binary(primitive)

    def function(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
        if type(input) is Tensor and out is None and (numbers or type(other) is Tensor):
            found = fast(input, other)
            if found is not NotImplemented:
                return found
        return into(out, apply(primitive, pair(name, input, other, numbers), {}), input, other)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc}; elementwise, with broadcasting and type promotion."
    return function


mul = _fast_two("mul", ops.mul, BOTH)
true_divide = _fast_two("true_divide", ops.div, BOTH)
atan2 = _fast_two("atan2", ops.atan2, NEITHER)
maximum = _fast_two("maximum", ops.maximum, NEITHER)
minimum = _fast_two("minimum", ops.minimum, NEITHER)
fmax, fmin = _two("fmax", ops.fmax, NEITHER), _two("fmin", ops.fmin, NEITHER)


def _quotient(name: str, primitive: Any, numbers: int) -> Any:
    """A two-operand function that integers cannot compute for a divisor of 0."""
    stem = None if name == "floor_divide" else f"{name.title()}Backward"

    def function(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
        a, b = pair(name, input, other, numbers)
        refuse_zero_divisor(a, b)
        node = stem and f"{stem}{int(isinstance(b, Tensor))}"
        return into(out, apply(primitive, (a, b), {}, node))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc}; elementwise, with broadcasting and type promotion."
    return function


def is_bool(value: Any) -> bool:
    """Whether an operand is a boolean tensor or number."""
    return value._data.dtype.kind == "b" if isinstance(value, Tensor) else isinstance(value, bool)


def refuse_zero_divisor(a: Any, b: Any) -> None:
    """PyTorch's error for integers divided by 0."""
    divisor = b._data if isinstance(b, Tensor) else b
    whole = [
        v._data.dtype.kind in "iub" if isinstance(v, Tensor) else isinstance(v, int) for v in (a, b)
    ]
    if all(whole) and not all(map(is_bool, (a, b))):  # the latter are refused as such
        plain = type(divisor) is np.ndarray
        if (divisor == 0).any() if plain else isinstance(divisor, int) and divisor == 0:
            raise ArgumentRuntimeError(with_site("ZeroDivisionError"))


fmod = _quotient("fmod", ops.fmod, SECOND)
_remainder = _quotient("remainder", ops.remainder, EITHER)


def remainder(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """The remainder with the sign of other; of a number, without a derivative."""
    if isinstance(input, Tensor) or not isinstance(other, Tensor):
        return _remainder(input, other, out=out)
    words = "derivative for aten::remainder is not implemented"
    found = _remainder(input, other.detach())
    return into(out, without_derivative(found, "aten::remainder", "NotImplemented", other,
                                        words=words))  # fmt: skip


floor_divide = _quotient("floor_divide", ops.floor_divide, BOTH)
eq, ne, lt, le, gt, ge = (
    _two(p.name, p, SECOND) for p in (ops.eq, ops.ne, ops.lt, ops.le, ops.gt, ops.ge)
)
logical_and = _two("logical_and", ops.logical_and, NEITHER)
logical_or = _two("logical_or", ops.logical_or, NEITHER)
logical_xor = _two("logical_xor", ops.logical_xor, NEITHER)
bitwise_and = _two("bitwise_and", ops.bitwise_and)
bitwise_or = _two("bitwise_or", ops.bitwise_or)
bitwise_xor = _two("bitwise_xor", ops.bitwise_xor)
bitwise_left_shift = _two("bitwise_left_shift", ops.left_shift)
bitwise_right_shift = _two("bitwise_right_shift", ops.right_shift)


def div(
    input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None,  # noqa: A002
) -> Tensor:  # fmt: skip
    """input / other; `rounding_mode` "trunc" or "floor" rounds the quotient."""
    if rounding_mode is None:
        return true_divide(input, other, out=out)
    if rounding_mode == "floor":
        refuse_zero_divisor(input, other)
        return into(out, apply(ops.div_floor, pair("div", input, other, BOTH), {}), input, other)
    if rounding_mode != "trunc":
        raise ArgumentRuntimeError(
            with_site(
                "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                f"'{rounding_mode}'"
            )
        )
    refuse_zero_divisor(input, other)
    a, b = pair("div", input, other, BOTH)
    both_whole = all(
        isinstance(v, int) or (isinstance(v, Tensor) and v._data.dtype.kind in "iub")
        for v in (a, b)
    )
    quotient = apply(ops.div_trunc, (a, b), {})
    return into(out, quotient.to(result_type(a, b)) if both_whole else quotient)


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype that an operation on both arguments has (tensors or numbers)."""
    groups: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for v in (tensor1, tensor2):
        if not isinstance(v, Tensor):
            groups[2].append(v)
        else:
            groups[0 if v.ndim else 1].append(v._data.dtype)
    return dtypes.public(dtypes.result_type(*groups))


def promote_types(type1: Any, type2: Any) -> dtypes.dtype:
    """The smallest dtype that holds values of both."""
    return dtypes.public(dtypes.promote_types(dtypes.to_numpy(type1), dtypes.to_numpy(type2)))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether PyTorch's rules let a result of one dtype be stored in another."""
    return dtypes.can_cast(dtypes.to_numpy(from_), dtypes.to_numpy(to))


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:  # noqa: A002
    """other - alpha * input."""
    if not isinstance(input, Tensor):
        raise invalid_combination("rsub", input, other)
    x = arguments.tensor(input, "rsub")
    y = arguments.operand(other, "rsub")
    node = f"RsubBackward{int(not isinstance(y, Tensor))}"
    return apply(ops.sub, (y, scaled("rsub", x, alpha, y)), {}, node)


def power(input: Any, exponent: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """input ** exponent.

    Raises RuntimeError for an integer tensor to a negative integer power.
    """
    a, b = pair("pow", input, exponent, EITHER, "exponent")
    if not isinstance(b, Tensor):
        if isinstance(b, int) and b < 0 and isinstance(a, Tensor) and a._data.dtype.kind in "iub":
            raise ArgumentRuntimeError(
                with_site("Integers to negative integer powers are not allowed.")
            )
        if b == 2 and type(b) in (int, float) and isinstance(a, Tensor):
            if a._data.dtype.kind in "fc":
                return into(out, _square(a), a)
        return into(out, apply(ops.pow_, (a, b), {}, "PowBackward0"), a)
    name = "PowBackward1" if isinstance(a, Tensor) else "PowBackward2"
    return into(out, apply(ops.pow_, (a, b), {}, name), a, b)


_square = unary(ops.square)


def square(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """input * input; int64 for bool."""
    x = arguments.tensor(input, "square")
    if x._data.dtype.kind == "b":
        x = x.to(dtypes.int64)
    return into(out, _square(x), x)


def float_power(input: Any, exponent: Any) -> Tensor:  # noqa: A002
    """input ** exponent, computed in float64 (complex128 for complex arguments)."""
    a, b = pair("float_power", input, exponent, EITHER, "exponent")
    wide = [
        v.to(dtypes.complex128 if v._data.dtype.kind == "c" else dtypes.float64)
        if isinstance(v, Tensor) else v
        for v in (a, b)
    ]  # fmt: skip
    return power(*wide)


def _one(name: str, primitive: Any, node: str | None = None) -> Any:
    function = unary(primitive, node, into)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc}; elementwise."
    return function


neg = _one("neg", ops.neg)
exp, exp2, expm1 = _one("exp", ops.exp), _one("exp2", ops.exp2), _one("expm1", ops.expm1)
log, log2, log10 = _one("log", ops.log), _one("log2", ops.log2), _one("log10", ops.log10)
log1p, sqrt, rsqrt = _one("log1p", ops.log1p), _one("sqrt", ops.sqrt), _one("rsqrt", ops.rsqrt)
sin, cos, tan = _one("sin", ops.sin), _one("cos", ops.cos), _one("tan", ops.tan)
asin, acos, atan = _one("asin", ops.asin), _one("acos", ops.acos), _one("atan", ops.atan)
sinh, cosh, tanh = _one("sinh", ops.sinh), _one("cosh", ops.cosh), _one("tanh", ops.tanh)
asinh, acosh, atanh = _one("asinh", ops.asinh), _one("acosh", ops.acosh), _one("atanh", ops.atanh)
sigmoid, reciprocal = _one("sigmoid", ops.sigmoid), _one("reciprocal", ops.reciprocal)
sign, sgn, angle = _one("sign", ops.sign), _one("sgn", ops.sgn), _one("angle", ops.angle)
floor, ceil, trunc = _one("floor", ops.floor), _one("ceil", ops.ceil), _one("trunc", ops.trunc)
absolute = _one("abs", ops.abs_)
isnan, isinf, isfinite = (
    _one("isnan", ops.isnan), _one("isinf", ops.isinf), _one("isfinite", ops.isfinite),
)  # fmt: skip
logical_not, bitwise_not = (
    _one("logical_not", ops.logical_not), _one("bitwise_not", ops.bitwise_not),
)  # fmt: skip
relu = _one("relu", ops.relu)


def positive(input: Any) -> Tensor:  # noqa: A002
    """input itself; refuses bool, as PyTorch does."""
    x = arguments.tensor(input, "positive")
    if x._data.dtype.kind == "b":
        raise ArgumentRuntimeError(
            with_site("The `+` operator, on a bool tensor is not supported.")
        )
    return x


def frac(input: Any) -> Tensor:  # noqa: A002
    """input - trunc(input)."""
    x = arguments.tensor(input, "frac")
    arguments.refuse(x, kernel("biuc", "frac_cpu"))
    return apply(ops.sub, (x, trunc(x.detach())), {}, "FracBackward0")


def round(input: Any, *, decimals: int = 0, out: Any = None) -> Tensor:  # noqa: A001,A002
    """Rounded half to even, at a number of decimals."""
    x = arguments.tensor(input, "round")
    if decimals:
        arguments.refuse(x, kernel("biuc", "round_cpu"))
    return into(out, apply(ops.round_, (x,), {"decimals": decimals},
                           f"RoundBackward{int(bool(decimals))}"), x)  # fmt: skip


def real(input: Any) -> Tensor:  # noqa: A002
    """The real part: a view of a complex tensor, a real tensor itself."""
    x = arguments.tensor(input, "real")
    return apply(ops.real, (x,), {}) if x._data.dtype.kind == "c" else x


def imag(input: Any) -> Tensor:  # noqa: A002
    """The imaginary part, a view.  Raises RuntimeError for a real tensor."""
    x = arguments.tensor(input, "imag")
    if x._data.dtype.kind != "c":
        raise ArgumentRuntimeError(
            with_site(f"imag is not implemented for tensors with non-complex dtypes: got {x.dtype}")
        )
    return apply(ops.imag, (x,), {})


def conj(input: Any) -> Tensor:  # noqa: A002
    """The complex conjugate; a real tensor itself."""
    x = arguments.tensor(input, "conj")
    return apply(conj_primitive, (x,), {}) if x._data.dtype.kind == "c" else x


def complex(real: Any, imag: Any, *, out: Any = None) -> Tensor:  # noqa: A001
    """real + 1j * imag, from two tensors of one floating dtype."""
    a, b = arguments.tensor(real, "complex", "real"), arguments.tensor(imag, "complex", "imag")
    _two_parts(a, b)
    if a._data.dtype == np.float16:
        raise ArgumentTypeError(with_site("Got unsupported ScalarType ComplexHalf"))
    return into(out, apply(ops.complex_, (a, b), {}))


def _two_parts(a: Tensor, b: Tensor) -> None:
    """Two floating tensors of one dtype, as parts of complex numbers."""
    names = arguments.PYTORCH_NAMES
    first, second = names[a._data.dtype.name], names[b._data.dtype.name]
    if a._data.dtype.kind != "f" or b._data.dtype.kind != "f":
        raise ArgumentRuntimeError(
            with_site(
                "Expected both inputs to be Half, Float or Double tensors but got "
                f"{first} and {second}"
            )
        )
    if a._data.dtype != b._data.dtype:
        raise ArgumentRuntimeError(
            with_site(
                f"Expected object of scalar type {first} but got scalar type {second} for second "
                "argument"
            )
        )


def polar(abs: Any, angle: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """The complex tensor with the given modulus and angle (radians)."""
    a, b = arguments.tensor(abs, "polar", "abs"), arguments.tensor(angle, "polar", "angle")
    _two_parts(a, b)
    if a._data.dtype == np.float16:
        arguments.refuse(a, kernel("f", "polar_cpu"))
    return into(out, apply(ops.complex_, (a * cos(b), a * sin(b)), {}, "PolarBackward0"))


def c_name(x: Tensor) -> str:
    """The C name of a dtype, which some of PyTorch's messages use."""
    names = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int",
             "float16": "c10::Half", "complex64": "c10::complex<float>",
             "complex128": "c10::complex<double>", "bool": "bool"}  # fmt: skip
    return names.get(x._data.dtype.name, x._data.dtype.name)


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:  # noqa: A002
    """input where condition holds, other elsewhere; `where(condition)` gives the indices."""
    if not isinstance(condition, Tensor):
        raise invalid_combination("where", condition, input, other)
    c = condition
    if input is None and other is None:
        return tuple(wrap(i) for i in np.nonzero(c._data))
    if c._data.dtype.kind not in "bu":
        raise ArgumentRuntimeError(
            with_site(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{arguments.PYTORCH_NAMES[c._data.dtype.name]}"
            )
        )
    a, b = arguments.operand(input, "where", "input"), arguments.operand(other, "where")
    numpy = dtypes.to_numpy(result_type(a, b))
    if c._data.dtype.kind == "u":
        c = wrap(c._data.astype(bool))
    a, b = _typed(a, numpy), _typed(b, numpy)
    return into(out, apply(ops.where, (c, a, b), {}), c, a, b)


def _typed(value: Any, numpy: Any) -> Any:
    """An operand in a dtype; a number as a 0-d tensor, so that NumPy cannot widen the result."""
    if isinstance(value, Tensor):
        return value if value._data.dtype is numpy else value.to(numpy)
    return wrap(np.asarray(value).astype(numpy))


def masked_fill(input: Any, mask: Any, value: Any) -> Tensor:  # noqa: A002
    """input with `value` where the boolean `mask` holds."""
    x, m = arguments.tensor(input, "masked_fill"), arguments.tensor(mask, "masked_fill", "mask")
    if m._data.dtype.kind != "b":
        raise ArgumentRuntimeError(
            with_site("masked_fill only supports boolean masks, but got mask with dtype "
                      f"{m.dtype}")
        )  # fmt: skip
    number = not isinstance(value, Tensor)
    v = arguments.operand(value, "masked_fill", "value")
    v = wrap(data.fill_value(v, x._data.dtype)) if number else _typed(v, x._data.dtype)
    return apply(ops.where, (m, v, x), {}, f"MaskedFillBackward{int(not number)}")


def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:  # noqa: A002
    """input limited to [min, max], numbers or tensors; at a bound the gradient passes.

    Raises RuntimeError when both bounds are missing.
    """
    x = arguments.tensor(input, "clamp")
    if min is None and max is None:
        raise ArgumentRuntimeError(
            with_site("torch.clamp: At least one of 'min' or 'max' must not be None")
        )
    for bound in (min, max):
        if bound is not None and not isinstance(bound, (Tensor, *NUMBERS, np.generic)):
            raise invalid_combination("clamp", x, min, max)
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        bounds = tuple(arguments.operand(v, "clamp") for v in (min, max) if v is not None)
        one_sided = ops.at_most if min is None else ops.at_least
        return into(out, apply(one_sided if len(bounds) == 1 else ops.clamp_tensors,
                               (x, *bounds), {}))  # fmt: skip
    if x._data.dtype.kind in "iub" and (isinstance(min, float) or isinstance(max, float)):
        x = x.to(dtypes.public(Defaults.dtype))
    return into(out, apply(ops.clamp, (x,), {"min": min, "max": max}, "ClampBackward1"), x)


def nan_to_num(
    input: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None,  # noqa: A002
) -> Tensor:  # fmt: skip
    """input with NaN and infinities replaced (by the largest finite numbers when not given)."""
    x = arguments.tensor(input, "nan_to_num")
    if x._data.dtype.kind == "c":
        return _complex_nan_to_num(x, nan, posinf, neginf)
    if x._data.dtype.kind != "f":
        return x.clone()
    info = np.finfo(x._data.dtype)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    params = {"nan": 0.0 if nan is None else nan, "posinf": high, "neginf": low}
    return apply(ops.nan_to_num, (x,), params)


def _complex_nan_to_num(x: Tensor, *filling: Any) -> Tensor:
    if x._requires_grad:
        raise ArgumentRuntimeError(
            with_site(
                "nan_to_num does not support automatic differentiation for outputs with complex "
                "dtype."
            )
        )
    return complex(nan_to_num(real(x), *filling), nan_to_num(imag(x), *filling))


def lerp(input: Any, end: Any, weight: Any) -> Tensor:  # noqa: A002
    """input + weight * (end - input), of one dtype."""
    x, e = arguments.tensor(input, "lerp"), arguments.tensor(end, "lerp", "end")
    w = arguments.operand(weight, "lerp", "weight")
    for v, which in ((e, "end"), (w, "weight")):
        if isinstance(v, Tensor) and v._data.dtype != x._data.dtype:
            raise ArgumentRuntimeError(
                with_site(
                    f"expected dtype {c_name(x)} for `{which}` but got dtype {c_name(v)}"
                )
            )
    arguments.refuse(x, kernel("biu", "lerp_kernel_scalar"))
    return apply(ops.lerp, (x, e, w), {}, f"LerpBackward{int(isinstance(w, Tensor))}")


def _three(name: str, input: Any, tensor1: Any, tensor2: Any) -> tuple[Tensor, Tensor, Tensor]:  # noqa: A002
    return (arguments.tensor(input, name), arguments.tensor(tensor1, name, "tensor1"),
            arguments.tensor(tensor2, name, "tensor2"))  # fmt: skip


def _of_dtype(x: Tensor, value: Any) -> Any:
    """A number as the dtype of x reads it: a fraction of an integer dtype is cut off."""
    if value == 1:
        return value
    return data.fill_value(value, x._data.dtype).item()


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Any = None) -> Tensor:  # noqa: A002
    """input + value * tensor1 * tensor2."""
    x, a, b = _three("addcmul", input, tensor1, tensor2)
    product = mul(a, b)
    arguments.refuse(wrap(np.empty(0, result_type(x, product).numpy)),
                     kernel("b", "addcmul_cpu_out"))  # fmt: skip
    scale = _of_dtype(product, value)
    product = product if scale == 1 else product * scale
    return into(out, apply(ops.add, (x, product), {}, "AddcmulBackward0"))


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Any = None) -> Tensor:  # noqa: A002
    """input + value * tensor1 / tensor2.  Raises RuntimeError for two integer tensors."""
    x, a, b = _three("addcdiv", input, tensor1, tensor2)
    if result_type(a, b).numpy.kind in "biu":
        raise ArgumentRuntimeError(
            with_site(
                "Integer division with addcdiv is no longer supported, and in a future  release "
                "addcdiv will perform a true division of tensor1 and tensor2: convert them with "
                ".float() first"
            )
        )
    quotient = true_divide(a, b)
    quotient = quotient if value == 1 else quotient * value
    return into(out, apply(ops.add, (x, quotient), {}, "AddcdivBackward0"))


def logaddexp(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """log(exp(input) + exp(other)), without overflow."""
    a, b = arguments.tensor(input, "logaddexp"), arguments.tensor(other, "logaddexp", "other")
    if "c" in (a._data.dtype.kind, b._data.dtype.kind):
        swap = real(a.detach()) < real(b.detach())
        first, second = where(swap, b, a), where(swap, a, b)
        rest = log1p(exp(second - first))
        return into(out, apply(ops.add, (first, rest), {}, "LogaddexpBackward0"))
    return into(out, apply(ops.logaddexp, (a, b), {}))


def hypot(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """sqrt(input**2 + other**2)."""
    return into(out, apply(ops.hypot, pair("hypot", input, other, NEITHER), {}))


# ---------------------------------------------------------------- whole-tensor comparisons
def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False,  # noqa: A002
) -> Tensor:  # fmt: skip
    """|input - other| <= atol + rtol * |other|, elementwise."""
    a, b = arguments.tensor(input, "isclose"), arguments.tensor(other, "isclose", "other")
    if a._data.dtype != b._data.dtype:
        raise ArgumentRuntimeError(
            with_site(
                f"{arguments.PYTORCH_NAMES[a._data.dtype.name]} did not match "
                f"{arguments.PYTORCH_NAMES[b._data.dtype.name]}: isclose needs one dtype"
            )
        )
    if type(a._data) is not np.ndarray or type(b._data) is not np.ndarray:  # inside a transform
        close: Tensor = ((a - b).abs() <= atol + rtol * b.abs()) & b.isfinite() | (a == b)
        return close | (a != a) & (b != b) if equal_nan else close
    return wrap(np.asarray(np.isclose(a._data, b._data, rtol, atol, equal_nan)))


def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False,  # noqa: A002
) -> bool:  # fmt: skip
    """Whether `isclose` holds for every element."""
    a, b = arguments.tensor(input, "allclose"), arguments.tensor(other, "allclose", "other")
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def equal(input: Any, other: Any) -> bool:  # noqa: A002
    """Whether shapes and all elements are the same."""
    a, b = arguments.tensor(input, "equal"), arguments.tensor(other, "equal", "other")
    if a._data.shape != b._data.shape:
        return False
    return bool((a == b).all())
