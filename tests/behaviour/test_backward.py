"""`backward` and `autograd.grad`: arguments, accumulation, errors, unchanged state."""

from __future__ import annotations

import tracemalloc

import pytest

import pullback as torch


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


# ---------------------------------------------------------------- backward
def test_gradient_is_not_aliased_by_the_users_tensor() -> None:
    x, g = leaf(1.0, 2.0), torch.ones(2)
    (x + 0).backward(g)
    x.grad.add_(5)
    assert g.tolist() == [1.0, 1.0]
    y = x.view(2)
    y.backward(g)
    g.zero_()
    assert x.grad.tolist() == [7.0, 7.0]


def test_two_leaves_do_not_share_a_gradient() -> None:
    a, b = leaf(1.0), leaf(2.0)
    (a + b).sum().backward()
    a.grad.add_(1)
    assert b.grad.tolist() == [1.0]


def test_expanded_gradients_have_memory_of_their_own() -> None:
    x = leaf(1.0, 2.0, 3.0)
    x.sum().backward()
    x.grad[0] = 5
    assert x.grad.tolist() == [5.0, 1.0, 1.0]


def test_inputs_restrict_accumulation() -> None:
    a, b = leaf(2.0), leaf(3.0)
    (a * b).sum().backward(inputs=[a])
    assert a.grad.tolist() == [3.0] and b.grad is None


def test_inputs_may_be_results() -> None:
    a = leaf(2.0)
    m = a * 3
    (m * m).sum().backward(inputs=[m])
    assert m.grad.tolist() == [12.0] and a.grad is None


def test_empty_inputs_are_refused() -> None:
    with pytest.raises(RuntimeError, match="cannot be empty"):
        leaf(1.0).sum().backward(inputs=[])


def test_several_roots() -> None:
    x = leaf(1.0, 2.0)
    torch.autograd.backward([x.sum(), x * x], [None, torch.ones(2)])
    assert x.grad.tolist() == [3.0, 5.0]


def test_the_same_root_twice_counts_twice() -> None:
    x = leaf(3.0)
    y = (x * x).sum()
    torch.autograd.backward([y, y])
    assert x.grad.tolist() == [12.0]


def test_create_graph_warns_and_differentiates_again() -> None:
    x = leaf(2.0)
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        (x**3).sum().backward(create_graph=True)
    g, x.grad = x.grad, None
    g.sum().backward()
    assert x.grad.tolist() == [12.0]
    x.grad = None


def test_float64_gradient_of_a_float32_output_is_converted() -> None:
    x = leaf(1.0, 2.0)
    (x * 2).backward(torch.ones(2, dtype=torch.float64))
    assert x.grad.dtype == torch.float32


def test_mixed_dtypes_cast_gradients_back() -> None:
    x = leaf(1.0, 2.0)
    d = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    (x * d).sum().backward()
    assert x.grad.dtype == torch.float32 and d.grad.dtype == torch.float64


def test_real_leaf_of_a_complex_result_gets_a_real_gradient() -> None:
    x = leaf(1.0, 2.0)
    (x * torch.tensor([1j, 1 + 1j])).real.sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("gradient", "error", "words"),
    [
        (None, RuntimeError, "only for scalar outputs"),
        (lambda: torch.ones(3), RuntimeError, "Mismatch in shape"),
        (lambda: 2.0, TypeError, "Tensors or None"),
        (lambda: torch.ones(2, dtype=torch.complex64), RuntimeError, "required to have the same"),
    ],
)
def test_wrong_gradients_are_refused_and_change_nothing(gradient, error, words) -> None:  # type: ignore[no-untyped-def]
    x = leaf(1.0, 2.0)
    y = x * x
    with pytest.raises(error, match=words):
        y.backward(gradient() if gradient else None)
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_no_graph_says_why() -> None:
    x = leaf(1.0)
    y = x.detach() * 2
    with pytest.raises(RuntimeError, match="does not require grad and does not have a") as e:
        y.sum().backward()
    assert "detached at" in str(e.value)


def test_complex_scalar_needs_a_gradient() -> None:
    z = torch.tensor(1 + 1j, requires_grad=True)
    with pytest.raises(RuntimeError, match="real scalar outputs"):
        (z * z).backward()


# ---------------------------------------------------------------- autograd.grad
def test_grad_returns_and_does_not_accumulate() -> None:
    x = leaf(1.0, 2.0)
    (g,) = torch.autograd.grad((x * x).sum(), x)
    assert g.tolist() == [2.0, 4.0] and x.grad is None


def test_grad_of_results_and_leaves_together() -> None:
    x = leaf(3.0)
    y = x * x
    z = (y * x).sum()
    gy, gx = torch.autograd.grad(z, [y, x])
    assert gy.tolist() == [3.0] and gx.tolist() == [27.0]


def test_unused_inputs() -> None:
    x, u = leaf(1.0), leaf(1.0)
    y = (x * x).sum()
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(y, [x, u], retain_graph=True)
    g, h = torch.autograd.grad(y, [x, u], allow_unused=True, retain_graph=True)
    assert g.tolist() == [2.0] and h is None
    assert torch.autograd.grad(y, [u], materialize_grads=True)[0].tolist() == [0.0]


def test_materialize_with_forbidden_unused_is_refused() -> None:
    x = leaf(1.0)
    with pytest.raises(ValueError, match="Expected allow_unused to be True"):
        torch.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)


def test_inputs_must_require_grad() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(leaf(1.0).sum(), torch.ones(1))
    with pytest.raises(ValueError, match="non-empty inputs"):
        torch.autograd.grad(leaf(1.0).sum(), [])


def test_batched_grad_outputs_give_the_jacobian() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = torch.sin(x) * x.sum()
    rows = [
        torch.autograd.grad(y, x, torch.eye(3)[i], retain_graph=True)[0].tolist() for i in range(3)
    ]
    (jacobian,) = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    assert torch.allclose(jacobian, torch.tensor(rows))


def test_third_order() -> None:
    x = leaf(2.0)
    y = (x**4).sum()
    for want in (32.0, 48.0, 48.0):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        y = y.sum()
        assert y.item() == want


def test_what_grad_returns_may_be_changed_in_place() -> None:
    x = leaf(1.0, 2.0)
    a, b = torch.autograd.grad((x + x.view(2)).sum(), [x, x])
    a.add_(1)
    assert b.tolist() == [2.0, 2.0]


def test_second_pass_over_a_freed_graph_leaves_grads_alone() -> None:
    x = leaf(2.0)
    y = x * x
    y.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()
    assert x.grad.tolist() == [4.0]


# ---------------------------------------------------------------- the graph's own attributes
def test_next_functions_and_names() -> None:
    x = leaf(1.0)
    y = x * 2
    z = y + y.exp()
    assert z.grad_fn.name() == type(z.grad_fn).__name__ == "AddBackward0"
    names = [n.name() for n, _ in z.grad_fn.next_functions]
    assert names == ["MulBackward0", "ExpBackward0"]
    accumulate = y.grad_fn.next_functions[0][0]
    assert type(accumulate).__name__ == "AccumulateGrad" and accumulate.variable is x
    assert accumulate.name() == "torch::autograd::AccumulateGrad"
    assert y.grad_fn.next_functions[1] == (None, 0)


def test_leaf_and_requires_grad_rules() -> None:
    x = leaf(1.0)
    y = x * 2
    assert x.is_leaf and not y.is_leaf and y.requires_grad and torch.ones(1).is_leaf
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad_(False)
    x.requires_grad = False
    assert not (x * 2).requires_grad


def test_grad_assignment_is_checked() -> None:
    x = leaf(1.0, 2.0)
    x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
        x.grad = torch.ones(2, dtype=torch.float64)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 3
    assert x.grad.tolist() == [1.0, 1.0]
    del x.grad
    assert x.grad is None


def test_the_first_gradient_is_taken_over_without_a_copy() -> None:
    """What a rule made and nobody else holds becomes `.grad` itself: one array, not two."""
    x = torch.ones(1000, 1000, requires_grad=True)
    size = x.numel() * 4
    y = torch.exp(x)
    seed = torch.ones(1000, 1000)
    tracemalloc.start()
    try:
        y.backward(seed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert x.grad is not None
    assert size <= peak < 1.5 * size
