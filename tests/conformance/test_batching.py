"""Batching rules: `vmap` of every primitive is a loop over the examples, whichever inputs it maps.

Samples are the calls that the parity cases make, forward and backward, and those written out here
for what the cases do not reach: examples without dims, nothing in them, index arrays apart.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.core.primitive import REGISTRY, Primitive
from pullback.eager.apply import apply
from pullback.func import grad, vmap
from pullback.ops.indexing import HOLE
from tests.parity.cases import CASES

Sample = tuple[tuple[Any, ...], dict[str, Any]]
SAMPLES_PER_PRIMITIVE = 6
SIZE = 3
RNG = np.random.default_rng(0)


def real(*shape: int) -> Any:
    """Numbers in (0.2, 0.9): inside of the domain of every function."""
    return np.asarray(RNG.uniform(0.2, 0.9, shape))


def ints(*values: Any) -> Any:
    return np.array(values, np.int64)


# ---------------------------------------------------------------- samples
def spelled_out() -> dict[str, list[Sample]]:
    """Samples by the name of their primitive."""
    all_, i2, j2 = slice(None), ints(0, 1), ints(2, 0)
    cut = (None, REGISTRY["getitem"], {"key": (slice(0, 2), Ellipsis)}, None)
    flat = (None, REGISTRY["reshape"], {"shape": (4,)}, None)
    turned = ((None, REGISTRY["permute"], {"perm": (1, 0)}, None), *flat[1:])
    found: dict[str, list[Sample]] = {
        "copy": [((real(2, 3), real(3)), {}), ((real(2, 3), real()), {}), ((real(), real()), {})],
        "replace": [((real(2, 3), real(2, 3)), {}), ((real(), real()), {})],
        "underived": [((real(2), real(3)), {"function": "f", "words": "none"})],
        "signbit": [((real(2) - 0.5,), {}), ((ints(1, -2),), {})],
        "heaviside": [((real(2, 3) - 0.5, real(3)), {})],
        "searchsorted": [
            ((np.sort(real(4)), real(2, 3)), {"side": "left", "narrow": False}),
            ((np.sort(real(4)), real()), {"side": "right", "narrow": True}),
            ((np.sort(real(2, 4)), real(2, 3)), {"side": "right", "narrow": False}),
        ],
        "isin": [((ints(1, 2, 3), ints(2, 5)), {"invert": False}),
                 ((ints([1, 2], [2, 7]), ints([7, 1, 1])), {"invert": True})],
        "alias": [((real(2, 3),), {}), ((real(),), {})],
        "bundle": [((real(2, 3), real(2)), {}), ((real(),), {})],
        "view_write": [
            ((real(3, 4), real(4, 2)),
             {"chain": (cut, REGISTRY["permute"], {"perm": (1, 0)}, None), "order": None}),
            ((real(2, 2), real(4)), {"chain": flat, "order": None}),
            ((real(2, 2), real(4)), {"chain": turned, "order": (1, 0)}),
            ((real(), real()), {"chain": (None, REGISTRY["alias"], {}, None), "order": None}),
        ],
        "take": [((real(2, 3, 4), ints(2, 0, 0)), {"axis": 1}), ((real(), ints(0)), {"axis": 0}),
                 ((real(4, 2), ints([0, 1], [3, 3])), {"axis": 0})],
        "untake": [((real(2, 3, 4), ints(2, 0, 2)), {"axis": 1, "shape": (2, 5, 4)}),
                   ((real(), ints(0)), {"axis": 0, "shape": ()}),
                   ((real(2, 2, 3), ints([0, 1], [3, 3])), {"axis": 0, "shape": (4, 3)})],
        "gather": [((real(), ints(0, 0)), {"axis": 0}), ((real(3), np.array(1)), {"axis": 0}),
                   ((real(2, 3, 2), ints([[0], [2]])), {"axis": 1})],
        "ungather": [((real(2), ints(0, 0)), {"axis": 0, "shape": ()}),
                     ((real(1, 2, 1), ints([[0], [0]])), {"axis": 1, "shape": (2, 3, 2)})],
        "scatter": [((real(3), np.array(1), real()), {"axis": 0}),
                    ((real(2, 3), ints([0, 2]), real()), {"axis": 1}),
                    ((real(2, 3), ints([0, 2]), real(2, 4)), {"axis": 1}),
                    ((real(), np.array(0), real()), {"axis": 0}),
                    ((real(), ints(0), real(1)), {"axis": 0})],
        "scatter_add": [((real(3), np.array(1), real()), {"axis": 0}),
                        ((real(2, 3), ints([1, 1]), real(2, 4)), {"axis": 1}),
                        ((real(), np.array(0), real()), {"axis": 0})],
        "pick": [((real(), np.array(0)), {"axis": 0, "keepdims": False}),
                 ((real(2, 3), ints(1, 0, 1)), {"axis": 0, "keepdims": True})],
        "unpick": [((real(), np.array(0)), {"axis": 0, "keepdims": False, "shape": ()}),
                   ((real(1, 3), ints(1, 0, 1)), {"axis": 0, "keepdims": True, "shape": (2, 3)})],
        "addmm": [((c, real(2, 3), real(3, 4)), {"beta": beta, "alpha": 2})
                  for c in (real(), real(4), real(2, 4), real(1, 4)) for beta in (1, 0, 0.5)]
        + [((real(4) * np.nan, real(2, 3), real(3, 4)), {"beta": 0, "alpha": 1})],
        "matmul": [((real(2, 3), real(5, 3, 4)), {}), ((real(5, 2, 3), real(3, 4)), {}),
                   ((real(2, 0), real(0, 3)), {})],
        "mv": [((real(2, 3), real(3)), {}), ((real(0, 3), real(3)), {})],
        "dot": [((real(3), real(3)), {}), ((real(0), real(0)), {})],
        "linear": [((real(2, 3), real(4, 3), real(4)), {})],
        "einsum": [((real(2, 3), real(3, 2)), {"equation": "ij,jk->ki"}),
                   ((real(2), real(2), real(2)), {"equation": "i,i,i->i"})],
        "where": [((np.array([True, False]), real(3, 2), real(2)), {}),
                  ((np.array(True), real(), real(2)), {})],
        "broadcast_to": [((real(), ), {"shape": (2, 3)}), ((real(2, 1), ), {"shape": (4, 2, 3)})],
        "cat": [((real(2, 1), real(2, 2), real(2, 3)), {"axis": 1})],
        "stack": [((real(2), real(2)), {"axis": 1}), ((real(), real()), {"axis": 0})],
        "unbind": [((real(2, 3),), {"axis": 1})],
        "split": [((real(2, 3),), {"axis": 1, "sizes": (1, 2)})],
        "roll": [((real(2, 3),), {"axis": (0, 1), "shifts": (1, -1)})],
        "tile": [((real(3),), {"reps": (2, 2)}), ((real(),), {"reps": (2,)})],
        "nll": [((real(3), np.array(1)), {"axis": 0, "reduction": r})
                for r in ("none", "sum", "mean")],
        "getitem": [((real(2, 3, 4),), {"key": k}) for k in (
            (Ellipsis,), (0, Ellipsis), (None, Ellipsis, 1), (slice(1, None), None, 2, Ellipsis))],
        "index1": [((real(3, 4), i2), {"template": t}) for t in (
            (HOLE,), (Ellipsis, HOLE), (None, HOLE), (all_, HOLE), (0, all_, HOLE)[1:])]
        + [((real(2, 3, 4), i2), {"template": (0, all_, HOLE)}),
           ((real(2, 3, 4), i2), {"template": (HOLE, all_, 1)}),
           ((real(2, 3, 4), ints([0, 1], [1, 1])), {"template": (all_, HOLE, slice(0, 3))})],
        "index2": [((real(2, 3, 4), i2, j2), {"template": t}) for t in (
            (HOLE, HOLE), (HOLE, all_, HOLE), (all_, HOLE, HOLE), (HOLE, None, HOLE),
            (Ellipsis, HOLE, HOLE))]
        + [((real(2, 3), i2, j2), {"template": (HOLE, Ellipsis, HOLE)}),
           ((real(5, 2, 3), ints([0], [1]), j2), {"template": (all_, HOLE, HOLE)}),
           ((real(5, 2, 6, 3), ints([0], [1]), j2), {"template": (all_, HOLE, all_, HOLE)})],
    }  # fmt: skip
    for n in range(3, 9):
        shape = (2,) * (n + 1)
        indices = tuple(RNG.integers(0, 2, 3) for _ in range(n))
        template = (HOLE, all_, *(HOLE,) * (n - 1))
        out = (3, 2)
        found[f"index{n}"] = [((real(*shape), *indices), {"template": template})]
        found[f"unindex{n}"] = [((real(*out), *indices), {"template": template, "shape": shape})]
    # the same keys read, add and write
    for n in (1, 2):
        for args, params in found[f"index{n}"]:
            shape = args[0].shape
            result = REGISTRY[f"index{n}"].forward(*args, **params)
            added = {**params, "shape": shape}
            found.setdefault(f"unindex{n}", []).append(((result, *args[1:]), added))
    for n in range(1, 9):
        for (x, *indices), params in found[f"index{n}"]:
            unlike = tuple(i if n > 1 else np.unique(i) for i in indices)
            value = REGISTRY[f"index{n}"].forward(x, *unlike, **params)
            for v in (value + 1, real()) if n < 3 else (value + 1,):
                found.setdefault(f"index_add_put{n}", []).append(((x, v, *unlike), params))
            if n > 2:  # one place only: which of several writes stays is not defined
                one = tuple(i[:1] for i in indices)
                value = REGISTRY[f"index{n}"].forward(x, *one, **params)
                found.setdefault(f"index_put{n}", []).append(((x, value + 1, *one), params))
            else:
                found.setdefault(f"index_put{n}", []).append(((x, value + 1, *unlike), params))
                found[f"index_put{n}"].append(((x, real(), *unlike), params))
    return found


def derived(p: Primitive) -> list[Sample]:
    """Samples of an elementwise primitive or a reduction, which need no writing out."""
    integers = p.name.startswith(("bitwise", "logical")) or p.name.endswith("shift")
    integers |= p.name in ("gcd", "lcm")

    def values(*shape: int) -> Any:
        return np.asarray(RNG.integers(0, 4, shape)) if integers else real(*shape)

    params: dict[str, Any] = {
        "round": {"decimals": 0}, "clamp": {"min": 0.3, "max": 0.6},
        "cast": {"dtype": np.dtype("f4")},
        "softplus": {"beta": 1.0, "threshold": 20.0}, "leaky_relu": {"negative_slope": 0.1},
    }.get(p.name, {})  # fmt: skip
    if p.batch == "elementwise" and set(p.params) == set(params):
        n = len(p.inputs)
        shapes: list[tuple[tuple[int, ...], ...]] = [((2, 3),) * n, ((),) * n, ((0, 2),) * n]
        if n == 2:
            shapes += [((2, 3), (3,)), ((), (2, 3)), ((2, 1), (1, 3))]
        return [(tuple(values(*s) for s in given), params) for given in shapes]
    if p.batch == "reduction":
        known: dict[str, Any] = {"p": 3.0, "correction": 1}
        more = {k: known[k] for k in p.params if k in known}
        x = real(2, 3) if p.name not in ("any", "all") else real(2, 3) > 0.5
        axes: tuple[tuple[int, ...], ...] = ((0,), (1,), (0, 1))
        found: list[Sample] = [((x,), {"axis": a, "keepdims": k, **more})
                               for a in axes for k in (False, True)]  # fmt: skip
        found.append(((np.asarray(x[0, 0]),), {"axis": (), "keepdims": False, **more}))
        return found
    if p.name in ("argmax", "argmin"):
        return [((real(2, 3),), {"axis": a, "keepdims": k})
                for a in (None, 0, 1) for k in (False, True)]  # fmt: skip
    if p.params == ("axis",) and len(p.inputs) == 1 and p.batch == "axes" and p.outputs == 1:
        last: Any = (1,) if p.name == "flip" else 1
        none: Any = () if p.name == "flip" else 0
        return [((real(2, 3),), {"axis": last}), ((real(),), {"axis": none})]
    return []


@functools.cache
def harvested() -> dict[str, list[Sample]]:
    """The calls of primitives on arrays that the parity cases make, the first few of a kind."""
    found: dict[str, list[Sample]] = {}
    seen: set[Any] = set()
    originals = {name: p.forward for name, p in REGISTRY.items()}

    def recorder(name: str, forward: Any) -> Any:
        def record(*args: Any, **params: Any) -> Any:
            key = (name, tuple(np.shape(a) for a in args), repr(params))
            if key not in seen and "out" not in params:
                seen.add(key)
                mine = found.setdefault(name, [])
                arrays = any(isinstance(a, np.ndarray) for a in args)
                if len(mine) < SAMPLES_PER_PRIMITIVE and arrays:
                    mine.append((tuple(np.array(a) if isinstance(a, np.ndarray) else a
                                       for a in args), params))  # fmt: skip
            return forward(*args, **params)

        return record

    try:
        for name, p in REGISTRY.items():
            if not isinstance(p.forward, np.ufunc):
                p.forward = recorder(name, p.forward)
        for case in CASES:
            leaves = [torch.tensor(a, requires_grad=True) for a in case.inputs]
            out = case.function(torch, *leaves)
            if out.requires_grad:
                torch.autograd.grad(out, leaves, torch.ones_like(out), allow_unused=True)
    finally:
        for name, forward in originals.items():
            REGISTRY[name].forward = forward
    return found


@functools.cache
def all_samples() -> dict[str, list[Sample]]:
    written = spelled_out()
    return {
        name: [*written.get(name, ()), *derived(p), *harvested().get(name, ())]
        for name, p in list(REGISTRY.items())
    }


ELSEWHERE = {"implicit": "tests/behaviour/test_implicit.py"}
NAMES = sorted(REGISTRY.keys() - ELSEWHERE.keys())  # not those that a test makes later


# ---------------------------------------------------------------- batches of samples
def examples(x: Any, size: int, seed: int = 0) -> list[Any]:
    """Arrays like x, with its elements in other places (so that indices stay in range)."""
    found = []
    for b in range(size):
        y = np.roll(x.reshape(-1), b + seed).reshape(x.shape)
        found.append(np.asarray(y * (1 - 0.07 * (b + seed))) if x.dtype.kind in "fc" else y)
    return found


def masks(args: tuple[Any, ...]) -> list[tuple[bool, ...]]:
    """Which arguments are mapped: every choice, or for many arguments all but one and single."""
    places = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]
    if len(places) <= 4:
        chosen = [c for k in range(1, len(places) + 1) for c in itertools.combinations(places, k)]
    else:
        chosen = [(i,) for i in places] + [tuple(j for j in places if j != i) for i in places]
        chosen.append(tuple(places))
    return [tuple(i in c for i in range(len(args))) for c in chosen]


class Mapped:
    """One sample with some of its arguments made into batches, at various dims."""

    def __init__(self, args: tuple[Any, ...], mask: tuple[bool, ...], size: int) -> None:
        self.size = size
        self.each = [
            examples(a, size) if m else [a] * size for a, m in zip(args, mask, strict=True)
        ]
        self.dims = tuple(
            None if not m else (i % (np.ndim(a) + 1)) - (np.ndim(a) + 1) * (i % 2)
            for i, (a, m) in enumerate(zip(args, mask, strict=True))
        )
        self.inputs = [
            torch.tensor(np.stack(e, d) if size else np.expand_dims(a, d).repeat(0, d))
            if d is not None else (torch.tensor(a) if isinstance(a, np.ndarray) else a)
            for a, e, d in zip(args, self.each, self.dims, strict=True)
        ]  # fmt: skip

    def example(self, b: int) -> list[Any]:
        return [torch.tensor(e[b]) if isinstance(e[b], np.ndarray) else e[b] for e in self.each]


def as_list(out: Any) -> list[torch.Tensor]:
    return list(out) if isinstance(out, tuple) else [out]


def same(got: torch.Tensor, want: torch.Tensor) -> bool:
    return (
        got.shape == want.shape
        and got.dtype == want.dtype
        and torch.allclose(got, want, rtol=1e-6, atol=1e-9, equal_nan=True)
    )


def scalar_of(p: Primitive, params: dict[str, Any]) -> Any:
    """A number made of all that a primitive gives, with a weight for each element."""

    def function(*args: Any) -> torch.Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for out in as_list(apply(p, args, params)):
            if not out.is_floating_point() and not out.is_complex():
                continue
            weights = torch.arange(1, out.numel() + 1, dtype=torch.float64).reshape(out.shape)
            part = (out * weights).sum()
            total = total + (part.real if part.is_complex() else part)
        return total

    return function


# ---------------------------------------------------------------- the tests
def test_every_primitive_has_a_batching_rule_and_samples() -> None:
    without_rule = [n for n in NAMES if REGISTRY[n].batch is None]
    without_sample = [n for n in NAMES if not all_samples()[n]]
    assert not without_rule and not without_sample


@pytest.mark.parametrize("name", NAMES)
def test_vmap_is_a_loop(name: str) -> None:
    p = REGISTRY[name]
    for args, params in all_samples()[name]:
        for mask in masks(args):
            case = Mapped(args, mask, SIZE)
            got = as_list(vmap(lambda *a, k=params: apply(p, a, k), case.dims)(*case.inputs))
            rows = [as_list(apply(p, tuple(case.example(b)), params)) for b in range(SIZE)]
            for k, out in enumerate(got):
                assert same(out, torch.stack([r[k] for r in rows])), (args, params, mask)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_nothing_keeps_the_shape(name: str) -> None:
    p = REGISTRY[name]
    for args, params in all_samples()[name]:
        for mask in masks(args):
            case = Mapped(args, mask, 0)
            got = as_list(vmap(lambda *a, k=params: apply(p, a, k), case.dims)(*case.inputs))
            alone = (torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args)
            want = as_list(apply(p, tuple(alone), params))
            for out, one in zip(got, want, strict=True):
                assert tuple(out.shape) == (0, *one.shape), (args, params, mask)


def float_places(args: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(
        i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind in "fc"
    )


UNDERIVED = ("floor_divide", "underived")  # recorded, but their rules only raise
DIFFERENTIABLE = [n for n in NAMES if REGISTRY[n].differentiable and n not in UNDERIVED]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_inside_and_around_vmap(name: str) -> None:
    p = REGISTRY[name]
    for args, params in all_samples()[name]:
        places = float_places(args)
        if not places:
            continue
        f = scalar_of(p, params)
        slopes = grad(f, places)
        for mask in masks(args):
            case = Mapped(args, mask, SIZE)
            rows = [slopes(*case.example(b)) for b in range(SIZE)]
            inside = vmap(slopes, case.dims)(*case.inputs)
            for k in range(len(places)):
                want = torch.stack([r[k] for r in rows])
                assert same(inside[k], want), (args, params, mask, k)
            around = grad(lambda *a, d=case.dims, f=f: vmap(f, d)(*a).sum(), places)(*case.inputs)
            for k, place in enumerate(places):
                want = torch.stack([r[k] for r in rows])
                dim = case.dims[place]
                want = want.sum(0) if dim is None else want.movedim(0, dim)
                assert same(around[k], want), (args, params, mask, k, "around")


@pytest.mark.parametrize("name", NAMES)
def test_nested_vmap_is_two_loops(name: str) -> None:
    p = REGISTRY[name]
    for args, params in all_samples()[name]:
        chosen = masks(args)
        for outer, inner in {(chosen[-1], chosen[0]), (chosen[0], chosen[-1])}:
            each, inputs = [], []
            for arg, o, m in zip(args, outer, inner, strict=True):
                rows = [
                    examples(x, 2) if m else [x] * 2
                    for x in (examples(arg, SIZE) if o else [arg] * SIZE)
                ]
                each.append(rows)
                if isinstance(arg, np.ndarray):
                    table = np.array(rows)
                    table = table if m else table[:, 0]
                    inputs.append(torch.tensor(table if o else table[0]))
                else:
                    inputs.append(arg)
            first = [0 if o else None for o in outer]
            second = [0 if m else None for m in inner]
            g = vmap(vmap(lambda *a, k=params: apply(p, a, k), tuple(second)), tuple(first))
            got = as_list(g(*inputs))
            for k, out in enumerate(got):
                want = torch.stack([
                    torch.stack([
                        as_list(apply(p, tuple(
                            torch.tensor(e[a][b]) if isinstance(e[a][b], np.ndarray) else e[a][b]
                            for e in each), params))[k]
                        for b in range(2)])
                    for a in range(SIZE)])  # fmt: skip
                assert same(out, want), (args, params, outer, inner)


# ---------------------------------------------------------------- public functions
# Their shape depends on data: refused, or they look at the values of one tensor.
REFUSED = {"index mask", "masked_select"}
# running statistics are shared by the examples: PyTorch refuses to write them, too
SHARED = {"batch_norm"}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_vmap_of_every_parity_case(case: Any) -> None:
    """What is made of primitives: whole public functions, with all their inputs mapped."""

    def f(*args: Any) -> torch.Tensor:
        return case.function(torch, *args)

    rows = [[torch.tensor(a) for a in row] for row in zip(
        *(examples(np.asarray(a), 2) for a in case.inputs), strict=True)]  # fmt: skip
    inputs = [torch.stack(column) for column in zip(*rows, strict=True)]
    if case.name.rpartition("/")[0] in REFUSED | SHARED:
        with pytest.raises(RuntimeError, match="vmap|inside a transform"):
            vmap(f)(*inputs)
        return
    assert same(vmap(f)(*inputs), torch.stack([f(*row) for row in rows]))
