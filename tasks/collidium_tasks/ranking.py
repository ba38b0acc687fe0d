"""ROC curves and their metrics, for tasks that separate signal from background.

The tally of a ranking is the sorted scores of both classes (:class:`Scores`), from which its curve is exact.
The rank of a row depends on all other rows, so a tally holds every score, with the width in which it was
submitted: 4 or 8 bytes a row.

Curves of resampled events (:func:`resampled`) are binned, since some hundred exact curves would take longer
than scoring. The edges of the bins are about a thousand quantiles of each class, and rows within a bin count
as equal: areas are off by about 1e-6, efficiencies by much less than their standard error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium.contracts.task import Curve, Draws

__all__ = ["Numbers", "Roc", "Scores", "merged_scores", "resampled", "roc_curves"]


class Roc(ABC):
    """A ROC curve. Metrics are 0 where one of the classes is empty."""

    @property
    @abstractmethod
    def signal_rows(self) -> int:
        """Number of signal rows, with or without a score."""

    @property
    @abstractmethod
    def background_rows(self) -> int:
        """Number of background rows, with or without a score."""

    @abstractmethod
    def pairs_won(self) -> float:
        """Return the number of signal-background pairs in which the signal scores higher; ties count half."""

    @abstractmethod
    def signal_passing(self, background: Fraction) -> float:
        """Return the maximum number of signal rows that pass with this number of background rows."""

    @abstractmethod
    def background_passing(self, signal: Fraction) -> float:
        """Return the minimum number of background rows that pass with this number of signal rows."""

    @abstractmethod
    def significance_improvement(self, passing: int) -> float:
        """Return the maximum of signal efficiency over the square root of background efficiency.

        The maximum is over thresholds that at least ``passing`` background rows pass. There must be as many
        background rows, and signal.
        """

    def auc(self) -> float:
        """Return the area under the curve, which is the fraction of pairs won.

        It is the Mann-Whitney statistic (J. Hanley and B. McNeil, Radiology 143 (1982) 29).
        """
        pairs = self.signal_rows * self.background_rows
        return self.pairs_won() / pairs if pairs else 0.0

    def signal_efficiency(self, false_positive_rate: Fraction) -> float:
        """Return the signal efficiency at a background efficiency."""
        if not (self.signal_rows and self.background_rows):
            return 0.0
        return self.signal_passing(false_positive_rate * self.background_rows) / self.signal_rows

    def background_efficiency(self, signal_efficiency: Fraction) -> float:
        """Return the background efficiency at a signal efficiency."""
        if not (self.signal_rows and self.background_rows):
            return 0.0
        return self.background_passing(signal_efficiency * self.signal_rows) / self.background_rows

    def rejection(self, signal_efficiency: Fraction) -> float:
        """Return the inverse of the background efficiency, for which at least one row counts as passing."""
        if not (self.signal_rows and self.background_rows):
            return 0.0
        return self.background_rows / max(self.background_passing(signal_efficiency * self.signal_rows), 1.0)


#: Finite floats or integers of any width.
Numbers = npt.NDArray[Any]

#: Rows that are looked up at once, so that results stay in the CPU cache.
_CHUNK: Final = 2**18


def _no_scores() -> Numbers:
    return np.empty(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Scores(Roc):
    """The scores of each class, ascending, and the exact curve.

    Rows without a score get the worst rank: signal below everything, background above.
    """

    signal: Numbers = field(default_factory=_no_scores)
    background: Numbers = field(default_factory=_no_scores)
    unscored_signal: int = 0
    unscored_background: int = 0

    @classmethod
    def of(
        cls,
        scores: Numbers,
        is_signal: npt.NDArray[np.bool_],
        *,
        unscored_signal: int = 0,
        unscored_background: int = 0,
    ) -> Scores:
        """Return the tally of rows in any order."""
        return cls(
            np.sort(scores[is_signal]), np.sort(scores[~is_signal]), unscored_signal, unscored_background
        )

    @classmethod
    def merged(cls, parts: Sequence[Scores]) -> Scores:
        """Return the tally of all parts; it does not depend on their order or grouping, to the last bit."""
        return cls(
            merged_scores(part.signal for part in parts),
            merged_scores(part.background for part in parts),
            sum(part.unscored_signal for part in parts),
            sum(part.unscored_background for part in parts),
        )

    @property
    def signal_rows(self) -> int:
        return len(self.signal) + self.unscored_signal

    @property
    def background_rows(self) -> int:
        return len(self.background) + self.unscored_background

    def pairs_won(self) -> float:
        # Look up the smaller class in the larger one.
        if len(self.signal) <= len(self.background):
            return _twice_above(self.signal, self.background) / 2
        lost = _twice_above(self.background, self.signal)
        return (2 * len(self.signal) * len(self.background) - lost) / 2

    def signal_passing(self, background: Fraction) -> float:
        wanted = background - self.unscored_background
        if wanted < 0:
            return 0.0
        if wanted >= len(self.background):
            return float(self.signal_rows)
        threshold = self.background[len(self.background) - 1 - floor(wanted)]
        return _interpolated(wanted, _passing(self.background, threshold), _passing(self.signal, threshold))

    def significance_improvement(self, passing: int) -> float:
        scored = passing - self.unscored_background
        if scored > len(self.background) or not len(self.signal):
            return 0.0
        # Of thresholds with the same signal, the highest has the least background: a signal's score. In
        # addition, the threshold that exactly ``passing`` background rows pass.
        thresholds = self.signal
        if scored > 0:
            first = self.background[len(self.background) - scored]
            thresholds = np.append(thresholds[thresholds < first], first)
        signal, background = (
            len(scores) - np.searchsorted(scores, thresholds, "left")
            for scores in (self.signal, self.background)
        )
        return _best_significance(
            signal / self.signal_rows, (background + self.unscored_background) / self.background_rows
        )

    def background_passing(self, signal: Fraction) -> float:
        if signal <= 0:
            return 0.0
        if signal > len(self.signal):
            return float(self.background_rows)
        threshold = self.signal[len(self.signal) - ceil(signal)]
        scored = _interpolated(signal, _passing(self.signal, threshold), _passing(self.background, threshold))
        return self.unscored_background + scored


#: Maximum number of bins of a curve, and minimum number of events with signal per bin.
ROC_BINS: Final = 10
ROC_EVENTS: Final = 20


def roc_curves(name: str, title: str, quantity: str, roc: Roc, largest: int = 1) -> list[Curve]:
    """Return the background efficiency in bins of the signal efficiency; empty without enough signal.

    Values are those in the middle of the bins. ``errors`` are those from the threshold: half of the
    difference of the values at one standard error of the signal efficiency to both sides. ``largest`` is the
    maximum number of rows of an event, from which numbers of events are lower limits.
    """
    signal, background = roc.signal_rows, roc.background_rows
    bins = min(ROC_BINS, signal // largest // ROC_EVENTS) if largest else 0
    if not (bins and background):
        return []
    part, errors = [], []
    for number in range(bins):
        middle = Fraction(2 * number + 1, 2 * bins)
        part.append(round(roc.background_passing(middle * signal)))
        spread = Fraction(sqrt(middle * (1 - middle) / signal))
        low, high = (
            roc.background_efficiency(min(max(middle + side * spread, Fraction(0)), Fraction(1)))
            for side in (-1, 1)
        )
        errors.append((high - low) / 2)
    return [
        Curve(
            name=name,
            title=title,
            quantity=quantity,
            edges=[number / bins for number in range(bins + 1)],
            part=part,
            whole=[background] * bins,
            events=[background // largest] * bins,
            errors=errors,
        )
    ]


def _best_significance(signal: npt.NDArray[np.float64], background: npt.NDArray[np.float64]) -> float:
    return float((signal / np.sqrt(background)).max())


def merged_scores(arrays: Iterable[Numbers]) -> Numbers:
    """Merge ascending arrays into one; the result does not depend on their order."""
    filled = [array for array in arrays if len(array)]
    if len(filled) < 2:
        return filled[0] if filled else _no_scores()
    merged = np.concatenate(filled)
    merged.sort()
    return merged


def _twice_above(some: Numbers, others: Numbers) -> int:
    """Return twice the number of pairs in which one of ``some`` is above one of ``others``, plus the ties."""
    if not len(others):
        return 0
    twice = 0
    for start in range(0, len(some), _CHUNK):
        chunk = some[start : start + _CHUNK]
        below = np.searchsorted(others, chunk, "left")
        # Most scores have no ties, so only ties are looked up from the right.
        has_equals = others.take(below, mode="clip") == chunk
        upto = np.searchsorted(others, chunk[has_equals], "right")
        twice += 2 * int(below.sum()) + int(upto.sum()) - int(below[has_equals].sum())
    return twice


def _passing(scores: Numbers, threshold: Any) -> tuple[int, int]:
    """Return the number of scores above the threshold, and the number equal to it."""
    first, last = (int(np.searchsorted(scores, threshold, side)) for side in ("left", "right"))
    return len(scores) - last, last - first


def _interpolated(wanted: Fraction, along: tuple[int, int], across: tuple[int, int]) -> float:
    """Interpolate within ties: rows of one class that pass where ``wanted`` rows of the other class pass."""
    (above, equal), (others_above, others_equal) = along, across
    return float(others_above + others_equal * (wanted - above) / equal)


#: Approximate number of quantiles of each class; a class of fewer rows contributes all its scores.
QUANTILES: Final = 1024

#: Cumulative numbers of rows in bins, from the highest scores to the lowest, beginning with 0.
Sums = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class BinnedRoc(Roc):
    """A curve through the numbers of rows of each class above the edges of bins."""

    signal: Sums
    background: Sums

    @property
    def signal_rows(self) -> int:
        return int(self.signal[-1])

    @property
    def background_rows(self) -> int:
        return int(self.background[-1])

    def pairs_won(self) -> float:
        below = self.background[-1] - (self.background[1:] + self.background[:-1]) / 2
        return float(np.diff(self.signal) @ below)

    def signal_passing(self, background: Fraction) -> float:
        return float(np.interp(float(background), self.background, self.signal))

    def significance_improvement(self, passing: int) -> float:
        allowed = self.background >= passing
        signal, background = self.signal[allowed], self.background[allowed]
        return _best_significance(signal / self.signal_rows, background / self.background_rows)

    def background_passing(self, signal: Fraction) -> float:
        # Reversed, so that of several points with equal signal the first on the curve is used.
        return float(np.interp(-float(signal), -self.signal[::-1], self.background[::-1]))


def resampled(groups: Sequence[Scores], draws: Draws) -> Iterator[BinnedRoc]:
    """Yield the curve of each draw of groups of events."""
    times = np.array([np.bincount(draw, minlength=len(groups)) for draw in draws], np.float64)
    signal, background = ([getattr(group, name) for group in groups] for name in ("signal", "background"))
    edges = np.union1d(_quantiles(signal), _quantiles(background))
    # The first bin is for background without a score, the last one for signal without a score.
    signals, backgrounds = (_counts(scores, edges) for scores in (signal, background))
    signals[:, -1] = [group.unscored_signal for group in groups]
    backgrounds[:, 0] = [group.unscored_background for group in groups]
    for signal_sums, background_sums in zip(_sums(times @ signals), _sums(times @ backgrounds), strict=True):
        yield BinnedRoc(signal_sums, background_sums)


def _quantiles(scores: Sequence[Numbers]) -> npt.NDArray[Any]:
    """Return every n-th score of each group, with different first scores."""
    step = max(sum(map(len, scores)) // QUANTILES, 1)
    picked = [group[number * step // len(scores) :: step] for number, group in enumerate(scores)]
    return np.concatenate([part for part in picked if len(part)] or [np.empty(0)])


def _counts(scores: Sequence[Numbers], edges: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Count the rows of each group in each bin, from the highest scores, with an empty bin at both ends."""
    counts = np.zeros((len(scores), len(edges) + 3))
    for number, group in enumerate(scores):
        starts = np.searchsorted(group, edges, "left")
        counts[number, 1:-1] = np.diff(starts, prepend=0, append=len(group))[::-1]
    return counts


def _sums(counts: npt.NDArray[np.float64]) -> Sums:
    """Return cumulative counts, shape (draws, bins + 1)."""
    sums = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=sums[:, 1:])
    return sums
