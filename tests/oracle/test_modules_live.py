"""Modules and optimisers beside a live PyTorch: text, first values, state, training, transforms."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
BOTH = (torch, pullback)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """PyTorch's threads wait for each other longer than such small tensors take."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


LAYERS = """
Linear(3, 4)|Linear(3, 4, bias=False)|Linear(2, 0)|Bilinear(2, 3, 4)|Bilinear(2, 3, 4, bias=False)
Identity(3, a=4)|Embedding(5, 3)|Embedding(5, 3, padding_idx=-1)|Flatten()|Flatten(0, 1)
Unflatten(1, (2, 3))|Dropout()|Dropout(0.2, True)|Dropout1d(0.3)|Dropout2d()|Dropout3d()
AlphaDropout(0.1)|FeatureAlphaDropout()|LayerNorm(3)|LayerNorm((2, 3), bias=False)
LayerNorm([2, 3], elementwise_affine=False)|RMSNorm(3)|RMSNorm((2, 3), 1e-3, False)
GroupNorm(2, 4)|GroupNorm(2, 4, affine=False)|BatchNorm1d(3)|BatchNorm1d(3, momentum=None)
BatchNorm2d(3, affine=False)|BatchNorm3d(3, track_running_stats=False)|BatchNorm1d(3, bias=False)
InstanceNorm1d(3)|InstanceNorm2d(3, affine=True, track_running_stats=True)|InstanceNorm3d(2)
ReLU()|ReLU(True)|ReLU6()|LeakyReLU(0.2)|ELU(2.0)|CELU(inplace=True)|SELU()|SiLU()|Mish()|GELU()
GELU("tanh")|GLU()|Hardshrink()|Softshrink(0.2)|Hardsigmoid()|Hardswish()|Hardtanh(-2, 2)|Sigmoid()
LogSigmoid()|Tanh()|Tanhshrink()|Softsign()|Softplus(2, 10)|Softmax(1)|Softmin(-1)|LogSoftmax(0)
Softmax2d()|Threshold(0.1, 2)|PReLU()|PReLU(3)|L1Loss()|MSELoss(reduction="sum")|SmoothL1Loss()
HuberLoss(delta=2)|KLDivLoss()|PoissonNLLLoss()|GaussianNLLLoss()|HingeEmbeddingLoss()
SoftMarginLoss()|CosineEmbeddingLoss()|MarginRankingLoss()|TripletMarginLoss()|NLLLoss()
CrossEntropyLoss(label_smoothing=0.1)|BCELoss()|BCEWithLogitsLoss()|CosineSimilarity()
PairwiseDistance()|Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()), nn.BatchNorm1d(3))
ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.ReLU())])
ModuleDict({"b": nn.Linear(2, 1), "a": nn.Tanh()})|ModuleList()|ModuleDict()|Sequential()
ParameterList([T.ones(2), nn.Parameter(T.zeros(2, 3)), 3])
ParameterDict({"b": T.ones(2), "a": nn.Parameter(T.zeros(()))})
"""


def one_by_one(text: str) -> list[str]:
    """The expressions of a text: several lines, with bars between them."""
    return [e for line in text.strip().split("\n") for e in line.split("|")]


def built(T: Any, expression: str) -> Any:
    T.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(f"nn.{expression}", {"nn": T.nn, "T": T})


def array(x: Any) -> Any:
    return np.array(x.detach().numpy())


def same(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    a, b = array(a), array(b)
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("expression", one_by_one(LAYERS))
def test_text_first_values_and_state(expression: str) -> None:
    want, got = built(torch, expression), built(pullback, expression)
    assert repr(got) == repr(want)
    a, b = want.state_dict(), got.state_dict()
    assert list(b) == list(a)
    assert dict(b._metadata) == dict(a._metadata)
    for key in a:
        assert np.array_equal(array(a[key]), array(b[key])), key
        assert array(a[key]).dtype == array(b[key]).dtype
    assert [n for n, _ in got.named_parameters()] == [n for n, _ in want.named_parameters()]
    assert [n for n, _ in got.named_modules()] == [n for n, _ in want.named_modules()]
    shown = [sorted(k for k in vars(m) if k[0] != "_") for m in (want, got)]
    assert shown[0] == shown[1]


RNG = np.random.default_rng(2)
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("Linear(3, 4)", (RNG.normal(size=(2, 5, 3)),)),
    ("Bilinear(2, 3, 4)", (RNG.normal(size=(5, 2)), RNG.normal(size=(5, 3)))),
    ("Embedding(5, 3, padding_idx=1)", (np.array([[0, 1], [4, 0]]),)),
    ("Flatten()", (RNG.normal(size=(2, 3, 4)),)),
    ("Unflatten(1, (2, 3))", (RNG.normal(size=(2, 6)),)),
    ("LayerNorm(3)", (RNG.normal(size=(2, 3)),)),
    ("RMSNorm(3)", (RNG.normal(size=(2, 3)),)),
    ("GroupNorm(2, 4)", (RNG.normal(size=(3, 4, 5)),)),
    ("BatchNorm1d(3)", (RNG.normal(size=(4, 3)),)),
    ("BatchNorm1d(3, momentum=None)", (RNG.normal(size=(4, 3, 2)),)),
    ("BatchNorm1d(3).eval()", (RNG.normal(size=(4, 3, 2)),)),
    ("BatchNorm2d(3)", (RNG.normal(size=(4, 3, 2, 2)),)),
    ("BatchNorm3d(3, track_running_stats=False).eval()", (RNG.normal(size=(4, 3, 2, 2, 2)),)),
    ("InstanceNorm1d(3)", (RNG.normal(size=(3, 5)),)),
    ("InstanceNorm2d(3, affine=True, track_running_stats=True)", (RNG.normal(size=(2, 3, 2, 2)),)),
    ("PReLU(3)", (RNG.normal(size=(2, 3)),)),
    ("Softmax2d()", (RNG.normal(size=(2, 3, 2, 2)),)),
    ("GLU()", (RNG.normal(size=(2, 4)),)),
    ("Hardtanh(-2, 2)", (RNG.normal(size=(2, 4)),)),
    ("Threshold(0.1, 20.0)", (RNG.normal(size=(2, 4)),)),
    ("GELU()", (RNG.normal(size=(2, 4)),)),
    ("MSELoss()", (RNG.normal(size=(2, 4)), RNG.normal(size=(2, 4)))),
    ("CrossEntropyLoss(weight=T.tensor([1.0, 2.0, 3.0]))",
     (RNG.normal(size=(4, 3)), np.array([0, 1, 2, 1]))),
    ("NLLLoss(ignore_index=1)", (RNG.normal(size=(4, 3)), np.array([0, 1, 2, 1]))),
    ("TripletMarginLoss()", tuple(RNG.normal(size=(4, 3)) for _ in range(3))),
    ("GaussianNLLLoss(full=True)", tuple(RNG.random(size=(4, 3)) for _ in range(3))),
    ("BCEWithLogitsLoss(pos_weight=T.tensor([2.0]))",
     (RNG.normal(size=(4, 1)), RNG.random(size=(4, 1)))),
    ("PairwiseDistance(1, keepdim=True)", tuple(RNG.normal(size=(4, 3)) for _ in range(2))),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "given"), CALLS, ids=[e for e, _ in CALLS])
def test_calls_and_gradients(expression: str, given: tuple[Any, ...]) -> None:
    found = []
    for T in BOTH:
        module = built(T, expression).double()
        inputs = [T.tensor(a) for a in given]
        inputs[0].requires_grad_(inputs[0].dtype.is_floating_point)
        out = module(*inputs)
        out.square().sum().backward()
        grads = [p.grad for p in module.parameters()]
        grads += [inputs[0].grad] if inputs[0].requires_grad else []
        found.append([out, *grads, *module.buffers()])
    for a, b in zip(*found, strict=True):
        same(a, b, 1e-10)


@pytest.mark.parametrize("name", [
    "ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "SiLU", "Mish", "Hardtanh", "Hardsigmoid",
    "Hardswish", "Dropout", "Dropout1d",
])  # fmt: skip
def test_in_place_layers_write_their_input(name: str) -> None:
    found = []
    for T in BOTH:
        x = T.tensor(RNG.normal(size=0).tolist() or [[-2.0, 0.5, 4.0]], requires_grad=True)
        T.manual_seed(1)
        y = x * 1
        out = getattr(T.nn, name)(inplace=True)(y)
        assert (out is y) or name == "Dropout1d"
        (y * y).sum().backward()
        found.append((y, x.grad))
    for a, b in zip(*found, strict=True):
        same(a, b, 1e-6)


@pytest.mark.parametrize("name", [
    "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout",
])  # fmt: skip
def test_what_is_dropped(name: str) -> None:
    found = []
    for T in BOTH:
        module = getattr(T.nn, name)(0.3)
        shape = {"Dropout1d": (4, 3, 5), "Dropout2d": (4, 3, 5, 2)}.get(name, (4, 3, 2, 2, 5))
        T.manual_seed(5)
        x = T.linspace(-1, 1, int(np.prod(shape))).reshape(shape).requires_grad_()
        out = module(x)
        out.sum().backward()
        found.append((out, x.grad, module.eval()(x)))
    for a, b in zip(*found, strict=True):
        same(a, b, 1e-6)


INITS = """
uniform_(t, -2, 3)|normal_(t, 1, 2)|constant_(t, 3)|ones_(t)|zeros_(t)|xavier_uniform_(t, 2.0)
xavier_normal_(t)|kaiming_uniform_(t, 0.3)|kaiming_uniform_(t, mode="fan_out", nonlinearity="relu")
kaiming_normal_(t, nonlinearity="tanh")|trunc_normal_(t)|trunc_normal_(t, 0, 1, -0.5, 0.5)
trunc_normal_(t, 0, 1, 3, 4)|trunc_normal_(t, 0.01, 0.02, 0, 0.001)|eye_(t)|sparse_(t, 0.3)
"""


@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
@pytest.mark.parametrize("expression", one_by_one(INITS))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_init_bit_for_bit(expression: str, dtype: str) -> None:
    found = []
    for T in BOTH:
        T.manual_seed(7)
        t = T.nn.Parameter(T.empty(6, 5, dtype=getattr(T, dtype)))
        out = eval(f"init.{expression}", {"init": T.nn.init, "t": t})
        assert out is t
        found.append(array(t))
    assert np.array_equal(*found)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (3, 2, 2)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    found = []
    for T in BOTH:
        T.manual_seed(7)
        found.append(T.nn.init.orthogonal_(T.empty(*shape, dtype=T.float64), 2.0))
    same(*found)


# ---------------------------------------------------------------- training
def network(T: Any) -> Any:
    T.manual_seed(0)
    nn = T.nn
    return nn.Sequential(
        nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)
    ).double()


def trained(T: Any, optimiser: Callable[[Any, Any], Any], steps: int) -> list[Any]:
    model = network(T)
    opt = optimiser(T, model)
    x = T.tensor(DATA[:, :3])
    y = T.tensor(DATA[:, 3:])
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        losses.append(loss)
    found = [*losses, *model.parameters()]
    for state in opt.state_dict()["state"].values():
        found += [v for v in state.values() if v is not None]
    return found


DATA = np.random.default_rng(0).normal(size=(16, 5))
OPTIONS = """
SGD(p, 0.05)|SGD(p, 0.05, 0.9)|SGD(p, 0.05, 0.9, 0.2)|SGD(p, 0.05, 0.9, nesterov=True)
SGD(p, 0.05, 0.5, weight_decay=0.01)|SGD(p, 0.001, 0.5, maximize=True)|Adam(p, 0.01)
Adam(p, 0.01, (0.8, 0.99), 1e-6, 0.01)|Adam(p, amsgrad=True)|Adam(p, 1e-4, maximize=True)
Adam(p, amsgrad=True, weight_decay=0.1, decoupled_weight_decay=True)|AdamW(p, 0.01)
AdamW(p, 0.01, weight_decay=0.1, amsgrad=True)|AdamW(p, 1e-4, maximize=True)
Adam(p, lr=T.tensor(0.01, dtype=T.float64))
"""


@pytest.mark.parametrize("expression", one_by_one(OPTIONS))
def test_training_an_mlp(expression: str) -> None:
    """A hundred steps give the same losses, parameters and remembered values."""

    def optimiser(T: Any, model: Any) -> Any:
        return eval(f"optim.{expression}", {"optim": T.optim, "p": model.parameters(), "T": T})

    for a, b in zip(trained(torch, optimiser, 100), trained(pullback, optimiser, 100), strict=True):
        same(a, b, 1e-12 if a.dtype == torch.float64 else 0)


def test_groups_with_options_of_their_own() -> None:
    def optimiser(T: Any, model: Any) -> Any:
        opt = T.optim.SGD([{"params": model[0].parameters(), "lr": 0.1}], lr=0.01, momentum=0.9)
        opt.add_param_group({"params": model[5].parameters(), "weight_decay": 0.1})
        return opt

    for a, b in zip(trained(torch, optimiser, 20), trained(pullback, optimiser, 20), strict=True):
        same(a, b)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_optimiser_text_and_state(name: str) -> None:
    found = []
    for T in BOTH:
        p = T.nn.Parameter(T.tensor([1.0, -2.0]))
        opt = getattr(T.optim, name)([p], lr=0.1)
        p.grad = T.tensor([0.5, 1.0])
        opt.step()
        found.append((repr(opt), str(opt.state_dict()), str(p)))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_complex_parameters(name: str) -> None:
    found = []
    for T in BOTH:
        p = T.nn.Parameter(T.tensor([1.0 + 2j, -2.0 - 1j]))
        opt = getattr(T.optim, name)([p], lr=0.1, weight_decay=0.1)
        for _ in range(5):
            p.grad = p.detach() * (1 + 1j)
            opt.step()
        found.append(p)
    same(*found, 1e-5)


# ---------------------------------------------------------------- transforms
def per_example(T: Any) -> dict[str, Any]:
    model = network(T)
    parameters = {k: v.detach() for k, v in model.named_parameters()}

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        out = T.func.functional_call(model, parameters, (x.unsqueeze(0),))
        return ((out.squeeze(0) - y) ** 2).sum()

    each = T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0))
    return each(parameters, T.tensor(DATA[:, :3]), T.tensor(DATA[:, 3:]))


def test_gradients_of_each_example() -> None:
    want, got = per_example(torch), per_example(pullback)
    assert list(want) == list(got)
    for key in want:
        same(want[key], got[key])


def ensemble(T: Any) -> tuple[Any, ...]:
    models = []
    for seed in range(5):
        T.manual_seed(seed)
        models.append(T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 2)).double())
    parameters, buffers = T.func.stack_module_state(models)
    base = models[0]

    def call(parameters: Any, buffers: Any, x: Any) -> Any:
        return T.func.functional_call(base, (parameters, buffers), (x,))

    x = T.tensor(DATA[:, :3])
    out = T.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    out.square().sum().backward()
    alone = T.stack([m(x) for m in models])
    return out, alone, *[p.grad for p in parameters.values()]


def test_an_ensemble_of_five() -> None:
    want, got = ensemble(torch), ensemble(pullback)
    for a, b in zip(want, got, strict=True):
        same(a, b)
    same(got[0], got[1])


def hooked(T: Any) -> list[Any]:
    """What every kind of hook sees, in order."""
    log: list[Any] = []

    def shown(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(shown(v) for v in value)
        return [round(v, 9) for v in value.flatten().tolist()] if hasattr(value, "shape") else value

    class Pair(T.nn.Module):  # type: ignore[misc]
        def forward(self, a: Any, b: Any, scale: float = 1.0) -> Any:
            return a * b * scale, a + b, 7

    module = Pair()

    def note(name: str) -> Callable[..., Any]:
        return lambda m, *values: log.append((name, *[shown(v) for v in values]))

    module.register_forward_pre_hook(note("pre"))
    module.register_forward_pre_hook(lambda m, a, k: (a, {"scale": 3.0}), with_kwargs=True)
    module.register_forward_pre_hook(note("first"), prepend=True)
    module.register_forward_hook(note("after"))
    module.register_forward_hook(note("after, with kwargs"), with_kwargs=True)
    module.register_full_backward_pre_hook(lambda m, g: (g[0] * 2, *g[1:]))
    module.register_full_backward_pre_hook(note("backward pre"))
    module.register_full_backward_hook(note("backward"))
    module.register_full_backward_hook(lambda m, g, o: (g[0] * 10, *g[1:]))
    for needs in (True, False):
        a = T.tensor([1.0, 2.0], requires_grad=True)
        b = T.tensor([3.0, 4.0], requires_grad=needs)
        first, second, number = module(a, b)
        log.append(number)
        first.sum().backward(retain_graph=True)
        (first.sum() + second.sum()).backward()
        log.append((shown(a.grad), None if b.grad is None else shown(b.grad)))
    return log


def test_hooks_see_the_same() -> None:
    assert hooked(pullback) == hooked(torch)


ERRORS = """
m.register_parameter("a.b", None)|m.register_parameter("", None)|m.register_parameter("eval", None)
m.register_parameter(3, None)|m.register_parameter("x", T.zeros(2))|m.register_buffer("x", 3)
m.add_module("x", 3)|m.add_module("a.b", None)|setattr(m[0], "weight", 3)|setattr(m, "0", 3)
setattr(m[1], "running_mean", 3)|m.nothing|delattr(m, "nothing")|m.get_submodule("0.weight")
m.get_submodule("7")|m.get_parameter("0.x")|m.get_parameter("0")|m.get_buffer("0.weight")
m.load_state_dict(3)|m.load_state_dict({})|m.load_state_dict({"0.weight": T.zeros(2, 2), "z": 1})
m.train(3)|m.to(T.int64)|T.nn.Module()(1)|T.nn.ModuleList([3])|T.nn.Sequential(3)|m[9]|m["a"]
T.nn.ModuleDict()["a"]|T.nn.ParameterList([])[0]|T.nn.ParameterDict()(1)|T.nn.Dropout(2)
T.nn.GroupNorm(2, 3)|T.nn.BatchNorm1d(3)(T.ones(2))|T.nn.BatchNorm1d(3)(T.ones(1, 3))
T.nn.BatchNorm1d(3)(T.ones(2, 4))|T.nn.Linear(2, 3)(T.ones(3))|T.nn.Embedding(2, 3, 9)
T.nn.Linear(2, 3)(T.ones(2, dtype=T.float64))|m.register_forward_pre_hook(lambda m, a: 1)(2)
T.optim.SGD([], 0.1)|T.optim.SGD([3], 0.1)|T.optim.SGD(m[0].weight, 0.1)
T.optim.SGD([T.ones(2)], -1)
T.optim.SGD([m[0].weight * 2], 0.1)|T.optim.SGD(m.parameters(), 0.1, nesterov=True)
T.optim.Adam(m.parameters(), betas=(1.0, 0.9))|T.optim.Adam(m.parameters(), eps=-1)
T.optim.SGD([{"params": [m[0].weight]}, {"params": [m[0].weight]}], 0.1)
T.optim.SGD([{"params": {m[0].weight}}], 0.1)|T.optim.SGD(m.parameters()).load_state_dict({})
T.func.functional_call(m, {"7.x": T.ones(1)}, T.ones(1))|T.func.functional_call(m, 3)
T.func.functional_call(m, {"0.weight": 3}, T.ones(1))|T.func.stack_module_state([])
T.func.functional_call(m, {"x": T.ones(1)}, T.ones(1, 2), strict=True)
T.func.functional_call(m, ({"0.bias": T.ones(3)}, {"0.bias": T.ones(3)}), T.ones(1, 2))
T.func.stack_module_state([m[0], m[1]])|T.func.functionalize(abs, remove="x")
T.nn.utils.vector_to_parameters([1], m.parameters())|T.nn.init.kaiming_normal_(T.ones(2))
T.nn.init.kaiming_normal_(T.ones(2, 2), mode="x")|T.nn.init.calculate_gain("x")
T.nn.utils.vector_to_parameters(T.ones(3), m.parameters())|T.nn.utils.parameters_to_vector([])
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", one_by_one(ERRORS))
def test_errors(expression: str) -> None:
    """The same builtin exception, whose words begin the same."""
    found = []
    for T in BOTH:
        m = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.BatchNorm1d(3))
        with pytest.raises(Exception) as error:
            eval(expression, {"T": T, "m": m})
        kind = next(k for k in error.type.__mro__ if k.__module__ == "builtins")
        text = str(error.value.args[0]) if error.value.args else ""
        found.append((kind, text.split("\n  at ")[0]))
    (want, words), (got, text) = found
    assert got is want
    assert words[:60] == text[:60] or words in text


def test_training_state_moves_between_the_libraries() -> None:
    """A state dict of one library, as arrays, loads into the other and gives the same outputs."""
    theirs, ours = network(torch), network(pullback)
    with torch.no_grad():
        for p in theirs.parameters():
            p.mul_(2)
    ours.load_state_dict({k: pullback.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    same(theirs(torch.tensor(DATA[:, :3])), ours(pullback.tensor(DATA[:, :3])))
