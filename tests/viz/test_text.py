"""The text tree."""

import pytest

from pullback.ops import elementwise
from pullback.viz import graph
from pullback.viz.text import bytes_text, clip


def test_tree(samples):
    loss, names = samples.perceptron()
    lines = str(graph(loss, names=names)).splitlines()
    assert lines[0] == "graph of loss: 7 operations, 4 leaves; keeps 15.1 KiB for backward"
    assert lines[1] == "loss  () float32"
    assert lines[2].startswith("MeanBackward0  () float32  ")
    assert "conftest.py:" in lines[2]
    assert lines[5].startswith("├─ MmBackward0  (64, 10) float32  keeps 4.6 KiB (a, b)")
    assert lines[-1].startswith("└─ leaf b2  (10,) float32")


def test_a_shared_node_is_listed_once(samples):
    x = samples.parameter(3)
    h = elementwise.exp(x)
    text = str(graph(elementwise.mul(h, elementwise.sin(h)), names={"x": x}))
    assert text.count("leaf x") == 1
    assert "ExpBackward0" in text and "see [#1] ExpBackward0" in text


def test_deep_branches_continue_at_the_margin(samples):
    h = samples.parameter(3)
    for _ in range(80):
        h = elementwise.add(elementwise.mul(h, samples.parameter(3)), samples.parameter(3))
    text = str(graph(h, collapse=False))
    assert "continued below" in text
    assert max(len(line) - len(line.lstrip(" │├└─")) for line in text.splitlines()) < 90
    assert sum(line.lstrip(" │├└─").startswith("MulBackward0") for line in text.splitlines()) == 80


def test_detached_line_names_reason_and_place(samples):
    y, names = samples.detached()
    assert "x detached  (3,) float32  " in str(graph(y, names=names))
    assert 'note_origin(stop, "detach", 1)' in str(graph(y, names=names))


def test_repr_is_one_line(samples):
    y, _ = samples.detached()
    assert repr(graph(y)) == (
        "<graph of output: 2 operations, 1 leaf, 1 detached; keeps 24 B for backward>"
    )


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3.0 TiB")],
)
def test_bytes(count, text):
    assert bytes_text(count) == text


def test_clip_is_one_line():
    assert clip("a\n  b", 10) == "a b"
    assert clip("x" * 20, 10) == "xxxxxxx..."
