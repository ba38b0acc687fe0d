"""Problems with the rows of a submission, and the jet that each row is of."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import Block, Problem
from collidium_tasks.common import rows_problem
from collidium_tasks.jets.card import TOLERANCE

#: Marks rows of jets that are not there.
UNKNOWN: Final = -1

#: Jets are numbered in 16 bits.
_MAX_JETS: Final = 2**16

Places = npt.NDArray[np.int64]


def places_of(jets: pa.Table, predictions: pa.Table) -> Places:
    """The row of each prediction's jet in truth table ``jets``, or UNKNOWN; ids of any width and sign."""
    events, ids = np.asarray(predictions.column("event_id")), np.asarray(predictions.column("jet_id"))
    known_events, known_ids = np.asarray(jets.column("event_id")), np.asarray(jets.column("jet_id"))
    if np.array_equal(events, known_events) and np.array_equal(ids, known_ids):
        return np.arange(len(ids))
    known = known_events.astype(np.int64) * _MAX_JETS + known_ids
    if not len(known):
        return np.full(len(ids), UNKNOWN)
    possible = (ids >= 0) & (ids < _MAX_JETS)
    wanted = events.astype(np.int64) * _MAX_JETS + np.where(possible, ids, 0).astype(np.int64)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(possible & (known[places] == wanted), places, UNKNOWN)


def repeated(places: Places, jets: int) -> npt.NDArray[np.bool_]:
    """Rows of a jet that another row is of, too; of each such jet one is left. Unknown jets have none."""
    again = np.zeros(len(places), np.bool_)
    if not len(places) or (places[0] != UNKNOWN and bool(np.all(places[1:] > places[:-1]))):
        return again  # in the order of the truth
    known = np.flatnonzero(places != UNKNOWN)
    left = np.empty(jets, np.int64)
    left[places[known]] = known
    again[known] = left[places[known]] != known
    return again


PROBABILITIES: Final = ("prob_b", "prob_c", "prob_light")

_UNKNOWN: Final = "The event has no jet with this jet_id."
_WRONG_SUM: Final = f"{', '.join(PROBABILITIES)} must add up to 1, within {TOLERANCE}."
_DUPLICATE: Final = "The jet was submitted before; each (event_id, jet_id) may occur once."
#: Probabilities may have been rounded to 32 bits, each for itself.
_ROUNDING: Final = 1e-6


def problems_of(block: Block) -> list[Problem]:
    """Every kind of problem, with its number of rows and a few of them.

    A repeated row is counted each time after the first; rows of unknown jets are not looked at for that.
    """
    places = places_of(block.truth["jets"], block.predictions)
    ids = ["event_id", "jet_id"]
    wrong_sum = np.abs(_totals(block.predictions) - 1.0) > TOLERANCE + _ROUNDING
    again = repeated(places, block.truth["jets"].num_rows)
    found = [
        ("unknown-jet", "jet_id", _UNKNOWN, places == UNKNOWN, ids),
        ("duplicate-row", "jet_id", _DUPLICATE, again, ids),
        ("wrong-sum", PROBABILITIES[0], _WRONG_SUM, wrong_sum, [*ids, *PROBABILITIES]),
    ]
    return [
        rows_problem(block.predictions, rows, code, column, detail, shown)
        for code, column, detail, rows, shown in found
        if rows.any()
    ]


def _totals(predictions: pa.Table) -> npt.NDArray[np.float64]:
    first, second, third = (np.asarray(predictions.column(name)).astype(np.float64) for name in PROBABILITIES)
    return first + second + third
