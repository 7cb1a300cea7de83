"""Layers: shapes, modes, first values, and what `inplace` means."""

from __future__ import annotations

import math
from typing import Any

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn


def test_first_values_are_those_of_pytorch() -> None:
    """Recorded from PyTorch 2.13."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    assert layer.weight.flatten().tolist() == [
        -0.004322517663240433, 0.3097158372402191, -0.4751853346824646, -0.4248946011066437,
        -0.2223689705133438, 0.15482072532176971,
    ]  # fmt: skip
    torch.manual_seed(0)
    table = nn.Embedding(2, 2, padding_idx=0).weight
    assert table.flatten().tolist()[:2] == [0.0, 0.0] and table.requires_grad
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="more than 2 std"):
        x = nn.init.trunc_normal_(torch.empty(3), 0, 1, 3, 4)
    assert x.tolist() == [3.4962565898895264, 3.282268524169922, 3.088477373123169]


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_linear_without_inputs() -> None:
    assert nn.Linear(0, 3)(torch.ones(2, 0)).shape == (2, 3)


def test_linear_says_what_does_not_fit() -> None:
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(1x3 and 2x1\)"):
        nn.Linear(2, 1)(torch.ones(3))
    with pytest.raises(RuntimeError, match="same dtype, but got Double and Float"):
        nn.Linear(2, 1)(torch.ones(2, dtype=torch.float64))


def test_embedding() -> None:
    e = nn.Embedding(4, 2, padding_idx=-1)
    e(torch.tensor([[0, 3], [1, 0]])).sum().backward()
    assert e.weight.grad.tolist() == [[2.0, 2.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    fixed = nn.Embedding.from_pretrained(torch.eye(2))
    assert fixed(torch.tensor(1)).tolist() == [0.0, 1.0] and not fixed.weight.requires_grad
    with pytest.raises(AssertionError, match="within num_embeddings"):
        nn.Embedding(2, 2, padding_idx=2)
    with pytest.raises(NotImplementedError, match="max_norm"):
        nn.Embedding(2, 2, max_norm=1.0)


def test_batch_statistics_follow_the_batches() -> None:
    m = nn.BatchNorm1d(2)
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    assert torch.allclose(m(x), torch.tensor([[-1.0, -1.0], [1.0, 1.0]]), atol=1e-4)
    assert m.running_mean.allclose(torch.tensor([0.2, 0.4])) and m.num_batches_tracked == 1
    assert m.running_var.allclose(torch.tensor([1.1, 1.7]))
    m.eval()
    assert m(x)[0, 0].item() == pytest.approx((1 - 0.2) / math.sqrt(1.1 + 1e-5))
    m.reset_running_stats()
    assert m.running_var.tolist() == [1.0, 1.0] and m.num_batches_tracked == 0
    mean = nn.BatchNorm1d(2, momentum=None)
    mean(x), mean(3 * x)
    assert mean.running_mean.tolist() == [4.0, 8.0]
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        m(torch.ones(2))
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 2"):
        m(torch.ones(2, 3))


IN_PLACE: list[tuple[str, tuple[Any, ...]]] = [
    ("relu", ()), ("relu6", ()), ("leaky_relu", (0.1,)), ("elu", (2.0,)), ("celu", ()),
    ("selu", ()), ("silu", ()), ("mish", ()), ("hardtanh", (-1.0, 2.0)), ("hardsigmoid", ()),
    ("hardswish", ()), ("threshold", (0.5, 9.0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), IN_PLACE)
def test_in_place_functions_write_and_differentiate(name: str, args: tuple[Any, ...]) -> None:
    function = getattr(F, name)
    x = torch.tensor([-2.0, -0.3, 0.7, 4.0], requires_grad=True)
    y = x * 1
    view = y[1:]
    out = function(y, *args, inplace=True)
    want = function(x, *args)
    assert out is y and torch.equal(y, want) and torch.equal(view, want[1:])
    (a,) = torch.autograd.grad((y * y).sum(), x)
    (b,) = torch.autograd.grad((want * want).sum(), x)
    assert torch.equal(a, b)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        function(x, *args, inplace=True)
    with torch.no_grad():
        function(x, *args, inplace=True)
    assert torch.equal(x, want)


def test_dropout_in_place_and_in_eval() -> None:
    x = torch.ones(50)
    torch.manual_seed(0)
    assert nn.Dropout(0.5, inplace=True)(x) is x and set(x.tolist()) == {0.0, 2.0}
    m = nn.Dropout(0.5).eval()
    assert torch.equal(m(x), x)
    for kind in (nn.AlphaDropout, nn.FeatureAlphaDropout, nn.Dropout1d):
        y = torch.ones(2, 3, 4)
        assert torch.equal(kind(0.5).eval()(y), y) and (kind(1.0)(y) == 0).all()


def test_channels_are_dropped_whole() -> None:
    torch.manual_seed(0)
    out = nn.Dropout2d(0.5)(torch.ones(4, 8, 3, 3)).flatten(2)
    assert set(out.flatten().tolist()) == {0.0, 2.0}
    assert torch.equal(out.amin(2), out.amax(2))
    with pytest.raises(RuntimeError, match="Expected 2D or 3D input, but received a 4D"):
        nn.Dropout1d()(torch.ones(1, 1, 1, 1))
    with pytest.warns(UserWarning, match="deprecated"):
        nn.Dropout2d()(torch.ones(2, 3))
    with pytest.raises(ValueError, match="between 0 and 1, but got 2"):
        nn.Dropout(2)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    torch.manual_seed(0)
    x = torch.randn(20000)
    out = nn.AlphaDropout(0.3)(x)
    assert abs(out.mean().item()) < 0.03 and abs(out.var().item() - 1) < 0.05


def test_losses_and_older_flags() -> None:
    x, t = torch.tensor([1.0, 3.0]), torch.zeros(2)
    with pytest.warns(UserWarning, match="please use reduction='sum'"):
        loss = nn.MSELoss(size_average=False)
    assert loss(x, t).item() == 10.0 and loss.reduction == "sum"
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]))
    assert list(weighted.state_dict()) == ["weight"] and weighted.double().weight.dtype == \
        torch.float64  # fmt: skip
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        nn.L1Loss(reduction="x")(x, t)


def test_initialisation_errors() -> None:
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_normal_(torch.empty(3))
    with pytest.raises(ValueError, match="Mode x not supported"):
        nn.init.kaiming_uniform_(torch.empty(3, 2), mode="x")
    with pytest.raises(ValueError, match="Unsupported nonlinearity x"):
        nn.init.calculate_gain("x")
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        nn.init.kaiming_normal_(torch.empty(0, 2))
    with pytest.raises(RuntimeError, match="from=2 > to=1"):
        nn.init.uniform_(torch.empty(2), 2, 1)
    q = nn.init.orthogonal_(torch.empty(3, 5, dtype=torch.float64), 2.0)
    assert torch.allclose(q @ q.T, 4 * torch.eye(3, dtype=torch.float64))
