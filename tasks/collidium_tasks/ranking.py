"""ROC curves and their metrics, for tasks that score signal against background.

Scores of signal and background are kept in order: the tally of a ranking, and its exact curve. The rank of a
row depends on all others, so a tally holds every score, in the width in which it was submitted: 4 or 8 bytes
a row. What is ordered once is merged and counted quickly.

For curves of resampled events every row is put into a bin of neighbouring scores once, for all draws. Some
hundred exact curves would take longer than scoring. The bins' edges are some thousand quantiles of either
class, and within a bin rows count as equal: an area is off by some millionths, an efficiency by less than its
standard error, by far.
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
    """The curve of some rows. Counts are of rows, and every metric of an empty class is 0."""

    @property
    @abstractmethod
    def signal_rows(self) -> int:
        """All signal, with a score or without."""

    @property
    @abstractmethod
    def background_rows(self) -> int:
        """All background, with a score or without."""

    @abstractmethod
    def pairs_won(self) -> float:
        """Pairs of signal and background in which the signal has the higher score; of equal ones, half."""

    @abstractmethod
    def signal_passing(self, background: Fraction) -> float:
        """The maximum signal efficiency at that background efficiency."""

    @abstractmethod
    def background_passing(self, signal: Fraction) -> float:
        """The minimum background efficiency at that signal efficiency."""

    @abstractmethod
    def significance_improvement(self, passing: int) -> float:
        """The maximum of signal efficiency over the root of background efficiency, over all thresholds that
        at least ``passing`` rows of background pass; there must be as many, and signal.
        """

    def auc(self) -> float:
        """The area under the curve: the part of all pairs that is won.

        It is the statistic of Mann and Whitney (J. Hanley and B. McNeil, Radiology 143 (1982) 29).
        """
        pairs = self.signal_rows * self.background_rows
        return self.pairs_won() / pairs if pairs else 0.0

    def signal_efficiency(self, false_positive_rate: Fraction) -> float:
        """The part of the signal that passes with this part of the background."""
        if not (self.signal_rows and self.background_rows):
            return 0.0
        return self.signal_passing(false_positive_rate * self.background_rows) / self.signal_rows

    def background_efficiency(self, signal_efficiency: Fraction) -> float:
        """The part of the background that passes with this part of the signal."""
        if not (self.signal_rows and self.background_rows):
            return 0.0
        return self.background_passing(signal_efficiency * self.signal_rows) / self.background_rows

    def rejection(self, signal_efficiency: Fraction) -> float:
        """One over the background efficiency. Less than one row that passes counts as one: it is finite."""
        if not (self.signal_rows and self.background_rows):
            return 0.0
        return self.background_rows / max(self.background_passing(signal_efficiency * self.signal_rows), 1.0)


#: Finite floats or integers of any width.
Numbers = npt.NDArray[Any]

#: Rows whose places are looked up at once: their places stay in the cache.
_CHUNK: Final = 2**18


def _none() -> Numbers:
    return np.empty(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Scores(Roc):
    """``signal`` and ``background``: the scores of each class, ascending.

    Rows without a score cost as much as they can: signal of them is below everything, background above.
    """

    signal: Numbers = field(default_factory=_none)
    background: Numbers = field(default_factory=_none)
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
        """From the score and the class of each row, in any order."""
        return cls(
            np.sort(scores[is_signal]), np.sort(scores[~is_signal]), unscored_signal, unscored_background
        )

    @classmethod
    def merged(cls, parts: Sequence[Scores]) -> Scores:
        """All rows of the parts: the same to the last bit however they are grouped and ordered."""
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
        # The smaller class is looked up in the larger one.
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
        # Between two rows of signal the highest threshold has the least background. The first is that of
        # the wanted background, or above everything where background without a score suffices.
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


#: Bins of a curve, and events with signal that each has at least.
ROC_BINS: Final = 10
ROC_EVENTS: Final = 20


def roc_curves(name: str, title: str, quantity: str, roc: Roc, largest: int = 1) -> list[Curve]:
    """Return the background efficiency in bins of the signal efficiency; none without enough signal.

    A value is that in the middle of its bin. Its error is of the background's count and, in addition, of the
    threshold, by the values at one standard error of the signal efficiency to both sides. Of ``largest`` rows
    that an event has at most, the numbers of events are lower limits.
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
    """The scores of several ascending arrays, ascending; the same whatever their order."""
    filled = [array for array in arrays if len(array)]
    if len(filled) < 2:
        return filled[0] if filled else _none()
    together = np.concatenate(filled)
    together.sort()
    return together


def _twice_above(some: Numbers, others: Numbers) -> int:
    """For each of ``some``, twice how many of ``others`` are below it, and how many equal it; summed."""
    if not len(others):
        return 0
    twice = 0
    for start in range(0, len(some), _CHUNK):
        chunk = some[start : start + _CHUNK]
        below = np.searchsorted(others, chunk, "left")
        # Most have no equals: only where there are some is it worth to look for the last of them.
        has_equals = others.take(below, mode="clip") == chunk
        upto = np.searchsorted(others, chunk[has_equals], "right")
        twice += 2 * int(below.sum()) + int(upto.sum()) - int(below[has_equals].sum())
    return twice


def _passing(scores: Numbers, threshold: Any) -> tuple[int, int]:
    """How many scores are above the threshold, and how many equal it."""
    first, last = (int(np.searchsorted(scores, threshold, side)) for side in ("left", "right"))
    return len(scores) - last, last - first


def _interpolated(wanted: Fraction, along: tuple[int, int], across: tuple[int, int]) -> float:
    """How much passes of one class where ``wanted`` rows of another do, within the rows of equal score."""
    (above, equal), (others_above, others_equal) = along, across
    return float(others_above + others_equal * (wanted - above) / equal)


#: Quantiles of each class, about; a class of fewer rows gives all its scores.
QUANTILES: Final = 1024

#: Rows in bins, from the highest scores to the lowest, summed; whole numbers from 0 on.
Sums = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class BinnedRoc(Roc):
    """A curve through the edges of bins: how much of each class is above each of them."""

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
        # Backwards: of several points with as much signal, the first on the curve is meant.
        return float(np.interp(-float(signal), -self.signal[::-1], self.background[::-1]))


def resampled(groups: Sequence[Scores], draws: Draws) -> Iterator[BinnedRoc]:
    """The curve of each draw of groups of events, one at a time."""
    times = np.array([np.bincount(draw, minlength=len(groups)) for draw in draws], np.float64)
    signal, background = ([getattr(group, name) for group in groups] for name in ("signal", "background"))
    edges = np.union1d(_quantiles(signal), _quantiles(background))
    # Scores lie in the bins between; before them is background without a score, after them such signal.
    signals, backgrounds = (_counts(scores, edges) for scores in (signal, background))
    signals[:, -1] = [group.unscored_signal for group in groups]
    backgrounds[:, 0] = [group.unscored_background for group in groups]
    for signal_sums, background_sums in zip(_sums(times @ signals), _sums(times @ backgrounds), strict=True):
        yield BinnedRoc(signal_sums, background_sums)


def _quantiles(scores: Sequence[Numbers]) -> npt.NDArray[Any]:
    """Every so many-th score: each group gives as many, and begins at another place."""
    step = max(sum(map(len, scores)) // QUANTILES, 1)
    picked = [group[number * step // len(scores) :: step] for number, group in enumerate(scores)]
    return np.concatenate([part for part in picked if len(part)] or [np.empty(0)])


def _counts(scores: Sequence[Numbers], edges: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Rows of each group in each bin, from the highest on, and an empty bin before and after these."""
    counts = np.zeros((len(scores), len(edges) + 3))
    for number, group in enumerate(scores):
        starts = np.searchsorted(group, edges, "left")
        counts[number, 1:-1] = np.diff(starts, prepend=0, append=len(group))[::-1]
    return counts


def _sums(counts: npt.NDArray[np.float64]) -> Sums:
    """Of all bins before each edge, from none to all, shape (draws, bins + 1)."""
    sums = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=sums[:, 1:])
    return sums
