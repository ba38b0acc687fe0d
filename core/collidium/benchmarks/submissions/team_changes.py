"""Organisers take people out of teams: what they submitted goes with them, and ranks follow at once."""

from __future__ import annotations

from collections.abc import Sequence

from collidium import accounts, operations, records
from collidium.benchmarks import challenges, teams
from collidium.benchmarks.models import Challenge, Submission, Team, TeamMember
from collidium.benchmarks.submissions import replay
from collidium.database import transactional
from collidium.errors import Conflict, NotFound
from collidium.runtime import display_names


@transactional
async def remove(challenge: str, hub_username: str, *, actor: str, http_request_id: str) -> records.Team:
    """Take an account out of its team, and return the team as it was.

    Raises NotFound, and Conflict once there are final results.
    """
    row = await _changeable(challenge)
    account = await accounts.find(hub_username)
    member = await TeamMember.get_or_none(challenge=row.name, account_id=account.id)
    if member is None:
        raise NotFound(f"{account.hub_username!r} is in no team of {row.name}")
    team = await Team.get(id=member.team_id)
    before = await teams.view(team)
    await _part(row, team, [member])
    details = {"challenge": row.name, "team": team.name}
    await operations.record(actor, "remove_from_team", member.hub_username, details, http_request_id)
    return before


@transactional
async def dissolve(challenge: str, name: str, *, actor: str, http_request_id: str) -> records.Team:
    """Take a team apart, and return it as it was; raises as :func:`remove`."""
    row = await _changeable(challenge)
    team = await Team.get_or_none(challenge=row.name, name_key=display_names.key(name))
    if team is None:
        raise NotFound(f"there is no team {name[:100]!r} in {row.name}")
    before = await teams.view(team)
    await _part(row, team, await TeamMember.filter(team_id=team.id))
    await operations.record(actor, "dissolve_team", row.name, {"team": team.name}, http_request_id)
    return before


async def _changeable(name: str) -> Challenge:
    row = await challenges.locked(name)
    if row.ended_at is not None:
        raise Conflict(f"{name} has its final results: disqualify submissions instead")
    return row


async def _part(row: Challenge, team: Team, leaving: Sequence[TeamMember]) -> None:
    """Let members compete alone with what they sent for the team; with the last one goes the team."""
    rows = await Submission.filter(challenge=row.name)
    ids = {member.account_id for member in leaving}
    is_last = not await TeamMember.filter(team_id=team.id).exclude(account_id__in=ids).exists()
    for submission in rows:
        if submission.participant == teams.participant(team) and (is_last or submission.account_id in ids):
            submission.participant, submission.team = teams.alone(submission.account_id), None
            await submission.save(update_fields=["participant", "team"])
    if row.truth_version is not None:
        await replay.represent(rows, row.truth_version)
    for member in leaving:
        await teams.leave(team, member)
    row.revision += 1
    await row.save(update_fields=["revision"])
