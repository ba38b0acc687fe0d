"""Leaderboards: the submissions of a task, best first."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Final

from tortoise.expressions import Q

from collidium.benchmarks import tasklist
from collidium.benchmarks.models import Submission
from collidium.benchmarks.submissions import SUBMISSION_ID, SubmissionView, view
from collidium.errors import InvalidInput

#: No leaderboard is longer.
MAX_RANK: Final = 2**53


@dataclass(frozen=True, slots=True)
class RankedSubmission:
    """A place on the leaderboard."""

    rank: int
    submission: SubmissionView


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended: its last place."""

    rank: int
    rank_score: float
    submitted_at: datetime
    id: str

    def encode(self) -> str:
        """As it stands in a URL."""
        parts = [self.rank, self.rank_score, self.submitted_at.isoformat(), self.id]
        return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Cursor:
        """Read what :meth:`encode` wrote; raises InvalidInput for anything else."""
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            rank, rank_score, submitted_at, submission_id = json.loads(raw)
            moment = datetime.fromisoformat(submitted_at)
            cursor = cls(int(rank), float(rank_score), moment.astimezone(UTC), str(submission_id))
            if moment.tzinfo is not None and cursor._is_sound():
                return cursor
        except (ValueError, TypeError, OverflowError, binascii.Error, RecursionError):
            pass
        raise InvalidInput(
            "cursor: not one that this server gave out; begin without it",
            errors=[{"field": "cursor", "detail": "not a cursor of this list"}],
        )

    def _is_sound(self) -> bool:
        is_id = SUBMISSION_ID.fullmatch(self.id) is not None
        return is_id and 0 < self.rank <= MAX_RANK and isfinite(self.rank_score)


@dataclass(frozen=True, slots=True)
class Edition:
    """A leaderboard at one moment; two equal editions show the same places."""

    task: str
    truth_version: str | None
    revision: int


async def current_edition(task_name: str) -> Edition:
    """The edition there is now; raises NotFound for a task that was never listed."""
    listed = await tasklist.find_row(task_name)
    if listed is None:
        raise tasklist.unknown(task_name)
    return Edition(task_name, listed.truth_version, listed.revision)


async def places(
    edition: Edition, *, limit: int, cursor: str | None = None
) -> tuple[list[RankedSubmission], str | None]:
    """Up to ``limit`` places after ``cursor``, and the cursor of the next page if there is one.

    Submissions scored against the edition's truth, by the primary metric, ties earlier first; one without a
    finite primary score never ranks. Raises InvalidInput for a cursor that is none.
    """
    query = Submission.filter(
        task=edition.task, truth_version=edition.truth_version, rank_score__isnull=False
    )
    after = Cursor.decode(cursor) if cursor else None
    if after is not None:
        query = query.filter(
            Q(rank_score__lt=after.rank_score)
            | Q(rank_score=after.rank_score, submitted_at__gt=after.submitted_at)
            | Q(rank_score=after.rank_score, submitted_at=after.submitted_at, id__gt=after.id)
        )
    rows = await query.order_by("-rank_score", "submitted_at", "id").limit(limit + 1)
    first_rank = after.rank + 1 if after else 1
    ranked = [RankedSubmission(first_rank + i, view(row)) for i, row in enumerate(rows[:limit])]
    if len(rows) <= limit:
        return ranked, None
    last = rows[limit - 1]
    assert last.rank_score is not None  # noqa: S101 -- by the filter above
    return ranked, Cursor(ranked[-1].rank, last.rank_score, last.submitted_at, last.id).encode()
