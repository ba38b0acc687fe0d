"""The card of the task."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Final

from collidium.contracts.task import Card, Column, EventRange, Metric

FALSE_POSITIVE_RATE: Final = Fraction(1, 100)
#: Background events that must pass for a significance.
MIN_BACKGROUND: Final = 25
#: Channels beyond the Standard Model, in the order of their codes in the truth, which start at 1.
SIGNALS: Final = ("hidden_valley", "higgs_portal", "susy_gmsb", "zprime")

_SIGNIFICANCE: Final = (
    f"maximum over thresholds that at least {MIN_BACKGROUND} background events pass of (signal events that "
    "pass / all signal events) / sqrt(background events that pass / all background events)"
)
_OF_SIGNIFICANCE: Final = "after the LHC Olympics 2020, G. Kasieczka et al., arXiv:2101.08320"


def _of(signal: str) -> tuple[Metric, Metric]:
    """The metrics of one signal."""
    absent = f"the mix has no {signal} events"
    return (
        Metric(
            name=f"auroc_{signal}",
            title=f"Area under ROC, {signal.replace('_', ' ')}",
            higher_is_better=True,
            description=f"Area under the ROC curve of {signal} events against the background.",
            formula=f"as auroc, with {signal} as the only signal",
            source="J. Hanley and B. McNeil, Radiology 143 (1982) 29",
            bounds=(0, 1),
            reward=0,
            missing_when=absent,
        ),
        Metric(
            name=f"significance_improvement_{signal}",
            title=f"Significance improvement, {signal.replace('_', ' ')}",
            higher_is_better=True,
            description=f"Maximum significance improvement of {signal} events.",
            formula=f"as significance_improvement, with {signal} as the only signal",
            source=_OF_SIGNIFICANCE,
            bounds=(0, inf),
            reward=0,
            missing_when=f"{absent}, or fewer than {MIN_BACKGROUND} background events",
        ),
    )


CARD: Final = Card(
    name="anomaly",
    title="Anomaly detection",
    description=(
        "Separate events beyond the Standard Model from Standard Model events. The events are a blinded mix "
        "without pileup: top quark pairs, Z to muons, Z to electrons, jets, and a small part of signals, in "
        "random order. Signals have the visible energy of the background: energy alone does not separate "
        "them. Train on any data; the events of the mix have no labels."
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
            title="Area under ROC",
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
            title="Signal efficiency at 1% background",
            higher_is_better=True,
            description="Signal efficiency at a false positive rate of 1%.",
            formula="signal events that pass / all signal events, at the score that 1% of the background "
            "events pass; the ROC curve is interpolated linearly within equal scores",
            source="T. Fawcett, Pattern Recognition Letters 27 (2006) 861",
            bounds=(0, 1),
        ),
        Metric(
            name="significance_improvement",
            title="Significance improvement",
            higher_is_better=True,
            description="Maximum significance improvement: the factor by which the best threshold raises "
            "signal over the root of background.",
            formula=_SIGNIFICANCE,
            source=_OF_SIGNIFICANCE,
            bounds=(0, inf),
            reward=0,
            missing_when=f"the mix has no signal, or fewer than {MIN_BACKGROUND} background events",
        ),
        *(metric for signal in SIGNALS for metric in _of(signal)),
    ),
)
