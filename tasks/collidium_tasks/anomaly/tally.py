"""The card of the task, merged scores of events by kind, and the metrics computed from them."""

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
#: Background events that must pass for a significance.
MIN_BACKGROUND: Final = 25
#: Channels beyond the Standard Model, in the order of their codes in the truth, which start at 1.
SIGNALS: Final = ("hidden_valley", "higgs_portal", "susy_gmsb", "zprime")

_SIGNIFICANCE: Final = (
    f"maximum over thresholds that at least {MIN_BACKGROUND} background events pass of (signal events that "
    "pass / all signal events) / sqrt(background events that pass / all background events)"
)
_OF_SIGNIFICANCE: Final = "after the LHC Olympics 2020, G. Kasieczka et al., arXiv:2101.08320"
_EVERY: Final = range(len(SIGNALS))
_PLACES: Final = {"": _EVERY, **{f"_{name}": (place,) for place, name in enumerate(SIGNALS)}}


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


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The scores of the background and of each of SIGNALS, ascending, and how many events have none."""

    background: Numbers
    signals: tuple[Numbers, ...]
    unscored_background: int = 0
    unscored_signals: tuple[int, ...] = (0,) * len(SIGNALS)

    @classmethod
    def of(cls, scores: Sequence[Numbers], unscored: Sequence[int] = (0,) * (len(SIGNALS) + 1)) -> Tally:
        """From the scores of the background and of each signal, in any order."""
        background, *signals = map(np.sort, scores)
        return cls(background, tuple(signals), unscored[0], tuple(unscored[1:]))

    def curve(self, signals: Sequence[int] = _EVERY) -> Scores:
        """Some signals, by their places in SIGNALS, against the background."""
        return Scores(
            merged_scores(self.signals[place] for place in signals),
            self.background,
            sum(self.unscored_signals[place] for place in signals),
            self.unscored_background,
        )


def merge(tallies: Sequence[Tally]) -> Tally:
    """The tally of all their events."""
    return Tally(
        merged_scores(tally.background for tally in tallies),
        tuple(merged_scores(tally.signals[place] for tally in tallies) for place in _EVERY),
        sum(tally.unscored_background for tally in tallies),
        tuple(sum(tally.unscored_signals[place] for tally in tallies) for place in _EVERY),
    )


def metrics(tally: Tally) -> dict[str, float]:
    """The card's metrics; those of signals that are not there are missing."""
    return _metrics(_by_suffix(tally))


def counts(tally: Tally) -> dict[str, Counts]:
    """Signal that passes with 1% of the background."""
    curve = tally.curve()
    passing = curve.signal_efficiency(FALSE_POSITIVE_RATE) * curve.signal_rows
    return {"signal_efficiency_fpr1": (passing, curve.signal_rows)}


def sample_sizes(tally: Tally) -> dict[str, int]:
    """Events of the smaller class: with one signal in ten groups of events, the others add nothing."""
    return {
        f"{metric}{suffix}": min(curve.signal_rows, curve.background_rows)
        for suffix, curve in _by_suffix(tally).items()
        for metric in ("auroc", "signal_efficiency_fpr1", "significance_improvement")
    }


def resample(tallies: Sequence[Tally], draws: Draws) -> list[dict[str, float]]:
    """The metrics of each draw of groups of events, from bins of neighbouring scores."""
    suffixes = dict.fromkeys(suffix for tally in tallies for suffix in _by_suffix(tally))
    drawn = [resampled([tally.curve(_PLACES[suffix]) for tally in tallies], draws) for suffix in suffixes]
    return [_metrics(dict(zip(suffixes, curves, strict=True))) for curves in zip(*drawn, strict=True)]


def curves(tally: Tally) -> list[Curve]:
    """The background efficiency against that of all signals, and of each."""
    return [
        curve
        for suffix, roc in _by_suffix(tally).items()
        for curve in roc_curves(
            f"roc{suffix}",
            "Background efficiency",
            f"efficiency of {suffix[1:].replace('_', ' ') or 'all signals'}",
            roc,
        )
    ]


def _by_suffix(tally: Tally) -> dict[str, Scores]:
    """The curve of all signals, and of each that there is, by what stands behind the names of its metrics."""
    found = {suffix: tally.curve(places) for suffix, places in _PLACES.items()}
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
