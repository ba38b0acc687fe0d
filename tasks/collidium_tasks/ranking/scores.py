"""Scores of signal and background, each in order: the tally of a ranking, and its exact curve.

Where one row stands depends on all others, so a tally holds every score, in the width in which it was
submitted: 4 or 8 bytes a row. What is ordered once is merged and counted quickly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final

import numpy as np
import numpy.typing as npt


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
            _merged(part.signal for part in parts),
            _merged(part.background for part in parts),
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

    def background_passing(self, signal: Fraction) -> float:
        if signal <= 0:
            return 0.0
        if signal > len(self.signal):
            return float(self.background_rows)
        threshold = self.signal[len(self.signal) - ceil(signal)]
        scored = _interpolated(signal, _passing(self.signal, threshold), _passing(self.background, threshold))
        return self.unscored_background + scored


def _merged(arrays: Iterable[Numbers]) -> Numbers:
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
