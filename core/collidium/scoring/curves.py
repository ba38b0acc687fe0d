"""Scores in bins, coarse enough to be shown: they disclose no single event.

Imported by worker processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, isfinite, log10, sqrt
from typing import Final

from collidium.contracts.task import Curve
from collidium.records import BinnedScore

#: A bin has so many events and entries, or is merged with its neighbours.
MIN_EVENTS: Final = 20
MIN_ENTRIES: Final = 50
#: A value is rounded to this part of its error.
ROUNDING: Final = 0.1
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
    edges, part, whole, events = [float(curve.edges[0])], [0], [0], [0]
    for number, edge in enumerate(curve.edges[1:]):
        part[-1] += int(curve.part[number])
        whole[-1] += int(curve.whole[number])
        # The same events may have entries in both bins.
        events[-1] = max(events[-1], int(curve.events[number]))
        if whole[-1] >= MIN_ENTRIES and events[-1] >= MIN_EVENTS:
            edges.append(float(edge))
            part.append(0)
            whole.append(0)
            events.append(0)
    # The rest is too small, and part of the last bin.
    rest = part.pop(), whole.pop()
    if whole:
        part[-1], whole[-1], edges[-1] = part[-1] + rest[0], whole[-1] + rest[1], float(curve.edges[-1])
    rounded = [_rounded(k, n) for k, n in zip(part, whole, strict=True)]
    return BinnedScore(
        name=curve.name,
        title=curve.title,
        quantity=curve.quantity,
        edges=tuple(edges),
        values=tuple(value for value, _ in rounded),
        errors=tuple(error for _, error in rounded),
    )


def _rounded(part: int, whole: int) -> tuple[float, float]:
    """A fraction and its standard error, which is that of the Beta distribution: never 0."""
    mean = (part + 1) / (whole + 2)
    error = sqrt(mean * (1 - mean) / (whole + 3))
    digits = 1 - floor(log10(error))
    error = round(error, digits)
    step = ROUNDING * error
    return round(min(round(part / whole / step) * step, 1.0), digits + 1), error


def _check(curve: Curve) -> None:
    bins = len(curve.part)
    if not len(curve.whole) == len(curve.events) == len(curve.edges) - 1 == bins or not 0 < bins <= MAX_BINS:
        raise ValueError(f"curve {curve.name}: 1 to {MAX_BINS} bins with one more edge are needed")
    if not all(isfinite(edge) for edge in curve.edges) or any(a >= b for a, b in pairwise(curve.edges)):
        raise ValueError(f"curve {curve.name}: the edges must be finite and increasing")
    if any(not 0 <= k <= n for k, n in zip(curve.part, curve.whole, strict=True)):
        raise ValueError(f"curve {curve.name}: a part must lie between 0 and the whole")
