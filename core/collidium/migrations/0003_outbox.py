"""Tables of the outbox: webhooks, events, deliveries."""

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0002_invariants")]

    operations = [
        ops.CreateModel(
            name="OutboxEvent",
            fields=[
                (
                    "id",
                    fields.CharField(
                        primary_key=True,
                        unique=True,
                        db_index=True,
                        description="The webhook-id header, by which receivers know a repetition.",
                        max_length=40,
                    ),
                ),
                ("type", fields.CharField(max_length=64)),
                ("request_id", fields.CharField(max_length=64)),
                (
                    "body",
                    fields.TextField(
                        description="The JSON that is sent: text, so that every delivery has the same bytes.",
                        unique=False,
                    ),
                ),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "outbox_events",
                "app": "collidium",
                "unique_together": (("request_id", "type"),),
                "pk_attr": "id",
                "table_description": "Something that happened, as every receiver is told of it.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Delivery",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                (
                    "event",
                    fields.ForeignKeyField(
                        "collidium.OutboxEvent",
                        source_field="event_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="deliveries",
                        on_delete=OnDelete.RESTRICT,
                    ),
                ),
                ("account_id", fields.BigIntField()),
                ("url", fields.CharField(max_length=2000)),
                ("state", fields.CharField(default="pending", max_length=16)),
                (
                    "attempts",
                    fields.IntField(
                        default=0, description="Attempts begun: it also tells whose attempt is the latest."
                    ),
                ),
                ("last_status", fields.IntField(null=True)),
                ("last_error", fields.CharField(null=True, max_length=500)),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                (
                    "next_attempt_at",
                    fields.DatetimeField(
                        null=True,
                        description="When a pending delivery is tried next. While it is under way: when another process takes over.",
                        auto_now=False,
                        auto_now_add=False,
                    ),
                ),
                ("delivered_at", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "webhook_deliveries",
                "app": "collidium",
                "indexes": [
                    Index(fields=["state", "next_attempt_at", "id"]),
                    Index(fields=["account_id", "id"]),
                ],
                "pk_attr": "id",
                "table_description": "An event on its way to one address.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Webhook",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("account_id", fields.BigIntField(unique=True)),
                (
                    "url",
                    fields.CharField(
                        null=True,
                        description="None: only the addresses that come with requests are told.",
                        max_length=2000,
                    ),
                ),
                (
                    "secret",
                    fields.TextField(
                        description="The signing secret, encrypted with the platform's key.", unique=False
                    ),
                ),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "webhooks",
                "app": "collidium",
                "pk_attr": "id",
                "table_description": "What an account set up to be told: where, and how to prove that it was us.",
            },
            bases=["Model"],
        ),
    ]
