"""Pareto fronts of leaderboards whose task names two metrics, kept as long as their edition is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from collidium.benchmarks.leaderboard import ranks
from collidium.benchmarks.leaderboard.ranks import Edition, Front
from collidium.runtime.shared_calls import SharedCalls

if TYPE_CHECKING:
    from collidium.contracts.task import Card

#: Fronts in memory.
_KEPT: Final = 8
#: Places read at once: others take their turn in between.
_CHUNK: Final = 1000


class Fronts:
    """The fronts of the latest editions, each found once however many ask for it."""

    def __init__(self) -> None:
        self._found: SharedCalls[Edition, Front] = SharedCalls(LRUCache(_KEPT))

    async def of(self, edition: Edition, card: Card | None) -> Front | None:
        """The front of a leaderboard; None where the card names no two metrics to be traded."""
        if card is None or (metrics := card.pareto) is None:
            return None
        return await self._found.run(edition, lambda: _find(edition, card, metrics))


async def _find(edition: Edition, card: Card, metrics: tuple[str, str]) -> Front:
    """A submission that lacks one of the metrics is not on the front."""
    signs = {metric.name: 1 if metric.higher_is_better else -1 for metric in card.metrics}
    first, second = metrics
    points: list[tuple[float, float]] = []
    found: list[tuple[str, int]] = []
    done = 0
    while rows := await ranks.ranked(edition).offset(done).limit(_CHUNK).values_list("id", "scores"):
        for rank, (submission_id, scores) in enumerate(rows, done + 1):
            point = [signs[name] * scores.get(name, nan) for name in (first, second)]
            if all(map(isfinite, point)):
                points.append((point[0], point[1]))
                found.append((submission_id, rank))
        places = front(points)
        points, found = [points[place] for place in places], [found[place] for place in places]
        done += len(rows)
    return dict(found)


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
