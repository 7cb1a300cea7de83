"""Pullback: PyTorch's automatic differentiation on NumPy arrays.

    import pullback as torch

The public names are PyTorch's.  Importing the package loads only NumPy; the graph pictures, the
compiler and whatever needs another library load when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pullback import autograd
from pullback.api import methods as _methods  # installs the methods of Tensor
from pullback.api.arguments import tensor as _tensor
from pullback.api.autograd import backward as _backward
from pullback.api.creation import (
    arange,
    as_tensor,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    get_default_dtype,
    linspace,
    logspace,
    ones,
    ones_like,
    scalar_tensor,
    set_default_dtype,
    tensor,
    zeros,
    zeros_like,
)
from pullback.api.elementwise import absolute as abs
from pullback.api.elementwise import (
    acos,
    acosh,
    add,
    addcdiv,
    addcmul,
    allclose,
    angle,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    can_cast,
    ceil,
    clamp,
    complex,
    conj,
    cos,
    cosh,
    div,
    eq,
    equal,
    exp,
    exp2,
    expm1,
    float_power,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    frac,
    ge,
    gt,
    hypot,
    imag,
    isclose,
    isfinite,
    isinf,
    isnan,
    le,
    lerp,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    masked_fill,
    maximum,
    minimum,
    mul,
    nan_to_num,
    ne,
    neg,
    polar,
    positive,
    promote_types,
    real,
    reciprocal,
    relu,
    remainder,
    result_type,
    round,
    rsqrt,
    rsub,
    sgn,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    sub,
    tan,
    tanh,
    true_divide,
    trunc,
    where,
)
from pullback.api.elementwise import power as pow
from pullback.api.explain import explain
from pullback.api.indexing import (
    gather,
    index_add,
    index_copy,
    index_fill,
    index_put,
    index_select,
    masked_select,
    nonzero,
    scatter,
    scatter_add,
    select,
    take,
    take_along_dim,
)
from pullback.api.joining import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    cartesian_prod,
    column_stack,
    combinations,
    dsplit,
    dstack,
    hsplit,
    hstack,
    tensor_split,
    tril_indices,
    triu_indices,
    vsplit,
    vstack,
)
from pullback.api.legacy import (
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from pullback.api.linalg import (
    addmm,
    addmv,
    addr,
    baddbmm,
    bmm,
    dot,
    einsum,
    matmul,
    mm,
    mv,
    outer,
    tensordot,
    trace,
    vdot,
)
from pullback.api.modes import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from pullback.api.movement import broadcast_shapes_ as broadcast_shapes
from pullback.api.movement import (
    broadcast_tensors,
    cat,
    chunk,
    clone,
    diag,
    diagonal,
    flatten,
    flip,
    fliplr,
    flipud,
    meshgrid,
    movedim,
    permute,
    ravel,
    repeat_interleave,
    reshape,
    roll,
    rot90,
    split,
    squeeze,
    stack,
    t,
    tile,
    transpose,
    tril,
    triu,
    unbind,
    unflatten,
    unsqueeze,
)
from pullback.api.nn import erf, log_softmax, softmax
from pullback.api.products import cdist, cross, dist, inner, kron
from pullback.api.random import (
    bernoulli,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    poisson,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)
from pullback.api.reduce import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    argsort,
    bincount,
    count_nonzero,
    cummax,
    cummin,
    cumprod,
    cumsum,
    logcumsumexp,
    logsumexp,
    max,
    mean,
    median,
    min,
    msort,
    nansum,
    norm,
    prod,
    sort,
    std,
    std_mean,
    sum,
    topk,
    var,
    var_mean,
)
from pullback.api.slices import (
    broadcast_to,
    diag_embed,
    diagonal_scatter,
    index_reduce,
    masked_scatter,
    narrow,
    scatter_reduce,
    select_scatter,
    slice_scatter,
)
from pullback.api.special import (
    copysign,
    deg2rad,
    digamma,
    erfc,
    gcd,
    heaviside,
    lcm,
    ldexp,
    lgamma,
    logit,
    nextafter,
    polygamma,
    rad2deg,
    signbit,
    sinc,
    xlogy,
)
from pullback.api.statistics import (
    aminmax,
    bucketize,
    corrcoef,
    cov,
    diff,
    histc,
    isin,
    kthvalue,
    mode,
    nanmean,
    nanmedian,
    nanquantile,
    quantile,
    searchsorted,
    unique,
    unique_consecutive,
    vander,
)
from pullback.api.text import STRIDED as strided
from pullback.core import cuda
from pullback.core.device import device
from pullback.core.dtypes import (
    bool_ as bool,
)
from pullback.core.dtypes import (
    complex64,
    complex128,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from pullback.core.generator import Generator, default_generator
from pullback.core.printing import set_printoptions
from pullback.core.size import Size
from pullback.core.threads import get_num_threads, set_num_threads
from pullback.eager.tensor import Tensor
from pullback.errors import PullbackError

if TYPE_CHECKING:
    from pullback import nn
    from pullback.transforms.vmap import vmap
    from pullback.viz.graph import graph

__version__ = "0.1.0"

# the same dtypes under PyTorch's other names
float, double, half = float32, float64, float16
int, long, short = int32, int64, int16
cfloat, cdouble = complex64, complex128

# aliases of functions
absolute, multiply, subtract, divide, negative, clip = abs, mul, sub, div, neg, clamp
concat = concatenate = cat
arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh
arctan2, swapaxes, swapdims, moveaxis, ger = atan2, transpose, transpose, movedim, outer
row_stack, fix = vstack, trunc
detach, resolve_conj, resolve_neg = _methods.detach, _methods.resolved, _methods.resolved
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne
from math import e, inf, nan, pi  # noqa: E402  PyTorch has them at the top

# what loads on first use: name -> (module, attribute; None for the module itself)
_LAZY: dict[str, tuple[str, str | None]] = {
    "nn": ("pullback.nn", None),
    "viz": ("pullback.viz", None),
    "graph": ("pullback.viz.graph", "graph"),
    "vmap": ("pullback.transforms.vmap", "vmap"),
    "func": ("pullback.func", None),
    "optim": ("pullback.optim", None),
    "optimize": ("pullback.optimize", None),
}


# functions that are methods in place: `torch.relu_(x)` is `x.relu_()`
_IN_PLACE = frozenset((
    "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ "
    "atan_ atanh_ ceil_ clamp_ clip_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ "
    "fill_ fix_ floor_ frac_ gcd_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ "
    "nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ "
    "sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_"
).split())  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _IN_PLACE:
        return getattr(Tensor, name)
    found = _LAZY.get(name)
    if found is None:
        raise AttributeError(
            f"module 'pullback' has no attribute {name!r}: it is not built yet, or no part of "
            "PyTorch's automatic differentiation"
        )
    module = importlib.import_module(found[0])
    value = module if found[1] is None else getattr(module, found[1])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_IN_PLACE})


def is_tensor(obj: Any) -> Any:
    """Whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> Any:  # noqa: A002
    """Whether a tensor has a floating dtype."""
    return _tensor(input, "is_floating_point")._data.dtype.kind == "f"


def is_complex(input: Tensor) -> Any:  # noqa: A002
    """Whether a tensor has a complex dtype."""
    return _tensor(input, "is_complex")._data.dtype.kind == "c"


def numel(input: Tensor) -> Any:  # noqa: A002
    """The number of elements."""
    return _tensor(input, "numel")._data.size
