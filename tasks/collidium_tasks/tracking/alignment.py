"""Where in the truth a submitted hit stands, for rows that are not in the order of the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.integer[Any]]

#: Marks hit ids that the event does not have.
UNKNOWN = -1


def rows_of_hits(true_hit_id: Integers, hit_id: Integers) -> npt.NDArray[np.int64]:
    """The place of each submitted hit among the event's own, or UNKNOWN; shape (rows,).

    Ids of any width and sign, never through float. Ids of the truth are distinct and not negative.
    """
    known = true_hit_id.astype(np.uint64)
    # Negative ids become huge ones here; they are marked at the end.
    wanted = hit_id.astype(np.uint64)
    if not len(known) or not len(wanted):
        return np.full(len(wanted), UNKNOWN, np.int64)
    smallest, span = known.min(), int(known.max()) - int(known.min())
    if span < 4 * len(known) + 1024:
        places = _by_table(known - smallest, wanted - smallest, span)
    else:
        places = _by_search(known, wanted)
    if hit_id.dtype.kind == "i":
        places[hit_id < 0] = UNKNOWN
    return places


def _by_table(
    known: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64], span: int
) -> npt.NDArray[np.int64]:
    """Look up ids that lie close together: one entry per possible id, and one for all others."""
    table = np.full(span + 2, UNKNOWN, np.int64)
    table[known] = np.arange(len(known))
    return table[np.minimum(wanted, np.uint64(span + 1))]


def _by_search(known: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Look up scattered ids in their sorted list."""
    order = np.argsort(known)
    ranks = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
    places = order[ranks]
    places[known[places] != wanted] = UNKNOWN
    return places
