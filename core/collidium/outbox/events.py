"""Announce events: write an event and its deliveries in the transaction that causes it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

import httpx
from tortoise.timezone import now

from collidium import database
from collidium.database import transactional
from collidium.outbox.models import Delivery, OutboxEvent, Recipient, Webhook
from collidium.outbox.webhooks import host_of
from collidium.runtime.waiting import WakeSignal

Kind = Literal["scored", "disqualified", "deadline", "closed", "results", "job"]

#: The kinds of events that an account may switch on and off, and the ``type`` that receivers get.
TYPES: Final[Mapping[Kind, str]] = {
    "scored": "submission.scored",
    "disqualified": "submission.disqualified",
    "deadline": "challenge.deadline",
    "closed": "challenge.closed",
    "results": "challenge.results",
    "job": "simulation.completed",
}
#: The type of the event that asks to confirm a new e-mail address.
CONFIRM: Final = "address.given"
#: The URL of deliveries by e-mail.
MAIL: Final = "mailto:"
#: Maximum number of accounts in a query, and of rows in an insertion.
BATCH: Final = 1000

#: Notified in this process when an event has been committed.
announced: Final = WakeSignal()


@transactional
async def announce(
    kind: Kind,
    account_ids: Sequence[int],
    reference: str,
    record: Mapping[str, Any],
    *,
    url: str | None = None,
) -> None:
    """Write an event and its deliveries to the receivers of accounts.

    Parameters
    ----------
    kind
        Accounts that switched it off receive it at ``url`` only.
    account_ids
        Each account's registered URL and confirmed e-mail address receive it. If there are none, nothing is
        written.
    reference
        The id of the request, submission or challenge.
    record
        The record of ``reference`` as its owners read it, in JSON types.
    url
        Another URL of a single account. It is used only if the account has a webhook, whose secret signs the
        event.
    """
    receivers: list[tuple[int, str]] = []
    for start in range(0, len(account_ids), BATCH):
        ids = account_ids[start : start + BATCH]
        known = await Recipient.filter(account_id__in=ids)
        off = {row.account_id for row in known if kind in row.off}
        for hook in await Webhook.filter(account_id__in=ids):
            registered = None if hook.account_id in off else hook.url
            urls = dict.fromkeys(address for address in (registered, url) if address is not None)
            receivers += [(hook.account_id, address) for address in urls]
        receivers += [
            (row.account_id, MAIL)
            for row in known
            if row.confirmed_at is not None and row.account_id not in off
        ]
    if receivers:
        await write(TYPES[kind], receivers, reference, record)


@transactional
async def write(
    type_: str, receivers: Sequence[tuple[int, str]], reference: str, record: Mapping[str, Any]
) -> None:
    """Write an event, and a delivery for each account and URL."""
    moment = now()
    event = await OutboxEvent.create(
        id=f"evt_{uuid.uuid4().hex}",
        type=type_,
        reference=reference,
        body=_body(type_, moment, record),
        created_at=moment,
    )
    rows = [
        Delivery(
            event=event,
            account_id=account_id,
            url=address,
            host=host_of(httpx.URL(address)),
            created_at=moment,
            next_attempt_at=moment,
        )
        for account_id, address in receivers
    ]
    await Delivery.bulk_create(rows, batch_size=BATCH)
    database.on_commit(announced.notify)


def _body(type_: str, moment: datetime, record: Mapping[str, Any]) -> str:
    timestamp = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    body = {"type": type_, "timestamp": timestamp, "data": dict(record)}
    return json.dumps(body, separators=(",", ":"), allow_nan=False)
