"""The interactive page, in a real browser where there is one."""

import html
import json
import re
import struct
import zlib

import pytest

from pullback.core.callsite import CallSite
from pullback.ops import elementwise
from pullback.viz import graph

HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>"


@pytest.fixture
def load(browser, tmp_path):
    def show(picture):
        browser.errors()
        browser.open(picture.save(tmp_path / "graph.html"))
        return browser

    return show


def texts(browser):
    return browser.run(
        "return [...document.querySelectorAll('#layer text')].map(t => t.textContent)"
    )


def units(browser):
    return browser.run("return document.querySelectorAll('#layer .node').length")


def colours(png):
    """How many different colours a PNG of 8-bit samples has."""
    width, _, _, kind = struct.unpack(">IIBB", png[16:26])
    channels = {2: 3, 6: 4}[kind]
    place, data = 8, b""
    while place < len(png):
        length, name = struct.unpack(">I4s", png[place : place + 8])
        if name == b"IDAT":
            data += png[place + 8 : place + 8 + length]
        place += 12 + length
    raw = zlib.decompress(data)
    row = width * channels + 1
    # Unfiltered or not, a blank picture has rows that are all alike after the first.
    return len({raw[i : i + row] for i in range(0, len(raw), row)})


# ------------------------------------------------------------------ without a browser
def model_of(page):
    found = re.search(r'<script id="model" type="application/json">(.*?)</script>', page, re.S)
    return json.loads(found[1])


def test_the_page_fetches_nothing(samples):
    page = graph(samples.perceptron()[0]).html()
    assert "default-src 'none'" in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_payload_lists_everything(samples):
    loss, names = samples.perceptron()
    picture = graph(loss, names=names)
    model = model_of(picture.html())
    assert len(model["nodes"]) == len(picture.nodes)
    assert len(model["edges"]) == sum(len(r.inputs) for r in picture.nodes)
    site = model["sites"][model["nodes"][-1]["site"]]
    assert site["source"] in [row.strip() for row in site["context"]]


def test_huge_graphs_stay_small_pages(samples):
    h = samples.parameter(2)
    for _ in range(30_000):
        h = elementwise.sin(h)
    page = graph(h).html()
    model = model_of(page)
    assert len(page) < 2_500_000
    assert any(g.get("sealed") for g in model["groups"])
    assert model["headline"].startswith("graph of output: 30,000 operations")


def test_the_notebook_frame_holds_the_whole_page(samples):
    picture = graph(samples.perceptron()[0])
    frame = picture._repr_html_()
    inner = re.fullmatch(r'<iframe [^>]*srcdoc="([^"]*)"></iframe>', frame)
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert html.unescape(inner[1]) == picture.html()


def hostile(samples):
    loss, names = samples.perceptron()
    picture = graph(loss, names={HOSTILE: names["w1"]})
    for record in picture.nodes:
        if record.kind == "op":
            record.site = CallSite(f"/tmp/{HOSTILE}.py", 3, HOSTILE, HOSTILE)
    return picture


def test_names_and_source_cannot_end_the_script(samples):
    page = hostile(samples).html()
    assert page.count("<script") == page.count("</script>") == 4
    assert "<img" not in page


# ------------------------------------------------------------------ with a browser
def test_small_graph(samples, load):
    loss, names = samples.perceptron()
    browser = load(graph(loss, names=names))
    assert browser.errors() == []
    assert units(browser) == 12
    assert browser.run("return document.querySelectorAll('#layer .edge').length") == 11
    shown = texts(browser)
    assert {"w1", "b1", "w2", "b2", "Tanh", "Mean", "loss", "(64, 16) float32"} <= set(shown)
    assert any(t.startswith("conftest.py:") for t in shown)
    assert colours(browser.screenshot()) > 50


def test_no_boxes_overlap(samples, load):
    browser = load(graph(samples.recurrent(200)[0]))
    browser.settle(".node.group")
    boxes = browser.run(
        "return [...document.querySelectorAll('#layer .node')].map(n => "
        "{ const r = n.querySelector(':scope > .box').getBoundingClientRect();"
        " return [r.left, r.top, r.right, r.bottom]; })"
    )
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a[2] <= b[0] + 1 or b[2] <= a[0] + 1 or a[3] <= b[1] + 1 or b[3] <= a[1] + 1


def test_click_shows_source_and_memory(samples, load):
    loss, names = samples.perceptron()
    browser = load(graph(loss, names=names))
    browser.click("[aria-label^='TanhBackward0']")
    sheet = browser.run("return document.getElementById('details').innerText")
    assert "TanhBackward0" in sheet and "4.0 KiB" in sheet and "conftest.py" in sheet
    assert "h = elementwise.tanh(" in browser.run(
        "return document.querySelector('.here').innerText"
    )
    tip = browser.run("return document.getElementById('tip').innerText")
    assert "elementwise.tanh" in tip
    browser.click("#memory-button")
    assert "kept for backward" in browser.run("return document.getElementById('memory').innerText")


def test_two_thousand_nodes_open_and_close(samples, load):
    y, names = samples.recurrent(700)
    browser = load(graph(y, names=names))
    assert units(browser) < 10
    assert "\u00d7 700" in texts(browser)
    browser.settle(".node.group")
    assert any(t.startswith("iterations ") for t in texts(browser))
    assert "iteration 1 \u00b7 conftest.py" in " ".join(texts(browser))
    browser.settle("#collapse")
    assert units(browser) < 10
    browser.settle("#expand")
    assert browser.run("return document.querySelectorAll('#layer .node.op').length") == 2101
    assert browser.errors() == []
    assert colours(browser.screenshot()) > 50


def test_irregular_two_thousand_nodes(samples, load):
    browser = load(graph(samples.irregular(1500)[0]))
    assert units(browser) < 60
    browser.settle(".node.group")
    assert browser.errors() == []
    assert colours(browser.screenshot()) > 50


def test_search_opens_groups(samples, load):
    y, names = samples.recurrent(300)
    browser = load(graph(y, names=names))
    browser.run(
        "const s = document.getElementById('search'); s.value = 'tanh conftest';"
        "s.dispatchEvent(new Event('input'))"
    )
    assert browser.run("return document.getElementById('found').textContent") == "300 found"
    browser.run(
        "document.getElementById('search').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))"
    )
    browser.until("document.querySelectorAll('#layer .node.op.hit').length > 0")
    assert browser.run("return document.getElementById('found').textContent") == "1 of 300"


def test_keyboard_and_colours(samples, load):
    loss, names = samples.perceptron()
    browser = load(graph(loss, names=names))
    browser.run(
        "const n = document.querySelector('.node.root'); n.focus();"
        "n.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp', bubbles: true}))"
    )
    label = browser.run("return document.activeElement.getAttribute('aria-label')")
    assert label.startswith("MeanBackward0")
    before = browser.run("return document.documentElement.dataset.theme")
    browser.click("#theme")
    assert browser.run("return document.documentElement.dataset.theme") != before


def test_every_node_can_be_reached_and_has_a_name(samples, load):
    browser = load(graph(samples.detached()[0]))
    assert browser.run(
        "return [...document.querySelectorAll('#layer .node')].every(n => n.tabIndex === 0 &&"
        " n.getAttribute('role') === 'button' && n.getAttribute('aria-label'))"
    )
    assert browser.run("return document.querySelectorAll('#layer .edge.cut').length") == 1


def test_hostile_text_stays_text(samples, load):
    browser = load(hostile(samples))
    browser.click("[aria-label^='TanhBackward0']")
    browser.click("[role=tab][data-tab=text]")
    assert browser.run("return document.title").startswith("graph of ")
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.errors() == []


def test_it_works_in_a_notebook_frame(samples, browser, tmp_path):
    document = tmp_path / "notebook.html"
    y, _ = samples.recurrent(200)
    document.write_text(
        "<!doctype html><body>"
        + graph(y)._repr_html_()
        + "<script>document.body.dataset.ready = 1</script>",
        encoding="utf-8",
    )
    browser.errors()
    browser.open(document)
    frame = browser.call("POST", "/element", {"using": "css selector", "value": "iframe"})
    browser.call("POST", "/frame", {"id": frame})
    browser.until("document.body.dataset.ready")
    assert "\u00d7 200" in texts(browser)
    browser.settle("#expand")  # large enough for a worker
    assert browser.run("return document.querySelectorAll('#layer .node.op').length") == 601
    browser.call("POST", "/frame", {"id": None})
    assert browser.errors() == []
