"""Colouring the columns of sparse matrices, so that few products give them whole (layer 5).

Columns of one colour are added up in one product with the matrix.  For a Jacobian it is enough that
no two of them have an entry in the same row (Curtis, Powell & Reid 1974).  A Hessian is symmetric,
so an entry may be read from its mirror image instead: a star colouring is what that takes (Coleman
& More 1984).  Both are named and compared in Gebremedhin, Manne & Pothen, "What color is your
Jacobian?", SIAM Review 47 (2005).  Fewest colours is NP-hard; greedy colouring is what is done.

The sets of colours are Python integers used as bit sets: a union is one operation, so a colouring
takes O(entries) of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.typing import Array


def _lowest_free(used: int) -> int:
    """The smallest colour that is not in the bit set."""
    return (~used & (used + 1)).bit_length() - 1


def _lists(pattern: Any) -> list[list[int]]:
    """The column numbers of each row."""
    ends = pattern.indptr.tolist()
    columns = pattern.indices.tolist()
    return [columns[i:j] for i, j in zip(ends, ends[1:], strict=False)]


def _greedy(rows_of: list[list[int]], order: list[int], n_rows: int) -> list[int]:
    used = [0] * n_rows  # for each row, the colours that it has already
    colours = [0] * len(rows_of)
    for column in order:
        rows = rows_of[column]
        forbidden = 0
        for r in rows:
            forbidden |= used[r]
        c = _lowest_free(forbidden)
        colours[column] = c
        bit = 1 << c
        for r in rows:
            used[r] |= bit
    return colours


def colour_columns(pattern: Any) -> Array:
    """A colour for each column of a sparse (m, n) pattern: int array (n,), 0 and up.

    No row has two entries of one colour.  Natural order is tried first (it is optimal for bands),
    then, where that needs more colours than the fullest row, columns with most entries first.
    """
    m, n = pattern.shape
    rows_of = _lists(pattern.T.tocsr())
    best = _greedy(rows_of, list(range(n)), m)
    fullest = int(np.diff(pattern.indptr).max(initial=0))
    if n and max(best) + 1 > fullest:
        order = sorted(range(n), key=lambda j: -len(rows_of[j]))
        other = _greedy(rows_of, order, m)
        if max(other) < max(best):
            best = other
    return np.array(best, dtype=np.int64)


def star_colour(pattern: Any) -> Array:
    """A star colouring of a symmetric (n, n) pattern: int array (n,), 0 and up.

    Neighbours differ, and no path over four vertices has only two colours.  In the two-coloured
    parts, which are then stars, a vertex with two neighbours or more of the other colour is a hub.
    A new vertex v may not have
    - the colour of a neighbour w;
    - the colour of a hub x that is a neighbour of w, in the star of w and x (v-w-x-y);
    - any colour around w, when two neighbours w, w' of v have the same colour (w'-v-w-x).
    """
    n = pattern.shape[0]
    neighbours = [[j for j in row if j != i] for i, row in enumerate(_lists(pattern))]
    colours = [-1] * n
    around = [0] * n  # colours of the coloured neighbours
    hubs = [0] * n  # colours of those neighbours that are hubs of the star they share
    of_colour: list[dict[int, list[int]]] = [{} for _ in range(n)]  # neighbours by colour
    for v in sorted(range(n), key=lambda i: -len(neighbours[i])):
        mine = of_colour[v]
        forbidden = around[v]
        for group in mine.values():
            for w in group:
                forbidden |= hubs[w]
                if len(group) > 1:
                    forbidden |= around[w]
        c = _lowest_free(forbidden)
        colours[v] = c
        bit = 1 << c
        for group in mine.values():  # v becomes a hub for the colours that it has twice
            if len(group) > 1:
                for w in group:
                    hubs[w] |= bit
        for w in neighbours[v]:
            around[w] |= bit
            group = of_colour[w].setdefault(c, [])
            group.append(v)
            if colours[w] >= 0 and len(group) > 1:  # w is (or becomes) a hub for colour c
                mark = 1 << colours[w]
                hubs[v] |= mark
                if len(group) == 2:
                    hubs[group[0]] |= mark
    return np.array(colours, dtype=np.int64)


def recovery(pattern: Any, colours: Array) -> tuple[Array, Array]:
    """Where the entries of a star-coloured symmetric matrix are in its compressed products.

    pattern: (n, n) csr with p entries; colours: (n,).  Entry number k of the pattern is element
    `(position[k], colour[k])` of the compressed matrix H @ seeds, of shape (n, number of colours).
    """
    n = pattern.shape[0]
    rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(pattern.indptr))
    columns = pattern.indices.astype(np.int64)
    number = int(colours.max(initial=0)) + 1
    key = rows * number + colours[columns]
    _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    alone = counts[inverse] == 1  # the only entry of that colour in its row
    return np.where(alone, rows, columns), np.where(alone, colours[columns], colours[rows])
