"""The submissions that represent participants on a leaderboard: the best ones, the earlier of equal ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from collidium.challenges import Participant
from collidium.database import in_chunks, rows_of
from collidium.scoring.truth.parts import ScoredTruth
from collidium.submissions.models import Submission

#: Those that represent and should not, and the other way round.
_WRONG: Final = """
SELECT id, best FROM (
    SELECT id, represents, rank_score IS NOT NULL AND row_number() OVER (
        PARTITION BY participant
        ORDER BY CASE WHEN rank_score IS NULL THEN 1 ELSE 0 END, rank_score DESC, submitted_at, id
    ) = 1 AS best
    FROM submissions WHERE challenge = ? AND truth_version = ?{participants}
) AS board WHERE best <> represents
"""


async def represent(
    challenge: str, truth_version: ScoredTruth, participants: Collection[Participant] | None = None
) -> dict[str, bool]:
    """Let the best submission represent each of the participants, by default all, under the challenge's lock.

    Returns what has changed, by submission.
    """
    changed: dict[str, bool] = {}
    for some in [[]] if participants is None else in_chunks(participants):
        chosen = f" AND participant IN ({', '.join('?' * len(some))})" if some else ""
        rows = await rows_of(_WRONG.format(participants=chosen), challenge, truth_version, *map(str, some))
        changed |= {row["id"]: bool(row["best"]) for row in rows}
    for represents in (False, True):
        for ids in in_chunks(id_ for id_, best in changed.items() if best == represents):
            await Submission.filter(id__in=ids).update(represents=represents)
    return changed
