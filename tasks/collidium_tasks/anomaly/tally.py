"""The card of the task, its tally, which is the scores of events by channel, and the metrics.

An event without a score loses every pair: a tie at the bottom would be worth a half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Final

import numpy as np

from collidium.contracts.task import Card, Column, Counts, Curve, Draws, EventRange, Metric
from collidium_tasks.ranking import Numbers, Roc, Scores, merged_scores, resampled, roc_curves

FALSE_POSITIVE_RATE: Final = Fraction(1, 100)
#: Minimum number of background events that pass for a significance improvement.
MIN_BACKGROUND: Final = 25
#: Channels beyond the Standard Model, in the order of their codes in the truth, from 1.
SIGNALS: Final = ("hidden_valley", "higgs_portal", "susy_gmsb", "zprime")

_SIGNIFICANCE: Final = (
    f"maximum over thresholds that at least {MIN_BACKGROUND} background events pass of (signal events that "
    "pass / all signal events) / sqrt(background events that pass / all background events)"
)
_OF_SIGNIFICANCE: Final = "after the LHC Olympics 2020, G. Kasieczka et al., arXiv:2101.08320"
_ALL: Final = range(len(SIGNALS))
#: Signals of the metrics with each suffix, as indices of SIGNALS.
_BY_SUFFIX: Final = {"": _ALL, **{f"_{name}": (index,) for index, name in enumerate(SIGNALS)}}


def _signal_metrics(signal: str) -> tuple[Metric, Metric]:
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
        *(metric for signal in SIGNALS for metric in _signal_metrics(signal)),
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class AnomalyTally:
    """Ascending scores of the background and of each of SIGNALS, and numbers of events without a score."""

    background: Numbers
    signals: tuple[Numbers, ...]
    unscored_background: int = 0
    unscored_signals: tuple[int, ...] = (0,) * len(SIGNALS)

    @classmethod
    def of(
        cls, scores: Sequence[Numbers], unscored: Sequence[int] = (0,) * (len(SIGNALS) + 1)
    ) -> AnomalyTally:
        """Return the tally of scores of the background and of each signal, in any order."""
        background, *signals = map(np.sort, scores)
        return cls(background, tuple(signals), unscored[0], tuple(unscored[1:]))

    def curve(self, signals: Sequence[int] = _ALL) -> Scores:
        """Return the curve of signals, given by their indices in SIGNALS, against the background."""
        return Scores(
            merged_scores(self.signals[index] for index in signals),
            self.background,
            sum(self.unscored_signals[index] for index in signals),
            self.unscored_background,
        )


def merge(tallies: Sequence[AnomalyTally]) -> AnomalyTally:
    """Return the tally of all events."""
    return AnomalyTally(
        merged_scores(tally.background for tally in tallies),
        tuple(merged_scores(tally.signals[index] for tally in tallies) for index in _ALL),
        sum(tally.unscored_background for tally in tallies),
        tuple(sum(tally.unscored_signals[index] for tally in tallies) for index in _ALL),
    )


def metrics(tally: AnomalyTally) -> dict[str, float]:
    """Return the card's metrics, without those of signals that the events do not contain."""
    return _metrics(_curves(tally))


def counts(tally: AnomalyTally) -> dict[str, Counts]:
    """Return the number of signal events that pass with 1% of the background, and of all signal events."""
    curve = tally.curve()
    passing = curve.signal_efficiency(FALSE_POSITIVE_RATE) * curve.signal_rows
    return {"signal_efficiency_fpr1": (passing, curve.signal_rows)}


def sample_sizes(tally: AnomalyTally) -> dict[str, int]:
    """Return the number of events of the smaller class, which limits the precision of each metric."""
    return {
        f"{metric}{suffix}": min(curve.signal_rows, curve.background_rows)
        for suffix, curve in _curves(tally).items()
        for metric in ("auroc", "signal_efficiency_fpr1", "significance_improvement")
    }


def resample(tallies: Sequence[AnomalyTally], draws: Draws) -> list[dict[str, float]]:
    """Return the metrics of each draw of groups of events, from binned curves."""
    suffixes = dict.fromkeys(suffix for tally in tallies for suffix in _curves(tally))
    drawn = [resampled([tally.curve(_BY_SUFFIX[suffix]) for tally in tallies], draws) for suffix in suffixes]
    return [_metrics(dict(zip(suffixes, curves, strict=True))) for curves in zip(*drawn, strict=True)]


def curves(tally: AnomalyTally) -> list[Curve]:
    """Return the ROC curves of all signals, and of each."""
    return [
        curve
        for suffix, roc in _curves(tally).items()
        for curve in roc_curves(
            f"roc{suffix}",
            "Background efficiency",
            f"efficiency of {suffix[1:].replace('_', ' ') or 'all signals'}",
            roc,
        )
    ]


def _curves(tally: AnomalyTally) -> dict[str, Scores]:
    """Return the curve of all signals, and of each signal with events, by the suffix of its metrics."""
    found = {suffix: tally.curve(signals) for suffix, signals in _BY_SUFFIX.items()}
    return {suffix: curve for suffix, curve in found.items() if curve.signal_rows or not suffix}


def _metrics(curves: Mapping[str, Roc]) -> dict[str, float]:
    whole = curves[""]
    found = {"auroc": whole.auc(), "signal_efficiency_fpr1": whole.signal_efficiency(FALSE_POSITIVE_RATE)}
    for suffix, curve in curves.items():
        if curve.signal_rows:
            found[f"auroc{suffix}"] = curve.auc()
            if curve.background_rows >= MIN_BACKGROUND:
                found[f"significance_improvement{suffix}"] = curve.significance_improvement(MIN_BACKGROUND)
    return found
