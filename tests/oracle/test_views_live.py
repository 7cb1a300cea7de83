"""Random programs of views and writes, on PyTorch and on Pullback (`make oracle`).

Leaves that do not yet require grad, views of every kind, in-place changes, index assignment,
`detach`, `requires_grad_`, `.data`, `no_grad` and backward passes in the middle.  After each step
the flags, versions, node names and values of every tensor are compared, and kinds of errors.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import pullback
from tests.oracle.programs import builtin_name

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

# What a step does: a template over tensors a and b, an int k of -2..2 and a number c.
VIEWS = (
    "a[k]", "a[k:]", "a[:k]", "a[::2]", "a[..., k]", "a[None]", "a[:, k:]", "a.t()", "a.view(-1)",
    "a.view(2, -1)", "a.reshape(-1)", "a.transpose(0, -1)", "a.unsqueeze(k)", "a.squeeze()",
    "a.select(-1, 0)", "a.narrow(0, 1, 1)", "a.diagonal()", "a.expand(2, *a.shape)",
    "a.unfold(0, 2, 2)", "a.split(1)[k]", "a.unbind(0)[k]", "a.chunk(2)[k]", "a.detach()", "a.data",
    "a.view_as(a)", "a.flatten()", "a.movedim(0, -1)", "a.permute(*range(a.ndim - 1, -1, -1))",
    "a.swapaxes(0, -1)", "a.expand_as(b)", "a[[0, 1]]", "a[...]", "a[0:]", "a.clone()",
)  # fmt: skip
VALUES = ("a * b", "a + b", "a * 2", "a.sin()", "a * a", "b.exp()", "T.cat([a, b])", "a.sum(0)")
WRITES = (
    "a.mul_(2)", "a.add_(b)", "a.mul_(b)", "a.copy_(b)", "a.zero_()", "a.fill_(c)", "a.sin_()",
    "a.add_(b, alpha=2)", "a.sub_(b)", "a.div_(2)", "a.fill_(b.sum())", "a.copy_(b[k])",
    "a.masked_fill_(a > 0.5, c)", "a[:1].fill_(c)", "a.index_copy_(0, j, a[:1] * c)",
    "a.index_add_(0, j, a[:1].sin())", "a.clamp_(-0.5, 0.5)", "a.addcmul_(b, b)", "a.pow_(2)",
    "a.lerp_(b, 0.3)", "a.exp_()", "a.neg_()", "a.relu_()", "a.add_(a)", "a.mul_(a)",
)  # fmt: skip
SETS = (
    "a[k] = c", "a[k] = b[k]", "a[k:] = b[k:]", "a[:] = b", "a[...] = c", "a[i] = b[:2].clone()",
    "a[i] = c", "a[a > 0.3] = c", "a[:, k] = b[:, k]", "a[0:1] *= 3", "a += b", "a *= 2", "a -= 1",
    "a[k] = b.sum()", "a[None, k:] = b[k:] * 2", "a[[1, 0]] = a[:2].clone()",
)  # fmt: skip
TURNS = tuple(
    f"turns(a) and {change}"
    for change in (
        "a.t_()", "a.unsqueeze_(k)", "a.squeeze_()", "a.transpose_(0, -1)", "a.swapdims_(0, -1)",
        "a.squeeze_(k)",
    )
)
FLAGS = (
    "a.requires_grad_()", "a.requires_grad_(False)", "a.detach_()", "a.requires_grad = True",
    "a.requires_grad = False", "a.retain_grad()", "a.grad_fn", "a.is_leaf",
)  # fmt: skip
MEMORY = (
    "if free(a): a.data = b.data.reshape(a.shape).clone()", "a.data.mul_(2)", "a.detach().add_(1)",
)
PASSES = (
    "(a * a).sum().backward(retain_graph=True)", "a.sum().backward(retain_graph=True)",
    "a.backward(T.ones(a.shape, dtype=T.float64), retain_graph=True)",
)  # fmt: skip
KINDS = (VIEWS, VIEWS, VIEWS, VALUES, WRITES, WRITES, SETS, SETS, TURNS, FLAGS, MEMORY, PASSES)
GIVES = (VIEWS, VALUES)
Step = tuple[str, float, float, int, float, bool, bool]


def program(seed: int) -> list[Step]:
    """The program of that number: template, operands, k, c, under no_grad?, gives a tensor?"""
    choose = random.Random(seed)
    steps: list[Step] = []
    for _ in range(choose.randint(3, 14)):
        kind = choose.choice(KINDS)
        steps.append((
            choose.choice(kind), choose.random(), choose.random(), choose.randint(-2, 2),
            round(choose.uniform(-1, 1), 2), choose.random() < 0.15, kind in GIVES,
        ))  # fmt: skip
    return steps


def seen(x: Any) -> tuple[Any, ...]:
    """What is compared of a tensor; reading its history may be an error."""
    flags = (x.requires_grad, x._is_view(), x._version, tuple(x.shape))
    try:
        node = x.grad_fn
    except RuntimeError:
        return *flags, "RuntimeError"
    return *flags, x.is_leaf, None if node is None else type(node).__name__


def numbers(x: Any) -> Any:
    """The values of a tensor, its own memory."""
    return None if x is None else np.array(x.detach().numpy())


def may_move(x: Any, tensors: list[Any]) -> bool:
    """Whether `x.data = y` has a meaning: views of what x was would show other memory than x."""
    return not x._is_view() and all(other._base is not x for other in tensors)


def may_turn(x: Any) -> bool:
    """Not a leaf that requires grad: what was recorded with it has gradients of another shape."""
    return not (x.requires_grad and x.is_leaf)


def interleaved(a: Any, b: Any) -> bool:
    """Whether memory is shared in a way that PyTorch does not look into: results then vary."""
    x, y = a.detach().numpy(), b.detach().numpy()
    plain = x.flags.forc and y.flags.forc and x.shape == y.shape
    return np.shares_memory(x, y) and not plain


def run(T: Any, steps: list[Step]) -> list[Any]:
    """What each step did, and the state of all tensors after it."""
    table = [[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]]
    tensors = [
        T.tensor(table, dtype=T.float64, requires_grad=True), T.tensor(table, dtype=T.float64),
        T.tensor([1.0, 2.0, 3.0], dtype=T.float64),
    ]  # fmt: skip
    tensors.append(tensors[0] * 1)
    log: list[Any] = []
    for text, first, second, k, c, unrecorded, gives in steps:
        a, b = (tensors[int(r * len(tensors))] for r in (first, second))
        if not gives and interleaved(a, b):
            b = b.detach().clone()
        names = {"T": T, "a": a, "b": b, "k": k, "c": c, "i": T.tensor([1, 0]), "j": T.tensor([0])}
        names |= {"free": lambda x: may_move(x, tensors), "turns": may_turn}
        try:
            with T.set_grad_enabled(not unrecorded):
                if gives:
                    tensors.append(eval(text, names))
                else:
                    exec(text, names)
            log.append((text, None))
        except Exception as error:
            overlap = "single memory location" in str(error)
            log.append((text, "overlap" if overlap else builtin_name(error)))
        log += [(text, n, seen(x)) for n, x in enumerate(tensors)]
    for t in list(tensors):
        try:
            if t.requires_grad:
                (t * t).sum().backward(retain_graph=True)
                log.append(("end", None))
        except Exception as error:
            log.append(("end", builtin_name(error)))
    log += [("value", n, numbers(x)) for n, x in enumerate(tensors)]
    log += [("grad", n, numbers(x.grad)) for n, x in enumerate(tensors)]
    return log


def difference(want: list[Any], got: list[Any]) -> str | None:
    """The first thing that differs between two runs."""
    for a, b in zip(want, got, strict=False):
        if a[0] in ("value", "grad"):
            if (a[2] is None) != (b[2] is None) or (
                a[2] is not None
                and (a[2].shape != b[2].shape or not np.allclose(a[2], b[2], equal_nan=True))
            ):
                return f"{a} became {b}"
        elif a != b:
            return f"{a} became {b}"
    return None if len(want) == len(got) else "one run is longer"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(0, 4000, 500))
def test_programs_of_views_agree(start: int) -> None:
    found = {}
    for seed in range(start, start + 500):
        steps = program(seed)
        d = difference(run(torch, steps), run(pullback, steps))
        if d is not None:
            found[seed] = d
    assert found == {}


@pytest.mark.filterwarnings("ignore")
def test_a_view_that_is_not_outdated_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: writes that leave the views their old history."""
    from pullback.eager.view import Views

    monkeypatch.setattr(Views, "outdate", lambda self: None)
    assert any(
        difference(run(torch, program(seed)), run(pullback, program(seed))) is not None
        for seed in range(300)
    )
