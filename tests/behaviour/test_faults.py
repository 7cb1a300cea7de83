"""Memory, depth, threads, cycles: what breaks systems that passed every other test."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref

import pytest

import pullback as torch

F = torch.nn.functional


def test_a_chain_of_a_million_nodes_runs_and_is_freed() -> None:
    x = torch.ones(1, requires_grad=True)
    n = 1_000_000
    gc.collect()
    tracemalloc.start()
    y = x
    for _ in range(1000):
        y = y * 1.0
    per_node = tracemalloc.get_traced_memory()[0] / 1000
    tracemalloc.stop()
    assert per_node < 1024, f"{per_node:.0f} bytes per node"
    for _ in range(n - 1000):
        y = y * 1.0
    y.backward(torch.ones(1), retain_graph=True)
    assert x.grad.tolist() == [1.0]
    del y  # must not recurse


def test_graphs_are_freed_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        v = y[1:]
        z = (v * v.sigmoid()).sum()
        z.backward(retain_graph=True)
        watched = [weakref.ref(n) for n in (z.grad_fn, y.grad_fn, v.grad_fn)]
        watched += [weakref.ref(t) for t in (y, v, z)]
        del y, v, z
        assert [w() for w in watched] == [None] * 6
    finally:
        gc.enable()


def test_inplace_and_hooks_leave_no_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y[0] = y[1].clone()
        y.add_(1)
        y.register_hook(lambda g: g * 2)
        y.retain_grad()
        z = y.sum()
        z.backward()
        watched = [weakref.ref(y), weakref.ref(z), weakref.ref(y.grad_fn)]
        del y, z
        assert [w() for w in watched] == [None] * 3
    finally:
        gc.enable()


def step(parameters: list[torch.Tensor], x: torch.Tensor, t: torch.Tensor) -> None:
    w, b = parameters
    for p in parameters:
        p.grad = None
    h = torch.tanh(F.linear(x, w, b))
    h.register_hook(lambda g: None)
    loss = F.cross_entropy(h[:, :3], t) + 0.01 * (w * w).sum()
    loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad


@pytest.mark.slow
def test_no_growth_over_many_training_steps() -> None:
    w = torch.ones(4, 5, requires_grad=True)
    b = torch.zeros(4, requires_grad=True)
    x, t = torch.ones(6, 5), torch.tensor([0, 1, 2, 0, 1, 2])
    for _ in range(300):
        step([w, b], x, t)
    gc.collect()
    before = len(gc.get_objects())
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    for _ in range(3000):
        step([w, b], x, t)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    assert len(gc.get_objects()) - before < 200
    assert grown < 100_000, f"{grown} bytes"


def test_threads_accumulate_exactly_over_a_shared_leaf() -> None:
    x = torch.ones(300, requires_grad=True)
    errors = []

    def work() -> None:
        try:
            for _ in range(200):
                (x * 2 + x).sum().backward()
        except Exception as error:  # pragma: no cover
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and x.grad.tolist() == [4800.0] * 300


def test_threads_walk_one_retained_graph() -> None:
    x = torch.ones(10, requires_grad=True)
    y = (x.exp() * x).sum()
    (want,) = torch.autograd.grad(y, x, retain_graph=True)
    found = []

    def work() -> None:
        for _ in range(100):
            found.append(torch.autograd.grad(y, x, retain_graph=True)[0])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 800 and all(g.equal(want) for g in found)


def test_leaves_outlive_their_graphs_and_graphs_their_leaves() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    reference = weakref.ref(x)
    del x
    assert reference() is not None, "the graph keeps its leaf"
    y.sum().backward()
    assert reference().grad.tolist() == [2.0, 2.0]


def test_an_exception_in_the_middle_of_a_pass() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y * 3
    handle = y.register_hook(lambda g: [][1])
    with pytest.raises(IndexError):
        z.sum().backward(retain_graph=True)
    assert x.grad is None
    handle.remove()
    z.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_interrupted_user_state_is_restored() -> None:
    import numpy as np

    x = torch.zeros(2, requires_grad=True)
    with np.errstate(divide="raise"):
        seen = []
        x.register_hook(lambda g: seen.append(np.geterr()["divide"]))
        (1 / x).sum().backward()
        assert np.geterr()["divide"] == "raise" and seen == ["raise"]


def test_retained_gradients_add_up_over_passes() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()
    assert y.grad.tolist() == [12.0, 12.0]


def test_a_hook_must_keep_the_dtype() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: g.double())
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        y.sum().backward()
    assert x.grad is None


def test_negation_in_place_of_strided_memory() -> None:
    for step, dtype in ((4, torch.float32), (8, torch.float64), (3, torch.float32)):
        x = torch.arange(1.0, 8 * step + 1, dtype=dtype)
        want = (-x[::step]).tolist()
        x[::step].neg_()
        assert x[::step].tolist() == want
