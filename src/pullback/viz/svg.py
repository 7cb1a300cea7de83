"""SVG without a browser: the page's own drawing code in an embedded engine (layer 6).

The engine is V8 from the package `mini-racer`, the optional extra `viz`.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

from pullback.core.callsite import with_site
from pullback.errors import UnsupportedError
from pullback.viz.collapse import Group
from pullback.viz.model import Model
from pullback.viz.page import payload, resource

# Browsers have this function and the bare engine does not; dagre copies plain records with it.
CLONE = (
    "globalThis.structuredClone ??= (value) => value === null || typeof value !== 'object' ? value"
    " : Array.isArray(value) ? value.map(structuredClone) : Object.fromEntries("
    "Object.entries(value).map(([key, entry]) => [key, structuredClone(entry)])); 0"
)
DRAW = (
    "(() => { const model = scene.load(data);"
    "const v = scene.view(model, scene.openAtFirst(model), {constants: false});"
    "const at = scene.complete(v, scene.layout(dagre, scene.request(v)));"
    "return scene.svg(model, v, at); })()"
)


def svg(model: Model, top: Group) -> str:
    """The drawing as an SVG document, groups as they are at first in the page."""
    context = engine()
    try:
        context.eval(CLONE)
        context.eval(resource("dagre.min.js"))
        context.eval(resource("scene.js"))
        # JSON text is itself a JavaScript expression: quoted once more, it becomes a string.
        context.eval("const data = " + json.dumps(json.dumps(payload(model, top))) + "; 0")
        return str(context.eval(DRAW))
    finally:
        context.close()


def engine() -> Any:
    """A fresh JavaScript context."""
    try:
        module = importlib.import_module("py_mini_racer")
    except ImportError as missing:
        raise UnsupportedError(
            with_site(
                "Graph.svg: needs the package mini-racer to run the layout, which is not "
                "installed; run `pip install pullback[viz]`, or use .html() (which needs nothing) "
                "or .dot()"
            )
        ) from missing
    return module.MiniRacer()
