"""Pareto fronts of leaderboards whose task names two metrics, kept as long as their edition is asked for."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Mapping
from math import isfinite, nan
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from collidium.benchmarks import leaderboard, pareto
from collidium.benchmarks.leaderboard import Edition

if TYPE_CHECKING:
    from collidium.contracts.task import Card

#: The rank of each submission on a front by its id, best first.
Front = Mapping[str, int]

#: Fronts in memory.
_KEPT: Final = 8
#: Places read at once: others take their turn in between.
_CHUNK: Final = 1000


class Fronts:
    """The fronts of the latest editions, each found once however many ask for it."""

    def __init__(self) -> None:
        self._kept: LRUCache[Edition, Front] = LRUCache(_KEPT)
        self._finding = Lock()

    async def of(self, edition: Edition, card: Card | None) -> Front | None:
        """The front of a leaderboard; None where the card names no two metrics to be traded."""
        if card is None or card.pareto is None:
            return None
        async with self._finding:
            found = self._kept.get(edition)
            if found is None:
                found = self._kept[edition] = await _find(edition, card, card.pareto)
            return found


async def _find(edition: Edition, card: Card, metrics: tuple[str, str]) -> Front:
    """A submission that lacks one of the metrics is not on the front."""
    signs = {metric.name: 1 if metric.higher_is_better else -1 for metric in card.metrics}
    first, second = metrics
    points: list[tuple[float, float]] = []
    found: list[tuple[str, int]] = []
    done = 0
    while rows := await leaderboard.ranked(edition).offset(done).limit(_CHUNK).values_list("id", "scores"):
        for rank, (submission_id, scores) in enumerate(rows, done + 1):
            point = [signs[name] * scores.get(name, nan) for name in (first, second)]
            if all(map(isfinite, point)):
                points.append((point[0], point[1]))
                found.append((submission_id, rank))
        places = pareto.front(points)
        points, found = [points[place] for place in places], [found[place] for place in places]
        done += len(rows)
    return dict(found)
