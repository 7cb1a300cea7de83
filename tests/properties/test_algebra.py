"""Properties that hold for any shapes and values: linearity, broadcasting, raw = recorded."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pullback as torch

floats = st.floats(-3, 3, width=64)


@st.composite
def pairs(draw):  # type: ignore[no-untyped-def]
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
    return tuple(draw(hnp.arrays(np.float64, s, elements=floats)) for s in shapes.input_shapes)


@settings(max_examples=60, deadline=None)
@given(pairs(), st.sampled_from(["add", "sub", "mul", "maximum", "atan2"]))
def test_gradients_have_the_shape_of_their_inputs(arrays, name) -> None:  # type: ignore[no-untyped-def]
    a, b = (torch.tensor(x, requires_grad=True) for x in arrays)
    out = getattr(torch, name)(a, b)
    assert out.shape == np.broadcast_shapes(a.shape, b.shape)
    out.sum().backward()
    assert a.grad.shape == a.shape and b.grad.shape == b.shape


@settings(max_examples=60, deadline=None)
@given(pairs(), floats, floats)
def test_the_gradient_is_linear_in_the_cotangent(arrays, s, t) -> None:  # type: ignore[no-untyped-def]
    a, b = (torch.tensor(x, requires_grad=True) for x in arrays)
    out = torch.sin(a) * b
    u = torch.tensor(np.cos(np.arange(out.numel(), dtype=float)).reshape(out.shape))
    v = torch.tensor(np.sin(np.arange(out.numel(), dtype=float)).reshape(out.shape))
    both = torch.autograd.grad(out, a, s * u + t * v, retain_graph=True)[0]
    one = torch.autograd.grad(out, a, u, retain_graph=True)[0]
    other = torch.autograd.grad(out, a, v)[0]
    assert torch.allclose(both, s * one + t * other, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=4), elements=floats))
def test_plain_and_recorded_backward_agree(x) -> None:  # type: ignore[no-untyped-def]
    leaf = torch.tensor(x, requires_grad=True)
    y = (torch.tanh(leaf) * leaf.exp()).sum(0) / (leaf * leaf + 1).mean()
    seed = torch.ones(y.shape, dtype=torch.float64)
    plain = torch.autograd.grad(y, leaf, seed, retain_graph=True)[0]
    recorded = torch.autograd.grad(y, leaf, seed, create_graph=True)[0]
    assert torch.equal(plain, recorded.detach())


@st.composite
def indexed(draw):  # type: ignore[no-untyped-def]
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    key = draw(hnp.basic_indices(shape, allow_newaxis=True))
    parts = key if isinstance(key, tuple) else (key,)
    forward = tuple(
        slice(k.start, k.stop, abs(k.step) if k.step else None) if isinstance(k, slice) else k
        for k in parts
    )
    return shape, forward


@settings(max_examples=150, deadline=None)
@given(indexed())
def test_basic_indexing_equals_numpy_and_its_gradient_counts_reads(case) -> None:  # type: ignore[no-untyped-def]
    shape, key = case
    x = np.arange(float(np.prod(shape))).reshape(shape)
    leaf = torch.tensor(x, requires_grad=True)
    out = leaf[key]
    assert np.array_equal(out.numpy(force=True), x[key])
    out.sum().backward()
    count = np.zeros(shape)
    count[key] += 1
    assert np.array_equal(leaf.grad.numpy(), count)


@settings(max_examples=150, deadline=None)
@given(indexed(), floats)
def test_index_assignment_equals_numpy_and_stops_the_gradient(case, fill) -> None:  # type: ignore[no-untyped-def]
    shape, key = case
    x = np.arange(float(np.prod(shape))).reshape(shape)
    leaf = torch.tensor(x, requires_grad=True)
    y = leaf * 1
    y[key] = fill
    want = x.copy()
    want[key] = fill
    assert np.array_equal(y.numpy(force=True), want)
    y.sum().backward()
    kept = np.ones(shape)
    kept[key] = 0
    assert np.array_equal(leaf.grad.numpy(), kept)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_advanced_indexing_equals_numpy(data) -> None:  # type: ignore[no-untyped-def]
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    key = data.draw(hnp.integer_array_indices(shape))
    x = np.arange(float(np.prod(shape))).reshape(shape)
    leaf = torch.tensor(x, requires_grad=True)
    out = leaf[tuple(torch.tensor(k) for k in key)]
    assert np.array_equal(out.numpy(force=True), x[key])
    out.sum().backward()
    count = np.zeros(shape)
    np.add.at(count, key, 1)
    assert np.array_equal(leaf.grad.numpy(), count)
