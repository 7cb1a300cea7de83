"""Reading the tape into records."""

import gc
import weakref

import numpy as np
import pytest

from pullback.eager.tensor import wrap
from pullback.errors import ArgumentTypeError
from pullback.ops import elementwise, linalg
from pullback.viz import graph


def kinds(picture):
    return [r.kind for r in picture.nodes]


def test_records_name_op_shape_dtype_site_and_memory(samples):
    loss, names = samples.perceptron()
    picture = graph(loss, names=names)
    tanh = next(r for r in picture.nodes if r.name == "TanhBackward0")
    assert tanh.kind == "op"
    assert tanh.title == "Tanh"
    assert tanh.shapes == ((64, 16),)
    assert tanh.dtypes == ("float32",)
    assert tanh.site.file == __file__.replace("test_model", "conftest")
    assert tanh.site.source == "h = elementwise.tanh(elementwise.add(linalg.matmul(x, w1), b1))"
    assert tanh.saved == (("out", (64, 16), "float32"),)
    assert tanh.saved_bytes == tanh.owned_bytes == 64 * 16 * 4
    assert not tanh.freed


def test_edges_point_at_earlier_records(samples):
    for sample in (samples.perceptron(), samples.irregular(200), samples.detached()):
        picture = graph(sample[0])
        for place, record in enumerate(picture.nodes):
            assert record.id == place
            assert all(e.source < place for e in record.inputs)


def test_leaves_are_named_and_constants_marked(samples):
    loss, names = samples.perceptron()
    picture = graph(loss, names=names)
    leaves = {r.label for r in picture.nodes if r.kind == "leaf"}
    assert leaves == {"w1", "b1", "w2", "b2"}
    first = next(r for r in picture.nodes if r.name == "MmBackward0")
    constant, leaf = (picture.nodes[e.source] for e in first.inputs)
    assert (constant.kind, constant.shapes) == ("constant", ((64, 32),))
    assert leaf.label == "w1"
    assert [e.name for e in first.inputs] == ["a", "b"]


def test_names_may_be_pairs_and_may_name_values_in_between(samples):
    x = samples.parameter(3)
    middle = elementwise.exp(x)
    y = elementwise.sin(middle)
    picture = graph(y, names=[("input", x), ("middle", middle), ("y", y)])
    assert [r.label for r in picture.nodes] == ["input", "middle", "", "y"]


def test_detached_input_says_why_and_where(samples):
    y, names = samples.detached()
    cut = next(r for r in graph(y, names=names).nodes if r.kind == "detached")
    assert cut.note == "detached"
    assert cut.site.source == 'note_origin(stop, "detach", 1)'


def test_shared_memory_is_counted_once(samples):
    x = samples.parameter(1000)
    y = elementwise.mul(elementwise.mul(x, x), elementwise.mul(x, x))
    statistics = graph(y).statistics()
    # x (once, though kept by two products) and the two products.
    assert statistics["saved_bytes"] == 3 * 4000
    assert statistics["saved_bytes_of_leaves"] == 4000
    assert sum(statistics["saved_bytes_by_line"].values()) == 3 * 4000


def test_statistics(samples):
    loss, names = samples.perceptron()
    statistics = graph(loss, names=names).statistics()
    assert statistics["operations"] == 7
    assert statistics["leaves"] == 4
    assert statistics["nodes"] == 11
    assert statistics["constants"] == 1
    assert statistics["detached"] == statistics["freed"] == 0
    assert statistics["operations_by_name"]["MmBackward0"] == 2
    assert all(":" in line for line in statistics["saved_bytes_by_line"])


def test_several_outputs_share_their_history(samples):
    x = samples.parameter(3)
    h = elementwise.exp(x)
    picture = graph(elementwise.sin(h), elementwise.cos(h))
    assert kinds(picture) == ["leaf", "op", "op", "op", "root", "root"]
    assert [r.name for r in picture.nodes[-2:]] == ["output 0", "output 1"]


def test_a_leaf_and_a_tensor_without_grad(samples):
    assert kinds(graph(samples.parameter(3))) == ["leaf", "root"]
    plain = graph(wrap(np.ones(3)))
    assert kinds(plain) == ["root"]
    assert plain.nodes[0].note == "does not require grad"


def test_freed_nodes_are_marked(samples):
    y = elementwise.exp(samples.parameter(3))
    y.grad_fn.saved = None
    picture = graph(y)
    assert picture.statistics()["freed"] == 1
    assert "freed" in str(picture)


def test_a_picture_keeps_nothing_alive(samples):
    y = elementwise.exp(samples.parameter(3))
    node = weakref.ref(y.grad_fn)
    picture = graph(y)
    del y
    gc.collect()
    assert node() is None
    assert "ExpBackward0" in str(picture)


def test_a_long_chain_does_not_recurse(samples):
    y = samples.parameter(2)
    for _ in range(20_000):
        y = elementwise.sin(y)
    picture = graph(y)
    assert picture.statistics()["operations"] == 20_000
    assert str(picture).count("\n") == 2
    assert len(str(graph(y, collapse=False)).splitlines()) == 20_003


@pytest.mark.parametrize("wrong", [(), (3.0,), (np.ones(2),)])
def test_needs_tensors(wrong):
    with pytest.raises(ArgumentTypeError, match="graph: needs one or more tensors, got"):
        graph(*wrong)


def test_variable_number_of_inputs(samples):
    y = linalg.matmul(samples.parameter(2, 2), samples.parameter(2, 2))
    assert [e.name for e in graph(y).nodes[2].inputs] == ["a", "b"]
