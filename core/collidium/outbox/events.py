"""Announces what happened: the event and its deliveries are written in the transaction that makes it true."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import httpx
from tortoise.timezone import now

from collidium import database
from collidium.database import transactional
from collidium.outbox.models import Delivery, OutboxEvent, Webhook
from collidium.outbox.urls import host_of
from collidium.runtime.waiting import WakeSignal

#: The one kind of event there is.
SIMULATION_COMPLETED: Final = "simulation.completed"

#: Notified in this process when something was announced and has been committed.
announced: Final = WakeSignal()


@transactional
async def announce(account_id: int, url: str | None, record: Mapping[str, Any]) -> None:
    """Write the event that a simulation request ended, to be delivered to the account's receivers.

    ``record`` is the request as its owner reads it, in JSON's own types; ``url`` came with the request. The
    account's registered URL and ``url`` receive it, each once; where there is none, and where the account
    removed its webhook meanwhile, nothing is written. The same request again changes nothing.
    """
    webhook = await Webhook.get_or_none(account_id=account_id)
    if webhook is None:
        return
    urls = dict.fromkeys(address for address in (webhook.url, url) if address is not None)
    request_id = str(record["request_id"])
    if not urls or await OutboxEvent.exists(request_id=request_id, type=SIMULATION_COMPLETED):
        return
    moment = now()
    event = await OutboxEvent.create(
        id=f"evt_{uuid.uuid4().hex}",
        type=SIMULATION_COMPLETED,
        request_id=request_id,
        body=_body(moment, record),
        created_at=moment,
    )
    for address in urls:
        await Delivery.create(
            event=event,
            account_id=account_id,
            url=address,
            host=host_of(httpx.URL(address)),
            created_at=moment,
            next_attempt_at=moment,
        )
    database.on_commit(announced.notify)


def _body(moment: datetime, record: Mapping[str, Any]) -> str:
    timestamp = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    body = {"type": SIMULATION_COMPLETED, "timestamp": timestamp, "data": dict(record)}
    return json.dumps(body, separators=(",", ":"), allow_nan=False)
