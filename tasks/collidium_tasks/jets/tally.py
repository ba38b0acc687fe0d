"""Scores of jets by flavour, put together, and the metrics that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import Block, Draws
from collidium_tasks.jets.alignment import places_of
from collidium_tasks.jets.card import WORKING_POINT
from collidium_tasks.jets.checks import PROBABILITIES
from collidium_tasks.jets.truth import BOTTOM, CHARM, LIGHT
from collidium_tasks.ranking import Roc, Scores, resampled

#: What a jet that is not submitted counts as.
_UNTOLD: Final = 1 / 3

Doubles = npt.NDArray[np.float64]


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


def collect(block: Block) -> Tally:
    """The tally of a block of valid predictions."""
    flavour = np.asarray(block.truth["jets"].column("flavour"))
    places = places_of(block.truth["jets"], block.predictions)
    bottom, charm, light = (_filled(block.predictions, name, places, len(flavour)) for name in PROBABILITIES)
    is_bottom = flavour == BOTTOM
    return Tally(
        Scores.of(bottom, is_bottom),
        _against(bottom, light, is_bottom, flavour == LIGHT),
        _against(bottom, charm, is_bottom, flavour == CHARM),
        len(flavour),
        len(places),
    )


def merge(tallies: Sequence[Tally]) -> Tally:
    """The tally of all their jets."""
    return Tally(
        Scores.merged([tally.others for tally in tallies]),
        Scores.merged([tally.light for tally in tallies]),
        Scores.merged([tally.charm for tally in tallies]),
        sum(tally.jets for tally in tallies),
        sum(tally.submitted for tally in tallies),
    )


def metrics(tally: Tally) -> dict[str, float]:
    """The card's metrics."""
    return _metrics(tally.others, tally.light, tally.charm)


def resample(tallies: Sequence[Tally], draws: Draws) -> list[dict[str, float]]:
    """The metrics of each draw of groups of events, from bins of neighbouring scores."""
    curves = zip(
        resampled([tally.others for tally in tallies], draws),
        resampled([tally.light for tally in tallies], draws),
        resampled([tally.charm for tally in tallies], draws),
        strict=True,
    )
    return [_metrics(*of_a_draw) for of_a_draw in curves]


def warnings(tally: Tally) -> list[str]:
    """What is left out counts, but not much for whoever meant to submit it."""
    missing = tally.jets - tally.submitted
    if not missing:
        return []
    return [f"{missing} of {tally.jets} jets were not submitted; each counts as one third of each flavour."]


def _metrics(others: Roc, light: Roc, charm: Roc) -> dict[str, float]:
    return {
        "btag_auc": others.auc(),
        "light_rejection_70": light.rejection(WORKING_POINT),
        "c_rejection_70": charm.rejection(WORKING_POINT),
    }


def _filled(predictions: pa.Table, name: str, places: npt.NDArray[np.int64], jets: int) -> Doubles:
    """The probability of every jet of the truth, in its order."""
    values = np.full(jets, _UNTOLD)
    values[places] = np.asarray(predictions.column(name))
    return values


def _against(
    bottom: Doubles, other: Doubles, is_bottom: npt.NDArray[np.bool_], is_other: npt.NDArray[np.bool_]
) -> Scores:
    """The ranking of jets that are one or the other by the part of ``bottom`` in both; of 0 it is 1/2."""
    chosen = is_bottom | is_other
    one, both = bottom[chosen], (bottom + other)[chosen]
    score = np.divide(one, both, out=np.full(len(one), 0.5), where=both > 0)
    return Scores.of(score, is_bottom[chosen])
