"""The receiver operating characteristic: how much signal passes with how much background.

A threshold on the score is lowered from above everything to below everything. Rows of equal score pass
together; between thresholds the curve is straight, as if equal scores were decided by chance (T. Fawcett,
Pattern Recognition Letters 27 (2006) 861).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction


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
