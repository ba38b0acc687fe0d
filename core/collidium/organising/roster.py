"""The roster of a challenge: accounts that submitted, are in a team or members; organisers change teams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium import accounts, challenges, operations, records
from collidium.challenges import Participant
from collidium.challenges.models import Challenge
from collidium.contracts.identity import USERNAME
from collidium.database import loaded, rows_of, transactional
from collidium.errors import Conflict, NotFound, UnknownCursor
from collidium.runtime import display_names
from collidium.submissions import admissions, representatives, teams
from collidium.submissions.models import Submission, Team, TeamMember

if TYPE_CHECKING:
    from collidium.platform import Platform

#: The names of a page are looked up one by one in an index, so that no other submissions are read. The member
#: list may spell a name in another case than its account.
_PEOPLE: Final = """
WITH RECURSIVE sent(name_key, step) AS (
    SELECT min(lower(hub_username)), 1 FROM submissions WHERE challenge = ? AND lower(hub_username) > ?
    UNION ALL
    SELECT (
        SELECT min(lower(hub_username)) FROM submissions
        WHERE challenge = ? AND lower(hub_username) > sent.name_key
    ), step + 1 FROM sent WHERE name_key IS NOT NULL AND step < ?
), page AS (
    SELECT name_key FROM (
        SELECT name_key FROM sent WHERE name_key IS NOT NULL
        UNION SELECT lower(hub_username) FROM team_members WHERE challenge = ? AND lower(hub_username) > ?
        UNION SELECT name_key FROM challenge_members WHERE challenge = ? AND name_key > ?
    ) AS names ORDER BY name_key LIMIT ?
)
SELECT name_key, coalesce(max(account), max(listed)) AS hub_username, sum(sent) AS submissions,
    min(submitted_at) AS joined_at, max(submitted_at) AS last_submitted_at, max(baseline) AS baseline,
    max(team) AS team, max(team_id) AS team_id, max(captain) AS captain, max(account_id) AS account_id,
    count(listed) AS member
FROM (
    SELECT lower(hub_username) AS name_key, hub_username AS account, account_id, 1 AS sent, submitted_at,
        CASE WHEN baseline THEN 1 ELSE 0 END AS baseline,
        NULL AS team, NULL AS team_id, 0 AS captain, NULL AS listed
    FROM submissions WHERE challenge = ? AND lower(hub_username) IN (SELECT name_key FROM page)
    UNION ALL
    SELECT lower(hub_username), hub_username, account_id, 0, NULL, 0, name, teams.id,
        CASE WHEN captain_id = account_id THEN 1 ELSE 0 END, NULL
    FROM team_members JOIN teams ON teams.id = team_id WHERE teams.challenge = ?
    UNION ALL
    SELECT name_key, NULL, NULL, 0, NULL, 0, NULL, NULL, 0, hub_username
    FROM challenge_members WHERE challenge = ?
) AS people WHERE name_key IN (SELECT name_key FROM page) GROUP BY name_key ORDER BY name_key
"""


async def roster(
    platform: Platform, name: str, *, limit: int, after: str | None = None
) -> list[records.RosterEntry]:
    """Up to ``limit`` entries of a challenge's roster, by name, following ``after``.

    Raises NotFound, and UnknownCursor for an ``after`` that is no name.
    """
    challenge = await challenges.get(name)
    if after is not None and not USERNAME.fullmatch(after):
        raise UnknownCursor
    later = name, (after or "").lower()
    rows = await rows_of(_PEOPLE, *later, name, limit, *later, *later, limit, name, name, name)
    participants = [
        Participant.team(row["team_id"]) if row["team_id"] else Participant.account(row["account_id"])
        for row in rows
    ]
    left = await admissions.left_today(challenge, participants, platform, now())
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


@transactional
async def remove_from_team(
    challenge: str, hub_username: str, *, actor: str, http_request_id: str
) -> records.Team:
    """Remove an account from its team, and return the team before that.

    Raises NotFound, and Conflict after final results.
    """
    row = await _changeable(challenge)
    account = await accounts.find(hub_username)
    member = await TeamMember.get_or_none(challenge=row.name, account_id=account.id)
    if member is None:
        raise NotFound(f"{account.hub_username!r} is in no team of {row.name}")
    team = await Team.get(id=member.team_id)
    before = await teams.view(team)
    await _separate(row, team, [member])
    details = {"challenge": row.name, "team": team.name}
    await operations.record(actor, "remove_from_team", member.hub_username, details, http_request_id)
    return before


@transactional
async def dissolve_team(challenge: str, name: str, *, actor: str, http_request_id: str) -> records.Team:
    """Dissolve a team, and return it before that; raises as :func:`remove_from_team`."""
    row = await _changeable(challenge)
    team = await Team.get_or_none(challenge=row.name, name_key=display_names.key(name))
    if team is None:
        raise NotFound(f"there is no team {name[:100]!r} in {row.name}")
    before = await teams.view(team)
    await _separate(row, team, await TeamMember.filter(team_id=team.id))
    await operations.record(actor, "dissolve_team", row.name, {"team": team.name}, http_request_id)
    return before


async def _changeable(name: str) -> Challenge:
    row = await challenges.locked(name)
    if row.ended_at is not None:
        raise Conflict(f"{name} has its final results: disqualify submissions instead")
    return row


async def _separate(row: Challenge, team: Team, leaving: Sequence[TeamMember]) -> None:
    """Make members compete alone with their own submissions; the last one takes all of the team's."""
    ids = {member.account_id for member in leaving}
    is_last = not await TeamMember.filter(team_id=team.id).exclude(account_id__in=ids).exists()
    participant = Participant.team(team.id)
    of_team = Submission.filter(challenge=row.name, participant=participant)
    owners = {int(str(id_)) for id_ in await of_team.distinct().values_list("account_id", flat=True)}
    participants = {participant}
    for owner in owners if is_last else owners & ids:
        alone = Participant.account(owner)
        await of_team.filter(account_id=owner).update(participant=alone, team=None)
        participants.add(alone)
    if row.truth_version is not None:
        await representatives.represent(row.name, row.truth_version, participants)
    for member in leaving:
        await teams.leave(team, member)
    await challenges.bump_revision(row)
