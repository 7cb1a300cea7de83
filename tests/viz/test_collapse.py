"""Finding loops and dividing what is long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.viz import collapse as c
from pullback.viz import graph


def groups(picture, kind):
    return [g for g in picture._top.walk() if g.kind == kind]


def test_a_loop_becomes_one_group_with_a_count(samples):
    y, names = samples.recurrent(100)
    text = str(graph(y, names=names))
    assert "[\u00d7 100]  Mm, Add, Tanh  (300 operations, 1 leaf)" in text
    assert len(text.splitlines()) == 6


def test_what_iterations_share_stays_outside(samples):
    y, names = samples.recurrent(100)
    picture = graph(y, names=names)
    outside = {picture.nodes[i].label for i in picture._top.items if isinstance(i, int)}
    assert {"w", "b"} <= outside
    assert "start" not in outside


def test_a_leaf_of_one_iteration_goes_into_it(samples):
    from pullback.ops import elementwise

    h = samples.parameter(3)
    for _ in range(30):
        h = elementwise.mul(h, samples.parameter(3))
        h = elementwise.sin(h)
    picture = graph(h)
    assert all(picture.nodes[i].kind == "root" for i in picture._top.items if isinstance(i, int))


def test_loops_in_loops(samples):
    y, _ = samples.nested(10, 5)
    repeats = groups(graph(y), c.REPEAT)
    assert repeats[0].count == 10
    assert {g.count for g in repeats[1:]} == {5}


def test_small_graphs_are_shown_whole(samples):
    loss, names = samples.perceptron()
    assert all(g.open for g in graph(loss, names=names)._top.walk())


def test_collapse_false_has_no_groups(samples):
    y, _ = samples.recurrent(40)
    assert len(list(graph(y, collapse=False)._top.walk())) == 1


@pytest.mark.parametrize("count", [300, 1500])
def test_no_list_is_long(samples, count):
    picture = graph(samples.irregular(count)[0])
    for group in picture._top.walk():
        operations = [
            i for i in group.items if isinstance(i, c.Group) or picture.nodes[i].kind == "op"
        ]
        assert len(operations) <= c.LIMIT


def test_every_record_is_in_the_tree_once(samples):
    for sample in (samples.recurrent(77), samples.irregular(500), samples.nested(7, 9)):
        picture = graph(sample[0])
        assert sorted(picture._top.leaves()) == list(range(len(picture.nodes)))


@given(st.lists(st.integers(0, 3), max_size=200))
def test_folding_keeps_the_order(words):
    entries = c.repeats(words, range(len(words)))
    assert list(c.Group(c.TOP, entries).leaves()) == list(range(len(words)))


@given(st.integers(3, 40), st.integers(1, 6))
def test_a_pure_repetition_folds_into_one(count, period):
    words = list(range(period)) * count
    entries = c.repeats(words, range(len(words)))
    if (count - 1) * period >= 3:
        assert len(entries) == 1
        assert entries[0].count == count


def test_a_visible_picture_has_no_cycles(samples):
    """Closed groups are intervals of the running order, so none can need what needs it."""
    picture = graph(samples.irregular(400)[0])
    stands = c.shown(picture._top)
    after: dict[int, set[int]] = {}
    key = {id(g): -1 - n for n, g in enumerate(picture._top.walk())}
    number = lambda unit: unit if isinstance(unit, int) else key[id(unit)]  # noqa: E731
    for record in picture.nodes:
        for edge in record.inputs:
            a, b = number(stands[edge.source]), number(stands[record.id])
            if a != b:
                after.setdefault(a, set()).add(b)
    done: set[int] = set()
    active: set[int] = set()

    def visit(unit):
        assert unit not in active
        if unit in done:
            return
        active.add(unit)
        for following in after.get(unit, ()):
            visit(following)
        active.discard(unit)
        done.add(unit)

    for unit in list(after):
        visit(unit)
