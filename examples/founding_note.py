"""The programs of the note that Pullback was built from, as written there.

Each function runs one program and returns what it printed or raised, for the tour and the tests.
"""

from __future__ import annotations

import warnings
from typing import Any

import pullback as torch


def scalar_output() -> list[Any]:
    """y = 2 x.x, then another function of x after the gradient was set to zero."""
    x = torch.arange(4.0)
    x.requires_grad_(True)
    before = x.grad
    y = 2 * torch.dot(x, x)
    y.backward()
    first = repr(x.grad)
    x.grad.zero_()
    y = x.sum()
    y.backward()
    return [before, first, repr(x.grad)]


def vector_output() -> list[Any]:
    """The gradient of a sum, twice: by sum() and by a gradient of ones."""
    x = torch.arange(4.0, requires_grad=True)
    y = x * x
    y.sum().backward()
    first = repr(x.grad)
    x.grad.zero_()
    y = x * x
    y.backward(torch.ones(len(x)))
    second = repr(x.grad)
    try:
        (x * x).backward()
    except RuntimeError as error:
        return [first, second, str(error)]
    raise AssertionError("a vector needs a gradient")


def detaching() -> list[Any]:
    """u = y.detach() is a constant: the gradient of u * x is u."""
    x = torch.arange(4.0, requires_grad=True)
    y = x * x
    u = y.detach()
    z = u * x
    z.sum().backward()
    same = repr(x.grad == u)
    flag = u.requires_grad
    u.requires_grad_(True)
    return [same, flag, u.is_leaf, u.grad_fn]


def not_a_leaf() -> list[Any]:
    """Reading .grad of a result warns and gives None."""
    x = torch.arange(4.0, requires_grad=True)
    y = x * x
    z = y * x
    z.sum().backward()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        grad = y.grad
    return [grad, str(caught[0].message)]


def twice() -> list[Any]:
    """A second backward over a freed graph is an error."""
    x = torch.arange(4.0, requires_grad=True)
    y = x * x
    z = y * x
    z.sum().backward()
    try:
        z.sum().backward()
    except RuntimeError as error:
        return [str(error)]
    raise AssertionError("the graph was freed")


PROGRAMS = (scalar_output, vector_output, detaching, not_a_leaf, twice)
