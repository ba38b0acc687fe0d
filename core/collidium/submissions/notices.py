"""Notices to participants: dates of challenges, results, disqualifications.

Each is written to the outbox in the transaction of its event.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from msgspec import structs
from tortoise.timezone import now

from collidium import challenges, outbox, records
from collidium.challenges import Challenge
from collidium.database import transactional
from collidium.submissions.models import Submission
from collidium.submissions.reading import view as view_submission
from collidium.submissions.reading import why_unranked

if TYPE_CHECKING:
    from collidium.platform import Platform

#: How long before closing participants are reminded.
REMINDER: Final = timedelta(days=1)


async def dates(platform: Platform, row: Challenge) -> None:
    """Announce that a challenge closes within :data:`REMINDER`, or has closed, once per date."""
    moment = now()
    state = challenges.state_of(row, moment)
    kind: Literal["deadline", "closed"] = "deadline" if state == "open" else "closed"
    if row.closes_at is None or state == "upcoming" or row.closes_at - REMINDER > moment:
        return
    if row.notice != _notice(kind, row.closes_at):
        await _announce_date(platform, row.name, kind, row.closes_at)


@transactional
async def _announce_date(
    platform: Platform, name: str, kind: Literal["deadline", "closed"], closes_at: datetime
) -> None:
    row = await challenges.locked(name)
    if row.closes_at == closes_at and row.notice != _notice(kind, closes_at):
        row.notice = _notice(kind, closes_at)
        await row.save(update_fields=["notice"])
        await of_challenge(platform, row, kind)


def _notice(kind: str, closes_at: datetime) -> str:
    return f"{kind} {closes_at.isoformat()}"


async def of_challenge(
    platform: Platform, row: Challenge, kind: Literal["deadline", "closed", "results"]
) -> None:
    """Announce an event of a challenge to all accounts that submitted to it."""
    rows = await Submission.filter(challenge=row.name).distinct().values("account_id")
    account_ids = sorted(one["account_id"] for one in rows)
    # Without long texts that are no news.
    view = structs.replace(challenges.view(row, platform), rules="", announcements=())
    await outbox.announce(kind, account_ids, row.name, records.as_json(view))


async def disqualified(row: Submission, challenge: Challenge) -> None:
    """Announce a disqualification to the submission's account, with the reason."""
    view = view_submission(row, unranked=why_unranked(row, challenge, None))
    await outbox.announce("disqualified", [row.account_id], row.id, records.as_json(view))
