"""Scores in bins, coarse enough to be shown: they disclose no single event.

Imported by worker processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, hypot, inf, isfinite, log10, sqrt
from typing import Final

from collidium.contracts.task import Curve
from collidium.records import BinnedScore

#: A bin has so many events and entries, or is merged with its neighbours.
MIN_EVENTS: Final = 20
MIN_ENTRIES: Final = 100
#: A value is rounded to this part of its error, and to so many entries at least.
ROUNDING: Final = 0.1
STEP_ENTRIES: Final = 5
#: Curves of a submission, and bins of a curve.
MAX_CURVES: Final = 30
MAX_BINS: Final = 100


def shown(curves: Sequence[Curve]) -> tuple[BinnedScore, ...]:
    """Return what submitters may see of a task's curves, without those that have no large enough bin.

    Raises ValueError for curves that are not as :class:`~collidium.contracts.task.Curve` says.
    """
    if len(curves) > MAX_CURVES:
        raise ValueError(f"{len(curves)} curves, {MAX_CURVES} are allowed")
    found = [_shown(curve) for curve in curves]
    return tuple(score for score in found if score.values)


def _shown(curve: Curve) -> BinnedScore:
    _check(curve)
    bins: list[_Bin] = []
    joined = None
    for number, low in enumerate(curve.edges[:-1]):
        one = _Bin(
            float(low),
            int(curve.part[number]),
            int(curve.whole[number]),
            int(curve.events[number]),
            float(curve.errors[number]) if curve.errors else 0.0,
        )
        joined = joined.joined(one) if joined else one
        if joined.is_large:
            bins.append(joined)
            joined = None
    if bins and joined:  # the rest is too small, and part of the last bin
        bins[-1] = bins[-1].joined(joined)
    rounded = [one.rounded() for one in bins]
    return BinnedScore(
        name=curve.name,
        title=curve.title,
        quantity=curve.quantity,
        edges=(*(one.low for one in bins), float(curve.edges[-1])),
        values=tuple(value for value, _ in rounded),
        errors=tuple(error for _, error in rounded),
    )


@dataclass(frozen=True, slots=True)
class _Bin:
    low: float
    part: int
    whole: int
    events: int
    #: In addition to that of the counts.
    error: float

    @property
    def is_large(self) -> bool:
        return self.whole >= MIN_ENTRIES and self.events >= MIN_EVENTS

    def joined(self, other: _Bin) -> _Bin:
        # The same events may have entries in both bins, and thresholds may be wrong together.
        events, error = max(self.events, other.events), max(self.error, other.error)
        return _Bin(self.low, self.part + other.part, self.whole + other.whole, events, error)

    def rounded(self) -> tuple[float, float]:
        """The fraction and its standard error, which depends on the rounded fraction alone."""
        exact = self.part / self.whole
        error = hypot(_beta_error(exact, self.whole), self.error)
        step, digits = _step(max(ROUNDING * error, STEP_ENTRIES / self.whole))
        value = round(round(exact / step) * step, digits)
        error = hypot(_beta_error(value, self.whole), self.error, step / sqrt(12))
        return value, round(error, 1 - floor(log10(error)))


def _beta_error(fraction: float, of: int) -> float:
    """The standard deviation of the Beta distribution: never 0."""
    mean = (fraction * of + 1) / (of + 2)
    return sqrt(mean * (1 - mean) / (of + 3))


def _step(minimum: float) -> tuple[float, int]:
    """The next of 1, 2 and 5 times a power of ten, of which 1 is a multiple, and its decimals."""
    digits = -floor(log10(minimum))
    factor = next(factor for factor in (1, 2, 5, 10) if factor >= round(minimum * 10**digits, 6))
    return factor / 10**digits, digits


def _check(curve: Curve) -> None:
    bins = len(curve.part)
    if not len(curve.whole) == len(curve.events) == len(curve.edges) - 1 == bins or not 0 < bins <= MAX_BINS:
        raise ValueError(f"curve {curve.name}: 1 to {MAX_BINS} bins with one more edge are needed")
    if not all(isfinite(edge) for edge in curve.edges) or any(a >= b for a, b in pairwise(curve.edges)):
        raise ValueError(f"curve {curve.name}: the edges must be finite and increasing")
    if any(not 0 <= k <= n for k, n in zip(curve.part, curve.whole, strict=True)):
        raise ValueError(f"curve {curve.name}: a part must lie between 0 and the whole")
    if len(curve.errors) not in {0, bins} or not all(0 <= error < inf for error in curve.errors):
        raise ValueError(f"curve {curve.name}: one error for each bin is needed, finite and not negative")
