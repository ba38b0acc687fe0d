"""What can be wrong with the rows of a submission."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import Block, Problem
from collidium_tasks.jets.alignment import UNKNOWN, places_of, repeated
from collidium_tasks.jets.card import TOLERANCE

PROBABILITIES: Final = ("prob_b", "prob_c", "prob_light")

#: Rows shown for each kind of problem.
_EXAMPLES: Final = 5
#: Probabilities may have been rounded to 32 bits, each for itself.
_ROUNDING: Final = 1e-6

Rows = npt.NDArray[np.bool_]


def problems_of(block: Block) -> list[Problem]:
    """Every kind of problem, with its number of rows and a few of them.

    A repeated row is counted each time after the first; rows of unknown jets are not looked at for that.
    """
    places = places_of(block.truth["jets"], block.predictions)
    found = (
        _problem(
            block.predictions,
            places == UNKNOWN,
            "unknown-jet",
            "jet_id",
            "The event has no jet of this jet_id.",
        ),
        _problem(
            block.predictions,
            repeated(places, block.truth["jets"].num_rows),
            "duplicate-row",
            "jet_id",
            "The jet was submitted before; each (event_id, jet_id) may stand once.",
        ),
        _problem(
            block.predictions,
            np.abs(_totals(block.predictions) - 1.0) > TOLERANCE + _ROUNDING,
            "wrong-sum",
            PROBABILITIES[0],
            f"{', '.join(PROBABILITIES)} must add up to 1, within {TOLERANCE}.",
        ),
    )
    return [problem for problem in found if problem]


def _totals(predictions: pa.Table) -> npt.NDArray[np.float64]:
    first, second, third = (np.asarray(predictions.column(name)).astype(np.float64) for name in PROBABILITIES)
    return first + second + third


def _problem(predictions: pa.Table, rows: Rows, code: str, column: str, detail: str) -> Problem | None:
    count = int(np.count_nonzero(rows))
    if not count:
        return None
    shown = np.flatnonzero(rows)[:_EXAMPLES]
    columns = ["event_id", "jet_id", *(PROBABILITIES if column in PROBABILITIES else ())]
    examples = predictions.select(columns).take(shown).to_pylist()
    return Problem(code, detail, column, examples[0]["event_id"], count, tuple(examples))
