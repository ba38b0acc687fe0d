"""Deliveries in the database: leasing due ones, recording outcomes, the log for their owner, pruning.

A process leases a delivery. When the lease expires, because the process was killed, another may take it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tortoise.expressions import F, Q
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium import accounts
from collidium.database import newest, transactional
from collidium.database.leases import LeaseLost, Leases
from collidium.outbox.events import CONFIRM, MAIL
from collidium.outbox.models import Delivery, OutboxEvent, Recipient, Webhook
from collidium.outbox.turns import Due, Receiver
from collidium.outbox.window import HORIZON, DueWindow
from collidium.records import WebhookDelivery

PENDING: Final = "pending"
DELIVERED: Final = "delivered"
GIVEN_UP: Final = "given_up"

#: An attempt is counted when it begins, so the count identifies a lease.
LEASES: Final = Leases(Delivery, "next_attempt_at", lease="attempts", unended=Q(state=PENDING))

#: Maximum number of deliveries that are moved or deleted at once.
MAX_MOVED: Final = 1000


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to deliver, leased by this process."""

    #: With its event, and with this attempt counted.
    row: Delivery
    #: The webhook's encrypted secret or the e-mail address; None if the account has removed it.
    means: str | None = field(repr=False)
    #: Whether the account is banned: then nothing is sent.
    banned: bool

    @property
    def receiver(self) -> Receiver:
        return Receiver(self.row.account_id, self.row.host)


async def log_of(account_id: int, *, limit: int, before: int | None = None) -> list[WebhookDelivery]:
    """Return up to ``limit`` deliveries of an account with ids below ``before``, newest first."""
    rows = newest(Delivery.filter(account_id=account_id).select_related("event"), limit, before)
    return [WebhookDelivery.of(row, type=row.event.type, reference=row.event.reference) for row in await rows]


async def backlog() -> int:
    """Return the number of pending deliveries."""
    return await Delivery.filter(state=PENDING).count()


async def overdue_seconds() -> float:
    """Return how long the first due delivery has been waiting, else 0."""
    moment = now()
    waiting = Delivery.filter(state=PENDING, next_attempt_at__lte=moment).order_by("next_attempt_at").limit(1)
    due: list[datetime] = [at for (at,) in await waiting.values_list("next_attempt_at")]
    return (moment - due[0]).total_seconds() if due else 0.0


# -- leases ------------------------------------------------------------------------------------------


async def take(
    moment: datetime,
    lease: timedelta,
    choose: Callable[[Sequence[Due]], Sequence[Due]],
    window: DueWindow | None = None,
) -> list[Attempt]:
    """Lease the due deliveries that ``choose`` selects of those in ``window``, for the time ``lease``."""
    # Outside of the transaction, which would lock the whole database in SQLite.
    due = await (window or DueWindow()).look(moment)
    chosen = [delivery.id for delivery in choose(due)]
    return await _lease(chosen, moment, lease) if chosen else []


@transactional
async def _lease(ids: list[int], moment: datetime, lease: timedelta) -> list[Attempt]:
    # By id alone, or SQLite searches all that are due. Without their events, which PostgreSQL would lock.
    free = Delivery.filter(id__in=ids).order_by("next_attempt_at", "id").select_for_update(skip_locked=True)
    rows = [row for row in await free if row.state == PENDING and _is_due(row, moment)]
    await LEASES.take(rows, moment + lease, attempts=F("attempts") + 1)
    for row in rows:
        row.attempts += 1
    await Delivery.fetch_for_list(rows, "event")
    owners = {row.account_id for row in rows}
    mailed = {row.account_id for row in rows if row.url == MAIL}
    hooked = {row.account_id for row in rows if row.url != MAIL}
    hooks = await Webhook.filter(account_id__in=hooked) if hooked else ()
    secrets = {hook.account_id: hook.secret for hook in hooks}
    found = {row.account_id: row for row in (await Recipient.filter(account_id__in=mailed) if mailed else ())}
    banned = await accounts.banned_among(owners)

    def means(row: Delivery) -> str | None:
        if row.url != MAIL:
            return secrets.get(row.account_id)
        owner = found.get(row.account_id)
        known = owner is not None and (owner.confirmed_at is not None or row.event.type == CONFIRM)
        return owner.address if owner is not None and known else None

    return [Attempt(row, means(row), row.account_id in banned) for row in rows]


def _is_due(row: Delivery, moment: datetime) -> bool:
    at = row.next_attempt_at
    return at is not None and not moment < at <= moment + HORIZON


# -- outcomes ------------------------------------------------------------------------------------------


async def delivered(attempt: Attempt, status: int | None, moment: datetime) -> None:
    """Record a success, also if the lease has expired."""
    await Delivery.filter(id=attempt.row.id, state=PENDING).update(
        state=DELIVERED, last_status=status, last_error=None, next_attempt_at=None, delivered_at=moment
    )


async def failed(attempt: Attempt, status: int | None, error: str, next_attempt_at: datetime | None) -> None:
    """Record a failure; without a next attempt the delivery is given up.

    If another process has taken the delivery, this changes nothing.
    """
    with suppress(LeaseLost):
        await LEASES.change(
            attempt.row,
            state=GIVEN_UP if next_attempt_at is None else PENDING,
            last_status=status,
            last_error=error,
            next_attempt_at=next_attempt_at,
        )


async def put_off(receiver: Receiver, moment: datetime, until: datetime) -> None:
    """Postpone due deliveries to a receiver that were not attempted yet, after a failure of another."""
    await _move(receiver, until, Q(next_attempt_at__lte=moment))


async def call_up(receiver: Receiver, moment: datetime) -> None:
    """Make postponed deliveries to a receiver due, after a success of another."""
    await _move(receiver, moment, Q(next_attempt_at__gt=moment))


async def _move(receiver: Receiver, moment: datetime, which: Q) -> None:
    # Attempted ones have their own time, and may be running.
    untried = Delivery.filter(
        which, account_id=receiver.account_id, host=receiver.host, state=PENDING, attempts=0
    )
    if await untried.exists():
        await _set_due(untried, moment)


@transactional
async def _set_due(deliveries: QuerySet[Delivery], moment: datetime) -> None:
    # Skip locked rows, so that processes that move the same deliveries do not wait for each other.
    locked = deliveries.order_by("id").limit(MAX_MOVED).select_for_update(skip_locked=True)
    ids = [row.id for row in await locked.only("id")]
    await Delivery.filter(id__in=ids).update(next_attempt_at=moment)


async def give_up_all(account_id: int, why: str, *, mail: bool) -> None:
    """Give up an account's pending deliveries, either those by e-mail or those to webhooks."""
    pending = Delivery.filter(Q(url=MAIL) if mail else ~Q(url=MAIL), account_id=account_id, state=PENDING)
    await pending.update(state=GIVEN_UP, last_error=why, next_attempt_at=None)


# -- pruning -----------------------------------------------------------------------------------------------


async def prune(before: datetime) -> int:
    """Delete older deliveries that are not pending, and their events; return the number of deliveries."""
    # By ids, which increase with time, so that newer rows are not read.
    youngest = await Delivery.filter(created_at__gte=before).order_by("id").only("id").first()
    old = Delivery.exclude(state=PENDING)
    if youngest is not None:
        old = old.filter(id__lt=youngest.id)
    pruned = 0
    while some := await _prune(old):
        pruned += some
    return pruned


@transactional
async def _prune(old: QuerySet[Delivery]) -> int:
    # Skip locked rows, so that processes that prune do not wait for each other.
    rows = (
        await old.order_by("id").limit(MAX_MOVED).select_for_update(skip_locked=True).only("id", "event_id")
    )
    await Delivery.filter(id__in=[row.id for row in rows]).delete()
    events = [row.event_id for row in rows]
    await OutboxEvent.filter(id__in=events, deliveries__id__isnull=True).delete()
    return len(rows)
