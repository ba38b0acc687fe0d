"""Tables of the outbox: webhooks, recipients of e-mail, events, deliveries. Only this package uses them.

Docstrings of models are comments of tables: a change needs a migration.
"""

from __future__ import annotations

from typing import Any

from tortoise import fields
from tortoise.models import Model


class Webhook(Model):
    """The webhook of an account: its URL, and the secret that signs events."""

    id = fields.BigIntField(primary_key=True)
    account_id = fields.BigIntField(unique=True)
    # If None, only URLs that come with requests receive events.
    url = fields.CharField(max_length=2000, null=True)
    # The signing secret, encrypted with the platform's key.
    secret = fields.TextField()
    created_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "webhooks"


class Recipient(Model):
    """What an account wants to be notified of, and its e-mail address."""

    id = fields.BigIntField(primary_key=True)
    account_id = fields.BigIntField(unique=True)
    address = fields.CharField(max_length=254, null=True)
    # When the link sent to the address was followed. If None, only such links are sent to it.
    confirmed_at = fields.DatetimeField(null=True)
    # Number of consecutive permanent rejections.
    rejections = fields.IntField(default=0)
    # Kinds of events that are not sent.
    off: Any = fields.JSONField(default=list)

    class Meta(Model.Meta):
        table = "mail_recipients"


class OutboxEvent(Model):
    """An event, as it is sent to every receiver."""

    # The webhook-id header, by which receivers recognise repetitions.
    id = fields.CharField(max_length=40, primary_key=True)
    type = fields.CharField(max_length=64)
    # The id of a request, a submission or a challenge; the hash of the address that is to be confirmed.
    reference = fields.CharField(max_length=64)
    # The JSON as text, so that all deliveries have the same bytes.
    body = fields.TextField()
    created_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "outbox_events"
        indexes = (("reference",),)


class Delivery(Model):
    """An event on its way to one address."""

    id = fields.BigIntField(primary_key=True)
    event: fields.ForeignKeyRelation[OutboxEvent] = fields.ForeignKeyField(
        "collidium.OutboxEvent", related_name="deliveries", on_delete=fields.RESTRICT
    )
    event_id: str
    account_id = fields.BigIntField()
    # ``mailto:`` for the e-mail address that the account has when it is sent.
    url = fields.CharField(max_length=2000)
    host = fields.CharField(max_length=255, default="")
    state = fields.CharField(max_length=16, default="pending")
    # Number of attempts that were started; it also identifies the latest.
    attempts = fields.IntField(default=0)
    last_status = fields.IntField(null=True)
    last_error = fields.CharField(max_length=500, null=True)
    created_at = fields.DatetimeField()
    # When a pending delivery is attempted next; during an attempt, when its lease expires.
    next_attempt_at = fields.DatetimeField(null=True)
    delivered_at = fields.DatetimeField(null=True)

    class Meta(Model.Meta):
        table = "webhook_deliveries"
        indexes = (
            ("state", "next_attempt_at", "id"),
            ("account_id", "id"),
            ("event_id",),
            ("state", "account_id", "host", "next_attempt_at", "id"),
        )
