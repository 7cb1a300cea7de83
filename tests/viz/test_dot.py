"""DOT source."""

from pullback.ops import elementwise
from pullback.viz import graph
from pullback.viz.dot import quote


def test_nodes_edges_and_styles(samples):
    y, names = samples.detached()
    dot = graph(y, names=names).dot()
    assert dot.startswith("digraph autograd {") and dot.endswith("}\n")
    assert "n0 -> n1;" in dot
    assert 'n2 -> n3 [style=dashed color="#c2660a" arrowhead=tee];' in dot
    assert 'label="x\\n(3,) float32"' in dot


def test_groups_are_one_node_when_closed_and_clusters_when_open(samples):
    closed = graph(samples.recurrent(100)[0]).dot()
    assert "\u00d7 100" in closed and "subgraph" not in closed and "box3d" in closed
    assert "subgraph cluster_" in graph(samples.recurrent(6)[0]).dot()


def test_names_are_quoted(samples):
    x = samples.parameter(3)
    y = elementwise.exp(x)
    dot = graph(y, names={'a"; b [label="\\': x}).dot()
    assert r'label="a\"; b [label=\"\\\n(3,) float32"' in dot


def test_quote():
    assert quote('say "hi"\nC:\\') == r'"say \"hi\"\nC:\\"'
