"""Special functions and rarer elementwise ones (layer 4), with PyTorch's signatures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.api import arguments, elementwise
from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.core.refusal import Refusal, kernel, unsupported
from pullback.eager.apply import apply
from pullback.eager.tensor import Tensor, wrap
from pullback.errors import ArgumentRuntimeError
from pullback.ops import elementwise as elementwise_ops
from pullback.ops import special as ops

into, where = elementwise.into, elementwise.where


def _one(name: str, primitive: Any, params: dict[str, Any] | None = None) -> Any:
    def function(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
        return into(out, apply(primitive, (arguments.tensor(input, name),), params or {}), input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{primitive.doc} (values from SciPy)."
    return function


erfc, lgamma = _one("erfc", ops.erfc), _one("lgamma", ops.lgamma)


def digamma(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """The derivative of lgamma (values from SciPy)."""
    x = arguments.tensor(input, "digamma")
    arguments.refuse(x, kernel("c", "digamma"))
    return into(out, apply(ops.polygamma, (x,), {"order": 0}, "DigammaBackward0"))


def polygamma(n: int, input: Any) -> Tensor:  # noqa: A002
    """The derivative of order n of digamma."""
    order = arguments.integer(n, "polygamma", "n")
    if order < 0:
        raise ArgumentRuntimeError(with_site("polygamma(n, x) does not support negative n."))
    x = arguments.tensor(input, "polygamma")
    arguments.refuse(x, kernel("c", ("digamma", "trigamma", "polygamma")[min(order, 2)]))
    node = "DigammaBackward0" if not order else None
    return apply(ops.polygamma, (x,), {"order": order}, node)


def _floating(x: Tensor) -> Tensor:
    return x if x._data.dtype.kind in "fc" else x.to(dtypes.public(dtypes.dtype_of_number(1.0)))


def logit(input: Any, eps: float | None = None, *, out: Any = None) -> Tensor:  # noqa: A002
    """log(x / (1 - x)); with `eps`, x is kept between eps and 1 - eps."""
    x = _floating(arguments.tensor(input, "logit"))
    arguments.refuse(x, kernel("c", "logit_cpu"))
    if eps is not None:
        x = elementwise.clamp(x, min=eps, max=1 - eps)
    return into(out, apply(ops.logit, (x,), {}))


def xlogy(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """input * log(other), 0 where input is 0 (but NaN where other is)."""
    a, b = elementwise.pair("xlogy", input, other)
    wide = elementwise.result_type(a, b)
    wide = wide if wide.numpy.kind in "fc" else dtypes.public(dtypes.dtype_of_number(1.0))
    a, b = (v.to(wide) if isinstance(v, Tensor) else v for v in (a, b))
    for v in (a, b):
        if isinstance(v, Tensor):
            arguments.refuse(v, kernel("c", "xlogy_cpu"))
    kind = 1 if not isinstance(a, Tensor) else 0 if isinstance(b, Tensor) else 2
    node = f"XlogyBackward{kind}"
    b = b if kind != 2 else wrap(np.asarray(b, wide.numpy))  # whose logarithm keeps the dtype
    return into(out, apply(ops.xlogy, (a, b), {}, node))


def sinc(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """sin(pi x) / (pi x), 1 at 0."""
    x = _floating(arguments.tensor(input, "sinc"))
    return into(out, apply(ops.sinc, (x,), {}))


def deg2rad(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """Degrees as radians."""
    return into(out, _turned("deg2rad", input, math.pi / 180, "Deg2RadBackward0"))


def rad2deg(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """Radians as degrees."""
    return into(out, _turned("rad2deg", input, 180 / math.pi, "Rad2DegBackward0"))


def _turned(name: str, input: Any, factor: float, node: str) -> Tensor:  # noqa: A002
    x = _floating(arguments.tensor(input, name))
    arguments.refuse(x, Refusal("c", f"{name} is not supported for complex tensors."))
    return apply(elementwise_ops.mul, (x, factor), {}, node)


def ldexp(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """input * 2 ** other."""
    a, b = elementwise.pair("ldexp", input, other, elementwise.NEITHER)
    if a._data.dtype.kind == "f":
        arguments.refuse(b, kernel("b", "ldexp_cpu_exp"))
    power = elementwise.power(2.0, b if b._data.dtype.kind in "fc" else b.to(_float_of(a)))
    return into(out, apply(elementwise_ops.mul, (a, power), {}, "LdexpBackward0"))


def _float_of(x: Tensor) -> dtypes.dtype:
    """The dtype of x where it is floating, else the default."""
    return x.dtype if x._data.dtype.kind == "f" else dtypes.public(dtypes.dtype_of_number(1.0))


def copysign(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """|input| with the sign of other (-0.0 counts as negative); the gradient of other is 0."""
    a, b = elementwise.pair("copysign", input, other, elementwise.SECOND)
    wide = elementwise.result_type(a, b)
    wide = wide if wide.numpy.kind in "fc" else dtypes.public(dtypes.dtype_of_number(1.0))
    a = a.to(wide)
    arguments.refuse(a, kernel("c", "copysign_cpu"))
    node = f"CopysignBackward{int(not isinstance(b, Tensor))}"
    return into(out, apply(ops.copysign, (a, b), {}, node))


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
    words = "derivative for aten::heaviside is not implemented"
    found = apply(ops.heaviside, (x.detach(), v.detach()), {})
    return into(out, elementwise.without_derivative(
        found, "aten::heaviside", "NotImplemented", x, v, words=words))  # fmt: skip


gcd = elementwise._two("gcd", ops.gcd, elementwise.NEITHER)
lcm = elementwise._two("lcm", ops.lcm, elementwise.NEITHER)


def nextafter(input: Any, other: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """The next number from input to other."""
    operands = elementwise.pair("nextafter", input, other, elementwise.NEITHER)
    return into(out, apply(ops.nextafter, operands, {}))


def signbit(input: Any, *, out: Any = None) -> Tensor:  # noqa: A002
    """Whether the sign is negative, also of -0.0."""
    x = arguments.tensor(input, "signbit")
    arguments.refuse(x, unsupported("c", "signbit is not implemented for complex tensors."))
    return into(out, apply(ops.signbit, (x,), {}))
