"""Tables of the outbox: webhooks, events, and their deliveries. Only this package uses them."""

from __future__ import annotations

from tortoise import fields
from tortoise.models import Model


class Webhook(Model):
    """The webhook of an account: its URL, and the secret that signs events."""

    id = fields.BigIntField(primary_key=True)
    account_id = fields.BigIntField(unique=True)
    # None: only the URLs that come with requests receive events.
    url = fields.CharField(max_length=2000, null=True)
    # The signing secret, encrypted with the platform's key.
    secret = fields.TextField()
    created_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "webhooks"


class OutboxEvent(Model):
    """An event, as it is sent to every receiver."""

    # The webhook-id header, by which receivers know a repetition.
    id = fields.CharField(max_length=40, primary_key=True)
    type = fields.CharField(max_length=64)
    request_id = fields.CharField(max_length=64)
    # The JSON that is sent: text, so that every delivery has the same bytes.
    body = fields.TextField()
    created_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "outbox_events"
        unique_together = (("request_id", "type"),)


class Delivery(Model):
    """An event on its way to one address."""

    id = fields.BigIntField(primary_key=True)
    event: fields.ForeignKeyRelation[OutboxEvent] = fields.ForeignKeyField(
        "collidium.OutboxEvent", related_name="deliveries", on_delete=fields.RESTRICT
    )
    event_id: str
    account_id = fields.BigIntField()
    url = fields.CharField(max_length=2000)
    # Host of the URL.
    host = fields.CharField(max_length=255, default="")
    state = fields.CharField(max_length=16, default="pending")
    # Attempts started: the count also identifies the latest.
    attempts = fields.IntField(default=0)
    last_status = fields.IntField(null=True)
    last_error = fields.CharField(max_length=500, null=True)
    created_at = fields.DatetimeField()
    # When a pending delivery is tried next. While it is under way: when another process takes over.
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
