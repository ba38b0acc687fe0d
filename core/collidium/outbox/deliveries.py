"""The deliveries: who takes which, what became of it, and the log that their owner reads.

A delivery is taken for a while (a lease): another process may take it again when that is over, because the
first was killed. Attempts are counted when they begin, so the count also identifies the latest attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tortoise.expressions import F, Q
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium import accounts
from collidium.database import rows_of, transactional
from collidium.outbox.events import CONFIRM, MAIL
from collidium.outbox.models import Delivery, OutboxEvent, Recipient, Webhook
from collidium.outbox.turns import Due, Receiver
from collidium.records import WebhookDelivery

PENDING: Final = "pending"
DELIVERED: Final = "delivered"
GIVEN_UP: Final = "given_up"

#: Nothing ever waits longer than this: what seems to was written before the clock was set back.
HORIZON: Final = timedelta(hours=2)
#: How many of those that are due are looked at to choose from, and of them of one account.
WINDOW: Final = 1000
WINDOW_EACH: Final = 8
#: How many are put off, or called up, at once.
MAX_MOVED: Final = 1000

#: What is due: each account's first before any account's second, and so for the hosts of an account.
_DUE: Final = """
SELECT id, account_id, host FROM (
    SELECT id, account_id, host, next_attempt_at,
        ROW_NUMBER() OVER (PARTITION BY account_id ORDER BY of_host, next_attempt_at, id) AS of_account
    FROM (
        SELECT id, account_id, host, next_attempt_at,
            ROW_NUMBER() OVER (PARTITION BY account_id, host ORDER BY next_attempt_at, id) AS of_host
        FROM webhook_deliveries WHERE state = ? AND (next_attempt_at <= ? OR next_attempt_at > ?)
    ) AS by_host WHERE of_host <= ?
) AS by_account
WHERE of_account <= ? ORDER BY of_account, next_attempt_at, id LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver, taken by this process."""

    #: With its event, and with this attempt counted.
    row: Delivery
    #: What is needed to send it, None where the account removed it: the webhook's encrypted secret, or
    #: the e-mail address.
    means: str | None = field(repr=False)
    #: Whether the account was banned when this was taken: then nothing is sent.
    banned: bool

    @property
    def receiver(self) -> Receiver:
        """Whose it is, and where it goes."""
        return Receiver(self.row.account_id, self.row.host)


async def log_of(account_id: int, *, limit: int, before: int | None = None) -> list[WebhookDelivery]:
    """Up to ``limit`` deliveries of an account, newest first, those with an id below ``before``."""
    query = Delivery.filter(account_id=account_id).select_related("event")
    if before is not None:
        query = query.filter(id__lt=before)
    return [_view(row) for row in await query.order_by("-id").limit(limit)]


async def backlog() -> int:
    """How many deliveries are still to be made."""
    return await Delivery.filter(state=PENDING).count()


async def overdue_seconds() -> float:
    """How long the delivery waits that is due for longest; 0 where none is."""
    moment = now()
    waiting = Delivery.filter(state=PENDING, next_attempt_at__lte=moment).order_by("next_attempt_at").limit(1)
    due: list[datetime] = [at for (at,) in await waiting.values_list("next_attempt_at")]
    return (moment - due[0]).total_seconds() if due else 0.0


# -- taking ------------------------------------------------------------------------------------------


async def take(
    moment: datetime, lease: timedelta, choose: Callable[[Sequence[Due]], Sequence[Due]]
) -> list[Attempt]:
    """Take the deliveries that ``choose`` chooses of those that are due, as long as ``lease``.

    It is shown up to :data:`WINDOW`: the first of every account before the second of any, so that no backlog
    hides another account's deliveries; then those that wait for longest first.
    """
    # Outside of the transaction that takes: on SQLite that would lock the database for a read.
    rows = await rows_of(_DUE, PENDING, moment, moment + HORIZON, WINDOW_EACH, WINDOW_EACH, WINDOW)
    due = [Due(row["id"], Receiver(row["account_id"], row["host"])) for row in rows]
    chosen = [delivery.id for delivery in choose(due)]
    return await _lease(chosen, moment, lease) if chosen else []


@transactional
async def _lease(ids: list[int], moment: datetime, lease: timedelta) -> list[Attempt]:
    free = _due(moment).filter(id__in=ids).order_by("next_attempt_at", "id")
    # Not with their events: PostgreSQL would lock those, too.
    rows = await free.select_for_update(skip_locked=True)
    await Delivery.filter(id__in=[row.id for row in rows]).update(
        attempts=F("attempts") + 1, next_attempt_at=moment + lease
    )
    for row in rows:
        row.attempts += 1
    await Delivery.fetch_for_list(rows, "event")
    owners = {row.account_id for row in rows}
    secrets = {hook.account_id: hook.secret for hook in await Webhook.filter(account_id__in=owners)}
    mailed = {row.account_id for row in rows if row.url == MAIL}
    found = {row.account_id: row for row in (await Recipient.filter(account_id__in=mailed) if mailed else ())}
    banned = await accounts.banned_among(owners)

    def means(row: Delivery) -> str | None:
        if row.url != MAIL:
            return secrets.get(row.account_id)
        owner = found.get(row.account_id)
        known = owner is not None and (owner.confirmed_at is not None or row.event.type == CONFIRM)
        return owner.address if owner is not None and known else None

    return [Attempt(row, means(row), row.account_id in banned) for row in rows]


def _due(moment: datetime) -> QuerySet[Delivery]:
    due = Q(next_attempt_at__lte=moment) | Q(next_attempt_at__gt=moment + HORIZON)
    return Delivery.filter(due, state=PENDING)


# -- what became of it ---------------------------------------------------------------------------------


async def delivered(attempt: Attempt, status: int | None, moment: datetime) -> None:
    """The receiver took it; true also when the lease ran out meanwhile."""
    await Delivery.filter(id=attempt.row.id, state=PENDING).update(
        state=DELIVERED, last_status=status, last_error=None, next_attempt_at=None, delivered_at=moment
    )


async def failed(attempt: Attempt, status: int | None, error: str, next_attempt_at: datetime | None) -> None:
    """The attempt failed; without a next one the delivery is given up.

    Where the lease ran out and another process took the delivery, that one decides.
    """
    latest = Delivery.filter(id=attempt.row.id, state=PENDING, attempts=attempt.row.attempts)
    await latest.update(
        state=GIVEN_UP if next_attempt_at is None else PENDING,
        last_status=status,
        last_error=error,
        next_attempt_at=next_attempt_at,
    )


async def put_off(receiver: Receiver, moment: datetime, until: datetime) -> None:
    """Let what is due and was not tried wait until then, as another delivery to the receiver has failed."""
    await _move(receiver, until, Q(next_attempt_at__lte=moment))


async def call_up(receiver: Receiver, moment: datetime) -> None:
    """Make due what was put off, as the receiver took another delivery."""
    await _move(receiver, moment, Q(next_attempt_at__gt=moment))


async def _move(receiver: Receiver, moment: datetime, which: Q) -> None:
    # What was tried has its own time: it may be under way.
    untried = Delivery.filter(
        which, account_id=receiver.account_id, host=receiver.host, state=PENDING, attempts=0
    )
    if await untried.exists():
        await _set_due(untried, moment)


@transactional
async def _set_due(deliveries: QuerySet[Delivery], moment: datetime) -> None:
    # Locked in one order and without waiting: of two processes that move the same, none waits for the other.
    locked = deliveries.order_by("id").limit(MAX_MOVED).select_for_update(skip_locked=True)
    ids = [row.id for row in await locked.only("id")]
    await Delivery.filter(id__in=ids).update(next_attempt_at=moment)


async def give_up_all(account_id: int, why: str, *, mail: bool) -> None:
    """Give up whatever of an account is still to be delivered as e-mail, or to webhooks."""
    pending = Delivery.filter(Q(url=MAIL) if mail else ~Q(url=MAIL), account_id=account_id, state=PENDING)
    await pending.update(state=GIVEN_UP, last_error=why, next_attempt_at=None)


# -- what is over ------------------------------------------------------------------------------------------


async def prune(before: datetime) -> int:
    """Delete older deliveries that were made or given up, and their events; how many deliveries."""
    # By ids, which rise with time: what is young is not looked at.
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
    # Without waiting: of two processes that prune, none waits for the other.
    rows = (
        await old.order_by("id").limit(MAX_MOVED).select_for_update(skip_locked=True).only("id", "event_id")
    )
    await Delivery.filter(id__in=[row.id for row in rows]).delete()
    events = [row.event_id for row in rows]
    await OutboxEvent.filter(id__in=events, deliveries__id__isnull=True).delete()
    return len(rows)


def _view(row: Delivery) -> WebhookDelivery:
    return WebhookDelivery.of(row, type=row.event.type, reference=row.event.reference)
