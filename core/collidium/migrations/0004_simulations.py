"""Simulation requests and what belongs to them; how one ended is never changed."""

import functools
from decimal import Decimal
from json import dumps, loads

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps

SQLITE = """
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests
WHEN OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged
    OR NEW.credits_refunded <> OLD.credits_refunded OR NEW.step <> '')
BEGIN SELECT RAISE(ABORT, 'the request has ended'); END;
CREATE TRIGGER request_refund BEFORE UPDATE ON simulation_requests
WHEN CAST(NEW.credits_refunded AS NUMERIC) < 0
    OR CAST(NEW.credits_refunded AS NUMERIC) > CAST(NEW.credits_charged AS NUMERIC)
BEGIN SELECT RAISE(ABORT, 'a refund of more than was charged'); END;
"""

POSTGRESQL = """
CREATE FUNCTION request_has_ended() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the request has ended' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests FOR EACH ROW
WHEN (OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged
    OR NEW.credits_refunded <> OLD.credits_refunded OR NEW.step <> ''))
EXECUTE FUNCTION request_has_ended();
ALTER TABLE simulation_requests ADD CONSTRAINT request_refund
CHECK (credits_refunded BETWEEN 0 AND credits_charged);
"""

SQLITE_BACK = """
DROP TRIGGER request_has_ended;
DROP TRIGGER request_refund;
"""

POSTGRESQL_BACK = """
DROP TRIGGER request_has_ended ON simulation_requests;
DROP FUNCTION request_has_ended();
ALTER TABLE simulation_requests DROP CONSTRAINT request_refund;
"""


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SQLITE if editor.DIALECT == "sqlite" else POSTGRESQL)


async def _backward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SQLITE_BACK if editor.DIALECT == "sqlite" else POSTGRESQL_BACK)


class Migration(migrations.Migration):
    dependencies = [("collidium", "0003_outbox")]

    operations = [
        ops.CreateModel(
            name="SimulationRequest",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("request_id", fields.CharField(unique=True, max_length=32)),
                ("account_id", fields.BigIntField()),
                ("hub_username", fields.CharField(max_length=96)),
                ("channel", fields.CharField(max_length=64)),
                ("events", fields.IntField()),
                ("pileup", fields.IntField()),
                ("seed", fields.IntField()),
                ("pipeline_version", fields.CharField(max_length=64)),
                ("config_hash", fields.CharField(max_length=64)),
                ("private", fields.BooleanField(default=False)),
                ("webhook_url", fields.CharField(null=True, max_length=2000)),
                ("state", fields.CharField(max_length=16)),
                (
                    "reason",
                    fields.CharField(
                        null=True, description="Why it is as it is, or what is wrong for now.", max_length=500
                    ),
                ),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("started_at", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
                ("finished_at", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
                (
                    "created_day",
                    fields.CharField(
                        description="Days and months in UTC, written once, so that no time zone of a session moves them.",
                        max_length=10,
                    ),
                ),
                ("finished_month", fields.CharField(null=True, max_length=7)),
                ("credits_charged", fields.DecimalField(max_digits=18, decimal_places=3)),
                (
                    "credits_refunded",
                    fields.DecimalField(default=Decimal("0"), max_digits=18, decimal_places=3),
                ),
                ("estimated_node_hours", fields.DecimalField(max_digits=18, decimal_places=3)),
                (
                    "node_hours",
                    fields.DecimalField(
                        description="The estimate until it has ended, then what the runner used.",
                        max_digits=18,
                        decimal_places=3,
                    ),
                ),
                (
                    "node_hours_used",
                    fields.DecimalField(
                        null=True,
                        description="What the runner said that it used, while the output is still on its way.",
                        max_digits=18,
                        decimal_places=3,
                    ),
                ),
                ("runner", fields.CharField(max_length=64)),
                ("is_mock", fields.BooleanField(default=False)),
                ("handle", fields.CharField(null=True, max_length=200)),
                ("node_seconds", fields.FloatField()),
                (
                    "output",
                    fields.JSONField(
                        null=True,
                        description="The files in the storage backend, once they were collected.",
                        encoder=functools.partial(dumps, separators=(",", ":")),
                        decoder=loads,
                    ),
                ),
                ("output_hub_repo", fields.CharField(null=True, max_length=500)),
                (
                    "encrypted_token",
                    fields.TextField(
                        null=True,
                        description="The requester's hub token, needed to publish, and gone when the request has ended.",
                        unique=False,
                    ),
                ),
                (
                    "step",
                    fields.CharField(
                        description="What the follower does next, empty when the request has ended.",
                        max_length=16,
                    ),
                ),
                (
                    "due_at",
                    fields.DatetimeField(
                        null=True,
                        db_index=True,
                        description="When to do it, None when the request has ended.",
                        auto_now=False,
                        auto_now_add=False,
                    ),
                ),
                (
                    "deadline_at",
                    fields.DatetimeField(
                        null=True,
                        description="When the step has taken too long.",
                        auto_now=False,
                        auto_now_add=False,
                    ),
                ),
                ("cancel_requested_at", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
                ("attempts", fields.IntField(default=0, description="Failures of the step in a row.")),
                (
                    "denials",
                    fields.IntField(
                        default=0, description="How often in a row the runner did not know the job."
                    ),
                ),
                (
                    "lease",
                    fields.CharField(
                        default="",
                        db_index=True,
                        description="Who works on it, and until when nobody else may.",
                        max_length=32,
                    ),
                ),
                ("leased_until", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "simulation_requests",
                "app": "collidium",
                "unique_together": (("runner", "handle"),),
                "indexes": [
                    Index(fields=["account_id", "created_at"]),
                    Index(fields=["account_id", "state"]),
                    Index(fields=["account_id", "id"]),
                    Index(fields=["state", "id"]),
                    Index(fields=["config_hash", "state", "finished_at"]),
                ],
                "pk_attr": "id",
                "table_description": "An order of events that was paid for, and what became of it.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="HistoryLine",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                (
                    "request",
                    fields.ForeignKeyField(
                        "collidium.SimulationRequest",
                        source_field="request_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="history",
                        on_delete=OnDelete.RESTRICT,
                    ),
                ),
                ("at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("state", fields.CharField(max_length=16)),
                ("reason", fields.CharField(null=True, max_length=500)),
            ],
            options={
                "table": "simulation_history",
                "app": "collidium",
                "pk_attr": "id",
                "table_description": "A moment in the life of a request: a state it came to, or something worth telling on the way.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("account_id", fields.BigIntField()),
                ("key", fields.CharField(max_length=128)),
                (
                    "question",
                    fields.CharField(
                        description="The sha256 of what was asked: the same key with another question is refused.",
                        max_length=64,
                    ),
                ),
                (
                    "request",
                    fields.ForeignKeyField(
                        "collidium.SimulationRequest",
                        source_field="request_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="keys",
                        on_delete=OnDelete.RESTRICT,
                    ),
                ),
                ("cached", fields.BooleanField()),
            ],
            options={
                "table": "idempotency_keys",
                "app": "collidium",
                "unique_together": (("account_id", "key"),),
                "pk_attr": "id",
                "table_description": "The answer that an account's key was given.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Reader",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                (
                    "request",
                    fields.ForeignKeyField(
                        "collidium.SimulationRequest",
                        source_field="request_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="readers",
                        on_delete=OnDelete.RESTRICT,
                    ),
                ),
                ("account_id", fields.BigIntField()),
            ],
            options={
                "table": "simulation_readers",
                "app": "collidium",
                "unique_together": (("request", "account_id"),),
                "pk_attr": "id",
                "table_description": "An account that was answered with another account's request, and may read it.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="UsageTotal",
            fields=[
                (
                    "id",
                    fields.CharField(
                        primary_key=True,
                        unique=True,
                        db_index=True,
                        description="``<kind>:<period>:<key>``.",
                        max_length=120,
                    ),
                ),
                ("kind", fields.CharField(max_length=8)),
                ("period", fields.CharField(max_length=10)),
                ("key", fields.CharField(default="", max_length=96)),
                ("requests", fields.BigIntField(default=0)),
                (
                    "milli_node_hours",
                    fields.BigIntField(
                        default=0, description="In thousandths, because SQLite would add decimals as floats."
                    ),
                ),
                ("finished", fields.BigIntField(default=0)),
                ("failed", fields.BigIntField(default=0)),
            ],
            options={
                "table": "usage_totals",
                "app": "collidium",
                "indexes": [Index(fields=["kind", "period", "milli_node_hours"])],
                "pk_attr": "id",
                "table_description": "A running total: of a month, of a day, or of an account or a channel in a month.",
            },
            bases=["Model"],
        ),
        ops.RunPython(_forward, _backward),
    ]
