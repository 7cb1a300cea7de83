"""Every function on operands of every dtype, on PyTorch and on Pullback (`make oracle`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from tests.oracle import dtypes
from tests.oracle.dtypes import DTYPES, NAMED_OTHERWISE, OTHERS, operand, outcome, same

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
NUMBERS = (2, 1.5, True, 1j)


def differences(
    name: str, function: Any, operands: Callable[[Any], tuple[Any, ...]]
) -> list[tuple[Any, Any]]:
    want = outcome(torch, function, *operands(torch))
    got = outcome(pullback, function, *operands(pullback))
    if name in NAMED_OTHERWISE:
        want, got = dtypes.without_names(want), dtypes.without_names(got)
    if not same(want, got):
        return [(want, got)]
    if isinstance(want, str) and words_of(want) not in got:
        return [(want, got)]
    return []


def words_of(error: str) -> str:
    """What a program may look for: the name of the code that is missing, or the first words."""
    text = error.split(": ", 1)[1].strip()
    return text[:40] if "not implemented for" not in text else text.split(" not ")[0]


@pytest.mark.parametrize("name", dtypes.unary_cases())
def test_functions_of_one_tensor(name: str) -> None:
    function = dtypes.unary_cases()[name]
    for kind in DTYPES:
        assert not differences(name, function, lambda T, k=kind: (operand(T, k),)), kind


@pytest.mark.parametrize("name", dtypes.binary_cases())
def test_functions_of_two_tensors(name: str) -> None:
    function = dtypes.binary_cases()[name]
    for pair in itertools.product(DTYPES, DTYPES):
        if dtypes.unlike(name, *pair):
            continue
        for values in (OTHERS, 1):
            def operands(T: Any, p: Any = pair, v: Any = values) -> tuple[Any, ...]:
                return operand(T, p[0]), operand(T, p[1], v)

            assert not differences(name, function, operands), (pair, values)


@pytest.mark.parametrize("name", dtypes.binary_cases())
def test_functions_of_a_tensor_and_a_number(name: str) -> None:
    function = dtypes.binary_cases()[name]
    for kind, number in itertools.product(DTYPES, NUMBERS):
        if dtypes.unlike(name, kind, number):
            continue
        for first in (False, True):
            def operands(T: Any, k: Any = kind, n: Any = number, f: Any = first) -> tuple[Any, ...]:
                return (n, operand(T, k)) if f else (operand(T, k), n)

            assert not differences(name, function, operands), (kind, number, first)
