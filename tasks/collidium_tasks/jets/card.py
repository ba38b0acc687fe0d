"""The card of the task, its truth, and problems of the rows of a submission."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten
from collidium.contracts.task import Block, Card, Column, EventRange, Metric, Problem, Tables, UnusableTruth
from collidium_tasks.common import rows_problem

#: Codes of the column ``flavour`` of the dataset.
BOTTOM: Final = 5
CHARM: Final = 4
LIGHT: Final = 0

_COLUMNS: Final = ("jet_id", "flavour")

#: The b efficiency at which rejections are computed.
WORKING_POINT: Final = Fraction(7, 10)
#: Minimum number of background jets that pass for a rejection, whose error is then 20%.
MIN_PASSING: Final = 25
#: Maximum deviation of the sum of a jet's probabilities from 1.
TOLERANCE: Final = 0.02

#: Index of jets that the truth does not contain.
UNKNOWN: Final = -1

#: Jet ids have 16 bits.
_MAX_JETS: Final = 2**16

Places = npt.NDArray[np.int64]


def prepare(tables: Tables) -> dict[str, pa.Table]:
    """Return the truth: one row per jet with ``event_id``, ``jet_id`` and ``flavour``, sorted by the ids.

    Raises :class:`~collidium.contracts.task.UnusableTruth` if a column is missing or has nulls, a flavour
    is not 5, 4 or 0, or an event or a jet appears twice.
    """
    table = tables["jets"]
    missing = [name for name in _COLUMNS if name not in table.column_names]
    if missing:
        raise UnusableTruth(f"table jets lacks {', '.join(missing)}")
    for name in _COLUMNS:
        if table.column(name).null_count:
            raise UnusableTruth(f"table jets, column {name}: has nulls")
    if np.any(np.diff(np.asarray(table.column("event_id")).astype(np.int64)) <= 0):
        raise UnusableTruth("table jets: event ids must increase, without repetitions")
    try:
        flat = flatten(table, _COLUMNS)
    except ValueError as error:
        raise UnusableTruth(f"table jets: {error}") from error
    events = np.asarray(flat.column("event_id")).astype(np.uint32)
    jets, flavour = (_valid(flat, name) for name in _COLUMNS)
    order = np.lexsort((jets, events))
    events, jets, flavour = events[order], jets[order], flavour[order]
    again = np.flatnonzero((np.diff(events) == 0) & (np.diff(jets) == 0))
    if len(again):
        raise UnusableTruth(f"table jets: jet {jets[again[0]]} appears twice in event {events[again[0]]}")
    columns = {"event_id": events, "jet_id": jets.astype(np.uint16), "flavour": flavour.astype(np.uint8)}
    return {"jets": pa.table(columns)}


def _valid(flat: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """Return a column of integers. Raises UnusableTruth for invalid values."""
    column = flat.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise UnusableTruth(f"table jets, column {name}: must be integers, without nulls")
    values = np.asarray(column)
    allowed = (
        np.isin(values, (BOTTOM, CHARM, LIGHT)) if name == "flavour" else (values >= 0) & (values < 2**16)
    )
    if not allowed.all():
        value = values[int(np.flatnonzero(~allowed)[0])]
        wanted = "5, 4 or 0" if name == "flavour" else "from 0 to 65535"
        raise UnusableTruth(f"table jets, column {name}: {value} is not {wanted}")
    return values.astype(np.int64)


def _rejection(name: str, others: str, against: str, events: int) -> Metric:
    return Metric(
        name=name,
        title=f"Rejection of {others} jets at 70% b efficiency",
        higher_is_better=True,
        description=f"Rejection of {others} jets at 70% b efficiency: {others} jets per {others} jet "
        "tagged as b.",
        formula=f"{others} jets / {others} jets that pass where 70% of b jets do, by prob_b / (prob_b + "
        f"{against}), 1/2 where both are 0; the ROC curve is straight within jets of equal discriminant; the "
        "error is that of the logarithm",
        source="after the ATLAS Collaboration, Eur. Phys. J. C 79 (2019) 970, arXiv:1907.05120",
        bounds=(0, inf),
        log_error=True,
        missing_when=f"fewer than {MIN_PASSING} {others} jets pass, as for rejections above "
        f"({others} jets) / {MIN_PASSING}",
        events_needed=events,
    )


CARD: Final = Card(
    name="jets",
    title="Jet flavour tagging",
    description=(
        "Predict for each jet the probabilities that it contains a b hadron, a c hadron but no b hadron, or "
        "neither. Jets are those of the table jets, clustered from calo_hits. b hadrons fly millimetres, so "
        "the tracks near a jet are most informative. All tables of the events may be used."
    ),
    dataset="ttbar_pu0",
    eval_events=EventRange(90_000, 100_000),
    inputs=("jets", "tracks"),
    columns=(
        Column(name="event_id", kind="integer", description="Event of the jet."),
        Column(name="jet_id", kind="integer", description="The jet within its event; each jet at most once."),
        Column(name="prob_b", kind="float", bounds=(0, 1), description="Probability of a b hadron."),
        Column(name="prob_c", kind="float", bounds=(0, 1), description="Probability of a c hadron and no b."),
        Column(
            name="prob_light",
            kind="float",
            bounds=(0, 1),
            description=f"Probability of neither; the three add up to 1, within {TOLERANCE}.",
        ),
    ),
    truth_sources=("jets",),
    rows_of="jets",
    left_out="A jet that is not submitted counts with probability 1/3 for each flavour.",
    metrics=(
        Metric(
            name="btag_auc",
            title="b-tagging area under ROC",
            higher_is_better=True,
            description="Area under the ROC curve of prob_b, b jets against all others.",
            formula="pairs of a b jet and another in which the b jet has the higher prob_b, and half of "
            "those in which both have the same / all such pairs",
            source="J. Hanley and B. McNeil, Radiology 143 (1982) 29",
            bounds=(0, 1),
        ),
        # A ttbar event has 1.3 light and 0.4 c jets on average: enough for rejections of 100 and 10.
        _rejection("light_rejection_70", "light", "prob_light", 2000),
        _rejection("c_rejection_70", "c", "prob_c", 600),
    ),
)


def places_of(jets: pa.Table, predictions: pa.Table) -> Places:
    """Return the row of each prediction's jet in truth table ``jets``, or UNKNOWN."""
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
    """Return the mask of repeated rows, all but one of each jet; rows of unknown jets are never repeated."""
    again = np.zeros(len(places), np.bool_)
    if not len(places) or (places[0] != UNKNOWN and bool(np.all(places[1:] > places[:-1]))):
        return again  # in the order of the truth
    known = np.flatnonzero(places != UNKNOWN)
    last = np.empty(jets, np.int64)
    last[places[known]] = known
    again[known] = last[places[known]] != known
    return again


PROBABILITIES: Final = ("prob_b", "prob_c", "prob_light")

_UNKNOWN: Final = "The event has no jet with this jet_id."
_WRONG_SUM: Final = f"{', '.join(PROBABILITIES)} must add up to 1, within {TOLERANCE}."
_DUPLICATE: Final = "The jet was submitted before; each (event_id, jet_id) may occur once."
#: Allowance for probabilities rounded to 32 bits.
_ROUNDING: Final = 1e-6


def problems_of(block: Block) -> list[Problem]:
    """Return every kind of problem of a block's rows, with the number of rows and examples."""
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
