"""Teams: accounts that compete in a challenge as one participant, each in at most one team."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import structs
from tortoise.timezone import now

from collidium import accounts, challenges, records
from collidium.challenges import Challenge, Participant, members
from collidium.database import newest, transactional
from collidium.errors import Conflict, Forbidden, InvalidInput, NotFound
from collidium.runtime import display_names
from collidium.submissions.admissions import team_of
from collidium.submissions.models import Submission, Team, TeamMember

if TYPE_CHECKING:
    from collidium.accounts import AccountView

#: Maximum length of a team's name.
LONGEST_NAME: Final = 64
#: The form of a team's name as it is sent, for documents: the domain strips it, and also rejects invisible
#: characters of Unicode and words of mixed scripts.
NAME: Final = re.compile(r"\s*[^=+@\s\x00-\x1f\x7f-]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?\s*")
#: Maximum number of valid invitations of a team.
MAX_INVITATIONS: Final = 50
#: Prefix of names that teams get when an account is erased.
_NEUTRAL: Final = "erased-"


async def participant_with(hub_username: str, challenge: str) -> Participant | None:
    """Return the participant of the team that the account of this name is in; None without a team."""
    member = await TeamMember.get_or_none(challenge=challenge, hub_username=hub_username)
    return None if member is None else Participant.team(member.team_id)


async def may_choose(account: AccountView, submission: Submission) -> bool:
    """Whether an account is in the team of a submission."""
    team = await team_of(account.id, submission.challenge)
    return team is not None and Participant.team(team.id) == submission.participant


async def participation(
    account: AccountView, name: str, organisations: Collection[str], code: str | None = None
) -> records.Participation:
    """An account's right to submit to a challenge, its team, and the team of a code; raises NotFound."""
    row = await challenges.visible(name)
    found = records.Participation(
        challenge=name,
        admitted=await members.admits(row, account, organisations),
        invited_to=await _invited_to(row, code) if code else None,
    )
    team = await team_of(account.id, name)
    if team is None:
        return found
    fixed, own = _fixed_since(row) is not None, await view(team)
    return structs.replace(
        found,
        team=own,
        team_stays=fixed or await _has_submitted(team),
        team_admits=not fixed and len(own.members) < row.team_size,
    )


async def _invited_to(row: Challenge, code: str) -> records.Team | None:
    try:
        invitation = await members.find_invitation(row, code)
    except (NotFound, Conflict):
        return None
    return None if invitation.team_id is None else await view(await Team.get(id=invitation.team_id))


async def _has_submitted(team: Team) -> bool:
    return await Submission.exists(challenge=team.challenge, participant=Participant.team(team.id))


async def list_teams(name: str, *, limit: int, before: int | None) -> tuple[list[records.Team], int | None]:
    """A page of teams, the latest first, and the cursor of the next one; raises NotFound."""
    rows = Team.filter(challenge=(await challenges.visible(name)).name)
    found = await newest(rows, limit + 1, before)
    cursor = found[limit - 1].id if len(found) > limit else None
    return await _views(found[:limit]), cursor


async def view(team: Team) -> records.Team:
    """A team with its members."""
    return (await _views([team]))[0]


async def _views(teams: Collection[Team]) -> list[records.Team]:
    rows = await TeamMember.filter(team_id__in=[team.id for team in teams]).order_by("id")
    views = []
    for team in teams:
        own = [row for row in rows if row.team_id == team.id]
        captain = next((row.hub_username for row in own if row.account_id == team.captain_id), None)
        names = tuple(row.hub_username for row in own)
        views.append(records.Team.of(team, captain=captain, members=names))
    return views


# -- changes by members ------------------------------------------------------------------------------------


@transactional
async def create(account: AccountView, name: str, team_name: str, organisations: Collection[str]) -> None:
    """Create a team with the account as its captain.

    A name that looks like that of another participant gets its script, or the account, as a mark.
    Raises NotFound, InvalidInput for its name, Forbidden for an account that may not submit, and Conflict if
    the name is taken, the challenge has no teams, they are fixed, or the account is in one or has submitted.
    """
    team_name = display_names.normalized(team_name)
    _require_valid(team_name)
    row = await challenges.locked(name)
    await challenges.require_visible(row)
    if await team_of(account.id, name) is not None:
        raise Conflict(f"you are in a team of {name} already")
    await _require_free(row, account, organisations)
    if await accounts.id_if_known(display_names.key(team_name)) not in (None, account.id):
        raise Conflict(f"{team_name!r} is the name of another account")
    await _require_unused(name, team_name)
    team_name = await _marked(team_name, account, name)
    key = await _require_unused(name, team_name)
    team = await Team.create(challenge=name, name=team_name, name_key=key, captain_id=account.id)
    await _enter(team, account)


def _require_valid(name: str) -> None:
    """Raise InvalidInput for a name that no team can have."""
    wrong = _problem(name) or _problem(display_names.key(name))
    if wrong is None and (word := display_names.mixed_word(name)):
        wrong = f"{word!r} mixes letters of several scripts"
    if wrong:
        raise InvalidInput(f"name: {wrong}", errors=[{"field": "name", "detail": wrong}])


async def _require_unused(challenge: str, name: str) -> str:
    """The key of a name that no other team has; raises Conflict."""
    key = display_names.key(name)
    if await Team.exists(challenge=challenge, name_key=key):
        raise Conflict(f"there is a team {name!r} already")
    return key


async def _marked(name: str, account: AccountView, challenge: str) -> str:
    """The name, with its script or the account if it looks like that of another participant."""
    similar = await _similar(display_names.skeletons(name), account, challenge)
    if similar is None:
        return name
    scripts = display_names.scripts(name)
    is_other = scripts != display_names.scripts(similar)
    marked = f"{name} ({', '.join(scripts) if is_other and scripts else f'@{account.hub_username}'})"
    if wrong := _problem(marked):
        detail = f"it looks like {similar!r}, and is {wrong} with the mark for that: {marked!r}"
        raise InvalidInput(f"name: {detail}", errors=[{"field": "name", "detail": detail}])
    return marked


async def _similar(skeletons: Collection[str], account: AccountView, challenge: str) -> str | None:
    """The name of another participant, or of an account that may become one, with one of these skeletons."""
    names = {str(name) for name in await Team.filter(challenge=challenge).values_list("name", flat=True)}
    for rows in (
        Submission.filter(challenge=challenge).exclude(account_id=account.id).distinct(),
        TeamMember.filter(challenge=challenge).exclude(account_id=account.id),
    ):
        names |= {str(name) for name in await rows.values_list("hub_username", flat=True)}
    for name in sorted(names):
        if not display_names.skeletons(name).isdisjoint(skeletons):
            return name
    for skeleton in skeletons:
        if await accounts.id_if_known(skeleton) not in (None, account.id):
            return skeleton
    return None


def _problem(name: str) -> str | None:
    if not name or name.startswith(_NEUTRAL):
        return f"empty, or begins with {_NEUTRAL}"
    return display_names.problem(name, LONGEST_NAME)


@transactional
async def invite(
    account: AccountView, name: str, *, uses: int, expires_at: datetime | None
) -> records.Invitation:
    """Create an invitation to the captain's team.

    Raises NotFound, Forbidden for other members, InvalidInput for an end in the past, and Conflict if teams
    are fixed or it has too many invitations.
    """
    row = await challenges.locked(name)
    team = await own(account, name)
    if team.captain_id != account.id:
        raise Forbidden(f"only the captain of {team.name} can invite")
    _require_changeable(row)
    if await members.count_invitations(team.id) >= MAX_INVITATIONS:
        raise Conflict(f"{team.name!r} has {MAX_INVITATIONS} invitations already, which have not ended")
    return await members.make_invitation(row, team.id, uses=uses, expires_at=expires_at)


@transactional
async def join(account: AccountView, name: str, code: str, organisations: Collection[str]) -> None:
    """Join the team or the members of the challenge by an invitation; no effect if the account is in it.

    Raises NotFound, Forbidden for an account that may not submit, and Conflict if the invitation has ended or
    the account cannot join that team.
    """
    row = await challenges.locked(name)
    await challenges.require_visible(row)
    invitation = await members.find_invitation(row, code)
    if invitation.team_id is None:
        if not await members.is_listed(row, account):
            await members.use_invitation(invitation)
            await members.admit(row, [account.hub_username])
        return
    own = await team_of(account.id, name)
    if own is not None:
        if own.id != invitation.team_id:
            raise Conflict(f"you are in the team {own.name!r} of {name}: leave it first")
        return
    await _require_free(row, account, organisations)
    if await TeamMember.filter(team_id=invitation.team_id).count() >= row.team_size:
        raise Conflict(f"the team has its {row.team_size} members")
    await members.use_invitation(invitation)
    await _enter(await Team.get(id=invitation.team_id), account)


@transactional
async def remove(account: AccountView, name: str, hub_username: str) -> None:
    """Remove the account from its team, or, by the captain, another member; the team's invitations end.

    Raises NotFound, Forbidden for other members than the captain, and Conflict if the team has submitted or
    teams are fixed.
    """
    row = await challenges.locked(name)
    team = await own(account, name)
    inside = {one.hub_username.casefold(): one for one in await TeamMember.filter(team_id=team.id)}
    member = inside.get(hub_username.casefold())
    if member is None:
        raise NotFound(f"{hub_username[:100]!r} is not in the team {team.name!r}")
    if account.id not in {member.account_id, team.captain_id}:
        raise Forbidden(f"only the captain of {team.name} can remove others")
    _require_changeable(row)
    if await _has_submitted(team):
        raise Conflict(f"the team {team.name!r} has submitted: its members can no longer leave")
    await leave(team, member)


async def own(account: AccountView, name: str) -> Team:
    """The account's team in a challenge; raises NotFound."""
    await challenges.visible(name)
    team = await team_of(account.id, name)
    if team is None:
        raise NotFound(f"you are in no team of {name}")
    return team


def _fixed_since(row: Challenge) -> datetime | None:
    """When teams were fixed; None if they are not."""
    end = min((date for date in (row.teams_frozen_at, row.closes_at) if date), default=None)
    return end if end is not None and end <= now() else None


def _require_changeable(row: Challenge) -> None:
    """Raise Conflict if teams are fixed."""
    if (end := _fixed_since(row)) is not None:
        raise Conflict(f"the teams of {row.name} have been fixed since {end:%Y-%m-%d at %H:%M} UTC")


async def _require_free(row: Challenge, account: AccountView, organisations: Collection[str]) -> None:
    """Raise Conflict or Forbidden unless an account without a team may join one."""
    if row.team_size < 2:
        raise Conflict(f"{row.name} has no teams")
    _require_changeable(row)
    await members.require_admitted(row, account, organisations)
    alone = Submission.filter(challenge=row.name, account_id=account.id).exclude(standing="withdrawn")
    if await alone.exists():
        raise Conflict(f"you have submitted to {row.name} alone: withdraw these submissions first")


async def _enter(team: Team, account: AccountView) -> None:
    await TeamMember.create(
        challenge=team.challenge, team_id=team.id, account_id=account.id, hub_username=account.hub_username
    )


async def leave(team: Team, member: TeamMember) -> None:
    """Remove a member from a team; an empty team is deleted, unless it has submitted."""
    await member.delete()
    await members.end_invitations(team.id)
    if not await _has_captain(team) and not await _has_submitted(team):
        await team.delete()


async def choose_captains(account_id: int) -> None:
    """Choose captains of the teams of an account that was banned or unbanned, under the challenges' locks."""
    for member in await TeamMember.filter(account_id=account_id):
        await _has_captain(await Team.get(id=member.team_id))


async def _has_captain(team: Team) -> bool:
    """Make the first member who is not banned captain if there is none; returns False for an empty team."""
    inside = [one.account_id for one in await TeamMember.filter(team_id=team.id).order_by("id")]
    banned = await accounts.banned_among(inside)
    free = [account_id for account_id in inside if account_id not in banned] or inside
    if free and team.captain_id not in free:
        team.captain_id = free[0]
        await team.save(update_fields=["captain_id"])
    return bool(inside)


# -- erasure -----------------------------------------------------------------------------------------------


async def challenges_of(account_id: int) -> set[str]:
    """The challenges in which an account is in a team."""
    return {row.challenge for row in await TeamMember.filter(account_id=account_id)}


async def forget(account_id: int, name: str) -> None:
    """Remove an erased account from its teams, within a transaction that has locked the challenges.

    A team that contains its name, or is empty then, gets a neutral name.
    """
    for member in await TeamMember.filter(account_id=account_id):
        team = await Team.get(id=member.team_id)
        await leave(team, member)
        is_named = re.search(rf"\b{re.escape(name.casefold())}\b", team.name_key)
        if is_named or not await TeamMember.exists(team_id=team.id):
            neutral = f"{_NEUTRAL}team-{team.id}"
            await Team.filter(id=team.id).update(name=neutral, name_key=neutral)
            await Submission.filter(participant=Participant.team(team.id)).update(team=neutral)
