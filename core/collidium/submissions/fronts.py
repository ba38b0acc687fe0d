"""Pareto fronts: the submissions that no other dominates in two metrics.

They are computed from the whole leaderboard, once for each version and in portions: 0.3 s of CPU for 10,000
places. Kept in the database, each submission would have to maintain them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cachetools import LRUCache

from collidium.database import loaded, rows_of
from collidium.runtime.shared_calls import SharedCalls
from collidium.submissions import additions, leaderboard
from collidium.submissions.additions import BoardMark, Changes
from collidium.submissions.leaderboard import ALL, BoardVersion, Front, RankCounter
from collidium.submissions.models import Submission

if TYPE_CHECKING:
    from collidium.contracts.task import Card

#: The two metrics of a front, each with its sign: larger is better.
_Traded: TypeAlias = Sequence[tuple[str, int]]

#: How many submissions up to a mark are better than a score.
_AHEAD: Final = """
SELECT count(*) AS ahead FROM submissions
WHERE challenge = ? AND truth_version = ? AND rank_score > ? AND baseline = ? AND (submitted_at, id) <= (?, ?)
"""
#: Number of cached fronts.
_KEPT: Final = 8


class _Member(NamedTuple):
    """A submission on a front, with both metrics; larger is better."""

    id: str
    rank: int
    rank_score: float
    point: tuple[float, float]
    submitted_at: datetime


@dataclass(frozen=True, slots=True)
class _Members:
    mark: BoardMark | None
    #: Best first.
    all: Sequence[_Member]

    @property
    def front(self) -> Front:
        return {member.id: member.rank for member in self.all}


class Fronts:
    """A cache of the fronts of the latest versions; concurrent calls share the computation.

    After new submissions, and when others lost their rank that were no members, only these are read.
    """

    def __init__(self) -> None:
        self._found: SharedCalls[BoardVersion, Front] = SharedCalls(LRUCache(_KEPT))
        self._latest: LRUCache[tuple[str, str | None], _Members] = LRUCache(_KEPT)

    async def of(self, version: BoardVersion, card: Card | None) -> Front | None:
        """The front of a leaderboard; None if the card names no ``pareto`` metrics."""
        if card is None or (metrics := card.pareto) is None:
            return None
        return await self._found.run(version, lambda: self._find(version, card, metrics))

    async def _find(self, version: BoardVersion, card: Card, metrics: tuple[str, str]) -> Front:
        place = version.challenge, version.truth_version
        signs = {metric.name: 1 if metric.higher_is_better else -1 for metric in card.metrics}
        traded = [(name, signs[name]) for name in metrics]
        before, found = self._latest.get(place), None
        if before is not None and before.mark is not None:
            changes = await additions.since(version.challenge, before.mark)
            found = changes and await _with(before.all, changes, version, traded)
        self._latest[place] = found = found or await _find(version, traded)
        return found.front


async def _find(version: BoardVersion, metrics: _Traded) -> _Members:
    """Find the front; a submission that lacks one of the metrics is not on it."""
    mark = await additions.mark(version.challenge)
    found: list[_Member] = []
    if mark is None:
        return _Members(mark, found)
    last, counter = _moment_of(mark.submitted_at), RankCounter()
    async for rows in _read(version):
        for row in rows:
            if (row.submitted_at, row.id) > (last, mark.id):
                continue  # added below, when the next front is found
            rank = counter.next(row.rank_score, row.baseline)
            if point := _point(row.scores, metrics):
                found.append(_Member(row.id, rank, row.rank_score, point, row.submitted_at))
        found = [found[place] for place in front([member.point for member in found])]
    return _Members(mark, found)


async def _with(
    members: Sequence[_Member],
    changes: Changes,
    version: BoardVersion,
    metrics: _Traded,
) -> _Members | None:
    """Add later submissions to the members of a front; None if a member left, as it may hide others.

    What was no member hides nothing that no member hides.
    """
    if any(member.id in changes.left for member in members):
        return None
    truth, mark = version.truth_version, changes.mark
    new = [row for row in changes.rows if row["truth_version"] == truth and row["rank_score"] is not None]
    rivals = sorted(row["rank_score"] for row in new if not row["baseline"])
    found = [
        member._replace(
            rank=0 if changes.left else member.rank + len(rivals) - bisect_right(rivals, member.rank_score)
        )
        for member in members
    ]
    for row in new:
        if point := _point(loaded(Submission, "scores", row["scores"]), metrics):
            found.append(_Member(row["id"], 0, row["rank_score"], point, _moment_of(row["submitted_at"])))
    found.sort(key=lambda member: (-member.rank_score, member.submitted_at, member.id))
    found = [found[place] for place in front([member.point for member in found])]
    for place, member in enumerate(found):
        if not member.rank:
            found[place] = member._replace(rank=await _rank_until(mark, version, member.rank_score))
    return _Members(mark, found)


async def _rank_until(mark: BoardMark, version: BoardVersion, score: float) -> int:
    """The rank of a score among the submissions up to a mark."""
    values = version.challenge, version.truth_version, score, False, mark.submitted_at, mark.id
    (row,) = await rows_of(_AHEAD, *values)
    return int(row["ahead"]) + 1


def _point(scores: Mapping[str, float], metrics: _Traded) -> tuple[float, float] | None:
    """The values of both metrics, larger is better; None if it lacks one."""
    (first, sign), (second, other) = metrics
    point = sign * scores.get(first, nan), other * scores.get(second, nan)
    return point if all(map(isfinite, point)) else None


def _moment_of(value: object) -> datetime:
    moment: datetime = loaded(Submission, "submitted_at", value)
    return moment


class _Scored(NamedTuple):
    id: str
    scores: Mapping[str, float]
    rank_score: float
    baseline: bool
    submitted_at: datetime


async def _read(version: BoardVersion) -> AsyncIterator[list[_Scored]]:
    """All ranked submissions in chunks, best first."""
    last: _Scored | None = None
    while True:
        rows: list[_Scored] = []
        for query in leaderboard.following(version, ALL, last):
            rows += map(_Scored._make, await query.limit(leaderboard.CHUNK).values_list(*_Scored._fields))
        if not rows:
            return
        yield rows
        last = rows[-1]


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The sorted indices of the points that no other dominates; larger is better in both coordinates.

    A point dominates another if it is at least as good in both and better in one, so equal points are on the
    front together. The cost is that of one sort.
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
