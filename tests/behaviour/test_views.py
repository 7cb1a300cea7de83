"""Views as PyTorch has them: who requires grad, whose history is old, what may be written."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

import pullback as torch


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


# ---------------------------------------------------------------- requires_grad of views
def test_a_view_requires_grad_when_its_base_does() -> None:
    base = torch.zeros(3)
    older = base[:2]
    base.requires_grad_()
    newer = base[:2]
    assert older.requires_grad and older.is_leaf and newer.grad_fn is not None
    (older * 2).sum().backward()
    assert older.grad is None and base.grad is None  # as in PyTorch: a leaf that gets no gradient
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        older.backward(torch.ones(2))
    with torch.no_grad():
        base.add_(1)
        made_there = base[1:]
    assert made_there.requires_grad and made_there.is_leaf
    assert older.grad_fn.name() == "AsStridedBackward0"  # its memory changed: part of the base now
    (older * 2).sum().backward()
    assert base.grad.tolist() == [2.0, 2.0, 0.0]
    base.requires_grad_(False)
    assert older.requires_grad and not made_there.requires_grad


def test_a_view_may_require_grad_by_itself() -> None:
    base = torch.zeros(3)
    view = base[:2].requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.add_(1)
    base.add_(1)
    assert view.is_leaf and not base.requires_grad and view.tolist() == [1.0, 1.0]
    other = base[1:]
    base.requires_grad_()
    base.requires_grad_(False)
    assert not other.requires_grad and other.is_leaf


def test_views_of_a_base_that_comes_to_require_grad_by_a_write() -> None:
    base, w = torch.zeros(3), leaf(1.0, 2.0, 3.0)
    view = base[:2]
    base.copy_(w)
    assert view.requires_grad and view.grad_fn.name() == "AsStridedBackward0"
    (view * view).sum().backward()
    assert w.grad.tolist() == [2.0, 4.0, 0.0]


def test_a_base_that_is_detached_leaves_its_views_their_history() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    before, written = y[:2], y[1:]
    written.mul_(3)
    after = y[2:]
    y.detach_()
    assert not y.requires_grad and before.requires_grad and written.requires_grad
    written.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [0.0, 3.0, 3.0]
    after.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [0.0, 3.0, 6.0]
    y.add_(1)  # from here on nothing leads from the memory to x
    assert before.grad_fn.name() == "AsStridedBackward0"
    before.sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 6.0]


def test_a_view_of_a_detached_base_written_under_no_grad() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    view = y[:2]
    with torch.no_grad():
        y.detach_()
        view.copy_(torch.ones(2))
    assert view.grad_fn.name() == "AsStridedBackward0" and y.tolist() == [1.0, 1.0, 3.0]
    view.sum().backward()
    assert x.grad is None


def test_an_unrecorded_write_makes_several_views_unusable() -> None:
    y = leaf(1.0, 2.0) * 1
    a, _ = y.split(1)
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been"):
        a.sum()


# ---------------------------------------------------------------- tensors that become views
@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.t_(), lambda v: v.transpose_(0, 1), lambda v: v.swapdims_(0, 1),
        lambda v: v.swapaxes_(0, -1), lambda v: v.unsqueeze_(1), lambda v: v.unsqueeze_(0).t_(),
        lambda v: v.unsqueeze_(0).squeeze_(), lambda v: v.unsqueeze_(2).squeeze_(2),
    ],
)  # fmt: skip
def test_views_that_turn_into_views_of_themselves(
    change: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    v = y[:, 1:]
    try:
        change(v)
    except RuntimeError:  # t_ of three dims
        v.transpose_(0, 2)
    v.mul_(10)
    assert y.grad_fn.name().endswith("CopySlices") and v.grad_fn is not None
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 10.0, 10.0], [1.0, 10.0, 10.0]]


def test_bases_that_turn_into_views_of_themselves() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    v = y[0]
    y.t_()
    assert y.shape == (3, 2) and y.grad_fn.name() == "TBackward1" and v.tolist() == [0.0, 1.0, 2.0]
    v.mul_(5)
    y.unsqueeze_(0)
    (y * torch.arange(6.0).reshape(1, 3, 2)).sum().backward()
    assert x.grad.tolist() == [[0.0, 10.0, 20.0], [1.0, 3.0, 5.0]]
    assert v.grad_fn.name() == "AsStridedBackward0"
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].unsqueeze_(0)


def test_writes_through_a_view_of_memory_in_another_order() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x.t() * 1  # its memory lies as that of x
    assert not y.is_contiguous()
    v = y.t().view(-1)
    v[:2] = 0.0
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]

    def doubled(row: torch.Tensor) -> torch.Tensor:
        out = torch.ones(2, 3).t() * row
        out.t().view(-1)[:2].mul_(row[1])
        return out.sum()

    def plain(row: torch.Tensor) -> torch.Tensor:
        return row[0] * (2 * row[1] + 1) + 3 * row[1]

    rows = torch.arange(6.0).reshape(3, 2)
    found = torch.vmap(torch.func.grad(doubled))(rows)
    assert found.tolist() == torch.vmap(torch.func.grad(plain))(rows).tolist()


# ---------------------------------------------------------------- long chains
def test_a_view_of_a_view_five_thousand_times() -> None:
    def seconds(n: int) -> float:
        start = time.perf_counter()
        x = torch.ones(2, requires_grad=True)
        v = x * 1
        for _ in range(n):
            v = v[:]
        v.mul_(2)
        v.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        return time.perf_counter() - start

    seconds(500)
    assert seconds(5000) < 40 * min(seconds(500) for _ in range(3))


# ---------------------------------------------------------------- x.data = y
def test_backward_sees_what_data_was_set_to() -> None:
    x, c = leaf(1.0, 2.0), torch.ones(2)
    y = x * x
    kept = x.detach()
    x.data = torch.tensor([10.0, 20.0])
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 40.0] and kept.tolist() == [1.0, 2.0] and x._version == 0
    x.grad = None
    z = x * c
    c.data = c * 5
    z.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    w = leaf(1.0)
    e = w.exp()
    e.data = torch.zeros(1)  # a saved result stays what it was
    e.sum().backward()
    assert w.grad.item() == pytest.approx(np.e)
    s = (w * w).sum()
    w.data = torch.tensor([3.0])
    (g,) = torch.autograd.grad(s, w, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), w)
    assert g.tolist() == [6.0] and h.tolist() == [2.0]


def test_data_of_another_shape_and_changes_in_place_after_it() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    x.data = torch.ones(3)
    with pytest.raises(RuntimeError, match="The size of tensor a .* must match"):
        y.sum().backward()
    x = leaf(1.0, 2.0)
    y = x * x
    x.data = torch.ones(2)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# ---------------------------------------------------------------- memory read and written at once
def six() -> torch.Tensor:
    return torch.arange(6.0)


PARTS = [
    lambda x: x[1:].copy_(x[:-1]), lambda x: x[1:].add_(x[:-1]), lambda x: x.add_(x[0]),
    lambda x: x[1:].add_(x[:-1], alpha=2.0), lambda x: x[1:].sub_(x[:-1], alpha=3),
    lambda x: x[:4].view(2, 2).copy_(x[:4].view(2, 2).t()), lambda x: x[1:].pow_(x[:-1]),
    lambda x: x[1:].lerp_(x[:-1], 0.5), lambda x: x[1:].clamp_(min=x[:-1]),
    lambda x: x[1:].addcmul_(x[1:], x[:-1]), lambda x: x.__setitem__(slice(1, None), x[:-1]),
    lambda x: x.__setitem__(torch.tensor([0, 1]), x[1:3]),
    lambda x: x.scatter_(0, torch.tensor([0, 1]), x[4:]),
    lambda x: x.index_add_(0, torch.arange(6), x), lambda x: x[1:].eq_(x[:-1]),
]  # fmt: skip


@pytest.mark.parametrize("write", PARTS)
def test_operands_that_overlap_in_part_are_refused(write: Callable[[torch.Tensor], None]) -> None:
    x = six()
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to"):
        write(x)
    assert x.tolist() == six().tolist() and x._version == 0


def test_operands_that_are_the_target_or_lie_beside_it() -> None:
    x = six()
    x.add_(x).view(2, 3).add_(x.view(2, 3))
    x[:3].copy_(x[3:])
    assert x.tolist() == [12.0, 16.0, 20.0, 12.0, 16.0, 20.0]
    x[::2].copy_(x[1::2])
    x[1:].fill_(x[0])
    assert x.tolist() == [16.0] * 6


@pytest.mark.parametrize(
    ("write", "wanted"),
    [
        (lambda e: e.masked_fill_(torch.tensor([[True, False]] * 2), 3.0), [3.0, 3.0]),
        (lambda e: e.index_fill_(0, torch.tensor([1]), 4.0), [0.0, 4.0]),
        (lambda e: e.index_put_((torch.tensor([0]),), torch.tensor(5.0)), [5.0, 0.0]),
        (lambda e: e.__setitem__(torch.tensor([[False, False], [True, False]]), 6.0), [0.0, 6.0]),
        (lambda e: e.__setitem__(torch.tensor([1, 0]), torch.ones(2, 2)), [1.0, 1.0]),
    ],
)
def test_places_in_expanded_memory_may_be_written(
    write: Callable[[torch.Tensor], None], wanted: list[float]
) -> None:
    for base in (torch.zeros(2, 1), torch.zeros(1, 2).t()):
        with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
            write(base.expand(2, 2))
        assert base.flatten().tolist() == wanted and base._version == 1


@pytest.mark.parametrize(
    "write",
    [
        lambda e: e.copy_(torch.ones(2, 2)), lambda e: e.copy_(1.0), lambda e: e.mul_(2),
        lambda e: e.index_copy_(0, torch.tensor([0]), torch.ones(1, 2)), lambda e: e.sin_(),
        lambda e: e.index_add_(0, torch.tensor([0]), torch.ones(1, 2)), lambda e: e.uniform_(),
        lambda e: e.scatter_(0, torch.tensor([[0, 0]]), 1.0), lambda e: e.clamp_(0, 1),
        lambda e: e.masked_scatter_(torch.ones(2, 2) > 0, torch.ones(4)),
        lambda e: e.__setitem__(0, torch.ones(2)), lambda e: torch.exp(torch.ones(2, 2), out=e),
    ],
)  # fmt: skip
def test_expanded_memory_is_refused_elsewhere(write: Callable[[torch.Tensor], None]) -> None:
    base = torch.zeros(2, 1)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        write(base.expand(2, 2))
    assert base.tolist() == [[0.0], [0.0]] and base._version == 0


def test_out_may_not_overlap_an_operand_in_part() -> None:
    x = six()
    for write in (
        lambda: torch.exp(x[:3], out=x[1:4]), lambda: torch.add(x[:3], 1, out=x[1:4]),
        lambda: torch.mul(2.0, x[:3], out=x[1:4]), lambda: torch.clamp(x[:3], 0, 1, out=x[1:4]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the writt"):
            write()
    assert torch.add(x, x, out=x).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    part = x[:2]
    with pytest.warns(UserWarning, match="was resized"):
        torch.add(torch.ones(3), 1, out=part)  # there is room behind it
    assert x.tolist() == [2.0, 2.0, 2.0, 6.0, 8.0, 10.0]


def test_the_gradient_of_a_write_into_expanded_memory_is_refused() -> None:
    y = torch.ones(2, 1, requires_grad=True) * 1
    y.expand(2, 2).zero_()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        y.sum().backward()
    w, x = leaf(3.0), torch.ones(2, 1)
    with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
        x.expand(2, 2)[torch.tensor([0])] = w
    x.sum().backward()
    assert w.grad.tolist() == [2.0]


# ---------------------------------------------------------------- what backward refuses
def test_saved_tensors_detached_in_place_are_refused() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    alias = y.detach()
    alias.data = torch.zeros(2)  # of another tensor: no matter
    z.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [2.0, 4.0]
    y.detach_()
    with pytest.raises(RuntimeError, match="has been detached in-place"):
        z.sum().backward()


def test_leaves_that_changed_what_they_are() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward(retain_graph=True)
    assert x.grad is None  # it takes no gradient any more
    x.mul_(leaf(1.0, 1.0))
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        x.requires_grad = True
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1


def test_views_that_may_not_be_used_can_be_looked_at() -> None:
    y = leaf(1.0, 2.0) * 1
    a, _ = y.split(1)
    y.mul_(2)
    assert repr(a) == "tensor([2.], grad_fn=<Invalid>)" and a.tolist() == [2.0]
    assert a.detach().tolist() == [2.0] and a.retains_grad is False
    with pytest.raises(RuntimeError, match="Output 0 of Split is a view and its base"):
        a.is_leaf  # noqa: B018


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda y: y.__setitem__(slice(None), 1.0), "FillBackward3"),
        (lambda y: y.__setitem__(slice(0, None), torch.ones(2)), "CopyBackwards"),
        (lambda y: y.__setitem__(slice(0, 1), 1.0), "CopySlices"),
        (lambda y: y.__setitem__(0, 1.0), "CopySlices"),
        (lambda y: y.fill_(1), "FillBackward2"), (lambda y: y.uniform_(), "UniformBackward0"),
        (lambda y: y.unsqueeze_(0), "UnsqueezeBackward1"),
        (lambda y: y.squeeze_(), "SqueezeBackward3"),
    ],
)  # fmt: skip
def test_names_of_what_wrote(write: Callable[[torch.Tensor], None], name: str) -> None:
    y = leaf(1.0, 2.0) * 1
    write(y)
    assert type(y.grad_fn).__name__ == name and y._version == 1


# ---------------------------------------------------------------- the order of leaves
@pytest.mark.parametrize(
    ("combine", "order"),
    [
        (lambda a, b, c, d: a * b + c, [2, 0, 1]),
        (lambda a, b, c, d: torch.stack([a, b, c, d]), [0, 2, 1, 3]),
        (lambda a, b, c, d: a + b * (c + d), [0, 1, 2, 3]),
        (lambda a, b, c, d: torch.cat([d, c, b, a, a * 2]), [3, 1, 2, 0]),
    ],
)
def test_hooks_of_leaves_run_in_the_order_of_pytorch(
    combine: Callable[..., torch.Tensor], order: list[int]
) -> None:
    for general in (False, True):  # the two loops of the engine
        leaves, seen = [leaf(1.0, 2.0) for _ in range(4)], list[int]()
        for k, x in enumerate(leaves):
            x.register_hook(lambda g, k=k, seen=seen: seen.append(k))
        torch.autograd.backward(combine(*leaves).sum(), inputs=leaves if general else None)
        assert seen == order
