"""The deliveries: who takes which, what became of it, and the log that their owner reads.

A delivery is taken for a while (a lease): another process may take it again when that is over, because the
first was killed. Attempts are counted when they begin, so the count also tells whose attempt is the latest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tortoise.expressions import F, Q
from tortoise.queryset import QuerySet

from collidium import accounts
from collidium.database import transactional
from collidium.outbox.models import Delivery, Webhook

PENDING: Final = "pending"
DELIVERED: Final = "delivered"
GIVEN_UP: Final = "given_up"

#: Nothing ever waits longer than this: what seems to was written before the clock was set back.
HORIZON: Final = timedelta(hours=2)
#: How many of those that are due are looked at to choose from.
WINDOW: Final = 200


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """A delivery, as its owner sees it."""

    id: int
    event_id: str
    type: str
    request_id: str
    url: str
    state: str
    attempts: int
    last_status: int | None
    last_error: str | None
    created_at: datetime
    next_attempt_at: datetime | None
    delivered_at: datetime | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver, taken by this process."""

    delivery_id: int
    number: int
    account_id: int
    url: str
    event_id: str
    request_id: str
    body: str
    created_at: datetime
    #: Encrypted; None where the account removed its webhook.
    secret: str | None = field(repr=False)
    #: Whether the account was banned when this was taken: then nothing is sent.
    banned: bool


async def log_of(account_id: int, *, limit: int, before: int | None = None) -> list[DeliveryView]:
    """Up to ``limit`` deliveries of an account, newest first, those with an id below ``before``."""
    query = Delivery.filter(account_id=account_id).select_related("event")
    if before is not None:
        query = query.filter(id__lt=before)
    return [_view(row) for row in await query.order_by("-id").limit(limit)]


async def backlog() -> int:
    """How many deliveries are still to be made."""
    return await Delivery.filter(state=PENDING).count()


# -- taking ------------------------------------------------------------------------------------------


async def take(
    moment: datetime, lease: timedelta, *, most: int, most_each: int, under_way: Mapping[int, int]
) -> list[Attempt]:
    """Take up to ``most`` deliveries that are due, the longest waiting first, as long as ``lease``.

    ``under_way`` counts by account what this process delivers already: no account gets more than
    ``most_each``, so that one whose receiver is slow cannot hold up the rest.
    """
    full = [account for account, count in under_way.items() if count >= most_each]
    # Outside of the transaction that takes: on SQLite that would hold up everybody for a look.
    due = await _due(moment, full).order_by("next_attempt_at", "id").limit(WINDOW).only("id", "account_id")
    counts = Counter(under_way)
    chosen: list[int] = []
    for row in due:
        if len(chosen) < most and counts[row.account_id] < most_each:
            counts[row.account_id] += 1
            chosen.append(row.id)
    return await _lease(chosen, moment, lease) if chosen else []


@transactional
async def _lease(ids: list[int], moment: datetime, lease: timedelta) -> list[Attempt]:
    free = _due(moment).filter(id__in=ids).order_by("next_attempt_at", "id")
    # Not with their events: PostgreSQL would lock those, too.
    rows = await free.select_for_update(skip_locked=True)
    await Delivery.filter(id__in=[row.id for row in rows]).update(
        attempts=F("attempts") + 1, next_attempt_at=moment + lease
    )
    await Delivery.fetch_for_list(rows, "event")
    owners = {row.account_id for row in rows}
    secrets = {hook.account_id: hook.secret for hook in await Webhook.filter(account_id__in=owners)}
    banned = await accounts.banned_among(owners)
    return [_attempt(row, secrets.get(row.account_id), row.account_id in banned) for row in rows]


def _due(moment: datetime, without: Collection[int] = ()) -> QuerySet[Delivery]:
    due = Q(next_attempt_at__lte=moment) | Q(next_attempt_at__gt=moment + HORIZON)
    query = Delivery.filter(due, state=PENDING)
    return query.exclude(account_id__in=list(without)) if without else query


# -- what became of it ---------------------------------------------------------------------------------


async def delivered(attempt: Attempt, status: int | None, moment: datetime) -> None:
    """The receiver took it; true also when the lease ran out meanwhile."""
    await Delivery.filter(id=attempt.delivery_id, state=PENDING).update(
        state=DELIVERED, last_status=status, last_error=None, next_attempt_at=None, delivered_at=moment
    )


async def failed(attempt: Attempt, status: int | None, error: str, next_attempt_at: datetime | None) -> None:
    """The attempt failed; without a next one the delivery is given up.

    Where the lease ran out and somebody else took the delivery, theirs to say is what becomes of it.
    """
    latest = Delivery.filter(id=attempt.delivery_id, state=PENDING, attempts=attempt.number)
    await latest.update(
        state=GIVEN_UP if next_attempt_at is None else PENDING,
        last_status=status,
        last_error=error,
        next_attempt_at=next_attempt_at,
    )


async def give_up_all(account_id: int, why: str) -> None:
    """Give up whatever of an account is still to be delivered."""
    pending = Delivery.filter(account_id=account_id, state=PENDING)
    await pending.update(state=GIVEN_UP, last_error=why, next_attempt_at=None)


def _view(row: Delivery) -> DeliveryView:
    return DeliveryView(
        id=row.id,
        event_id=row.event_id,
        type=row.event.type,
        request_id=row.event.request_id,
        url=row.url,
        state=row.state,
        attempts=row.attempts,
        last_status=row.last_status,
        last_error=row.last_error,
        created_at=row.created_at,
        next_attempt_at=row.next_attempt_at,
        delivered_at=row.delivered_at,
    )


def _attempt(row: Delivery, secret: str | None, banned: bool) -> Attempt:
    return Attempt(
        delivery_id=row.id,
        number=row.attempts + 1,
        account_id=row.account_id,
        url=row.url,
        event_id=row.event_id,
        request_id=row.event.request_id,
        body=row.event.body,
        created_at=row.created_at,
        secret=secret,
        banned=banned,
    )
