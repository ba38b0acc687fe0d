"""Merged scores of events by kind, and the metrics computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from collidium.contracts.task import Counts, Curve, Draws
from collidium_tasks.anomaly.card import FALSE_POSITIVE_RATE, MIN_BACKGROUND, SIGNALS
from collidium_tasks.ranking import Numbers, Roc, Scores, merged_scores, resampled, roc_curves

_EVERY: Final = range(len(SIGNALS))
_PLACES: Final = {"": _EVERY, **{f"_{name}": (place,) for place, name in enumerate(SIGNALS)}}


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
