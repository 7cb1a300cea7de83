"""Every primitive in the table: reached by a parity case, and with the rules it must have."""

from __future__ import annotations

import pullback
from pullback.core.primitive import REGISTRY
from pullback.eager.node import AccumulateGrad
from tests.parity.cases import CASES

# Primitives that only the system itself applies, or that have tests of their own elsewhere.
ELSEWHERE = {
    "view_write": "tests/behaviour/test_inplace_and_views.py",
    "copy": "tests/behaviour/test_inplace_and_views.py",
    "replace": "tests/behaviour/test_inplace_and_views.py",
    "bundle": "tests/nn/test_hooks.py",
    "alias": "tests/behaviour/test_vmap_and_trace.py (grad of grad)",
    "scatter_add": "cases scatter_add, index_add",
    "implicit": "tests/behaviour/test_implicit.py",
    "underived": "tests/behaviour/test_refusals.py",
    "floor_divide": "tests/behaviour/test_refusals.py",
    "at_most": "tests/ops/test_awkward_points.py",
    "clamp_tensors": "tests/ops/test_awkward_points.py",
}


def used_in(tensor: pullback.Tensor) -> set[str]:
    """The primitives of a graph."""
    seen, names = set(), set()
    stack = [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen or isinstance(node, AccumulateGrad):
            continue
        seen.add(node)
        names.add(node.plan.primitive.name)
        stack += [n for n, _ in node.next_functions]
    return names


def stem(name: str) -> str:
    return name.rstrip("0123456789")


def test_every_differentiable_primitive_is_in_a_parity_case() -> None:
    reached: set[str] = set()
    for case in CASES:
        leaves = [pullback.tensor(a, requires_grad=True) for a in case.inputs]
        out = case.function(pullback, *leaves)
        if not out.requires_grad:
            continue
        reached |= used_in(out)
        seed = pullback.ones_like(out).requires_grad_()  # so that transposes are recorded too
        grads = pullback.autograd.grad(out, leaves, seed, create_graph=True, allow_unused=True)
        for g in grads:
            if g is not None and g.requires_grad:
                reached |= used_in(g)
    reached = {stem(n) if n.startswith(("index", "unindex")) else n for n in reached}
    wanted = {
        stem(n) if n.startswith(("index", "unindex")) else n
        for n, p in REGISTRY.items()
        if p.differentiable
    }
    assert wanted - reached - set(ELSEWHERE) == set()


def test_every_primitive_is_described_and_has_its_rules() -> None:
    for name, p in REGISTRY.items():
        assert p.doc, name
        if p.differentiable:
            assert p.jvp is not None, f"{name} has no forward-mode rule"
        assert p.batch is not None, f"{name} has no batching rule"


def test_rules_that_name_unknown_things_are_refused() -> None:
    import pytest

    from pullback.ops.kinds import linear

    with pytest.raises(AssertionError, match="a rule names"):
        linear("broken", lambda x: x, transpose={"x": lambda g, y: g})
    assert "broken" not in REGISTRY
    with pytest.raises(AssertionError, match="declared twice"):
        linear("sum", lambda x: x, transpose={"x": lambda g: g})


def test_results_of_full_reductions_are_arrays() -> None:
    import numpy as np

    for f in (pullback.sum, pullback.mean, pullback.prod, pullback.amax, pullback.norm):
        assert type(f(pullback.ones(3))._data) is np.ndarray
    assert type((pullback.tensor(1.0) * 2)._data) is np.ndarray
