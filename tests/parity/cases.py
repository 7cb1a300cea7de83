"""What is compared with PyTorch: functions of a torch-like module `T`, and their inputs.

Each case is `(name, function, kinds)`; `kinds` names the sample sets of `samples.py` that the
function is run on.  Only names that both libraries have are used, so that the same lambda runs on
PyTorch (recording) and on Pullback (testing).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """One function with its inputs (arrays; floating and complex ones are differentiated)."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Any, ...]


CASES: list[Case] = []


def _rng(name: str) -> np.random.Generator:
    return np.random.default_rng(abs(hash_text(name)))


def hash_text(text: str) -> int:
    """A hash that does not change between processes."""
    value = 0
    for c in text:
        value = (value * 131 + ord(c)) % (2**31)
    return value


def real(shape: tuple[int, ...], low: float = -2.0, high: float = 2.0) -> Any:
    """A maker of real arrays with elements in (low, high)."""
    return lambda rng: rng.uniform(low, high, shape)


def cplx(shape: tuple[int, ...]) -> Any:
    """A maker of complex arrays."""
    return lambda rng: rng.uniform(-2, 2, shape) + 1j * rng.uniform(-2, 2, shape)


def turned(shape: tuple[int, int]) -> Any:
    """A maker of non-contiguous matrices."""
    return lambda rng: rng.uniform(0.3, 2, (shape[1], shape[0])).T


def fixed(value: Any) -> Any:
    """A maker of one array."""
    return lambda rng: np.asarray(value)


def case(name: str, function: Callable[..., Any], *sets: tuple[Any, ...]) -> None:
    """Register a function with sample sets, each a tuple of makers."""
    for i, makers in enumerate(sets):
        rng = _rng(f"{name}/{i}")
        CASES.append(Case(f"{name}/{i}", function, tuple(m(rng) for m in makers)))


S23, S3, S0, SE = (2, 3), (3,), (), (0, 3)
BINARY = (
    (real(S23), real(S23)), (real(S23), real(S3)), (real(S0), real(S23)), (real((2, 1)), real(S3)),
    (real(SE), real(S3)), (turned(S23), real(S23)), (real(S0), real(S0)),
)  # fmt: skip
COMPLEX_BINARY = (
    (cplx(S23), cplx(S23)), (cplx(S3), real(S23)), (real(S3), cplx(S23)), (cplx(S0), cplx(S3)),
)  # fmt: skip
UNARY = ((real(S23),), (real(S0),), (real(SE),), (turned(S23),))
POSITIVE = ((real(S23, 0.2, 3),), (real(S0, 0.2, 3),), (real(SE),), (turned(S23),))
COMPLEX_UNARY = ((cplx(S23),), (cplx(S0),))
INSIDE = ((real(S23, -0.9, 0.9),), (real(S0, -0.9, 0.9),))
ABOVE = ((real(S23, 1.2, 3),), (real(S0, 1.2, 3),))

# ---------------------------------------------------------------- elementwise
case("add", lambda T, a, b: T.add(a, b), *BINARY, *COMPLEX_BINARY)
case("add alpha", lambda T, a, b: T.add(a, b, alpha=2.5), *BINARY[:3])
case("sub", lambda T, a, b: T.sub(a, b), *BINARY, *COMPLEX_BINARY)
case("rsub", lambda T, a: 2.5 - a, *UNARY, *COMPLEX_UNARY)
case("mul", lambda T, a, b: T.mul(a, b), *BINARY, *COMPLEX_BINARY)
case("mul number", lambda T, a: a * 2.5 * 3, *UNARY, *COMPLEX_UNARY)
case("div", lambda T, a, b: T.div(a, b), *BINARY, *COMPLEX_BINARY)
case("rdiv", lambda T, a: 2.0 / a, *POSITIVE, *COMPLEX_UNARY)
case("neg", lambda T, a: -a, *UNARY, *COMPLEX_UNARY)
POWERS = ((real(S23, 0.2, 2), real(S23)), (real(S3, 0.2, 2), real(S23)),
          (real(S0, 0.2, 2), real(S23)), (cplx(S23), cplx(S23)), (cplx(S3), real(S3)))  # fmt: skip
case("pow", lambda T, a, b: T.pow(a, b), *POWERS)
for n in (2, 3, 1, 0, 0.5, -1, -2, 2.5):
    case(f"pow {n}", lambda T, a, n=n: a**n, *POSITIVE[:2], *COMPLEX_UNARY)
case("rpow", lambda T, a: 2.5**a, *UNARY, *COMPLEX_UNARY)
case("pow zero base", lambda T, a: a**2.0 + a**3, (fixed([0.0, 1.0, -2.0]),))
case("square", lambda T, a: T.square(a), *UNARY, *COMPLEX_UNARY)
case("reciprocal", lambda T, a: T.reciprocal(a), *POSITIVE, *COMPLEX_UNARY)
case("fmod", lambda T, a, b: T.fmod(a, b), (real(S23, 3, 5), real(S23, 0.5, 1)))
case("remainder", lambda T, a, b: T.remainder(a, b), (real(S23, -5, 5), real(S23, 0.5, 1)))
for name in ("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "asinh",
             "sigmoid"):  # fmt: skip
    complex_sets = COMPLEX_UNARY if name not in ("exp2", "expm1") else ()
    case(name, lambda T, a, name=name: getattr(T, name)(a), *UNARY, *complex_sets)
for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt"):
    case(name, lambda T, a, name=name: getattr(T, name)(a), *POSITIVE, *COMPLEX_UNARY)
for name in ("asin", "acos", "atanh"):
    case(name, lambda T, a, name=name: getattr(T, name)(a), *INSIDE, *COMPLEX_UNARY)
case("acosh", lambda T, a: T.acosh(a), *ABOVE)
case("atan2", lambda T, a, b: T.atan2(a, b), *BINARY)
for name in ("sign", "floor", "ceil", "trunc", "round", "frac"):
    case(name, lambda T, a, name=name: getattr(T, name)(a), *UNARY)
case("abs", lambda T, a: T.abs(a), *UNARY, *COMPLEX_UNARY, (fixed([0.0, -1.0]),),
     (fixed([0j, 1 - 2j]),))  # fmt: skip
case("sgn", lambda T, a: T.sgn(a), *UNARY, *COMPLEX_UNARY)
case("angle", lambda T, a: T.angle(a), *UNARY, *COMPLEX_UNARY)
case("real", lambda T, a: T.real(a), *UNARY, *COMPLEX_UNARY)
case("imag", lambda T, a: T.imag(a), *COMPLEX_UNARY)
case("conj", lambda T, a: T.conj(a) * a, *COMPLEX_UNARY)
case("complex", lambda T, a, b: T.complex(a, b), *BINARY[:4])
case("polar", lambda T, a, b: T.polar(a, b), (real(S3, 0.2, 2), real(S3)))
TIES = ((fixed([1.0, 2.0, 3.0]), fixed([1.0, 3.0, 2.0])),)
case("maximum", lambda T, a, b: T.maximum(a, b), *BINARY, *TIES)
case("minimum", lambda T, a, b: T.minimum(a, b), *BINARY, *TIES)
case("relu", lambda T, a: T.relu(a), *UNARY, (fixed([-1.0, 0.0, 2.0]),))
case("clamp", lambda T, a: T.clamp(a, -0.5, 1.0), *UNARY, (fixed([-0.5, 1.0, 0.0, 2.0]),))
case("clamp min", lambda T, a: T.clamp(a, min=0.5), *UNARY)
case("clamp tensor", lambda T, a, b: T.clamp(a, min=b), *BINARY[:1])
case("where", lambda T, a, b: T.where(a > b, a, b), *BINARY)
case("masked_fill", lambda T, a: T.masked_fill(a, a > 0, 2.0), *UNARY)
case("lerp", lambda T, a, b: T.lerp(a, b, 0.3), *BINARY[:2])
case("addcmul", lambda T, a, b, c: T.addcmul(a, b, c, value=0.5),
     (real(S3), real(S23), real(S23)))  # fmt: skip
case("addcdiv", lambda T, a, b, c: T.addcdiv(a, b, c), (real(S3), real(S23), real(S23, 1, 2)))
case("logaddexp", lambda T, a, b: T.logaddexp(a, b), *BINARY[:3])
case("hypot", lambda T, a, b: T.hypot(a, b), *BINARY[:2])
case("nan_to_num", lambda T, a: T.nan_to_num(a), *UNARY)
case("double cast", lambda T, a: a.float().double(), *UNARY[:2])

# ---------------------------------------------------------------- reductions
REDUCED = ((real((2, 3, 4)),), (real(S0),), (turned((3, 4)),))
MATRIX = ((real((2, 3, 4)),), (turned((3, 4)),))
for name in ("sum", "mean"):
    case(name, lambda T, a, name=name: getattr(T, name)(a), *REDUCED, *COMPLEX_UNARY, (real(SE),))
    case(f"{name} dim", lambda T, a, name=name: getattr(T, name)(a, 1), *MATRIX, (cplx(S23),))
    case(f"{name} dims", lambda T, a, name=name: getattr(T, name)(a, (0, -1), True), *MATRIX)
case("nansum", lambda T, a: T.nansum(a), *REDUCED)
ZEROS = ((fixed([1.0, 0.0, 3.0]),), (fixed([0.0, 0.0, 3.0]),), (fixed([[1.0, 0.0], [2.0, 3.0]]),))
case("prod", lambda T, a: T.prod(a), *REDUCED, *ZEROS, (cplx(S3),))
case("prod dim", lambda T, a: T.prod(a, 0), *MATRIX, *ZEROS)
case("prod keepdim", lambda T, a: T.prod(a, -1, keepdim=True), *MATRIX, *ZEROS)
TIED = ((fixed([1.0, 3.0, 3.0]),), (fixed([[1.0, 1.0], [2.0, 1.0]]),))
for name in ("max", "min"):
    case(name, lambda T, a, name=name: getattr(T, name)(a), *REDUCED, *TIED)
    case(f"{name} dim", lambda T, a, name=name: getattr(T, name)(a, 0)[0], *REDUCED, *TIED)
    case(f"{name} keepdim", lambda T, a, name=name: getattr(T, name)(a, -1, keepdim=True)[0],
         *MATRIX)  # fmt: skip
    case(f"a{name}", lambda T, a, name=name: getattr(T, f"a{name}")(a), *REDUCED, *TIED)
    case(f"a{name} dims", lambda T, a, name=name: getattr(T, f"a{name}")(a, (0, 1)), *MATRIX,
         TIED[1])  # fmt: skip
case("logsumexp", lambda T, a: T.logsumexp(a, -1), *MATRIX, (real(S3, 300, 800),))
case("logsumexp dims", lambda T, a: T.logsumexp(a, (0, 1), True), *MATRIX)
for name in ("var", "std"):
    case(name, lambda T, a, name=name: getattr(T, name)(a), *MATRIX, (cplx(S3),))
    case(f"{name} dim", lambda T, a, name=name: getattr(T, name)(a, 1, correction=0), *MATRIX)
    case(f"{name} keepdim", lambda T, a, name=name: getattr(T, name)(a, -1, keepdim=True), *MATRIX)
case("std constant", lambda T, a: T.std(a), (fixed([2.0, 2.0]),))
case("var_mean", lambda T, a: T.var_mean(a, 1)[0] + T.var_mean(a, 1)[1], *MATRIX)
for p in (2, 1, 3, 0, 0.5, float("inf"), -float("inf")):
    case(f"norm {p}", lambda T, a, p=p: T.norm(a, p, 0), *MATRIX, (cplx(S3),))
case("norm all", lambda T, a: T.norm(a), *REDUCED, (cplx(S23),))
case("norm zero", lambda T, a: T.norm(a) * 2, (fixed([0.0, 0.0]),))
case("cumsum", lambda T, a: T.cumsum(a, 1), *MATRIX, (cplx(S23),))
case("cumprod", lambda T, a: T.cumprod(a, 0), *MATRIX, *ZEROS, (cplx(S3),))
case("sort", lambda T, a: T.sort(a, -1)[0], *MATRIX)
case("sort descending", lambda T, a: T.sort(a, 0, descending=True)[0], *MATRIX)
case("topk", lambda T, a: T.topk(a, 2)[0], *MATRIX)
case("median", lambda T, a: T.median(a), (real((5,)),), (real((2, 3)),))
case("median dim", lambda T, a: T.median(a, 1)[0], *MATRIX)

# ---------------------------------------------------------------- products
case("dot", lambda T, a, b: T.dot(a, b), (real(S3), real(S3)), (cplx(S3), cplx(S3)),
     (real((0,)), real((0,))))  # fmt: skip
case("mv", lambda T, a, b: T.mv(a, b), (real(S23), real(S3)), (cplx(S23), cplx(S3)),
     (turned(S23), real(S3)))  # fmt: skip
case("mm", lambda T, a, b: T.mm(a, b), (real(S23), real((3, 4))), (cplx(S23), cplx((3, 2))),
     (turned(S23), turned((3, 4))), (real((2, 0)), real((0, 3))))  # fmt: skip
case("bmm", lambda T, a, b: T.bmm(a, b), (real((2, 3, 4)), real((2, 4, 2))))
case("matmul", lambda T, a, b: a @ b, (real(S3), real(S3)), (real(S23), real(S3)),
     (real(S3), real((3, 2))), (real((2, 3, 4)), real((4, 2))), (real((2, 3, 4)), real((4,))),
     (real((3,)), real((2, 3, 4))), (real((2, 1, 3, 4)), real((5, 4, 2))),
     (cplx((2, 3, 4)), cplx((4, 2))))  # fmt: skip
case("outer", lambda T, a, b: T.outer(a, b), (real(S3), real((2,))), (cplx(S3), cplx((2,))))
case("addmm", lambda T, c, a, b: T.addmm(c, a, b, beta=0.5, alpha=2.0),
     (real((4,)), real(S23), real((3, 4))), (real((2, 4)), real(S23), real((3, 4))))  # fmt: skip
case("baddbmm", lambda T, c, a, b: T.baddbmm(c, a, b),
     (real((2, 3, 2)), real((2, 3, 4)), real((2, 4, 2))))  # fmt: skip
case("trace", lambda T, a: T.trace(a), (real(S23),))
case("tensordot", lambda T, a, b: T.tensordot(a, b, dims=2), (real((2, 3, 4)), real((3, 4, 5))))
for equation, shapes in {
    "ij,jk->ik": (S23, (3, 4)), "bij,bjk->bik": ((2, 3, 4), (2, 4, 2)), "i,j->ij": (S3, (2,)),
    "ij->ji": (S23,), "ij->i": (S23,), "ii->i": ((3, 3),), "ii": ((3, 3),), "ij,ij->": (S23, S23),
    "...ij,...jk->...ik": ((2, 2, 3), (2, 3, 2)), "ij,jk,kl->il": (S23, (3, 2), (2, 4)),
    "ij,kj->i": (S23, (4, 3)), "i,i,i->i": (S3, S3, S3),
}.items():  # fmt: skip
    case(f"einsum {equation}", lambda T, *xs, e=equation: T.einsum(e, *xs),
         tuple(real(s) for s in shapes), tuple(cplx(s) for s in shapes))  # fmt: skip

# ---------------------------------------------------------------- shapes
M = (real((2, 3, 4)),)
case("reshape", lambda T, a: a.reshape(4, -1) * 2, M, (turned((3, 4)),))
case("view", lambda T, a: a.view(-1, 2) * a.view(-1, 2), M)
case("transpose", lambda T, a: a.transpose(0, 2) * 2, M)
case("permute", lambda T, a: a.permute(2, 0, 1) ** 2, M)
case("T", lambda T, a: a.T @ a, (real(S23),))
case("mT", lambda T, a: a.mT, M)
case("squeeze", lambda T, a: a.squeeze(), (real((1, 3, 1)),))
case("squeeze dim", lambda T, a: a.squeeze(0) * 3, (real((1, 3, 1)),))
case("unsqueeze", lambda T, a: a.unsqueeze(1) ** 2, M)
case("expand", lambda T, a: a.expand(2, 3, 4) * 2, (real((3, 1)),), (real((1, 3, 4)),))
case("flatten", lambda T, a: a.flatten(1) ** 2, M)
case("unflatten", lambda T, a: a.unflatten(2, (2, -1)) ** 2, M)
case("movedim", lambda T, a: a.movedim(0, 2), M)
case("cat", lambda T, a, b: T.cat([a, b, a], 1), (real(S23), real((2, 2))))
case("cat empty", lambda T, a: T.cat([a, a[:0]], 0), (real(S23),))
case("stack", lambda T, a, b: T.stack([a, b], 1) ** 2, (real(S23), real(S23)))
case("hstack", lambda T, a, b: T.hstack([a, b]), (real(S3), real((2,))))
case("vstack", lambda T, a, b: T.vstack([a, b]), (real(S3), real((2, 3))))
case("split", lambda T, a: sum(p.sum() * i for i, p in enumerate(a.split(2, 2), 1)), M)
case("split sizes", lambda T, a: a.split([1, 2], 1)[1] ** 2, M)
case("chunk", lambda T, a: a.chunk(2, 2)[1] ** 2, M)
case("unbind", lambda T, a: a.unbind(1)[0] * a.unbind(1)[2], M)
case("flip", lambda T, a: a.flip(0, 2) ** 2, M)
case("roll", lambda T, a: a.roll(1, 0) * a.roll((1, -2), (1, 2)), M)
case("roll flat", lambda T, a: a.roll(5) ** 2, M)
case("repeat", lambda T, a: a.repeat(2, 1, 2) ** 2, (real(S23),))
case("tile", lambda T, a: T.tile(a, (2,)) ** 2, (real(S23),))
case("repeat_interleave", lambda T, a: a.repeat_interleave(2, 1) ** 2, (real(S23),))
case("diagonal", lambda T, a: a.diagonal(1, 1, 2) ** 2, M)
case("diag", lambda T, a: T.diag(a) @ T.diag(a, 1)[:3, :3], (real(S3),))
case("diag of", lambda T, a: T.diag(a) ** 2, (real((3, 3)),))
case("tril", lambda T, a: T.tril(a) ** 2, M)
case("triu", lambda T, a: T.triu(a, 1) ** 2, M)
case("clone", lambda T, a: a.clone() * a, M)
case("meshgrid", lambda T, a, b: T.meshgrid(a, b, indexing="ij")[0] * 2, (real(S3), real((2,))))
case("broadcast_tensors", lambda T, a, b: T.broadcast_tensors(a, b)[0] * b,
     (real((2, 1)), real((1, 3))))  # fmt: skip
case("iterate", lambda T, a: sum(r.sum() * i for i, r in enumerate(a)), M)

# ---------------------------------------------------------------- indexing
for text in ("0", "-1", "1:", "::2", "...,0", "None", "0,1", "0,1,2", ":,1:3", "...,None,1",
             "[0,1,1]", ":,[0,2]", "[0,1],[1,2]", "[0,1],:,[1,2]",
             "0,[1,2]", "...,[0,0,3]", "None,[1]", "1:,[0,2],1"):  # fmt: skip
    case(f"index {text}", lambda T, a, text=text: eval(f"a[{text}]") ** 2, M)
case("index mask", lambda T, a: a[a > 0] ** 2, M)
case("index mask rows", lambda T, a: a[T.tensor([True, False])] ** 2, M)
case("index tensor", lambda T, a: a[T.tensor([0, 1, 0]), 1] ** 2, M)
case("gather", lambda T, a: a.gather(1, T.tensor([[0, 0, 2], [1, 2, 2]])) ** 2, (real(S23),))
case("gather small", lambda T, a: a.gather(0, T.tensor([[1, 0]])) ** 2, (real(S23),))
INDEX = [[0, 1, 1], [1, 0, 0]]
case("scatter", lambda T, a, b: a.scatter(0, T.tensor([[0, 1, 0]]), b) ** 2,
     (real(S23), real((1, 3))))  # fmt: skip
case("scatter value", lambda T, a: a.scatter(1, T.tensor([[0], [2]]), 5.0) ** 2, (real(S23),))
case("scatter_add", lambda T, a, b: a.scatter_add(0, T.tensor(INDEX), b) ** 2,
     (real(S23), real(S23)))  # fmt: skip
case("index_select", lambda T, a: a.index_select(1, T.tensor([0, 2, 2])) ** 2, M)
case("index_add", lambda T, a, b: a.index_add(0, T.tensor([0, 0]), b, alpha=2) ** 2,
     (real(S23), real(S23)))  # fmt: skip
case("index_copy", lambda T, a, b: a.index_copy(1, T.tensor([2, 0]), b) ** 2,
     (real(S23), real((2, 2))))  # fmt: skip
case("index_fill", lambda T, a: a.index_fill(1, T.tensor([2, 0]), 3.0) ** 2, (real(S23),))
case("index_put", lambda T, a, b: a.index_put((T.tensor([0, 1]),), b) ** 2,
     (real(S23), real(S3)))  # fmt: skip
case("index_put accumulate", lambda T, a, b: a.index_put((T.tensor([0, 0]),), b, True) ** 2,
     (real(S23), real(S3)))  # fmt: skip
case("masked_select", lambda T, a: a.masked_select(a > 0) ** 2, (real(S23),))
case("take", lambda T, a: T.take(a, T.tensor([0, 5, 5])) ** 2, (real(S23),))
case("take_along_dim", lambda T, a: T.take_along_dim(a, T.tensor([[0], [2]]), 1) ** 2,
     (real(S23),))  # fmt: skip
case("select", lambda T, a: a.select(1, 2) ** 2, M)
case("narrow", lambda T, a: a.narrow(2, 1, 2) ** 2, M)

# ---------------------------------------------------------------- networks
case("softmax", lambda T, a: T.softmax(a, -1), *MATRIX, (real(S0),))
case("log_softmax", lambda T, a: T.log_softmax(a, 0), *MATRIX)
F = "nn.functional"
case("linear", lambda T, x, w, b: T.nn.functional.linear(x, w, b),
     (real(S23), real((4, 3)), real((4,))),
     (real((2, 2, 3)), real((4, 3)), real((4,))))  # fmt: skip
case("softplus", lambda T, a: T.nn.functional.softplus(a, 2.0), *UNARY)
case("leaky_relu", lambda T, a: T.nn.functional.leaky_relu(a, 0.2), *UNARY)
case("elu", lambda T, a: T.nn.functional.elu(a), *UNARY)
case("silu", lambda T, a: T.nn.functional.silu(a), *UNARY)
case("logsigmoid", lambda T, a: T.nn.functional.logsigmoid(a), *UNARY)
case("gelu", lambda T, a: T.nn.functional.gelu(a), *UNARY)
case("gelu tanh", lambda T, a: T.nn.functional.gelu(a, approximate="tanh"), *UNARY)
case("mse_loss", lambda T, a, b: T.nn.functional.mse_loss(a, b), BINARY[0])
case("l1_loss", lambda T, a, b: T.nn.functional.l1_loss(a, b, reduction="sum"), BINARY[0])
case("cross_entropy", lambda T, a: T.nn.functional.cross_entropy(a, T.tensor([2, 0])), (real(S23),))
case("cross_entropy smooth", lambda T, a: T.nn.functional.cross_entropy(
    a, T.tensor([2, 0]), label_smoothing=0.1), (real(S23),))  # fmt: skip
case("cross_entropy ignore", lambda T, a: T.nn.functional.cross_entropy(
    a, T.tensor([2, -100])), (real(S23),))  # fmt: skip
case("nll_loss weight", lambda T, a: T.nn.functional.nll_loss(
    a, T.tensor([2, 0]), T.tensor([1.0, 2.0, 3.0]).double()), (real(S23),))  # fmt: skip
case("bce", lambda T, a: T.nn.functional.binary_cross_entropy(
    a, T.tensor([0.0, 1.0, 1.0]).double()),
     (real(S3, 0.1, 0.9),))  # fmt: skip
case("bce logits", lambda T, a: T.nn.functional.binary_cross_entropy_with_logits(
    a, T.tensor([0.0, 1.0, 1.0]).double()), (real(S3),))  # fmt: skip
case("layer_norm", lambda T, x, w, b: T.nn.functional.layer_norm(x, (3,), w, b),
     (real(S23), real(S3), real(S3)))  # fmt: skip
case("embedding", lambda T, w: T.nn.functional.embedding(T.tensor([[0, 1], [1, 1]]), w) ** 2,
     (real(S23),))  # fmt: skip
case("normalize", lambda T, a: T.nn.functional.normalize(a), (real(S23),))
case("pad", lambda T, a: T.nn.functional.pad(a, (1, 2)) ** 2, (real(S23),))
case("pad value", lambda T, a: T.nn.functional.pad(a, (1, -1, 0, 2), value=3.0) ** 2, (real(S23),))

# ---------------------------------------------------------------- joining, splitting, turning
case("dstack", lambda T, a, b: T.dstack([a, b]) ** 2, (real(S23), real(S23)), (real(S3), real(S3)))
case("column_stack", lambda T, a, b: T.column_stack([a, b]) ** 2, (real((2,)), real(S23)))
for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    case(name, lambda T, a, name=name: getattr(T, name)(a) ** 2, (real(S0),), (real(S3),),
         (real(S23),))  # fmt: skip
case("tensor_split", lambda T, a: sum((p * i).sum() for i, p in enumerate(a.tensor_split(3, 2), 1)),
     (real((2, 3, 5)),))  # fmt: skip
case("tensor_split at", lambda T, a: a.tensor_split((1, -1), 1)[1] ** 2, M)
case("hsplit", lambda T, a: T.hsplit(a, 3)[1] ** 2, M)
case("vsplit", lambda T, a: T.vsplit(a, [1])[1] ** 2, M)
case("dsplit", lambda T, a: T.dsplit(a, 2)[1] ** 2, M)
case("block_diag", lambda T, a, b: T.block_diag(a, b) ** 2, (real(S23), real((2, 1))),
     (real(S3), real(S0)))  # fmt: skip
case("cartesian_prod", lambda T, a, b: T.cartesian_prod(a, b) ** 2, (real(S3), real((2,))))
case("combinations", lambda T, a: T.combinations(a) ** 2, (real((4,)),))
case("combinations 3", lambda T, a: T.combinations(a, 3, True).prod(1), (real(S3),))
for k in (1, 2, 3, 4):
    case(f"rot90 {k}", lambda T, a, k=k: T.rot90(a, k, (0, 2)) ** 2, M)
case("fliplr", lambda T, a: T.fliplr(a) ** 2, M)
case("flipud", lambda T, a: T.flipud(a) ** 2, M)
case("ravel", lambda T, a: T.ravel(a) ** 2, M, (turned((3, 4)),))
case("swapdims", lambda T, a: T.swapdims(a, 0, 2) ** 2, M)

# ---------------------------------------------------------------- parts
case("unfold", lambda T, a: a.unfold(1, 2, 1) ** 2, M, (turned((3, 4)),))
case("unfold step", lambda T, a: a.unfold(2, 2, 2) ** 2, M)
case("diag_embed", lambda T, a: T.diag_embed(a, 1, 0, 2) ** 2, (real(S23),))
case("select_scatter", lambda T, a, b: T.select_scatter(a, b, 1, -1) ** 2,
     (real(S23), real((2,))))  # fmt: skip
case("slice_scatter", lambda T, a, b: T.slice_scatter(a, b, 1, 0, 3, 2) ** 2,
     (real(S23), real((2, 2))))  # fmt: skip
case("diagonal_scatter", lambda T, a, b: T.diagonal_scatter(a, b, 1) ** 2,
     (real((3, 3)), real((2,))))  # fmt: skip
case("masked_scatter", lambda T, a, b: T.masked_scatter(a, a.detach() > 0, b) ** 2,
     (real(S23), real((7,))))  # fmt: skip
TIED_SELF = ((fixed([[1.0, 2.0, 2.0], [0.0, 1.0, 3.0]]),
              fixed([[1.0, 2.0, 2.0], [1.0, 1.0, 3.0]])),)  # fmt: skip
# PyTorch lets the elements that are left out share in a tie: these have none with them
TIED_SOURCES = ((fixed([[9.0, 9.0, 9.0], [8.0, 8.0, 8.0]]),
                 fixed([[1.0, 2.0, 2.0], [1.0, 1.0, 2.0]])),)  # fmt: skip
ZEROS = ((fixed([[0.0, 2.0, 2.0], [3.0, 0.0, 3.0]]),
          fixed([[1.0, 0.0, 2.0], [0.5, 1.0, 3.0]])),)  # fmt: skip
for how in ("sum", "mean", "amax", "amin", "prod"):
    for own in (True, False):
        case(f"scatter_reduce {how} {own}",
             lambda T, a, b, how=how, own=own: T.scatter_reduce(
                 a, 0, T.tensor(INDEX), b, how, include_self=own) ** 2,
             (real(S23), real(S23)), *(TIED_SELF if own else TIED_SOURCES),
             *(ZEROS if how == "prod" else ()))  # fmt: skip
for how in ("mean", "amax", "amin", "prod"):
    case(f"index_reduce {how}",
         lambda T, a, b, how=how: T.index_reduce(a, 1, T.tensor([2, 0, 2]), b, how) ** 2,
         (real(S23), real(S23)), *(ZEROS if how == "prod" else ()))  # fmt: skip
case("index_fill twice", lambda T, a, b: a.index_fill(1, T.tensor([2, 0, 2]), b) ** 2,
     (real(S23), real(S0)))  # fmt: skip
case("logcumsumexp", lambda T, a: T.logcumsumexp(a, -1), (real(S23),), (real(S0),), (turned(S23),))
case("cummax", lambda T, a: T.cummax(a, 0)[0] ** 2, (real(S23),), (real(S0),))
case("cummin", lambda T, a: T.cummin(a, -1)[0] ** 2, (real(S23),))
case("fmax", lambda T, a, b: T.fmax(a, b) ** 2, (real(S23), real(S3)))
case("fmin", lambda T, a, b: T.fmin(a, b) ** 2, (real(S23), real(S3)))
case("nextafter", lambda T, a, b: T.nextafter(a, b) ** 2, (real(S23), real(S3)))
case("logaddexp complex", lambda T, a, b: T.logaddexp(a, b), (cplx(S23), cplx(S3)))
case("squeeze_", lambda T, a: (a * 2).squeeze_() ** 2, (real((1, 3, 1)),))
case("unsqueeze_ t_", lambda T, a: (a * 2).t_().unsqueeze_(0) ** 2, (real(S23),))

# ---------------------------------------------------------------- products
case("inner", lambda T, a, b: T.inner(a, b), (real(S3), real(S3)), (real(S23), real((4, 3))),
     (real(S0), real(S3)), (cplx(S3), cplx(S23)))  # fmt: skip
case("kron", lambda T, a, b: T.kron(a, b), (real(S23), real((2, 2))), (real(S3), real(S23)),
     (real(S0), real(S3)))  # fmt: skip
case("cross", lambda T, a, b: T.cross(a, b, dim=-1), (real(S23), real(S23)), (cplx(S3), cplx(S3)))
case("dist", lambda T, a, b: T.dist(a, b, 3), (real(S23), real(S23)))

# ---------------------------------------------------------------- statistics
case("kthvalue", lambda T, a: T.kthvalue(a, 2, 1)[0] ** 2, *MATRIX)
case("mode", lambda T, a: T.mode(a, 0)[0] ** 2, *MATRIX, (fixed([[1.0, 2.0], [1.0, 0.0]]),))
case("aminmax", lambda T, a: T.aminmax(a)[0] * T.aminmax(a)[1], *MATRIX)
case("aminmax dim", lambda T, a: T.aminmax(a, dim=1)[0] * T.aminmax(a, dim=1)[1], *MATRIX)
case("nanmean", lambda T, a: T.nanmean(a, 1), *MATRIX)
case("nanmedian", lambda T, a: T.nanmedian(a), *MATRIX)
case("nanmedian dim", lambda T, a: T.nanmedian(a, 1)[0], *MATRIX)
for how in ("linear", "lower", "higher", "midpoint", "nearest"):
    case(f"quantile {how}", lambda T, a, how=how: T.quantile(a, 0.3, 1, interpolation=how) ** 2,
         *MATRIX)  # fmt: skip
case("quantile all", lambda T, a: T.quantile(a, T.tensor([0.2, 0.9]).double()) ** 2, *MATRIX)
case("quantile keepdim", lambda T, a: T.quantile(
    a, T.tensor([0.2, 0.9]).double(), -1, keepdim=True) ** 2, *MATRIX)  # fmt: skip
case("nanquantile", lambda T, a: T.nanquantile(a, 0.7, 0) ** 2, *MATRIX)
case("diff", lambda T, a: T.diff(a, 2, 1) ** 2, *MATRIX)
case("diff around", lambda T, a, b: T.diff(a, prepend=b, append=b) ** 2, (real(S23), real((2, 1))))
case("cov", lambda T, a: T.cov(a), (real((3, 5)),), (real((5,)),), (cplx((2, 4)),))
case("cov weights", lambda T, a: T.cov(a, correction=0, fweights=T.tensor([1, 2, 1]),
                                       aweights=T.tensor([0.5, 1.0, 2.0]).double()),
     (real(S23),))  # fmt: skip
case("corrcoef", lambda T, a: T.corrcoef(a), (real((3, 5)),))

# ---------------------------------------------------------------- special functions
for name in ("erfc", "sinc", "deg2rad", "rad2deg"):
    case(name, lambda T, a, name=name: getattr(T, name)(a), *UNARY)
for name in ("lgamma", "digamma"):
    case(name, lambda T, a, name=name: getattr(T, name)(a), *POSITIVE)
case("polygamma", lambda T, a: T.polygamma(2, a), *POSITIVE)
case("logit", lambda T, a: T.logit(a), (real(S23, 0.1, 0.9),), (real(S0, 0.1, 0.9),))
case("logit eps", lambda T, a: T.logit(a, 0.2), (real(S23, 0.05, 0.95),))
case("xlogy", lambda T, a, b: T.xlogy(a, b), (real(S23), real(S23, 0.2, 2)),
     (real(S0), real(S3, 0.2, 2)))  # fmt: skip
case("ldexp", lambda T, a, b: T.ldexp(a, b), (real(S23), real(S3)))
case("copysign", lambda T, a, b: T.copysign(a, b.detach()), (real(S23), real(S3)))

# ---------------------------------------------------------------- more of networks
for name in ("softsign", "mish", "selu", "celu", "hardtanh", "hardswish", "relu6",
             "hardshrink", "softshrink", "tanhshrink"):  # fmt: skip
    case(f"F {name}", lambda T, a, name=name: getattr(T.nn.functional, name)(a) * a,
         (real(S23, -5, 5),), (real(S0),), (real((4, 3)),))  # fmt: skip
case("celu alpha", lambda T, a: T.nn.functional.celu(a, 0.5), *UNARY)
case("elu alpha", lambda T, a: T.nn.functional.elu(a, 0.5), *UNARY)
case("threshold", lambda T, a: T.nn.functional.threshold(a, 0.3, 2.0) ** 2, *UNARY)
case("softmin", lambda T, a: T.nn.functional.softmin(a, 1), *MATRIX)
case("glu", lambda T, a: T.nn.functional.glu(a, 2), M)
case("prelu", lambda T, a, w: T.nn.functional.prelu(a, w), (real((2, 3, 4)), real(S3)),
     (real(S23), real((1,))), (real(S3), real((1,))))  # fmt: skip
TARGET = (real(S23), real(S23))
for how in ("mean", "sum", "none"):
    case(f"smooth_l1_loss {how}", lambda T, a, b, how=how: T.nn.functional.smooth_l1_loss(
        a, b, reduction=how, beta=0.7), TARGET)  # fmt: skip
    case(f"huber_loss {how}", lambda T, a, b, how=how: T.nn.functional.huber_loss(
        a, b, reduction=how, delta=0.7), TARGET)  # fmt: skip
    case(f"cross_entropy weight {how}", lambda T, a, how=how: T.nn.functional.cross_entropy(
        a, T.tensor([2, 0]), T.tensor([1.0, 2.0, 3.0]).double(), reduction=how,
        label_smoothing=0.2), (real(S23),))  # fmt: skip
    case(f"cross_entropy soft {how}", lambda T, a, b, how=how: T.nn.functional.cross_entropy(
        a, T.softmax(b, 1), T.tensor([1.0, 2.0, 3.0]).double(), reduction=how,
        label_smoothing=0.2), TARGET)  # fmt: skip
case("cross_entropy smooth ignore", lambda T, a: T.nn.functional.cross_entropy(
    a, T.tensor([2, -100]), label_smoothing=0.2), (real(S23),))  # fmt: skip
case("cross_entropy weight ignore", lambda T, a: T.nn.functional.cross_entropy(
    a, T.tensor([2, 1]), T.tensor([1.0, 2.0, 3.0]).double(), ignore_index=1,
    label_smoothing=0.2), (real(S23),))  # fmt: skip
case("cross_entropy images", lambda T, a: T.nn.functional.cross_entropy(
    a, T.tensor([[2, 0], [1, 1]]), label_smoothing=0.2), (real((2, 3, 2)),))  # fmt: skip
case("kl_div", lambda T, a, b: T.nn.functional.kl_div(
    T.log_softmax(a, 1), T.softmax(b, 1), reduction="batchmean"), TARGET)  # fmt: skip
case("kl_div log", lambda T, a, b: T.nn.functional.kl_div(
    a, b, reduction="sum", log_target=True), TARGET)  # fmt: skip
case("bce weight", lambda T, a, b: T.nn.functional.binary_cross_entropy(
    T.sigmoid(a), T.sigmoid(b), T.tensor([1.0, 2.0, 3.0]).double()), TARGET)  # fmt: skip
case("bce logits pos_weight", lambda T, a, b: T.nn.functional.binary_cross_entropy_with_logits(
    a, T.sigmoid(b), pos_weight=T.tensor([1.0, 2.0, 3.0]).double()), TARGET)  # fmt: skip
case("poisson_nll_loss", lambda T, a: T.nn.functional.poisson_nll_loss(
    a, T.tensor([2.0, 0.0, 3.0]).double()), (real(S23),))  # fmt: skip
case("poisson_nll_loss rate", lambda T, a: T.nn.functional.poisson_nll_loss(
    a, T.tensor([2.0, 0.5, 3.0]).double(), log_input=False, full=True),
     (real(S23, 0.5, 2),))  # fmt: skip
case("gaussian_nll_loss", lambda T, a, b, v: T.nn.functional.gaussian_nll_loss(
    a, b, v, full=True), (real(S23), real(S23), real(S23, 0.3, 2)))  # fmt: skip
SIGNS = [[1, -1, 1], [-1, 1, 1]]
case("hinge_embedding_loss", lambda T, a: T.nn.functional.hinge_embedding_loss(
    a, T.tensor(SIGNS)), (real(S23),))  # fmt: skip
case("margin_ranking_loss", lambda T, a, b: T.nn.functional.margin_ranking_loss(
    a, b, T.tensor(SIGNS).double(), 0.3), TARGET)  # fmt: skip
case("soft_margin_loss", lambda T, a: T.nn.functional.soft_margin_loss(
    a, T.tensor(SIGNS).double()), (real(S23),))  # fmt: skip
case("cosine_embedding_loss", lambda T, a, b: T.nn.functional.cosine_embedding_loss(
    a, b, T.tensor([1, -1])), TARGET)  # fmt: skip
case("triplet_margin_loss", lambda T, a, b, c: T.nn.functional.triplet_margin_loss(
    a, b, c, swap=True), (real(S23), real(S23), real(S23)))  # fmt: skip
case("cosine_similarity", lambda T, a, b: T.nn.functional.cosine_similarity(a, b), TARGET)
case("pairwise_distance", lambda T, a, b: T.nn.functional.pairwise_distance(a, b, 3.0), TARGET)
AFFINE = (real((2, 4, 3)), real((4,)), real((4,)))
case("batch_norm", lambda T, x, w, b: T.nn.functional.batch_norm(
    x, T.zeros(4).double(), T.ones(4).double(), w, b, training=True), AFFINE)  # fmt: skip
case("batch_norm eval", lambda T, x, w, b: T.nn.functional.batch_norm(
    x, T.arange(4).double(), T.arange(1, 5).double(), w, b), AFFINE)  # fmt: skip
case("group_norm", lambda T, x, w, b: T.nn.functional.group_norm(x, 2, w, b), AFFINE)
case("instance_norm", lambda T, x, w, b: T.nn.functional.instance_norm(
    x, weight=w, bias=b), AFFINE)  # fmt: skip
case("rms_norm", lambda T, x, w: T.nn.functional.rms_norm(x, (3,), w), (real(S23), real(S3)))
case("bilinear", lambda T, a, b, w, c: T.nn.functional.bilinear(a, b, w, c),
     (real(S23), real((2, 2)), real((4, 3, 2)), real((4,))))  # fmt: skip
case("embedding padding", lambda T, w: T.nn.functional.embedding(
    T.tensor([[0, 1], [1, 1]]), w, padding_idx=0) ** 2, (real(S23),))  # fmt: skip
case("normalize 3", lambda T, a: T.nn.functional.normalize(a, 3.0, 0), (real(S23),))
