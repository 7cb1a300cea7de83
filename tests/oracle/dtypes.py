"""Calls of functions on operands of each dtype, for any torch-like module.

A case is a name and a function of the module and operands; `outcome` runs one and gives what is
compared: dtypes, `grad_fn` and values of the results, or the exception's builtin and message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.oracle.programs import builtin_name

DTYPES = ("bool", "uint8", "int64", "float16", "float32", "complex64")
VALUES = [[1, 0, 1], [0, 2, 3], [1, 3, 1]]
OTHERS = [[1, 1, 2], [3, 1, 2], [1, 2, 1]]
Case = Callable[..., Any]

UNARY = (
    "abs acos acosh angle asin asinh atan atanh bitwise_not ceil conj cos cosh deg2rad digamma erf "
    "erfc exp exp2 expm1 floor frac imag isfinite isinf isnan lgamma log log10 log1p log2 "
    "logical_not logit nan_to_num neg positive rad2deg real reciprocal relu round rsqrt sgn "
    "sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc sum mean prod nansum nanmean "
    "max min amax amin argmax argmin all any count_nonzero median nanmedian std var std_mean "
    "var_mean norm unique sort argsort aminmax corrcoef cov diff histc trace tril triu t flip "
    "clone diag diagonal ravel fliplr rot90 nonzero numel is_complex is_floating_point mode "
    "zeros_like ones_like empty_like rand_like randn_like bernoulli poisson block_diag "
    "atleast_1d unbind combinations_ vander_ bincount_ multinomial"
).split()
BINARY = (
    "add sub mul div true_divide floor_divide fmod remainder pow float_power maximum minimum atan2 "
    "eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor "
    "bitwise_left_shift bitwise_right_shift copysign gcd lcm heaviside hypot ldexp logaddexp "
    "nextafter xlogy rsub isclose allclose equal dist matmul mm inner outer_ kron dot vdot_ mv_ "
    "cdist tensordot cat2 stack2 where2 bmm_ cross isin searchsorted_ bucketize_ complex polar "
    "result_type"
).split()
OPERATORS = {
    "+": lambda T, a, b: a + b, "-": lambda T, a, b: a - b, "*": lambda T, a, b: a * b,
    "/": lambda T, a, b: a / b, "//": lambda T, a, b: a // b, "%": lambda T, a, b: a % b,
    "**": lambda T, a, b: a**b, "&": lambda T, a, b: a & b, "|": lambda T, a, b: a | b,
    "^": lambda T, a, b: a ^ b, "<<": lambda T, a, b: a << b, ">>": lambda T, a, b: a >> b,
    "<": lambda T, a, b: a < b, ">=": lambda T, a, b: a >= b, "==": lambda T, a, b: a == b,
    "@": lambda T, a, b: a @ b,
}  # fmt: skip
SPECIAL: dict[str, Case] = {
    "combinations_": lambda T, x: T.combinations(x[0]), "vander_": lambda T, x: T.vander(x[0]),
    "bincount_": lambda T, x: T.bincount(x[0]), "outer_": lambda T, a, b: T.outer(a[0], b[0]),
    "dot": lambda T, a, b: T.dot(a[0], b[0]), "vdot_": lambda T, a, b: T.vdot(a[0], b[0]),
    "mv_": lambda T, a, b: T.mv(a, b[0]), "cat2": lambda T, a, b: T.cat([a, b]),
    "stack2": lambda T, a, b: T.stack([a, b]), "where2": lambda T, a, b: T.where(a > 1, a, b),
    "bmm_": lambda T, a, b: T.bmm(a[None], b[None]),
    "searchsorted_": lambda T, a, b: T.searchsorted(a[1], b),
    "bucketize_": lambda T, a, b: T.bucketize(a, b.reshape(-1)[-3:].sort()[0]),
    "multinomial": lambda T, x: T.multinomial(x, 1).shape,
    "rand_like": lambda T, x: T.rand_like(x).dtype,
    "empty_like": lambda T, x: T.empty_like(x).dtype,
    "randn_like": lambda T, x: T.randn_like(x).dtype,
    "bernoulli": lambda T, x: T.bernoulli(x.real * 0).dtype,
    "poisson": lambda T, x: T.poisson(x).dtype,
    "nonzero": lambda T, x: T.nonzero(x), "conj": lambda T, x: T.conj(x).resolve_conj() * 1,
}  # fmt: skip
MORE: dict[str, Case] = {
    "sum dim": lambda T, x: T.sum(x, 0), "mean dim": lambda T, x: T.mean(x, 0),
    "prod dim": lambda T, x: T.prod(x, 0), "max dim": lambda T, x: T.max(x, 0),
    "min dim": lambda T, x: T.min(x, 1), "amax dim": lambda T, x: T.amax(x, 0),
    "argmax dim": lambda T, x: T.argmax(x, 0), "argmin dim": lambda T, x: T.argmin(x, 1),
    "any dim": lambda T, x: T.any(x, 0), "all dim": lambda T, x: T.all(x, 0),
    "var dim": lambda T, x: T.var(x, 0), "std dim": lambda T, x: T.std(x, 0),
    "median dim": lambda T, x: T.median(x, 0), "nanmedian dim": lambda T, x: T.nanmedian(x, 0),
    "logsumexp": lambda T, x: T.logsumexp(x, 0), "softmax": lambda T, x: T.softmax(x, 0),
    "log_softmax": lambda T, x: T.log_softmax(x, 0), "cumsum": lambda T, x: T.cumsum(x, 0),
    "cumprod": lambda T, x: T.cumprod(x, 0), "sort dim": lambda T, x: T.sort(x, 0, True),
    "topk": lambda T, x: T.topk(x, 2)[0], "kthvalue": lambda T, x: T.kthvalue(x, 2)[0],
    "norm 1": lambda T, x: T.norm(x, 1), "norm dim": lambda T, x: T.norm(x, 2, 0),
    "norm inf": lambda T, x: T.norm(x, float("inf")), "norm 0": lambda T, x: T.norm(x, 0),
    "clamp": lambda T, x: T.clamp(x, 0, 1), "clamp float": lambda T, x: T.clamp(x, 0.5, 1.5),
    "clamp min": lambda T, x: T.clamp(x, min=1), "clamp max": lambda T, x: T.clamp(x, max=1.5),
    "quantile": lambda T, x: T.quantile(x, 0.5), "nanquantile": lambda T, x: T.nanquantile(x, 0.5),
    "round 1": lambda T, x: T.round(x, decimals=1), "polygamma": lambda T, x: T.polygamma(1, x),
    "sum float": lambda T, x: T.sum(x, dtype=T.float32),
    "sum int": lambda T, x: T.sum(x, dtype=T.int64),
    "mean float": lambda T, x: T.mean(x, dtype=T.float32),
    "mean int": lambda T, x: T.mean(x, dtype=T.int64),
    "prod float": lambda T, x: T.prod(x, dtype=T.float32),
    "cumsum float": lambda T, x: T.cumsum(x, 0, dtype=T.float32),
    "softmax float": lambda T, x: T.softmax(x, 0, dtype=T.float32),
    "masked_fill": lambda T, x: T.masked_fill(x, x == 1, 2),
    "masked_fill float": lambda T, x: T.masked_fill(x, x == 1, 2.5),
    "masked_fill complex": lambda T, x: T.masked_fill(x, x == 1, 2j),
    "index": lambda T, x: x[x[0]], "index_select": lambda T, x: T.index_select(x, 0, x[0]),
    "gather": lambda T, x: T.gather(T.ones(4, 4), 0, x), "take": lambda T, x: T.take(T.ones(9), x),
    "mask": lambda T, x: T.ones(3, 3)[x],
    "masked_select": lambda T, x: T.masked_select(T.ones(3, 3), x),
    "where": lambda T, x: T.where(x, 1.0, 2.0), "where 1": lambda T, x: T.where(x > 1, x, 1),
    "where 1.5": lambda T, x: T.where(x > 1, x, 1.5),
    "where bool": lambda T, x: T.where(x != 1, 3, x),
    "one_hot": lambda T, x: T.nn.functional.one_hot(x),
    "item": lambda T, x: x[0, 0].item(), "tolist": lambda T, x: x.tolist(),
    "bool": lambda T, x: bool(x[0, 0]), "float": lambda T, x: float(x[0, 0]),
    "int": lambda T, x: int(x[0, 0]), "range": lambda T, x: list(range(x[0, 0])),
    "requires_grad_": lambda T, x: x.detach().requires_grad_().requires_grad,
    "tensor": lambda T, x: T.tensor(x.tolist()), "full_like": lambda T, x: T.full_like(x, 2.5),
    "fill_": lambda T, x: x.clone().fill_(2.5),
    "full int": lambda T, x: T.full((2,), x[0, 0].item()),
    "repeat_interleave": lambda T, x: T.repeat_interleave(T.ones(3), x[0]),
    "nan_to_num 1": lambda T, x: T.nan_to_num(x, 1.0),
    "lerp 0.5": lambda T, x: T.lerp(x, x + 1, 0.5),
    "addcmul": lambda T, x: T.addcmul(x, x, x), "addcdiv": lambda T, x: T.addcdiv(x, x, x + 1),
    "addcmul 0.5": lambda T, x: T.addcmul(x, x, x, value=0.5),
    "add alpha 2": lambda T, x: T.add(x, x, alpha=2),
    "add alpha 0.5": lambda T, x: T.add(x, x, alpha=0.5),
    "sub alpha 2": lambda T, x: T.sub(x, x, alpha=2),
    "add alpha True": lambda T, x: T.add(x, x, alpha=True),
    "sub alpha 0.5": lambda T, x: T.sub(x, x, alpha=0.5),
    "rsub alpha": lambda T, x: T.rsub(x, x, alpha=2),
    "add alpha 1j": lambda T, x: T.add(x, x, alpha=1j),
    "addmm": lambda T, x: T.addmm(x, x, x), "addmv": lambda T, x: T.addmv(x[0], x, x[0]),
    "addr": lambda T, x: T.addr(x, x[0], x[0]),
    "baddbmm": lambda T, x: T.baddbmm(x, x[None], x[None]),
    "addmm 0.5": lambda T, x: T.addmm(x, x, x, alpha=0.5),
    "einsum": lambda T, x: T.einsum("ij,jk", x, x),
    "div floor": lambda T, x: T.div(x, x + 1, rounding_mode="floor"),
    "div trunc": lambda T, x: T.div(x, x + 1, rounding_mode="trunc"),
    "div trunc 0": lambda T, x: T.div(x + 1, x, rounding_mode="trunc"),
    "scatter_add": lambda T, x: T.scatter_add(T.zeros(4, 3), 0, x, T.ones(3, 3)),
    "scatter_add src": lambda T, x: T.scatter_add(x, 0, T.zeros(3, 3, dtype=T.int64), T.ones(3, 3)),
    "index_add": lambda T, x: T.index_add(x, 0, T.tensor([0, 1, 0]), x),
    "index_add int": lambda T, x: T.index_add(x, 0, T.tensor([0, 1, 0]), T.ones(3, 3).long()),
    "index_copy": lambda T, x: T.index_copy(x, 0, T.tensor([0, 1]), T.ones(2, 3)),
    "index_fill": lambda T, x: T.index_fill(x, 0, T.tensor([0, 1]), 2.5),
    "scatter": lambda T, x: T.scatter(x, 0, T.zeros(3, 3, dtype=T.int64), 2.5),
    "put": lambda T, x: T.index_put(x, (T.tensor([0]),), T.ones(3)),
    "masked_scatter": lambda T, x: T.masked_scatter(x, x == 1, T.ones(9)),
}  # fmt: skip


def unary_cases() -> dict[str, Case]:
    """Functions of one tensor."""
    plain = {n: (lambda T, x, n=n: getattr(T, n)(x)) for n in UNARY}
    return {**plain, **{n: SPECIAL[n] for n in UNARY if n in SPECIAL}, **MORE}


def binary_cases() -> dict[str, Case]:
    """Functions of two tensors."""
    plain = {n: (lambda T, a, b, n=n: getattr(T, n)(a, b)) for n in BINARY}
    return {**plain, **{n: SPECIAL[n] for n in BINARY if n in SPECIAL}, **OPERATORS}


def inplace_cases(methods: list[str]) -> dict[str, Case]:
    """In-place methods: those of one tensor and those of two."""
    return {n: (lambda T, *v, n=n: getattr(v[0].clone(), n)(*v[1:])) for n in methods}


def operand(T: Any, dtype: str, values: Any = VALUES) -> Any:
    """A tensor of that dtype (one that requires grad where it can), or a number."""
    if dtype == "number":
        return values
    data = T.tensor(values, dtype=getattr(T, dtype))
    return data.requires_grad_() if dtype in ("float16", "float32", "complex64") else data


def leaves(result: Any) -> Iterator[Any]:
    """The tensors and numbers in a result."""
    if isinstance(result, (tuple, list)):
        for r in result:
            yield from leaves(r)
    else:
        yield result


def described(value: Any) -> Any:
    """One result as plain data."""
    if not hasattr(value, "detach"):
        return value if isinstance(value, (bool, int, float, complex)) else str(value)
    name = None if value.grad_fn is None else type(value.grad_fn).__name__
    return str(value.dtype), name, np.array(value.detach().numpy())


def outcome(T: Any, case: Case, *operands: Any) -> Any:
    """What a call gives: a list of results, or the exception."""
    try:
        return [described(v) for v in leaves(case(T, *operands))]
    except Exception as error:
        return f"{builtin_name(error)}: {str(error)}"


def same(want: Any, got: Any) -> bool:
    """Whether two outcomes agree: values up to rounding, exceptions in type."""
    if isinstance(want, str) or isinstance(got, str):
        if not isinstance(want, str) or not isinstance(got, str):
            return False
        return want.split(":")[0] == got.split(":")[0]
    if len(want) != len(got):
        return False
    return all(_same_value(a, b) for a, b in zip(want, got, strict=True))


def _same_value(a: Any, b: Any) -> bool:
    if not (isinstance(a, tuple) and isinstance(b, tuple)):
        return type(a) is type(b) and bool(np.allclose(a, b) if not isinstance(a, str) else a == b)
    if a[:2] != b[:2] or a[2].shape != b[2].shape:
        return False
    loose = 2e-2 if "16" in a[0] else 1e-4
    one, two = a[2].astype(complex), b[2].astype(complex)
    return np.allclose(one, two, rtol=loose, atol=loose, equal_nan=True)


# PyTorch 2.13 has other nodes here, of the functions it is made of, or none: conversions of names.
NAMED_OTHERWISE = (
    "imag", "real", "cov", "diag", "combinations_", "vander_", "quantile", "nanquantile", "einsum",
    "copysign",
)  # fmt: skip
# float16 + complex is a dtype of its own there; no `cdist` of float16; a bool to a number that is 1
UNLIKE = {("cdist", "float16", "float16"), ("cdist", "float16", "float32"), ("pow", "bool", True),
          ("**", "bool", True)}  # fmt: skip


def unlike(name: str, *kinds: Any) -> bool:
    """Whether the two are known to differ on operands of these dtypes (or on a number)."""
    half = "float16" in kinds and any(k in ("complex64", 1j) for k in kinds)
    return half or (name, *kinds) in UNLIKE or (name == "tensordot" and kinds[-1] not in DTYPES)


def without_names(found: Any) -> Any:
    """An outcome without the nodes."""
    if isinstance(found, str):
        return found
    return [(v[0], None, v[2]) if isinstance(v, tuple) else v for v in found]
