"""Accounts, ledger entries, webhooks and notification settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from collidium.records.base import Credits, Record, Time


class Account(Record, frozen=True):
    """An account and its balance."""

    hub_username: str
    credits: Credits
    banned: bool
    created_at: Time
    last_seen_at: Time | None = None


class Transaction(Record, frozen=True):
    """A ledger entry."""

    id: int
    delta: Credits
    reason: str
    balance_after: Credits
    created_at: Time
    note: str = ""
    reference: str = ""


class Webhook(Record, frozen=True):
    """An account's webhook; without a URL it only receives events of requests that have their own."""

    url: str | None
    created_at: Time
    secret: Annotated[
        str | None, Meta(description="The signing secret; only in the response that created it.")
    ] = None

    def __repr__(self) -> str:
        return f"Webhook(url={self.url!r}, created_at={self.created_at!r})"


class WebhookRemoved(Record, frozen=True):
    """Whether there was a webhook to remove."""

    removed: bool


class Notifications(Record, frozen=True):
    """Notification settings of an account."""

    email: str | None
    confirmed_at: Annotated[
        Time | None, Meta(description="null: the address is not confirmed, and nothing else is sent there.")
    ]
    kinds: Annotated[
        Mapping[str, bool], Meta(description="Kinds of events that are sent by e-mail and webhook.")
    ]
    problem: Annotated[str | None, Meta(description="Why nothing is sent there any more.")] = None


class WebhookDelivery(Record, frozen=True):
    """The delivery of an event to one address; ``event_id`` is its webhook-id header."""

    id: int
    event_id: str
    type: str
    reference: Annotated[
        str, Meta(description="The request, submission or challenge that the event is about.")
    ]
    url: Annotated[str, Meta(description="`mailto:` for e-mail.")]
    state: Annotated[str, Meta(extra_json_schema={"enum": ["pending", "delivered", "given_up"]})]
    attempts: int
    created_at: Time
    last_status: int | None = None
    last_error: str | None = None
    next_attempt_at: Time | None = None
    delivered_at: Time | None = None
