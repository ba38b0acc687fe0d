"""Merged scores of events by kind, and the metrics computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from collidium.contracts.task import Counts, Curve, Draws
from collidium_tasks.anomaly.card import FALSE_POSITIVE_RATE, MIN_BACKGROUND, SIGNALS
from collidium_tasks.ranking import Numbers, Roc, Scores, merged_scores, resampled, roc_curves

_EVERY: Final = range(len(SIGNALS))


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
    return _metrics(tally.curve(), [tally.curve([place]) for place in _EVERY])


def counts(tally: Tally) -> dict[str, Counts]:
    """Signal that passes with 1% of the background."""
    curve = tally.curve()
    passing = curve.signal_efficiency(FALSE_POSITIVE_RATE) * curve.signal_rows
    return {"signal_efficiency_fpr1": (passing, curve.signal_rows)}


def resample(tallies: Sequence[Tally], draws: Draws) -> list[dict[str, float]]:
    """The metrics of each draw of groups of events, from bins of neighbouring scores."""
    together = resampled([tally.curve() for tally in tallies], draws)
    each = [resampled([tally.curve([place]) for tally in tallies], draws) for place in _EVERY]
    return [_metrics(whole, curves) for whole, *curves in zip(together, *each, strict=True)]


def curves(tally: Tally) -> list[Curve]:
    """The background efficiency against that of all signals, and of each."""
    every = [("all_signals", tally.curve()), *((name, tally.curve([i])) for i, name in enumerate(SIGNALS))]
    return [
        curve
        for name, roc in every
        for curve in roc_curves(
            f"roc_{name}", "Background efficiency", f"efficiency of {name.replace('_', ' ')}", roc
        )
    ]


def _metrics(whole: Roc, each: Sequence[Roc]) -> dict[str, float]:
    found = {"auroc": whole.auc(), "signal_efficiency_fpr1": whole.signal_efficiency(FALSE_POSITIVE_RATE)}
    for suffix, curve in [("", whole), *((f"_{name}", one) for name, one in zip(SIGNALS, each, strict=True))]:
        if curve.signal_rows:
            if suffix:
                found[f"auroc{suffix}"] = curve.auc()
            if curve.background_rows >= MIN_BACKGROUND:
                found[f"significance_improvement{suffix}"] = curve.significance_improvement(MIN_BACKGROUND)
    return found
