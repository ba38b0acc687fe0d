"""Webhooks and their deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where the account is told that a request has ended; ``secret`` is there when this made one."""

    url: str | None
    created_at: datetime
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class WebhookRemoved:
    """The answer to a removal: whether there was a webhook."""

    removed: bool


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """An event on its way to one address; ``state`` is ``pending``, ``delivered`` or ``given_up``."""

    id: int | str
    event_id: str
    type: str
    request_id: str
    url: str
    state: str
    attempts: int
    created_at: datetime
    last_status: int | None = None
    last_error: str | None = None
    next_attempt_at: datetime | None = None
    delivered_at: datetime | None = None
