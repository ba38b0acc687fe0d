"""New submissions to a leaderboard, so that what was computed from earlier ones need not be again.

Each submission that is kept is a revision of its leaderboard, and so is each other change: as many revisions
as later submissions are submissions alone. So no table has to be kept true by every writer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from collidium.benchmarks.models import Challenge
from collidium.database import rows_of

#: Maximum number of new submissions that are added, instead of reading the whole leaderboard again.
MAX_ADDED: Final = 500

_LAST: Final = """
SELECT submitted_at, id FROM submissions WHERE challenge = ? ORDER BY submitted_at DESC, id DESC LIMIT 1
"""
_LATER: Final = """
SELECT id, submitted_at, truth_version, rank_score, baseline, scores FROM submissions
WHERE challenge = ? AND (submitted_at, id) > (?, ?) ORDER BY submitted_at, id LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a leaderboard was read: a revision, and the time and id of its last submission."""

    revision: int
    #: As the database returns it.
    submitted_at: Any
    id: str


async def mark(challenge: str) -> Mark | None:
    """Return the mark of what is there now, to be called before it is read; None without submissions."""
    revision = await _revision(challenge)
    for row in await rows_of(_LAST, challenge):
        return Mark(revision, row["submitted_at"], row["id"])
    return None


async def since(challenge: str, last: Mark) -> tuple[Mark, Sequence[Mapping[str, Any]]] | None:
    """Return the submissions after a mark in their order, and the mark after them.

    None if anything else has changed, or they are more than :data:`MAX_ADDED`. Each new submission and each
    other change is a revision of its own: as many revisions as new submissions are new submissions alone.
    """
    # In this order: what changes in between is a revision more, and found to be one.
    rows = await rows_of(_LATER, challenge, last.submitted_at, last.id, MAX_ADDED + 1)
    revision = await _revision(challenge)
    if len(rows) > MAX_ADDED or revision - last.revision != len(rows):
        return None
    if not rows:
        return last, rows
    return Mark(revision, rows[-1]["submitted_at"], rows[-1]["id"]), rows


async def _revision(challenge: str) -> int:
    rows: list[int] = [
        revision for (revision,) in await Challenge.filter(name=challenge).values_list("revision")
    ]
    return rows[0] if rows else 0
