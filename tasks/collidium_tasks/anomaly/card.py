"""The card of the task."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from collidium.contracts.task import Card, Column, EventRange, Metric

FALSE_POSITIVE_RATE: Final = Fraction(1, 100)

CARD: Final = Card(
    name="anomaly",
    title="Anomaly detection",
    description=(
        "Tell events beyond the Standard Model from ordinary ones. The events are a blinded mix without "
        "pileup: top quark pairs, Z to muons and Z to electrons, and signals that are not named here, all "
        "shuffled. Train on whatever you like; no event of the mix has a label."
    ),
    dataset="anomaly_pu0",
    eval_events=EventRange(90_000, 100_000),
    inputs=("tracker_hits", "calo_hits", "tracks"),
    columns=(
        Column(name="event_id", kind="integer", description="Each event once."),
        Column(
            name="anomaly_score",
            kind="float",
            description="The higher, the less like the Standard Model; only the order counts.",
        ),
    ),
    left_out="An event that is not submitted counts as wrong as it can be: below all others where it is a "
    "signal, above all others where it is none. No answer at all scores 0, the same score for all 0.5.",
    truth_sources=("channels",),
    rows_of="channels",
    metrics=(
        Metric(
            name="auroc",
            higher_is_better=True,
            description="Area under the ROC curve: the part of all pairs of a signal and an ordinary event "
            "in which the signal has the higher score.",
            formula="pairs of a signal and an ordinary event in which the signal has the higher score, and "
            "half of those in which both have the same / all pairs",
            source="J. Hanley and B. McNeil, Radiology 143 (1982) 29",
            bounds=(0, 1),
        ),
        Metric(
            name="signal_efficiency_fpr1",
            higher_is_better=True,
            description="Fraction of the signals above the score that 1% of the ordinary events are above.",
            formula="signals that pass / all signals, at the score that 1% of the ordinary events pass; "
            "within events of equal score the ROC curve is straight",
            source="T. Fawcett, Pattern Recognition Letters 27 (2006) 861",
            bounds=(0, 1),
        ),
    ),
)
