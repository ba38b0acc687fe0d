"""Shapes of webhooks and their deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from collidium.api.schemas.base import Answer, Body
from collidium.outbox import LONGEST_URL


class WebhookBody(Body):
    """How an account wants to be told."""

    model_config = ConfigDict(extra="forbid", strict=True)

    url: str | None = Field(
        None,
        max_length=LONGEST_URL,
        description="HTTPS address that is told of every request; null: none. Left out, it stays as it is.",
    )
    rotate_secret: bool = Field(False, description="Make a new signing secret; the old one ends at once.")


class WebhookModel(Answer):
    """An account's webhook; without a URL it is told of requests that come with one, and of no others."""

    url: str | None
    created_at: datetime


class WebhookSet(WebhookModel):
    """A webhook as it was set, with the signing secret when this made one: it is never shown again."""

    secret: str | None


class WebhookRemoved(BaseModel):
    """Whether there was a webhook; now there is none."""

    removed: bool


class DeliveryModel(Answer):
    """An event on its way to one address; ``event_id`` is its webhook-id header."""

    id: int
    event_id: str
    type: str
    request_id: str
    url: str
    state: Literal["pending", "delivered", "given_up"]
    attempts: int
    last_status: int | None
    last_error: str | None
    created_at: datetime
    next_attempt_at: datetime | None
    delivered_at: datetime | None
