"""Pictures of autograd graphs (layer 6): text, DOT, SVG and an interactive page.

`graph(tensor)` reads the tape behind a tensor into plain records and returns a `Graph`, which
prints as a tree, shows itself in a notebook and saves itself to a file.  Nothing here holds a
tensor or a node: a picture does not keep a graph alive.
"""

from pullback.viz.graph import Graph, graph

__all__ = ["Graph", "graph"]
