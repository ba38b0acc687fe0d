"""Member lists of challenges for members only, and invitations to them and to teams."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tortoise.expressions import F
from tortoise.timezone import now

from collidium import challenges, operations, records
from collidium.challenges.models import Challenge, Invitation, Member
from collidium.contracts.identity import USERNAME
from collidium.database import newest, transactional
from collidium.errors import Conflict, Forbidden, InvalidInput, NotFound

if TYPE_CHECKING:
    from collidium.accounts import AccountView

#: Default validity of an invitation.
VALID: Final = timedelta(days=14)
_PREFIX: Final = "collidium_invitation_"
_CODE: Final = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{32}}")


async def admits(row: Challenge, account: AccountView, organisations: Collection[str]) -> bool:
    """Return whether an account, a member of these hub organisations, may submit to a challenge."""
    if row.access == "open" or account.baseline:
        return True
    if row.organisation and row.organisation.casefold() in map(str.casefold, organisations):
        return True
    return await is_listed(row, account)


async def is_listed(row: Challenge, account: AccountView) -> bool:
    """Return whether an account is on the list of a challenge's members."""
    return await Member.exists(challenge=row.name, name_key=account.hub_username.casefold())


async def require_admitted(row: Challenge, account: AccountView, organisations: Collection[str]) -> None:
    """Raise Forbidden for an account that may not submit to a challenge."""
    if not await admits(row, account, organisations):
        among = ""
        if row.organisation:
            what = "with an address" if row.organisation.startswith("@") else "in the organisation"
            among = f", and for those {what} {row.organisation}"
        raise Forbidden(
            f"{row.name} is for its members{among}: its organisers send invitations "
            f"(collidium team join {row.name} CODE)"
        )


async def admit(row: Challenge, hub_usernames: Collection[str]) -> int:
    """Add accounts to the members, within a transaction; returns how many are new."""
    before = await Member.filter(challenge=row.name).count()
    new = [Member(challenge=row.name, hub_username=name, name_key=name.casefold()) for name in hub_usernames]
    await Member.bulk_create(new, ignore_conflicts=True)
    return await Member.filter(challenge=row.name).count() - before


@transactional
async def add(
    name: str, hub_usernames: Sequence[str], *, actor: str, http_request_id: str
) -> records.MembersAdded:
    """Add accounts, which may not have signed in yet, to the members of a challenge, all or none.

    Raises NotFound, and InvalidInput with each invalid name.
    """
    row = await challenges.locked(name)
    errors = [
        {"field": "hub_usernames", "detail": f"number {place}: no account can be named {each[:100]!r}"}
        for place, each in enumerate(hub_usernames, 1)
        if not USERNAME.fullmatch(each)
    ]
    if errors:
        raise InvalidInput("no member was added: some names are invalid", errors=errors)
    added = await admit(row, hub_usernames)
    await operations.record(actor, "add_members", name, {"added": added}, http_request_id)
    return records.MembersAdded(name, added=added, members=await Member.filter(challenge=name).count())


@transactional
async def remove(name: str, hub_username: str, *, actor: str, http_request_id: str) -> records.Member:
    """Remove an account from the members, and end all invitations to be one; its submissions stay.

    Raises NotFound.
    """
    row = await challenges.locked(name)
    member = None
    if USERNAME.fullmatch(hub_username):
        member = await Member.get_or_none(challenge=row.name, name_key=hub_username.casefold())
    if member is None:
        raise NotFound(f"{hub_username[:100]!r} is not a member of {row.name}")
    await member.delete()
    await Invitation.filter(challenge=row.name, team_id__isnull=True).delete()
    details = {"challenge": row.name}
    await operations.record(actor, "remove_member", member.hub_username, details, http_request_id)
    return records.Member.of(member)


@transactional
async def invite(
    name: str, *, uses: int, expires_at: datetime | None, actor: str, http_request_id: str
) -> records.Invitation:
    """Create an invitation to the members of a challenge; raises NotFound and InvalidInput."""
    row = await challenges.locked(name)
    made = await make_invitation(row, None, uses=uses, expires_at=expires_at)
    details = {"uses": uses, "expires_at": str(made.expires_at)}
    await operations.record(actor, "invite_members", name, details, http_request_id)
    return made


async def list_members(
    name: str, *, limit: int, before: int | None
) -> tuple[list[records.Member], int | None]:
    """A page of members, the latest first, and the cursor of the next one; raises NotFound."""
    rows = Member.filter(challenge=(await challenges.get(name)).name)
    found = await newest(rows, limit + 1, before)
    cursor = found[limit - 1].id if len(found) > limit else None
    return [records.Member.of(row) for row in found[:limit]], cursor


async def forget(hub_username: str) -> None:
    """Remove a name from the members of all challenges."""
    await Member.filter(name_key=hub_username.casefold()).delete()


async def make_invitation(
    row: Challenge, team_id: int | None, *, uses: int, expires_at: datetime | None
) -> records.Invitation:
    """Create an invitation, within a transaction; only the returned record has its code.

    Raises InvalidInput for an end in the past.
    """
    moment = now()
    challenges.require_future(expires_at, moment, "expires_at")
    await Invitation.filter(challenge=row.name, expires_at__lte=moment).delete()
    code = _PREFIX + secrets.token_urlsafe(24)
    made = Invitation(
        digest=_digest(code),
        challenge=row.name,
        team_id=team_id,
        uses_left=uses,
        expires_at=expires_at or moment + VALID,
    )
    await made.save(force_create=True)
    return records.Invitation(code=code, challenge=row.name, uses=uses, expires_at=made.expires_at)


async def find_invitation(row: Challenge, code: str) -> Invitation:
    """The invitation of a code to this challenge; raises NotFound, and Conflict if it has ended."""
    found = None
    if _CODE.fullmatch(code):
        found = await Invitation.get_or_none(digest=_digest(code), challenge=row.name)
    if found is None:
        raise NotFound(f"there is no such invitation to {row.name}")
    if found.expires_at <= now():
        raise Conflict(f"the invitation ended on {found.expires_at:%Y-%m-%d at %H:%M} UTC")
    return found


async def count_invitations(team_id: int) -> int:
    """The number of invitations to a team that have not ended."""
    return await Invitation.filter(team_id=team_id, expires_at__gt=now()).count()


async def end_invitations(team_id: int) -> None:
    """End all invitations to a team."""
    await Invitation.filter(team_id=team_id).delete()


async def use_invitation(invitation: Invitation) -> None:
    """Use an invitation; raises Conflict if it has no uses left."""
    left = Invitation.filter(digest=invitation.digest, uses_left__gt=0)
    if not await left.update(uses_left=F("uses_left") - 1):
        raise Conflict("the invitation has no uses left")


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
