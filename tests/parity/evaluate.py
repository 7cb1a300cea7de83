"""Running a case on any torch-like module: value, gradients, second-order gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.parity.cases import Case, hash_text


def evaluate(T: Any, case: Case) -> dict[str, Any]:
    """`out`, `g<i>` for each differentiable input, and `h<i>` for the second order."""
    rng = np.random.default_rng(hash_text(case.name) + 1)
    leaves = [T.from_numpy(np.array(a, copy=True)) for a in case.inputs]
    for i, a in enumerate(case.inputs):  # keep the layout: non-contiguous stays non-contiguous
        if a.ndim == 2 and not a.flags.c_contiguous:
            leaves[i] = T.from_numpy(np.array(a.T, order="C")).t()
    leaves = [x.requires_grad_() for x in leaves]
    out = case.function(T, *leaves)
    found = {"out": out.numpy(force=True)}
    if not out.requires_grad:
        return found

    def weights(x: Any) -> Any:
        shape = tuple(x.shape)
        w = rng.uniform(0.5, 1.5, shape)
        if x.is_complex():
            w = w + 1j * rng.uniform(0.5, 1.5, shape)
        return T.from_numpy(np.asarray(w).astype(x.numpy(force=True).dtype))

    grads = T.autograd.grad(out, leaves, weights(out), create_graph=True, allow_unused=True)
    total = None
    for i, g in enumerate(grads):
        if g is None:
            continue
        found[f"g{i}"] = g.numpy(force=True)
        term = (g * weights(g)).sum()
        term = term.real if term.is_complex() else term
        if term.requires_grad:
            total = term if total is None else total + term
    if total is None:
        return found
    for i, h in enumerate(T.autograd.grad(total, leaves, allow_unused=True)):
        if h is not None:
            found[f"h{i}"] = h.numpy(force=True)
    return found
