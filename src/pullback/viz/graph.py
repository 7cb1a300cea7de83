"""`graph(tensor)`: the picture object (layer 6)."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor
from pullback.errors import ArgumentTypeError, ArgumentValueError
from pullback.viz import dot, page, svg, text
from pullback.viz.collapse import collapse
from pullback.viz.model import Model, Names, Record, read


class Graph:
    """A picture of the graph behind some tensors, taken when it was made.

    It holds copies of names, shapes, sizes and source lines only: no tensor stays alive through
    it, and what happens to the graph afterwards does not show in it.
    """

    def __init__(self, model: Model, *, collapsed: bool = True) -> None:
        self._model = model
        self._top = collapse(model, collapsed)

    @property
    def nodes(self) -> list[Record]:
        """Every node as a record, inputs before their users."""
        return list(self._model.records)

    def __str__(self) -> str:
        return text.tree(self._model, self._top)

    def __repr__(self) -> str:
        return f"<{text.headline(self._model)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the page, in a frame of its own."""
        return page.frame(self.html())

    def dot(self) -> str:
        """Source for Graphviz."""
        return dot.dot(self._model, self._top)

    def svg(self) -> str:
        """A drawing as SVG; needs `pip install pullback[viz]`.

        Raises:
            UnsupportedError: the extra is not installed.
        """
        return svg.svg(self._model, self._top)

    def html(self) -> str:
        """The interactive page: one file that needs nothing else, not even a network."""
        return page.page(self._model, self._top)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a file; its ending (.html, .svg, .dot, .gv, .txt) says in which form.

        Raises:
            ArgumentValueError: another ending.
        """
        target = Path(path)
        make = {
            ".html": self.html, ".htm": self.html, ".svg": self.svg, ".dot": self.dot,
            ".gv": self.dot, ".txt": self.__str__,
        }.get(target.suffix.lower())  # fmt: skip
        if make is None:
            raise ArgumentValueError(
                with_site(
                    "Graph.save: needs a path that ends in .html, .svg, .dot, .gv or .txt, got "
                    f"{os.fspath(path)!r}; rename it, or write .dot() or .html() yourself"
                )
            )
        target.write_text(make(), encoding="utf-8")
        return target

    def statistics(self) -> dict[str, Any]:
        """Counts and sizes: bytes, and numbers of nodes.

        `nodes` are operations and leaves: what is reached through `grad_fn.next_functions`.
        `saved_bytes` counts each piece of memory once; `saved_bytes_by_line` splits it over the
        source lines, each piece to the operation that kept it first, largest first.
        `saved_bytes_of_leaves` is the part that belongs to leaves and is alive anyway.
        """
        records = self._model.records
        kinds = Counter(r.kind for r in records)
        lines: Counter[str] = Counter()
        for r in records:
            if r.owned_bytes:
                lines[text.place_text(r.site)] += r.owned_bytes
        return {
            "nodes": kinds["op"] + kinds["leaf"],
            "operations": kinds["op"],
            "leaves": kinds["leaf"],
            "constants": kinds["constant"],
            "detached": kinds["detached"],
            "edges": sum(len(r.inputs) for r in records),
            "freed": sum(r.freed for r in records),
            "saved_bytes": sum(r.owned_bytes for r in records),
            "saved_bytes_of_leaves": self._model.leaf_bytes,
            "saved_bytes_by_line": dict(lines.most_common()),
            "operations_by_name": dict(
                Counter(r.name for r in records if r.kind == "op").most_common()
            ),
        }


def graph(*tensors: Tensor, names: Names | None = None, collapse: bool = True) -> Graph:
    """A picture of the autograd graph behind `tensors`.

    tensors: the outputs to start from; one that requires no grad is shown with the reason.
    names: `{name: tensor}` or `(name, tensor)` pairs (as `model.named_parameters()` gives):
        what to call leaves, outputs and values in between.
    collapse: show loops and long stretches as one box that can be opened; False lists every node.

    Returns a `Graph`: `print` shows a text tree, a notebook an interactive page.

    Raises:
        ArgumentTypeError: no tensor was given, or something else than a tensor.

    >>> from pullback.eager.tensor import set_requires_grad, wrap
    >>> from pullback.ops import elementwise
    >>> import numpy as np
    >>> x = wrap(np.ones(3))
    >>> set_requires_grad(x, True)
    >>> graph(elementwise.exp(x), names={"x": x})
    <graph of output: 1 operation, 1 leaf; keeps 24 B for backward>
    """
    wrong = [type(t).__name__ for t in tensors if not isinstance(t, Tensor)]
    if wrong or not tensors:
        got = ", ".join(wrong) or "nothing"
        raise ArgumentTypeError(
            with_site(
                f"graph: needs one or more tensors, got {got}; pass the outputs, as in graph(loss)"
            )
        )
    return Graph(read(tensors, names), collapsed=collapse)
