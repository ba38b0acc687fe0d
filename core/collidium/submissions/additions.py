"""What is new on a leaderboard, and what has left it, so that what was computed before need not be again.

Each submission that is kept is a revision of its leaderboard, and so is each other change; rows that lose
their rank have the revision of that change. As many revisions as later submissions and such changes are these
alone. So no table has to be kept true by every writer.

Who left without being a step or on the front changes neither, but the ranks on a front, which are counted. A
step that left, new scores, a rank given back or a clock that was set back read all again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from collidium.challenges import revision_of
from collidium.database import rows_of

#: Maximum number of new submissions, and of those that left, instead of reading the whole leaderboard again.
MAX_ADDED: Final = 500

_LAST: Final = """
SELECT submitted_at, id FROM submissions WHERE challenge = ? ORDER BY submitted_at DESC, id DESC LIMIT 1
"""
_LATER: Final = """
SELECT id, submitted_at, truth_version, rank_score, baseline, scores FROM submissions
WHERE challenge = ? AND (submitted_at, id) > (?, ?) ORDER BY submitted_at, id LIMIT ?
"""
_LEFT: Final = """
SELECT id, left_revision FROM submissions
WHERE challenge = ? AND left_revision > ? ORDER BY left_revision LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class BoardMark:
    """How far a leaderboard was read: a revision, and the time and id of its last submission."""

    revision: int
    #: As the database returns it.
    submitted_at: Any
    id: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed since a mark."""

    #: The mark after these changes.
    mark: BoardMark
    #: Later submissions in their order, without those that left.
    rows: Sequence[Mapping[str, Any]]
    #: Ids of submissions that lost their rank.
    left: frozenset[str]


async def mark(challenge: str) -> BoardMark | None:
    """Return the mark of what is there now, to be called before it is read; None without submissions."""
    revision = await revision_of(challenge)
    for row in await rows_of(_LAST, challenge):
        return BoardMark(revision, row["submitted_at"], row["id"])
    return None


async def since(challenge: str, last: BoardMark) -> Changes | None:
    """Return the submissions after a mark, and those that lost their rank since.

    None if anything else has changed, or either are more than :data:`MAX_ADDED`. Each new submission and each
    other change is a revision of its own, and the rows that a change takes off the leaderboard have its
    revision: as many revisions as new submissions and such changes are these alone.
    """
    # In this order: what changes in between is a revision more, and found to be one.
    rows = await rows_of(_LATER, challenge, last.submitted_at, last.id, MAX_ADDED + 1)
    left = await rows_of(_LEFT, challenge, last.revision, MAX_ADDED + 1)
    revision = await revision_of(challenge)
    explained = len(rows) + len({row["left_revision"] for row in left})
    if max(len(rows), len(left)) > MAX_ADDED or revision - last.revision != explained:
        return None
    mark = (
        BoardMark(revision, rows[-1]["submitted_at"], rows[-1]["id"])
        if rows
        else replace(last, revision=revision)
    )
    gone = frozenset(row["id"] for row in left)
    return Changes(mark, [row for row in rows if row["id"] not in gone], gone)
