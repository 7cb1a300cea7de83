"""Where values stand among others (layer 2): these have no derivative."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback.ops.broadcast import reshape, shape_of
from pullback.ops.elementwise import eq, logical_not
from pullback.ops.indexing import along
from pullback.ops.kinds import general
from pullback.ops.reduce import any_


def _searchsorted(rows: Any, values: Any, *, side: Any, narrow: bool) -> Any:
    if rows.ndim == 1:
        found = np.searchsorted(rows, values, side)
    else:
        found = np.empty(values.shape, np.int64)
        for place in np.ndindex(rows.shape[:-1]):
            found[place] = np.searchsorted(rows[place], values[place], side)
    return np.asarray(found).astype(np.int32 if narrow else np.int64)


def _batch_searchsorted(
    size: int, rows: Any, values: Any, *, batched: tuple[bool, bool], **params: Any
) -> Any:
    if not batched[0] and len(shape_of(rows)) == 1:
        return searchsorted(rows, values, **params)
    rows, values = along(size, rows, batched[0]), along(size, values, batched[1])
    shape = shape_of(values)
    if len(shape_of(rows)) == 2:  # one row for each example, of values in any shape
        values = reshape(values, shape=(size, prod(shape[1:])))
    return reshape(searchsorted(rows, values, **params), shape=shape)


searchsorted = general(
    "searchsorted", _searchsorted, batch=_batch_searchsorted,
    doc="where values would go in sorted rows to keep them sorted",
)  # fmt: skip


def _batch_isin(
    size: int, given: Any, among: Any, *, batched: tuple[bool, bool], invert: bool
) -> Any:
    if not batched[1]:
        return isin(given, among, invert=invert)
    given = along(size, given, batched[0])
    shape = shape_of(given)
    row = (size, *(1,) * (len(shape) - 1), prod(shape_of(among)[1:]))
    same = eq(reshape(given, shape=(*shape, 1)), reshape(among, shape=row))
    found = any_(same, axis=(len(shape),), keepdims=False)
    return logical_not(found) if invert else found


isin = general(
    "isin", lambda given, among, *, invert: np.asarray(np.isin(given, among, invert=invert)),
    batch=_batch_isin, doc="which elements occur among others",
)  # fmt: skip
