"""no_grad and its like in all their forms; hooks on tensors and nodes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

import pullback as torch


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


# ---------------------------------------------------------------- modes
def test_no_grad_nests_and_restores() -> None:
    x = leaf(1.0)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_restored_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        _ = 1 / 0
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("decorator", [torch.no_grad(), torch.no_grad])
def test_decorator_with_and_without_parentheses(decorator) -> None:  # type: ignore[no-untyped-def]
    @decorator
    def f(x: torch.Tensor) -> bool:
        return (x * 2).requires_grad

    assert not f(leaf(1.0)) and torch.is_grad_enabled()


def test_set_grad_enabled_acts_at_once_and_as_context() -> None:
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()

    @torch.set_grad_enabled(False)
    def f() -> bool:
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled() and not f()


def test_generator_holds_the_mode_only_while_it_runs() -> None:
    @torch.no_grad()
    def numbers() -> Iterator[bool]:
        for _ in range(2):
            yield torch.is_grad_enabled()

    inside = []
    for value in numbers():
        inside.append(value)
        assert torch.is_grad_enabled()
    assert inside == [False, False]


def test_generator_send_throw_and_return() -> None:
    @torch.no_grad()
    def f():  # type: ignore[no-untyped-def]
        got = yield 1
        try:
            yield got
        except ValueError:
            yield torch.is_grad_enabled()
        return 9

    g = f()
    assert next(g) == 1 and g.send(5) == 5 and g.throw(ValueError()) is False
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == 9


def test_coroutines_do_not_leak_the_mode_into_each_other() -> None:
    seen = {}

    @torch.no_grad()
    async def quiet() -> None:
        await asyncio.sleep(0.01)
        seen["quiet"] = torch.is_grad_enabled()

    async def loud() -> None:
        await asyncio.sleep(0.005)
        seen["loud"] = torch.is_grad_enabled()

    async def both() -> None:
        await asyncio.gather(quiet(), loud())

    asyncio.run(both())
    assert seen == {"quiet": False, "loud": True}


def test_modes_belong_to_the_thread() -> None:
    found = []
    with torch.no_grad():
        t = threading.Thread(target=lambda: found.append(torch.is_grad_enabled()))
        t.start()
        t.join()
    assert found == [True]


# ---------------------------------------------------------------- tensor hooks
def test_hooks_run_in_order_and_replace() -> None:
    x = leaf(1.0, 2.0)
    order = []
    x.register_hook(lambda g: order.append(g.tolist()))
    x.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: order.append(g.tolist()))
    (x * 3).sum().backward()
    assert order == [[3.0, 3.0], [6.0, 6.0]] and x.grad.tolist() == [6.0, 6.0]


def test_hook_on_a_result_and_its_removal() -> None:
    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward(retain_graph=True)
    handle.remove()
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [22.0]


def test_hook_sees_the_whole_gradient() -> None:
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 3 + y * 4).sum().backward()
    assert seen == [7.0]


def test_hook_that_raises_leaves_the_engine_usable() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda g: 1 / 0)
    y = x * 2
    with pytest.raises(ZeroDivisionError):
        y.sum().backward(retain_graph=True)
    assert x.grad is None
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_hooks_with_wrong_results() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: g[:1])
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        x.sum().backward()
    y = leaf(1.0)
    y.register_hook(lambda g: 5)
    with pytest.raises(TypeError, match="must return None or a Tensor"):
        y.sum().backward()


def test_hooks_need_a_tensor_that_requires_grad() -> None:
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        torch.ones(1).register_hook(lambda g: None)


def test_backward_inside_a_hook() -> None:
    x, inner = leaf(1.0), leaf(5.0)

    def hook(g: torch.Tensor) -> None:
        with torch.enable_grad():
            (inner * inner).sum().backward()

    x.register_hook(hook)
    (x * 2).sum().backward()
    assert inner.grad.tolist() == [10.0] and x.grad.tolist() == [2.0]


def test_hook_runs_without_recording() -> None:
    x = leaf(1.0)
    modes = []
    x.register_hook(lambda g: modes.append(torch.is_grad_enabled()))
    x.sum().backward()
    assert modes == [False]


def test_post_accumulate_hook_sees_grad() -> None:
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert seen == [3.0, 6.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(lambda t: None)


def test_node_hooks() -> None:
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda g: (g[0] * 5,))
    y.grad_fn.register_hook(lambda gi, go: seen.append((gi[0].item(), go[0].item())))
    y.sum().backward()
    assert seen == [(10.0, 5.0)] and x.grad.tolist() == [10.0]


def test_retain_grad_rules() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [4.0]
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        torch.ones(1).retain_grad()
