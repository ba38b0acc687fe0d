"""Curves of resampled events: every row is put into a bin of neighbouring scores once, for all draws.

Some hundred exact curves would take longer than scoring. The bins' edges are some thousand quantiles of
either class, and within a bin rows count as equal: an area is off by some millionths, an efficiency by less
than its standard error, by far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium.contracts.task import Draws
from collidium_tasks.ranking.scores import Numbers, Roc, Scores

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
