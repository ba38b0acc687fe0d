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
        "Separate events beyond the Standard Model from Standard Model events. The events are a blinded mix "
        "without pileup: top quark pairs, Z to muons, Z to electrons, and undisclosed signals, in random "
        "order. Train on any data; the events of the mix have no labels."
    ),
    dataset="anomaly_pu0",
    eval_events=EventRange(90_000, 100_000),
    inputs=("tracker_hits", "calo_hits", "tracks"),
    columns=(
        Column(name="event_id", kind="integer", description="Event; each at most once."),
        Column(
            name="anomaly_score",
            kind="float",
            description="The higher, the less like the Standard Model; only the order counts.",
        ),
    ),
    left_out="An event that is not submitted gets the worst rank: below all others if it is signal, above "
    "all others if it is background. An empty submission scores 0, equal scores for all events 0.5.",
    truth_sources=("channels",),
    rows_of="channels",
    metrics=(
        Metric(
            name="auroc",
            higher_is_better=True,
            description="Area under the ROC curve: the fraction of pairs of a signal and a background event "
            "in which the signal has the higher score.",
            formula="(pairs of a signal and a background event in which the signal has the higher score, "
            "plus half of the pairs with equal scores) / all pairs",
            source="J. Hanley and B. McNeil, Radiology 143 (1982) 29",
            bounds=(0, 1),
        ),
        Metric(
            name="signal_efficiency_fpr1",
            higher_is_better=True,
            description="Signal efficiency at a false positive rate of 1%.",
            formula="signal events that pass / all signal events, at the score that 1% of the background "
            "events pass; the ROC curve is interpolated linearly within equal scores",
            source="T. Fawcett, Pattern Recognition Letters 27 (2006) 861",
            bounds=(0, 1),
        ),
    ),
)
