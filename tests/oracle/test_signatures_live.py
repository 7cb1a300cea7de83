"""Keywords, missing and wrong arguments on PyTorch and on Pullback side by side (`make oracle`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from tests.oracle.dtypes import outcome, same

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
M = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]]
Make = Callable[[Any], tuple[Any, ...]]


def m(T: Any) -> Any:
    return T.tensor(M)


def i(T: Any) -> Any:
    return T.tensor([[0, 1, 2]])


CASES: dict[str, tuple[str, Make]] = {
    **{n: ("input", lambda T: (m(T),)) for n in (
        "abs acos ceil cos exp floor log neg relu round sign sin sqrt square tanh trunc sigmoid "
        "isnan isinf logical_not reciprocal rsqrt positive frac sgn angle erf erfc lgamma digamma "
        "sinc deg2rad clone ravel t fliplr nonzero trace real conj expm1").split()},
    **{n: ("input other", lambda T: (m(T), m(T) + 1)) for n in (
        "add sub mul div floor_divide fmod remainder maximum minimum atan2 eq lt logical_and hypot "
        "logaddexp xlogy isclose allclose equal dist inner kron copysign ldexp fmax").split()},
    **{n: ("input dim keepdim", lambda T: (m(T), 0, True)) for n in (
        "amax amin argmax argmin any all logsumexp mode nansum").split()},
    **{n: ("input dim", lambda T: (m(T), 0)) for n in (
        "cumsum cumprod cummax logcumsumexp count_nonzero unsqueeze unbind softmax").split()},
    "pow": ("input exponent", lambda T: (m(T), 2)),
    "mm": ("input mat2", lambda T: (m(T), m(T))),
    "mv": ("input vec", lambda T: (m(T), m(T)[0])),
    "addmm": ("input mat1 mat2", lambda T: (m(T),) * 3),
    "sort": ("input dim descending", lambda T: (m(T), 0, True)),
    "topk": ("input k dim largest", lambda T: (m(T), 2, 0, True)),
    "kthvalue": ("input k dim keepdim", lambda T: (m(T), 2, 0, True)),
    "quantile": ("input q dim keepdim", lambda T: (m(T), 0.5, 0, True)),
    "clamp": ("input min max", lambda T: (m(T), 2, 5)),
    "lerp": ("input end weight", lambda T: (m(T), m(T), 0.5)),
    "where": ("condition input other", lambda T: (m(T) > 2, m(T), m(T))),
    "masked_fill": ("input mask value", lambda T: (m(T), m(T) > 2, 0.0)),
    "gather": ("input dim index", lambda T: (m(T), 0, i(T))),
    "scatter": ("input dim index src", lambda T: (m(T), 0, i(T), m(T))),
    "scatter_reduce": ("input dim index src reduce", lambda T: (m(T), 0, i(T), m(T), "sum")),
    "index_select": ("input dim index", lambda T: (m(T), 0, i(T)[0])),
    "index_add": ("input dim index source", lambda T: (m(T), 0, i(T)[0], m(T))),
    "index_fill": ("input dim index value", lambda T: (m(T), 0, i(T)[0], 2.0)),
    "take": ("input index", lambda T: (m(T), i(T))),
    "reshape": ("input shape", lambda T: (m(T), (9,))),
    "permute": ("input dims", lambda T: (m(T), (1, 0))),
    "transpose": ("input dim0 dim1", lambda T: (m(T), 0, 1)),
    "flip": ("input dims", lambda T: (m(T), (0,))),
    "tile": ("input dims", lambda T: (m(T), (2, 1))),
    "diagonal": ("input offset dim1 dim2", lambda T: (m(T), 0, 0, 1)),
    "tril": ("input diagonal", lambda T: (m(T), 0)),
    "cat": ("tensors dim", lambda T: ([m(T), m(T)], 0)),
    "stack": ("tensors dim", lambda T: ([m(T), m(T)], 0)),
    "chunk": ("input chunks dim", lambda T: (m(T), 2, 0)),
    "narrow": ("input dim start length", lambda T: (m(T), 0, 0, 2)),
    "select": ("input dim index", lambda T: (m(T), 0, 1)),
    "cross": ("input other dim", lambda T: (m(T), m(T), 0)),
    "cdist": ("x1 x2 p", lambda T: (m(T), m(T), 2.0)),
    "diff": ("input n dim", lambda T: (m(T), 1, 0)),
    "full": ("size fill_value", lambda T: ((2,), 2.0)),
    "polygamma": ("n input", lambda T: (1, m(T))),
}  # fmt: skip
WRONG = ("x", None, [1], 1.5, object(), True, 1)
# numbers given one by one, which methods take, are taken by these functions too
LENIENT = {("reshape", "shape"), ("permute", "dims"), ("flip", "dims"), ("tile", "dims")}


def calls(name: str) -> list[tuple[str, Callable[[Any], Any]]]:
    """Good and bad calls of one function."""
    text, make = CASES[name]
    names = text.split()

    def f(T: Any) -> Any:
        return getattr(T, name)

    def named(T: Any) -> dict[str, Any]:
        return dict(zip(names, make(T), strict=True))

    found: list[tuple[str, Callable[[Any], Any]]] = [
        ("positional", lambda T: f(T)(*make(T))), ("keywords", lambda T: f(T)(**named(T))),
        ("unknown", lambda T: f(T)(*make(T), foo=1)), ("nothing", lambda T: f(T)()),
        ("too many", lambda T: f(T)(*make(T), 1, 2, 3, 4, 5, 6, 7)),
    ]  # fmt: skip
    for k, n in enumerate(names):
        found.append((f"missing {n}", lambda T, n=n: f(T)(
            **{p: v for p, v in named(T).items() if p != n})))  # fmt: skip
        found.append((f"twice {n}", lambda T, n=n: f(T)(*make(T), **{n: named(T)[n]})))
        for wrong in WRONG:
            if type(wrong) is not int or (name, n) not in LENIENT:
                found.append((f"{n}={wrong!r}", lambda T, k=k, w=wrong: f(T)(
                    *[w if j == k else v for j, v in enumerate(make(T))])))  # fmt: skip
    for own, other in (("dim", "axis"), ("keepdim", "keepdims")):
        if own in names:
            found.append((other, lambda T, own=own, other=other: f(T)(
                **{other if p == own else p: v for p, v in named(T).items()})))  # fmt: skip
    return found


@pytest.mark.parametrize("name", CASES)
def test_arguments(name: str) -> None:
    for label, call in calls(name):
        want, got = outcome(torch, call), outcome(pullback, call)
        assert same(want, got), (label, want, got)
