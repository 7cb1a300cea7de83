"""Special functions and rarer elementwise ones (layer 4), with PyTorch's signatures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments, elementwise
from pullback.api.convert import concrete
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.refusal import Refusal, kernel, unsupported
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError, UnsupportedError
from pullback.ops import special as ops

into, where = elementwise.into, elementwise.where


def _one(name: str, primitive: Any, params: dict[str, Any] | None = None) -> Any:
    def function(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
        return into(out, apply(primitive, (arguments.tensor(input, name),), params or {}))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc} (values from SciPy)."
    return function


erfc, lgamma = _one("erfc", ops.erfc), _one("lgamma", ops.lgamma)
digamma = _one("digamma", ops.polygamma, {"order": 0})
digamma.__doc__ = "The derivative of lgamma (values from SciPy)."


def polygamma(n: int, input: Any) -> Tensor:  # noqa: A002
    """The derivative of order n of digamma."""
    order = arguments.integer(n, "polygamma", "n")
    if order < 0:
        raise ArgumentRuntimeError(with_site("polygamma(n, x) does not support negative n."))
    return apply(ops.polygamma, (arguments.tensor(input, "polygamma"),), {"order": order})


def _floating(x: Tensor) -> Tensor:
    return x if x._data.dtype.kind in "fc" else x.to(dtypes.public(dtypes.dtype_of_number(1.0)))


def logit(input: Any, eps: float | None = None, *, out: Any = None) -> Tensor:  # noqa: A002
    """log(x / (1 - x)); with `eps`, x is kept between eps and 1 - eps."""
    x = _floating(arguments.tensor(input, "logit"))
    if eps is not None:
        x = elementwise.clamp(x, min=eps, max=1 - eps)
    return into(out, elementwise.log(x / (1 - x)))


def xlogy(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """input * log(other), 0 where input is 0 (but NaN where other is)."""
    a, b = elementwise.pair("xlogy", input, other)
    none = (a == 0) & ((b <= 0) | (b == math.inf)) if isinstance(a, Tensor) else (
        (b <= 0) | (b == math.inf) if a == 0 else wrap(np.zeros((), bool))
    )  # fmt: skip
    safe = where(none, 1, b if isinstance(b, Tensor) else wrap(np.asarray(b, a._data.dtype)))
    return into(out, a * elementwise.log(safe))


def sinc(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """sin(pi x) / (pi x), 1 at 0."""
    x = _floating(arguments.tensor(input, "sinc"))
    angle = where(x == 0, 1.0, x) * math.pi
    return into(out, where(x == 0, 1.0, elementwise.sin(angle) / angle))


def deg2rad(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """Degrees as radians."""
    return into(out, _floating(arguments.tensor(input, "deg2rad")) * (math.pi / 180))


def rad2deg(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """Radians as degrees."""
    return into(out, _floating(arguments.tensor(input, "rad2deg")) * (180 / math.pi))


def ldexp(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """input * 2 ** other."""
    a, b = elementwise.pair("ldexp", input, other, elementwise.NEITHER)
    return into(out, a * elementwise.power(2.0, b))


def copysign(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """|input| with the sign of other (-0.0 counts as negative); no gradient reaches other."""
    a, b = elementwise.pair("copysign", input, other, elementwise.SECOND)
    size = elementwise.absolute(_floating(a if isinstance(a, Tensor) else wrap(np.asarray(a))))
    if isinstance(b, Tensor):
        plain = b.detach()  # 1 / -0.0 is -inf: the sign of a zero shows in its reciprocal
        sign = (plain < 0) | ((plain == 0) & (elementwise.reciprocal(plain) < 0))
    else:
        sign = wrap(np.asarray(math.copysign(1.0, b) < 0))
    wide = dtypes.to_numpy(elementwise.result_type(size, b))
    return into(out, where(sign, -size, size).to(dtypes.public(wide)))


def heaviside(input: Any, values: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """0 below 0, `values` at 0, 1 above; NaN stays.  No gradient."""
    x = arguments.tensor(input, "heaviside")
    v = arguments.tensor(values, "heaviside", "values")
    for operand in (x, v):
        arguments.refuse(
            operand, Refusal("c", "heaviside is not yet implemented for complex tensors.")
        )
    if x._data.dtype != v._data.dtype:
        raise ArgumentRuntimeError(
            with_site("heaviside is not yet implemented for tensors with different dtypes.")
        )
    found = np.asarray(np.heaviside(concrete(x, "heaviside"), v._data))
    words = "derivative for aten::heaviside is not implemented"
    return into(out, elementwise.without_derivative(
        wrap(found.astype(x._data.dtype, copy=False)), "aten::heaviside", "NotImplemented", x, v,
        words=words))  # fmt: skip


def _of_arrays(name: str, function: Any, kinds: str, doc: str) -> Any:
    """A function of two tensors that has no gradient."""

    def of_arrays(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
        a = arguments.tensor(input, name)
        b = arguments.tensor(other, name, "other")
        wide = dtypes.to_numpy(elementwise.result_type(a, b))
        if wide.kind not in kinds:
            raise UnsupportedError(
                with_site(
                    f"\"{name}_cpu\" not implemented for '{arguments.PYTORCH_NAMES[wide.name]}'"
                )
            )
        found = function(concrete(a, name).astype(wide), concrete(b, name).astype(wide))
        return into(out, wrap(np.asarray(found)))

    of_arrays.__name__ = of_arrays.__qualname__ = name
    of_arrays.__doc__ = doc
    return of_arrays


gcd = _of_arrays("gcd", np.gcd, "iu", "The greatest common divisor of integers.")
lcm = _of_arrays("lcm", np.lcm, "iu", "The least common multiple of integers.")
nextafter = _of_arrays("nextafter", np.nextafter, "f", "The next number from input to other.")


def signbit(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """Whether the sign is negative, also of -0.0."""
    x = arguments.tensor(input, "signbit")
    arguments.refuse(x, unsupported("c", "signbit is not implemented for complex tensors."))
    data = concrete(x, "signbit")
    return into(out, wrap(np.asarray(np.signbit(data) if data.dtype.kind == "f" else data < 0)))
