"""SVG without a browser."""

import builtins
import importlib
import xml.etree.ElementTree as ET

import pytest

from pullback.errors import ArgumentValueError, UnsupportedError
from pullback.viz import graph

SVG = "{http://www.w3.org/2000/svg}"


def test_svg_is_well_formed_and_complete(samples):
    pytest.importorskip("py_mini_racer")
    loss, names = samples.perceptron()
    root = ET.fromstring(graph(loss, names=names).svg())
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert {"w1", "b1", "Tanh", "Mean", "loss"} <= set(words)
    assert len([g for g in root.iter(f"{SVG}g") if "node" in g.get("class", "").split()]) == 12


def test_svg_of_groups_and_open_loops(samples):
    pytest.importorskip("py_mini_racer")
    closed = graph(samples.recurrent(700)[0]).svg()
    assert "\u00d7 700" in closed
    opened = ET.fromstring(graph(samples.recurrent(6)[0]).svg())
    assert [g for g in opened.iter(f"{SVG}g") if "cluster" in g.get("class", "").split()]


def test_svg_escapes(samples):
    pytest.importorskip("py_mini_racer")
    loss, names = samples.perceptron()
    name = "</text><script>alert(1)</script>&\u2028"
    root = ET.fromstring(graph(loss, names={name: names["w1"]}).svg())
    assert not list(root.iter(f"{SVG}script"))


def test_without_the_engine_the_error_names_the_extra(samples, monkeypatch):
    def missing(name, *rest):
        if name == "py_mini_racer":
            raise ImportError(name)
        return builtins.__import__(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UnsupportedError, match=r"pip install pullback\[viz\]"):
        graph(samples.perceptron()[0]).svg()


def test_save_goes_by_the_ending(samples, tmp_path):
    picture = graph(samples.perceptron()[0])
    assert picture.save(tmp_path / "g.txt").read_text(encoding="utf-8") == str(picture)
    assert picture.save(str(tmp_path / "g.dot")).read_text(encoding="utf-8") == picture.dot()
    assert picture.save(tmp_path / "g.HTML").read_text(encoding="utf-8") == picture.html()
    with pytest.raises(ArgumentValueError, match=r"needs a path that ends in .*got '.*g\.png'"):
        picture.save(tmp_path / "g.png")
