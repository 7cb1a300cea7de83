"""Forward mode of every primitive: the transpose of reverse mode, at any depth and under `vmap`.

The samples are those of the batching tests; reverse mode itself is checked against differences in
test_numerical.py, so that agreement with it is agreement with the truth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.core.primitive import REGISTRY
from pullback.eager.apply import apply
from pullback.func import grad, jvp, vmap
from tests.conformance.test_batching import (
    DIFFERENTIABLE,
    all_samples,
    as_list,
    float_places,
    same,
)

RNG = np.random.default_rng(1)


def random_like(x: Any) -> Any:
    out = RNG.standard_normal(np.shape(x))
    if np.asarray(x).dtype.kind == "c":
        out = out + 1j * RNG.standard_normal(np.shape(x))
    return torch.tensor(np.asarray(out, np.asarray(x).dtype))


class Case:
    """A primitive as a function of its float inputs, which gives its float outputs."""

    def __init__(self, name: str, sample: Any) -> None:
        self.p = REGISTRY[name]
        self.args, self.params = sample
        self.places = float_places(self.args)
        self.inputs = tuple(torch.tensor(self.args[i]) for i in self.places)
        self.tangents = tuple(random_like(self.args[i]) for i in self.places)

    def __call__(self, *values: Any) -> Any:
        args = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in self.args]
        for place, value in zip(self.places, values, strict=True):
            args[place] = value
        found = as_list(apply(self.p, tuple(args), self.params))
        return [
            y for k, y in enumerate(found)
            if k not in self.p.nondifferentiable and (y.is_floating_point() or y.is_complex())
        ]  # fmt: skip


def inner(a: Any, b: Any) -> Any:
    """<a, b> over the reals."""
    product = a.conj() * b
    return (torch.real(product) if product.is_complex() else product).sum()


def by_name() -> Any:
    return pytest.mark.parametrize(
        "name", [n for n in DIFFERENTIABLE if any(float_places(a) for a, _ in all_samples()[n])]
    )


def cases(name: str) -> list[Case]:
    found = (Case(name, sample) for sample in all_samples()[name])
    return [c for c in found if c.places and c(*c.inputs)]


@by_name()
def test_the_derivative_is_the_transpose_of_reverse_mode(name: str) -> None:
    for case in cases(name):
        outputs, slopes = jvp(case, case.inputs, case.tangents)
        again = case(*case.inputs)
        leaves = [x.clone().requires_grad_() for x in case.inputs]
        cotangents = [random_like(y.numpy()) for y in again]
        for y, z, s in zip(outputs, again, slopes, strict=True):
            assert same(y, z) and s.shape == z.shape and s.dtype == z.dtype
        roots = case(*leaves)
        found = torch.autograd.grad(
            [r for r in roots if r.requires_grad], leaves,
            [u for u, r in zip(cotangents, roots, strict=True) if r.requires_grad],
            materialize_grads=True,
        )  # fmt: skip
        left = sum(inner(u, s) for u, s in zip(cotangents, slopes, strict=True))
        right = sum(inner(g, t) for g, t in zip(found, case.tangents, strict=True))
        if name == "mean" and not case.inputs[0].numel():
            continue  # the mean of nothing is NaN, and so is its derivative; nothing flows back
        close = 1e-6 if right.dtype != left.dtype else 1e-9
        np.testing.assert_allclose(
            left.numpy(), right.numpy(), rtol=close, atol=close, err_msg=str(case.params)
        )


@by_name()
def test_each_input_alone(name: str) -> None:
    """A tangent in one input is a zero tangent in the others."""
    for case in cases(name):
        for k in range(len(case.inputs)):
            zeros = [torch.zeros_like(t) for t in case.tangents]
            zeros[k] = case.tangents[k]

            def alone(x: Any, k: int = k, case: Case = case) -> Any:
                values = list(case.inputs)
                values[k] = x
                return case(*values)

            want = jvp(case, case.inputs, tuple(zeros))[1]
            got = jvp(alone, (case.inputs[k],), (case.tangents[k],))[1]
            assert all(same(a, b) for a, b in zip(got, want, strict=True)), (case.params, k)


@by_name()
def test_under_vmap_it_is_a_loop(name: str) -> None:
    for case in cases(name):
        rows = [tuple(random_like(x.numpy()) for x in case.inputs) for _ in range(3)]
        want = [jvp(case, case.inputs, row)[1] for row in rows]
        stacked = tuple(torch.stack(parts) for parts in zip(*rows, strict=True))
        got = vmap(lambda *t, case=case: jvp(case, case.inputs, t)[1])(*stacked)
        for k, y in enumerate(got):
            assert same(y, torch.stack([w[k] for w in want])), case.params


@by_name()
def test_over_reverse_and_under_it(name: str) -> None:
    """Hessian-vector products in both orders of the modes."""
    for case in cases(name):
        weights = [random_like(y.numpy()) for y in case(*case.inputs)]

        def scalar(*values: Any, case: Case = case, weights: Any = weights) -> Any:
            return sum(inner(w, y) for w, y in zip(weights, case(*values), strict=True))

        numbers = tuple(range(len(case.inputs)))
        over = jvp(grad(scalar, numbers), case.inputs, case.tangents)[1]
        under = grad(
            lambda *v, f=scalar, case=case: jvp(f, v, case.tangents)[1], numbers
        )(*case.inputs)
        for a, b in zip(over, under, strict=True):
            np.testing.assert_allclose(
                a.numpy(), b.numpy(), rtol=1e-8, atol=1e-8, err_msg=str(case.params)
            )
