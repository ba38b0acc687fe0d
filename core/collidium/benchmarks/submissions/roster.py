"""Who takes part in a challenge: those who submitted, are in a team, or on the list of members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium import records
from collidium.benchmarks import challenges
from collidium.benchmarks.models import Submission
from collidium.benchmarks.submissions import admissions
from collidium.contracts.identity import USERNAME
from collidium.database import loaded, rows_of
from collidium.errors import UnknownCursor

if TYPE_CHECKING:
    from collidium.platform import Platform

#: The list of members may spell a name in other cases than its account.
_PEOPLE: Final = """
SELECT name_key, coalesce(max(account), max(listed)) AS hub_username, sum(sent) AS submissions,
    min(submitted_at) AS joined_at, max(submitted_at) AS last_submitted_at, max(baseline) AS baseline,
    max(team) AS team, max(team_id) AS team_id, max(captain) AS captain, max(account_id) AS account_id,
    count(listed) AS member
FROM (
    SELECT lower(hub_username) AS name_key, hub_username AS account, account_id, 1 AS sent, submitted_at,
        CASE WHEN baseline THEN 1 ELSE 0 END AS baseline,
        NULL AS team, NULL AS team_id, 0 AS captain, NULL AS listed
    FROM submissions WHERE challenge = ?
    UNION ALL
    SELECT lower(hub_username), hub_username, account_id, 0, NULL, 0, name, teams.id,
        CASE WHEN captain_id = account_id THEN 1 ELSE 0 END, NULL
    FROM team_members JOIN teams ON teams.id = team_id WHERE teams.challenge = ?
    UNION ALL
    SELECT name_key, NULL, NULL, 0, NULL, 0, NULL, NULL, 0, hub_username
    FROM challenge_members WHERE challenge = ?
) AS people WHERE name_key > ? GROUP BY name_key ORDER BY name_key LIMIT ?
"""


async def roster(
    platform: Platform, name: str, *, limit: int, after: str | None = None
) -> list[records.RosterEntry]:
    """Up to ``limit`` of the people who take part in a challenge, by name, those after ``after``.

    Raises NotFound, and UnknownCursor for an ``after`` that is no name.
    """
    challenge = await challenges.get(name)
    if after is not None and not USERNAME.fullmatch(after):
        raise UnknownCursor
    rows = await rows_of(_PEOPLE, name, name, name, (after or "").lower(), limit)
    participants = [
        f"team:{row['team_id']}" if row["team_id"] else f"account:{row['account_id']}" for row in rows
    ]
    left = await admissions.left_today(challenge, participants, platform.settings, now())
    return [
        records.RosterEntry(
            hub_username=row["hub_username"],
            team=row["team"],
            captain=bool(row["captain"]),
            member=bool(row["member"]),
            submissions=int(row["submissions"]),
            submissions_left=left[participant],
            joined_at=loaded(Submission, "submitted_at", row["joined_at"]),
            last_submitted_at=loaded(Submission, "submitted_at", row["last_submitted_at"]),
            baseline=bool(row["baseline"]),
        )
        for row, participant in zip(rows, participants, strict=True)
    ]
