"""The interactive page: one HTML file with the layout library and the drawing code (layer 6)."""

from __future__ import annotations

import html
import json
import linecache
from importlib.resources import files
from typing import Any

from pullback.core.callsite import CallSite
from pullback.viz import text
from pullback.viz.collapse import ITERATION, Group
from pullback.viz.model import DETACHED, LEAF, OP, Model, Record

LISTED = 6000  # nodes written into a page; larger groups are written as one entry
LINES_AROUND = 3  # source lines shown before and after the one that matters
LONGEST_TEXT = 300_000  # characters of the text tree in a page
FRAME_HEIGHT = 620  # pixels in a notebook

# Nothing is fetched: the policy makes sure that not even a mistake could.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; "
    "worker-src blob:; child-src blob:"
)


def resource(name: str) -> str:
    """A file of `data/`, read when needed."""
    return (files("pullback.viz") / "data" / name).read_text(encoding="utf-8")


def page(model: Model, top: Group) -> str:
    """The whole page."""
    title = html.escape(text.headline(model))
    # In a script element only `</script` and `<!--` end the text, and JSON can do without `<`.
    data = json.dumps(payload(model, top), separators=(",", ":")).replace("<", "\\u003c")
    return TEMPLATE.format(
        policy=POLICY,
        title=title,
        css=resource("page.css"),
        dagre=resource("dagre.min.js"),
        scene=resource("scene.js"),
        script=resource("page.js"),
        data=data,
    )


def frame(document: str) -> str:
    """The page for a notebook: in a frame, so that its styles and names stay its own."""
    return (
        f'<iframe title="autograd graph" sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{FRAME_HEIGHT}px;border:1px solid #8884;border-radius:8px" '
        f'srcdoc="{html.escape(document)}"></iframe>'
    )


# ------------------------------------------------------------------ the data
def payload(model: Model, top: Group) -> dict[str, Any]:
    """What the drawing code reads, as JSON values."""
    return Payload(model, top).build()


# What is left out of an entry: most nodes have most of these, and a page should be small.
NODE: dict[str, Any] = {
    "kind": OP, "note": "", "freed": False, "bytes": 0, "owned": 0, "saved": [], "site": -1,
}  # fmt: skip
GROUP: dict[str, Any] = {
    "kind": ITERATION, "open": False, "sealed": False, "line": False, "leaves": 0, "bytes": 0,
}  # fmt: skip


def brief(entry: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """An entry without what is as by default."""
    return {k: v for k, v in entry.items() if k not in defaults or defaults[k] != v}


class Payload:
    """Numbers groups, sites and listed nodes, and writes them down."""

    def __init__(self, model: Model, top: Group) -> None:
        self.model = model
        self.top = top
        self.sites: list[dict[str, Any]] = []
        self.site_numbers: dict[CallSite, int] = {}
        self.groups: list[dict[str, Any]] = []
        self.ends: dict[int, int] = {}  # record -> listed node, or -1 - group that holds it
        self.listed: list[tuple[Record, int]] = []

    def build(self) -> dict[str, Any]:
        """Everything."""
        self.number_groups()
        tree = text.tree(self.model, self.top)
        if len(tree) > LONGEST_TEXT:
            tree = tree[:LONGEST_TEXT] + "\n... (print the graph for the rest)"
        return {
            "headline": text.headline(self.model),
            "nodes": [brief(self.node(record, group), NODE) for record, group in self.listed],
            "edges": self.edges(),
            "groups": [brief(group, GROUP) for group in self.groups],
            "defaults": {"node": NODE, "group": GROUP},
            "lines": self.lines(),
            "sites": self.sites,
            "kept": sum(r.owned_bytes for r in self.model.records),
            "leafBytes": self.model.leaf_bytes,
            "text": tree,
        }

    def number_groups(self) -> None:
        """Parents first, breadth first, so that what is seen first is listed first."""
        budget = LISTED
        queue: list[tuple[Group, int]] = [(self.top, -1)]
        for group, parent in queue:
            number = len(self.groups)
            about = text.summarize(self.model, group)
            records = [i for i in group.items if not isinstance(i, Group)]
            sealed = parent >= 0 and len(group.items) > budget
            self.groups.append(
                {
                    "parent": parent,
                    "kind": group.kind,
                    "title": about.title,
                    "recipe": about.recipe,
                    "operations": about.operations,
                    "leaves": about.leaves,
                    "bytes": about.owned_bytes,
                    "site": self.site(about.site),
                    "where": about.where,
                    "line": about.one_line,
                    "open": group.open,
                    "sealed": sealed,
                }
            )
            if sealed:
                for i in group.leaves():
                    self.ends[i] = -1 - number
                continue
            budget -= len(group.items)
            for i in records:
                self.ends[i] = len(self.listed)
                self.listed.append((self.model.records[i], number))
            queue += [(entry, number) for entry in group.items if isinstance(entry, Group)]

    def site(self, site: CallSite | None) -> int:
        """The number of a place in the source; -1 for none."""
        if site is None:
            return -1
        known = self.site_numbers.get(site)
        if known is None:
            known = self.site_numbers[site] = len(self.sites)
            first = max(1, site.line - LINES_AROUND)
            around = [
                linecache.getline(site.file, n).rstrip("\n")
                for n in range(first, site.line + LINES_AROUND + 1)
            ]
            self.sites.append(
                {
                    "file": site.file,
                    "short": text.place_text(site).rpartition(":")[0],
                    "base": text.place_text(site, full=False).rpartition(":")[0],
                    "line": site.line,
                    "fn": site.function,
                    "source": site.source or "",
                    "first": first,
                    "context": [text.clip_end(row, 400) for row in around] if any(around) else [],
                }
            )
        return known

    def node(self, record: Record, group: int) -> dict[str, Any]:
        title = record.title
        if record.kind == LEAF and not record.label:
            title = "leaf"
        if record.kind == DETACHED:
            title = record.note
        return {
            "id": record.id,
            "kind": record.kind,
            "title": title,
            "name": record.name,
            "shape": text.shape_text(record.shapes, record.dtypes),
            "site": self.site(record.site),
            "saved": [[name, str(shape), dtype] for name, shape, dtype in record.saved[:40]],
            "bytes": record.saved_bytes,
            "owned": record.owned_bytes,
            "freed": record.freed,
            "note": record.note,
            "group": group,
        }

    def edges(self) -> list[list[Any]]:
        """Source, target, input number, output number, input name; equal ones of groups once."""
        found: list[list[Any]] = []
        seen: set[tuple[int, int]] = set()
        for record in self.model.records:
            target = self.ends[record.id]
            for e in record.inputs:
                source = self.ends[e.source]
                if source < 0 or target < 0:
                    if source == target or (source, target) in seen:
                        continue
                    seen.add((source, target))
                found.append([source, target, e.number, e.output, e.name])
        return found

    def lines(self) -> list[dict[str, int]]:
        """Kept memory by source line, largest first."""
        totals: dict[tuple[str, int], list[Any]] = {}
        for r in self.model.records:
            if r.kind == OP and r.owned_bytes and r.site is not None:
                entry = totals.setdefault((r.site.file, r.site.line), [r.site, 0, 0])
                entry[1] += r.owned_bytes
                entry[2] += 1
        ranked = sorted(totals.values(), key=lambda entry: -entry[1])[:200]
        return [{"site": self.site(s), "bytes": b, "nodes": n} for s, b, n in ranked]


TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style><style id="theme-style"></style></head>
<body>
<header>
<h1 title="{title}">{title}</h1>
<input id="search" type="search" placeholder="Search (/)"
 aria-label="Search operations, shapes and source">
<span id="found" role="status" aria-live="polite"></span>
<button id="expand">Expand all</button><button id="collapse">Collapse all</button>
<button id="constants" aria-pressed="false">Constants</button>
<button id="memory-button">Memory</button>
<button id="farther" aria-label="Zoom out">&minus;</button>
<button id="closer" aria-label="Zoom in">+</button>
<button id="fit">Fit</button>
<button id="theme" aria-label="Dark or light colours">&#9680;</button>
<button id="save">Save SVG</button>
</header>
<main id="stage" aria-label="Graph: data flows down, from leaves to outputs">
<svg xmlns="http://www.w3.org/2000/svg" role="group" aria-label="Graph"><defs>
<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path class="head" d="M0,0.8L7.5,4L0,7.2Z"/></marker>
<marker id="tee" viewBox="0 0 6 10" refX="4" refY="5" markerWidth="6" markerHeight="10"
 orient="auto"><path class="teehead" d="M3,0V10"/></marker></defs><g id="layer"></g></svg>
<div id="busy" role="status" hidden>Laying out&hellip;</div>
<div id="legend" aria-hidden="true"><span><i></i>operation</span>
<span><i class="leaf"></i>leaf (requires grad)</span>
<span><i class="cut"></i>gradient stops</span><span><i class="group"></i>group, click to open</span>
<span><i class="memory"></i>kept for backward</span></div>
<div id="tip" role="tooltip" hidden></div>
</main>
<aside hidden aria-label="Details"><nav role="tablist">
<button role="tab" data-tab="details" aria-controls="details">Node</button>
<button role="tab" data-tab="memory" aria-controls="memory">Memory</button>
<button role="tab" data-tab="text" aria-controls="text">Text</button>
<button id="hide" aria-label="Hide details">&times;</button></nav>
<div id="details" class="sheet" role="tabpanel" aria-live="polite"></div>
<div id="memory" class="sheet" role="tabpanel" hidden></div>
<div id="text" class="sheet" role="tabpanel" hidden><pre id="tree"></pre></div>
</aside>
<noscript>This page draws with JavaScript; print the graph for a text tree.</noscript>
<script id="model" type="application/json">{data}</script>
<script id="dagre-code">{dagre}</script>
<script id="scene-code">{scene}</script>
<script>{script}</script>
</body></html>
"""
