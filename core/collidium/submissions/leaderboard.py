"""Leaderboards: the best submission of each participant, or all submissions.

Equal scores share a rank. Baselines are listed with the rank that they would have, and do not occupy it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Final, Protocol

from tortoise.expressions import Q

from collidium import challenges
from collidium.challenges import Participant
from collidium.database import rows_of
from collidium.errors import UnknownCursor
from collidium.records import Place
from collidium.submissions.models import Submission
from collidium.submissions.rank_intervals import Intervals, RankInterval
from collidium.submissions.reading import SUBMISSION_ID, derived

if TYPE_CHECKING:
    from tortoise.queryset import QuerySet

    from collidium.scoring.truth.parts import ScoredTruth

#: The rank of each submission on a Pareto front by its id, best first.
Front = Mapping[str, int]

#: Maximum length of a leaderboard.
MAX_RANK: Final = 2**53

#: Submissions per query, so that other requests run in between.
CHUNK: Final = 1000

#: The ranks of some submissions among all of their leaderboard.
_RANKS: Final = """
SELECT id, coalesce(ahead, 0) + 1 AS rank FROM (
    SELECT id, sum(CASE WHEN baseline THEN 0 ELSE 1 END) OVER (
        ORDER BY rank_score DESC GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS ahead
    FROM submissions WHERE challenge = ? AND truth_version = ? AND rank_score >= ?{represents}
) AS board WHERE id IN ({ids})
"""


@dataclass(frozen=True, slots=True)
class BoardSelection:
    """Restricts places to an account or a model; None: all."""

    hub_username: str | None = None
    model_repo: str | None = None
    #: The team of that account, whose places are included.
    team: Participant | None = None
    #: Every submission instead of the best of each participant.
    all: bool = False

    @property
    def conditions(self) -> Q:
        """Filters of the query."""
        found = Q() if self.all else Q(represents=True)
        if self.hub_username is not None:
            own = Q(hub_username=self.hub_username)
            found &= own if self.team is None else own | Q(participant=self.team)
        return found if self.model_repo is None else found & Q(model_repo=self.model_repo)

    @property
    def is_whole(self) -> bool:
        """Whether it includes all accounts and models."""
        return self.hub_username is None and self.model_repo is None


EVERYONE: Final = BoardSelection()
ALL: Final = BoardSelection(all=True)


class Placed(Protocol):
    """What decides the place of a submission."""

    @property
    def rank_score(self) -> float: ...
    @property
    def submitted_at(self) -> datetime: ...
    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last place of a page."""

    rank: int
    #: Number of places up to the end of the page, without baselines.
    ranked: int
    rank_score: float
    submitted_at: datetime
    id: str

    def encode(self) -> str:
        """Encode it for URLs."""
        parts = [self.rank, self.ranked, self.rank_score, self.submitted_at.isoformat(), self.id]
        return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Cursor:
        """Decode what :meth:`encode` returned; raises UnknownCursor for anything else."""
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            rank, ranked, rank_score, submitted_at, submission_id = json.loads(raw)
            moment = datetime.fromisoformat(submitted_at)
            cursor = cls(
                int(rank), int(ranked), float(rank_score), moment.astimezone(UTC), str(submission_id)
            )
            if moment.tzinfo is not None and cursor._is_sound():
                return cursor
        except (ValueError, TypeError, OverflowError, binascii.Error, RecursionError):
            pass
        raise UnknownCursor

    def _is_sound(self) -> bool:
        is_id = SUBMISSION_ID.fullmatch(self.id) is not None
        is_rank = 0 < self.rank <= MAX_RANK and 0 <= self.ranked <= MAX_RANK
        return is_id and is_rank and isfinite(self.rank_score)


@dataclass(frozen=True, slots=True)
class BoardVersion:
    """A leaderboard at one moment; equal versions have the same places."""

    challenge: str
    task: str
    truth_version: ScoredTruth | None
    revision: int


async def current_version(name: str) -> BoardVersion:
    """The current version of a challenge's leaderboard; raises NotFound."""
    row = await challenges.visible(name)
    return BoardVersion(name, row.task, row.truth_version, row.revision)


def ranked(version: BoardVersion, selection: BoardSelection) -> QuerySet[Submission]:
    """The selected submissions that are scored against a version's truth, best first, ties earlier first."""
    query = Submission.filter(
        selection.conditions,
        challenge=version.challenge,
        truth_version=version.truth_version,
        rank_score__isnull=False,
    )
    return query.order_by("-rank_score", "submitted_at", "id")


def following(
    version: BoardVersion, selection: BoardSelection, after: Placed | None
) -> Iterator[QuerySet[Submission]]:
    """The selected submissions that follow: those of equal score, then those of lower ones.

    Each query reads an index from there on; one for both would read it from the beginning.
    """
    query = ranked(version, selection)
    if after is None:
        yield query
        return
    later = Q(submitted_at__gt=after.submitted_at) | Q(submitted_at=after.submitted_at, id__gt=after.id)
    yield query.filter(later, rank_score=after.rank_score, submitted_at__gte=after.submitted_at)
    yield query.filter(rank_score__lt=after.rank_score)


async def places(
    version: BoardVersion,
    *,
    limit: int,
    cursor: str | None = None,
    front: Front | None = None,
    intervals: Intervals | None = None,
    selection: BoardSelection = EVERYONE,
) -> tuple[list[Place], str | None]:
    """Up to ``limit`` places after ``cursor``, and the cursor of the next page if there is one.

    Ranks are those among all submissions, also with a ``selection``. ``front`` and ``intervals`` are those of
    the version, if known. Raises UnknownCursor.
    """
    after = Cursor.decode(cursor) if cursor else None
    if version.truth_version is None:
        return [], None
    rows: list[Submission] = []
    for query in following(version, selection, after):
        if len(rows) <= limit:
            rows += await query.limit(limit + 1 - len(rows))
    page, counter = rows[:limit], RankCounter.after(after)
    if selection.is_whole:
        ranks = {row.id: counter.next(row.rank_score, row.baseline) for row in page}
    else:
        ranks = await _ranks(version, page, selection)
        page = [row for row in page if row.id in ranks]
    found = [
        _place(row, ranks[row.id], None if front is None else row.id in front, (intervals or {}).get(row.id))
        for row in page
    ]
    if len(rows) <= limit or not found:
        return found, None
    return found, _cursor(found[-1].rank, page[-1], counter.ranked)


@dataclass(slots=True)
class RankCounter:
    """Counts ranks down a leaderboard."""

    rank: int = 0
    ranked: int = 0
    score: float | None = None

    @classmethod
    def after(cls, cursor: Cursor | None) -> RankCounter:
        """Continue after a page."""
        return cls(cursor.rank, cursor.ranked, cursor.rank_score) if cursor else cls()

    def next(self, score: float | None, baseline: bool) -> int:
        """The rank of the next submission."""
        if score != self.score:
            self.rank, self.score = self.ranked + 1, score
        self.ranked += not baseline
        return self.rank


async def _ranks(
    version: BoardVersion, rows: Sequence[Submission], selection: BoardSelection
) -> dict[str, int]:
    """The rank of each among all, without those that lost their rank meanwhile."""
    scores = [row.rank_score for row in rows if row.rank_score is not None]
    if not scores:
        return {}
    represents = "" if selection.all else " AND represents"
    query = _RANKS.format(ids=", ".join("?" * len(rows)), represents=represents)
    values = version.challenge, version.truth_version, min(scores), *(row.id for row in rows)
    return {row["id"]: row["rank"] for row in await rows_of(query, *values)}


async def places_on_front(
    front: Front, *, limit: int, cursor: str | None = None, selection: BoardSelection = ALL
) -> tuple[list[Place], str | None]:
    """As :func:`places`, of the submissions on a front; ranks are those among all submissions."""
    after = Cursor.decode(cursor) if cursor else None
    ids = list(front)
    if after is not None and after.id in front:
        ids = ids[ids.index(after.id) + 1 :]
    elif after is not None:  # it has left the front
        ids = [id_ for id_, rank in front.items() if rank > after.rank]
    rows = await _still_ranked(ids, limit + 1, selection)
    found = [_place(row, front[row.id], True) for row in rows[:limit]]
    if len(rows) <= limit:
        return found, None
    return found, _cursor(found[-1].rank, rows[limit - 1], 0)


async def _still_ranked(ids: Sequence[str], maximum: int, selection: BoardSelection) -> list[Submission]:
    """The first ``maximum`` selected of these, in order, without those that lost their rank meanwhile."""
    found: list[Submission] = []
    size = maximum if selection.is_whole else max(maximum, CHUNK)
    for begin in range(0, len(ids), size):
        chunk = ids[begin : begin + size]
        kept = Submission.filter(selection.conditions, id__in=chunk, rank_score__isnull=False)
        rows = {row.id: row for row in await kept}
        found += [rows[id_] for id_ in chunk if id_ in rows]
        if len(found) >= maximum:
            break
    return found[:maximum]


def _place(row: Submission, rank: int, pareto: bool | None, interval: RankInterval | None = None) -> Place:
    found = interval._asdict() if interval else {}
    return Place.of(row, rank=rank, pareto=pareto, **found, **derived(row))


def _cursor(rank: int, row: Submission, ranked: int) -> str:
    """The cursor of a page with this last place."""
    assert row.rank_score is not None  # noqa: S101 -- only ranked rows have places
    return Cursor(rank, ranked, row.rank_score, row.submitted_at, row.id).encode()
