"""In-place operations, index assignment, views and version counters."""

from __future__ import annotations

import pytest

import pullback as torch


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


def test_inplace_on_a_result_is_recorded() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y += 1
    y.mul_(y.detach() * 0 + 3)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0] and y.grad_fn.name() == "MulBackward0"


def test_inplace_on_a_leaf_is_refused_and_changes_nothing() -> None:
    x = leaf(1.0, 2.0)
    for change in (lambda: x.add_(1), lambda: x.__setitem__(0, 5.0), lambda: x[:1].mul_(2)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            change()
    assert x.tolist() == [1.0, 2.0] and x._version == 0
    with torch.no_grad():
        x -= 1
    assert x.tolist() == [0.0, 1.0] and x.is_leaf and x.requires_grad


def test_saved_value_changed_in_place_is_refused_with_both_lines() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as e:
        z.sum().backward()
    assert "saved at" in str(e.value) and "changed at" in str(e.value)
    assert "y.add_(1)" in str(e.value) and "z = y * y" in str(e.value)


def test_change_through_detached_memory_is_noticed() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_versions_are_shared_by_views() -> None:
    x = torch.ones(4)
    v = x[1:3]
    v.add_(1)
    x[0] = 7
    assert x._version == v._version == 2 and x.tolist() == [7.0, 2.0, 2.0, 1.0]


def test_writing_into_a_view_reaches_the_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[1:].mul_(10)
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    assert repr(y).endswith("grad_fn=<CopySlices>)")
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 10.0]


def test_other_views_see_the_new_history() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    a, b = y[:2], y[1:]
    a.mul_(10)
    (b * b).sum().backward()
    assert x.grad.tolist() == [0.0, 400.0, 6.0]


def test_writing_into_the_base_reaches_the_view() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    v = y.view(2, 1)
    y.mul_(3)
    v.sum().backward()
    assert v.grad_fn.name() == "AsStridedBackward0" and x.grad.tolist() == [3.0, 3.0]


def test_views_of_views_and_transposes() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    y.t()[1:][:, 0].copy_(torch.tensor([5.0, 6.0]))
    assert y.tolist() == [[0.0, 5.0, 6.0], [3.0, 4.0, 5.0]]
    (y * y).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0], [6.0, 8.0, 10.0]]


def test_gradient_of_the_written_value() -> None:
    w = leaf(2.0, 3.0)
    y = torch.zeros(3)
    y[:2] = w * w
    y.sum().backward()
    assert y.requires_grad and w.grad.tolist() == [4.0, 6.0]


def test_broadcast_value_gets_the_summed_gradient() -> None:
    w = leaf(2.0)
    y = torch.zeros(2, 3)
    y[:, 1] = w
    (y * torch.arange(6.0).reshape(2, 3)).sum().backward()
    assert w.grad.tolist() == [5.0]


def test_assignment_with_index_arrays_and_masks() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[[0, 2]] = torch.tensor([9.0, 8.0])
    y[y > 8.5] = 0.0
    assert y.tolist() == [0.0, 2.0, 8.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_outputs_of_split_refuse_inplace() -> None:
    y = leaf(1.0, 2.0, 3.0) * 1
    part = y.split(2)[0]
    with pytest.raises(RuntimeError, match="Output 0 of .* is a view and is being modified"):
        part.add_(1)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been"):
        part.sum()
    assert y.tolist() == [2.0, 4.0, 6.0]


def test_views_made_under_no_grad_refuse_recorded_writes() -> None:
    y = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        v = y[:1]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being"):
        v.add_(1)
    assert y.tolist() == [1.0, 2.0] and y._version == 0
    b = torch.zeros(2)
    with torch.no_grad():
        w = b[:1]
    w.add_(1)  # nothing requires grad: nothing is recorded
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being"):
        w.mul_(leaf(3.0))
    with torch.no_grad():
        w.mul_(leaf(3.0))
    assert b.tolist() == [3.0, 0.0]


def test_views_under_no_grad_and_detached_writes() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    with torch.no_grad():
        y.view(2).zero_()
    assert y.tolist() == [0.0, 0.0] and y._version == 1


def test_expanded_tensors_refuse_writes() -> None:
    e = torch.ones(1).expand(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        e.add_(1)


def test_result_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(torch.ones(3, 2))
    i = torch.ones(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        i.add_(1.5)
    assert x.tolist() == [1.0, 1.0] and i.tolist() == [1, 1] and x._version == i._version == 0


def test_zero_and_copy_are_differentiable() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * 2
    y.copy_(w * w)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0] and w.grad.tolist() == [6.0, 8.0]
    z = leaf(1.0) * 2
    z.zero_()
    assert z.grad_fn.name() == "ZeroBackward0"


def test_pow_sigmoid_and_friends_in_place() -> None:
    for name in ("exp_", "sigmoid_", "tanh_", "sqrt_", "square_", "neg_", "log_", "reciprocal_"):
        a, b = leaf(0.5, 2.0), leaf(0.5, 2.0)
        y = a * 1
        getattr(y, name)()
        y.sum().backward()
        getattr(torch, name[:-1])(b).sum().backward()
        assert torch.allclose(a.grad, b.grad), name


def test_detach_in_place_cuts_and_refuses_views() -> None:
    x = leaf(1.0)
    y = x * 2
    y.detach_()
    assert not y.requires_grad and y.is_leaf
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (x * 2).view(1).detach_()


def test_data_shares_memory_without_versions() -> None:
    x = leaf(1.0, 2.0)
    x.data.mul_(3)
    assert x.tolist() == [3.0, 6.0] and x._version == 0
    x.data = torch.zeros(2)
    assert x.tolist() == [0.0, 0.0] and x.requires_grad


def test_out_argument() -> None:
    out = torch.empty(2)
    assert torch.add(torch.ones(2), 1, out=out) is out and out.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(leaf(1.0, 2.0), 1, out=out)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(torch.ones(3), 1, out=out)
    assert out.tolist() == [2.0, 2.0, 2.0]
    empty = torch.empty(0)
    torch.exp(torch.zeros(2, 2), out=empty)  # an empty output is resized without a word
    assert empty.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_out_of_another_dtype() -> None:
    wide = torch.zeros(2, dtype=torch.float64)
    assert torch.add(torch.ones(2), 1, out=wide).tolist() == [2.0, 2.0]
    whole = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output"):
        torch.add(torch.ones(2), 1, out=whole)
    assert whole.tolist() == [0, 0] and whole._version == 0


def test_second_order_through_an_inplace_write() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    y[0] = y[1].clone() * x[0]
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    b = leaf(1.0, 2.0)
    z = torch.stack([b[1] * b[1] * b[0], b[1] * b[1]])
    (gb,) = torch.autograd.grad((z * z).sum(), b, create_graph=True)
    (hb,) = torch.autograd.grad(gb.sum(), b)
    assert torch.allclose(g, gb) and torch.allclose(h, hb)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scaled_updates_of_large_tensors(dtype: torch.dtype) -> None:
    x, y = torch.ones(100, 100, dtype=dtype), torch.full((100, 100), 2.0, dtype=dtype)
    view = x[:2]
    x.add_(y, alpha=0.5)
    x.sub_(y, alpha=0.25)
    assert (x == 1.5).all() and (view == 1.5).all() and x._version == 2 and (y == 2).all()
    x.t().add_(y, alpha=0.5)
    x.add_(x, alpha=2.0)
    assert (x == 7.5).all()
    w = torch.ones(100, 100, dtype=dtype, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        w.add_(y, alpha=0.5)
    z = w * 1
    z.add_(y * w, alpha=0.5)
    z.sum().backward()
    assert (w.grad == 2).all()


def test_operand_that_is_the_target_is_refused_at_backward() -> None:
    y = leaf(2.0, 3.0) * 1
    y *= y
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_retained_gradients_follow_the_tensor_through_in_place_changes() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0, 24.0] and x.grad.tolist() == [72.0, 144.0]
    z = leaf(1.0, 2.0) * 1
    v = z[:1]
    v.retain_grad()
    z.mul_(2)
    v.sum().backward()
    assert v.grad.tolist() == [1.0]


def test_a_single_bool_as_a_key() -> None:
    x = torch.tensor(3.0)
    assert x[x > 1].tolist() == [3.0] and x[x > 5].tolist() == []
    x[x > 1] = 7.0
    x[False] = 1.0
    assert x.item() == 7.0 and torch.ones(2)[True].shape == (1, 2)


def test_one_value_may_be_written_into_expanded_memory() -> None:
    e = torch.ones(1).expand(3)
    e.zero_()
    assert e.tolist() == [0.0] * 3
