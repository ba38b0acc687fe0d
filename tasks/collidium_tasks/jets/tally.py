"""The tally of the task, which is the scores of jets by flavour, and the metrics.

Discriminants have 64 bits: in 32, those of confident predictions tie.
"""

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

#: Probability of each flavour of jets that are not submitted.
_MISSING: Final = 1 / 3

Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class JetsTally:
    """Scores of b jets against other jets, and numbers of jets."""

    #: ``prob_b``, against all other jets.
    others: Scores = field(default_factory=Scores)
    #: Discriminants against light and c jets.
    light: Scores = field(default_factory=Scores)
    charm: Scores = field(default_factory=Scores)
    jets: int = 0
    submitted: int = 0
    #: Maximum number of jets in an event.
    largest: int = 0


def collect(block: Block) -> JetsTally:
    """Return the tally of a block of valid predictions."""
    jets, predictions = block.truth["jets"], block.predictions
    flavour, places = np.asarray(jets.column("flavour")), places_of(jets, predictions)
    prob_b, prob_c, prob_light = (_filled(predictions, name, places, len(flavour)) for name in PROBABILITIES)
    b, c, light = (np.flatnonzero(flavour == code) for code in (BOTTOM, CHARM, LIGHT))
    return JetsTally(
        Scores(np.sort(prob_b[b]), np.sort(np.concatenate([prob_b[c], prob_b[light]]))),
        Scores(_discriminants(prob_b[b], prob_light[b]), _discriminants(prob_b[light], prob_light[light])),
        Scores(_discriminants(prob_b[b], prob_c[b]), _discriminants(prob_b[c], prob_c[c])),
        len(flavour),
        len(places),
        _largest(np.asarray(jets.column("event_id"))),
    )


def merge(tallies: Sequence[JetsTally]) -> JetsTally:
    """Return the tally of all jets."""
    return JetsTally(
        Scores.merged([tally.others for tally in tallies]),
        Scores.merged([tally.light for tally in tallies]),
        Scores.merged([tally.charm for tally in tallies]),
        sum(tally.jets for tally in tallies),
        sum(tally.submitted for tally in tallies),
        max((tally.largest for tally in tallies), default=0),
    )


def metrics(tally: JetsTally) -> dict[str, float]:
    """Return the card's metrics, without rejections of which fewer than MIN_PASSING background jets pass."""
    found = _metrics(tally.others, tally.light, tally.charm)
    for name, curve in (("light_rejection_70", tally.light), ("c_rejection_70", tally.charm)):
        if curve.background_efficiency(WORKING_POINT) * curve.background_rows < MIN_PASSING:
            del found[name]
    return found


def resample(tallies: Sequence[JetsTally], draws: Draws) -> list[dict[str, float]]:
    """Return the metrics of each draw of groups of events, from binned curves; all metrics in any case."""
    curves = zip(
        resampled([tally.others for tally in tallies], draws),
        resampled([tally.light for tally in tallies], draws),
        resampled([tally.charm for tally in tallies], draws),
        strict=True,
    )
    return [_metrics(*of_a_draw) for of_a_draw in curves]


#: Bins of prob_b for the curve ``response_b``.
_EDGES: Final = tuple(number / 10 for number in range(11))


def curves(tally: JetsTally) -> list[Curve]:
    """Return the ROC curves, and the fraction of b jets in bins of prob_b."""
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


def warnings(tally: JetsTally) -> list[str]:
    """Warn of jets that were not submitted."""
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


def _largest(events: Numbers) -> int:
    """Return the maximum number of rows of an event; rows are sorted by event."""
    starts = np.flatnonzero(np.diff(events.astype(np.int64), prepend=-1, append=-1))
    return int(np.diff(starts).max(initial=0))


def _filled(predictions: pa.Table, name: str, places: Places, jets: int) -> Numbers:
    """Return the probability of every jet, in the order of the truth; float32 if it was submitted so."""
    column = np.asarray(predictions.column(name))
    values = np.full(jets, _MISSING, np.float32 if column.dtype == np.float32 else np.float64)
    values[places] = column
    return values


def _discriminants(prob_b: Numbers, other: Numbers) -> Numbers:
    """Return ``prob_b / (prob_b + other)``, ascending; 1/2 where both are 0."""
    numerator = prob_b.astype(np.float64)
    denominator = numerator + other
    with np.errstate(invalid="ignore"):
        discriminants = numerator / denominator
    discriminants[denominator == 0] = 0.5
    discriminants.sort()
    return discriminants
