"""Invitations: codes that admit so many accounts until their end, to a challenge's members or to a team."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime, timedelta
from typing import Final

from tortoise.expressions import F
from tortoise.timezone import now

from collidium import records
from collidium.benchmarks import challenges
from collidium.benchmarks.models import Challenge, Invitation
from collidium.errors import Conflict, NotFound

#: How long one is valid unless it is set.
VALID: Final = timedelta(days=14)
_PREFIX: Final = "collidium_invitation_"
_CODE: Final = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{32}}")


async def make(
    row: Challenge, team_id: int | None, *, uses: int, expires_at: datetime | None
) -> records.Invitation:
    """Make an invitation in the transaction under way; its code is in the record alone.

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


async def find(row: Challenge, code: str) -> Invitation:
    """The invitation of a code to this challenge; raises NotFound, and Conflict once it is over."""
    found = None
    if _CODE.fullmatch(code):
        found = await Invitation.get_or_none(digest=_digest(code), challenge=row.name)
    if found is None:
        raise NotFound(f"there is no such invitation to {row.name}")
    if found.expires_at <= now():
        raise Conflict(f"the invitation ended on {found.expires_at:%Y-%m-%d at %H:%M} UTC")
    return found


async def use(invitation: Invitation) -> None:
    """Use an invitation once more; raises Conflict where it was used as often as it may be."""
    left = Invitation.filter(digest=invitation.digest, uses_left__gt=0)
    if not await left.update(uses_left=F("uses_left") - 1):
        raise Conflict("the invitation was used as often as it may be")


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
