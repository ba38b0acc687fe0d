"""Merged scores of jets by flavour, and the metrics computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import Block, Curve, Draws
from collidium_tasks.jets.card import (
    BOTTOM,
    CHARM,
    LIGHT,
    MIN_PASSING,
    PROBABILITIES,
    WORKING_POINT,
    Places,
    places_of,
)
from collidium_tasks.ranking import Roc, Scores, resampled, roc_curves

#: Probability of each flavour for a jet that is not submitted.
_MISSING: Final = 1 / 3

Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Tally:
    """Three rankings of b jets, each against others, and how many jets were submitted."""

    #: By ``prob_b``, against all others.
    others: Scores = field(default_factory=Scores)
    #: By the discriminants, against light and c jets.
    light: Scores = field(default_factory=Scores)
    charm: Scores = field(default_factory=Scores)
    jets: int = 0
    submitted: int = 0
    #: Jets that an event has at most.
    largest: int = 0


def collect(block: Block) -> Tally:
    """The tally of a block of valid predictions."""
    jets, predictions = block.truth["jets"], block.predictions
    flavour, places = np.asarray(jets.column("flavour")), places_of(jets, predictions)
    columns = [_filled(predictions, name, places, len(flavour)) for name in PROBABILITIES]
    bottom, charm, light = (_Probabilities.of(columns, flavour == code) for code in (BOTTOM, CHARM, LIGHT))
    return Tally(
        Scores(np.sort(bottom.bottom), np.sort(np.concatenate([charm.bottom, light.bottom]))),
        Scores(_parts(bottom.bottom, bottom.light), _parts(light.bottom, light.light)),
        Scores(_parts(bottom.bottom, bottom.charm), _parts(charm.bottom, charm.charm)),
        len(flavour),
        len(places),
        _largest(np.asarray(jets.column("event_id"))),
    )


def merge(tallies: Sequence[Tally]) -> Tally:
    """The tally of all their jets."""
    return Tally(
        Scores.merged([tally.others for tally in tallies]),
        Scores.merged([tally.light for tally in tallies]),
        Scores.merged([tally.charm for tally in tallies]),
        sum(tally.jets for tally in tallies),
        sum(tally.submitted for tally in tallies),
        max((tally.largest for tally in tallies), default=0),
    )


def metrics(tally: Tally) -> dict[str, float]:
    """The card's metrics; no rejection where fewer than MIN_PASSING jets of its flavour pass."""
    found = _metrics(tally.others, tally.light, tally.charm)
    for name, curve in (("light_rejection_70", tally.light), ("c_rejection_70", tally.charm)):
        if curve.background_efficiency(WORKING_POINT) * curve.background_rows < MIN_PASSING:
            del found[name]
    return found


def resample(tallies: Sequence[Tally], draws: Draws) -> list[dict[str, float]]:
    """The metrics of each draw of groups of events, from bins of neighbouring scores; all of them, always."""
    curves = zip(
        resampled([tally.others for tally in tallies], draws),
        resampled([tally.light for tally in tallies], draws),
        resampled([tally.charm for tally in tallies], draws),
        strict=True,
    )
    return [_metrics(*of_a_draw) for of_a_draw in curves]


#: Of prob_b, for the fraction of b jets.
_EDGES: Final = tuple(number / 10 for number in range(11))


def curves(tally: Tally) -> list[Curve]:
    """Efficiencies of other jets against that of b jets, and how often prob_b is right."""
    rankings = (
        ("roc_btag", "Efficiency of jets that are not b", "b efficiency by prob_b", tally.others),
        ("roc_light", "Efficiency of light jets", "b efficiency against light jets", tally.light),
        ("roc_c", "Efficiency of c jets", "b efficiency against c jets", tally.charm),
    )
    found = [curve for ranking in rankings for curve in roc_curves(*ranking, tally.largest)]
    if tally.largest:
        bottom, others = (
            np.histogram(scores, _EDGES)[0] for scores in (tally.others.signal, tally.others.background)
        )
        whole = bottom + others
        response = Curve(
            name="response_b",
            title="Fraction of b jets",
            quantity="prob_b",
            edges=_EDGES,
            part=bottom.tolist(),
            whole=whole.tolist(),
            events=(whole // tally.largest).tolist(),
        )
        found.append(response)
    return found


def warnings(tally: Tally) -> list[str]:
    """Report missing jets, which lower the scores."""
    missing = tally.jets - tally.submitted
    if not missing:
        return []
    return [
        f"{missing} of {tally.jets} jets were not submitted; each counts with probability 1/3 for each "
        "flavour."
    ]


def _metrics(others: Roc, light: Roc, charm: Roc) -> dict[str, float]:
    return {
        "btag_auc": others.auc(),
        "light_rejection_70": light.rejection(WORKING_POINT),
        "c_rejection_70": charm.rejection(WORKING_POINT),
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Probabilities:
    """Predicted probabilities of the jets of one flavour."""

    bottom: Numbers
    charm: Numbers
    light: Numbers

    @classmethod
    def of(cls, columns: Sequence[Numbers], chosen: npt.NDArray[np.bool_]) -> _Probabilities:
        places = np.flatnonzero(chosen)
        return cls(*(values[places] for values in columns))


def _largest(events: Numbers) -> int:
    """How many of the rows, sorted by event, one event has at most."""
    starts = np.flatnonzero(np.diff(events.astype(np.int64), prepend=-1, append=-1))
    return int(np.diff(starts).max(initial=0))


def _filled(predictions: pa.Table, name: str, places: Places, jets: int) -> Numbers:
    """The probability of every jet of the truth, in its order; in 32 bits where it was submitted so."""
    column = np.asarray(predictions.column(name))
    values = np.full(jets, _MISSING, np.float32 if column.dtype == np.float32 else np.float64)
    values[places] = column
    return values


def _parts(bottom: Numbers, other: Numbers) -> Numbers:
    """``bottom / (bottom + other)``, ascending; 1/2 where both are 0."""
    one = bottom.astype(np.float64)
    both = one + other
    with np.errstate(invalid="ignore"):
        parts = one / both
    parts[both == 0] = 0.5
    parts.sort()
    return parts
