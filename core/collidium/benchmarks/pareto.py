"""The Pareto front of a set of points (V. Pareto, Manuale di economia politica, 1906, chapter VI)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import inf


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The places, in order, of the points that none dominates; of both coordinates more is better.

    One dominates another that is at least as good in both and better in one, so equal points share a place
    on the front. One sort.
    """
    best = -inf
    found: list[int] = []
    order = sorted(range(len(points)), key=points.__getitem__, reverse=True)
    for _, group in groupby(order, key=lambda place: points[place][0]):
        equals = list(group)
        highest = points[equals[0]][1]
        if highest > best:
            best = highest
            found += [place for place in equals if points[place][1] == highest]
    return sorted(found)
