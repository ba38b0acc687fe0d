"""The schema, and what the database itself refuses.

The ledger is append-only and no balance is below zero. How a request ended is never changed, but for one thing:
of what failed, more can be given back. These are triggers and checks by hand because Tortoise's migrations drop
constraints of a model's Meta.
"""

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
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON credit_transactions
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON credit_transactions
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER balance_insert BEFORE INSERT ON accounts WHEN CAST(NEW.credits AS NUMERIC) < 0
BEGIN SELECT RAISE(ABORT, 'a balance below zero'); END;
CREATE TRIGGER balance_update BEFORE UPDATE ON accounts WHEN CAST(NEW.credits AS NUMERIC) < 0
BEGIN SELECT RAISE(ABORT, 'a balance below zero'); END;
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests
WHEN OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged OR NEW.step <> ''
    OR CAST(NEW.credits_refunded AS NUMERIC) < CAST(OLD.credits_refunded AS NUMERIC)
    OR (NEW.credits_refunded <> OLD.credits_refunded AND OLD.state <> 'failed'))
BEGIN SELECT RAISE(ABORT, 'the request has ended'); END;
CREATE TRIGGER request_refund BEFORE UPDATE ON simulation_requests
WHEN CAST(NEW.credits_refunded AS NUMERIC) < 0
    OR CAST(NEW.credits_refunded AS NUMERIC) > CAST(NEW.credits_charged AS NUMERIC)
BEGIN SELECT RAISE(ABORT, 'a refund of more than was charged'); END;
INSERT INTO global_config (name, submissions_frozen, updated_at) VALUES ('platform', 0, CURRENT_TIMESTAMP);
"""

POSTGRESQL = """
CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_transactions
FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();
ALTER TABLE accounts ADD CONSTRAINT balance_not_negative CHECK (credits >= 0);
CREATE FUNCTION request_has_ended() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the request has ended' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests FOR EACH ROW
WHEN (OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged OR NEW.step <> ''
    OR NEW.credits_refunded < OLD.credits_refunded
    OR (NEW.credits_refunded <> OLD.credits_refunded AND OLD.state <> 'failed')))
EXECUTE FUNCTION request_has_ended();
ALTER TABLE simulation_requests ADD CONSTRAINT request_refund
CHECK (credits_refunded BETWEEN 0 AND credits_charged);
INSERT INTO global_config (name, submissions_frozen, updated_at) VALUES ('platform', false, now());
"""


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SQLITE if editor.DIALECT == "sqlite" else POSTGRESQL)


class Migration(migrations.Migration):
    initial = True

    operations = [
        ops.CreateModel(
            name="Account",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("hub_username", fields.CharField(unique=True, max_length=96)),
                (
                    "name_key",
                    fields.CharField(
                        unique=True,
                        description="The name without its case: to a hub, Alice and alice are one account.",
                        max_length=96,
                    ),
                ),
                ("credits", fields.DecimalField(default=Decimal("0"), max_digits=18, decimal_places=3)),
                ("banned", fields.BooleanField(default=False)),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=True)),
                ("signed_up_at", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
                ("last_seen_at", fields.DatetimeField(null=True, auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "accounts",
                "app": "collidium",
                "pk_attr": "id",
                "table_description": "Someone with a hub account (the row may exist (banned) before the first sign-in).",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("at", fields.DatetimeField(auto_now=False, auto_now_add=True)),
                ("actor", fields.CharField(max_length=96)),
                ("action", fields.CharField(max_length=32)),
                ("target", fields.CharField(max_length=160)),
                (
                    "details",
                    fields.JSONField(
                        default=dict, encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads
                    ),
                ),
                ("http_request_id", fields.CharField(default="", max_length=64)),
            ],
            options={
                "table": "audit_log",
                "app": "collidium",
                "pk_attr": "id",
                "table_description": "Who did what, when, to whom.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Best",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("task", fields.CharField(max_length=64)),
                ("truth_version", fields.CharField(max_length=64)),
                ("metric", fields.CharField(max_length=64)),
                ("value", fields.FloatField()),
                ("submission_id", fields.CharField(max_length=32)),
            ],
            options={
                "table": "benchmark_bests",
                "app": "collidium",
                "unique_together": (("task", "truth_version", "metric"),),
                "pk_attr": "id",
                "table_description": "The best value of a metric so far, which only ever gets better.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="CreditTransaction",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                (
                    "account",
                    fields.ForeignKeyField(
                        "collidium.Account",
                        source_field="account_id",
                        db_constraint=True,
                        to_field="id",
                        related_name="transactions",
                        on_delete=OnDelete.RESTRICT,
                    ),
                ),
                ("delta", fields.DecimalField(max_digits=18, decimal_places=3)),
                ("balance_after", fields.DecimalField(max_digits=18, decimal_places=3)),
                ("reason", fields.CharField(max_length=32)),
                (
                    "reference",
                    fields.CharField(
                        description="What the entry is for, for example a submission's metric: with the reason, unique in an account.",
                        max_length=160,
                    ),
                ),
                ("note", fields.TextField(default="", unique=False)),
                ("created_at", fields.DatetimeField(auto_now=False, auto_now_add=True)),
            ],
            options={
                "table": "credit_transactions",
                "app": "collidium",
                "unique_together": (("account", "reason", "reference"),),
                "indexes": [Index(fields=["account_id", "id"])],
                "pk_attr": "id",
                "table_description": "A ledger entry, never changed and never deleted (the database refuses both).",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Follower",
            fields=[
                (
                    "process",
                    fields.CharField(
                        primary_key=True,
                        unique=True,
                        db_index=True,
                        description="``<host>:<process id>``.",
                        max_length=128,
                    ),
                ),
                ("looked_at", fields.DatetimeField(db_index=True, auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "followers",
                "app": "collidium",
                "pk_attr": "process",
                "table_description": "A process that follows requests, and the moment since which every lane of it has looked for work.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="GlobalConfig",
            fields=[
                ("name", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=16)),
                ("submissions_frozen", fields.BooleanField(default=False)),
                (
                    "frozen_at",
                    fields.DatetimeField(
                        null=True,
                        description="Since when, by whom and what for, while submissions are frozen.",
                        auto_now=False,
                        auto_now_add=False,
                    ),
                ),
                ("frozen_by", fields.CharField(null=True, max_length=96)),
                ("frozen_note", fields.CharField(null=True, max_length=1000)),
                ("updated_at", fields.DatetimeField(auto_now=True, auto_now_add=False)),
            ],
            options={
                "table": "global_config",
                "app": "collidium",
                "pk_attr": "name",
                "table_description": "What holds for the whole platform (one row, named platform).",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("owner", fields.CharField(description="An account or an operator.", max_length=128)),
                ("key", fields.CharField(max_length=128)),
                (
                    "question",
                    fields.CharField(
                        description="The sha256 of what was asked: the same key with another question is refused.",
                        max_length=64,
                    ),
                ),
                ("answer", fields.TextField(null=True, description="JSON.", unique=False)),
            ],
            options={
                "table": "idempotency_keys",
                "app": "collidium",
                "unique_together": (("owner", "key"),),
                "pk_attr": "id",
                "table_description": "The answer that a key of an owner was given, None while what was asked is being done.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="ListedTask",
            fields=[
                ("name", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=64)),
                ("listed", fields.BooleanField(default=True)),
                (
                    "truth_version",
                    fields.CharField(
                        null=True,
                        description="The truth that submissions are scored against, None until one was imported.",
                        max_length=64,
                    ),
                ),
                (
                    "revision",
                    fields.BigIntField(
                        default=0,
                        description="Counts the submissions kept: with the truth version, it names an edition of the leaderboard.",
                    ),
                ),
                ("changed_at", fields.DatetimeField(auto_now=True, auto_now_add=False)),
            ],
            options={
                "table": "listed_tasks",
                "app": "collidium",
                "pk_attr": "name",
                "table_description": "A task that the platform once saw, and whether it takes submissions.",
            },
            bases=["Model"],
        ),
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
                (
                    "host",
                    fields.CharField(
                        default="",
                        description="That of the URL. Empty for what was announced before hosts were kept.",
                        max_length=255,
                    ),
                ),
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
                    Index(fields=["state", "account_id", "host", "next_attempt_at", "id"]),
                ],
                "pk_attr": "id",
                "table_description": "An event on its way to one address.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="Scoring",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("submission_id", fields.CharField(max_length=32)),
                ("scorer_version", fields.CharField(max_length=32)),
                ("truth_version", fields.CharField(max_length=64)),
                (
                    "scores",
                    fields.JSONField(encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads),
                ),
                (
                    "uncertainties",
                    fields.JSONField(
                        null=True, encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads
                    ),
                ),
                (
                    "replicates",
                    fields.JSONField(
                        null=True,
                        description="Metrics of resampled events, by which gains are judged. Never shown.",
                        encoder=functools.partial(dumps, separators=(",", ":")),
                        decoder=loads,
                    ),
                ),
                (
                    "warnings",
                    fields.JSONField(
                        default=list, encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads
                    ),
                ),
                ("scored_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                (
                    "applied_at",
                    fields.DatetimeField(
                        null=True,
                        description="When the scores became those of the submission. None: they were only tried.",
                        auto_now=False,
                        auto_now_add=False,
                    ),
                ),
            ],
            options={
                "table": "scorings",
                "app": "collidium",
                "unique_together": (("submission_id", "scorer_version", "truth_version"),),
                "pk_attr": "id",
                "table_description": "What one scorer made of a submission against one truth. What counts stands in its row, too.",
            },
            bases=["Model"],
        ),
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
                    "lost_collections",
                    fields.IntField(
                        default=0,
                        description="Collections of its output that a worker, or the process that follows it, did not survive.",
                        db_default=0,
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
                    Index(fields=["channel", "id"]),
                    Index(fields=["state", "finished_at"]),
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
            name="Submission",
            fields=[
                ("id", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=32)),
                ("task", fields.CharField(max_length=64)),
                ("account_id", fields.BigIntField()),
                ("hub_username", fields.CharField(max_length=96)),
                ("sha256", fields.CharField(max_length=64)),
                ("size_bytes", fields.BigIntField()),
                ("rows", fields.BigIntField()),
                (
                    "scores",
                    fields.JSONField(encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads),
                ),
                (
                    "uncertainties",
                    fields.JSONField(
                        null=True,
                        description="Standard errors by metric. None for what was scored before there were any.",
                        encoder=functools.partial(dumps, separators=(",", ":")),
                        decoder=loads,
                    ),
                ),
                (
                    "rank_score",
                    fields.FloatField(
                        null=True,
                        description="The primary metric, larger is better: what the leaderboard sorts by.",
                    ),
                ),
                (
                    "warnings",
                    fields.JSONField(
                        default=list, encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads
                    ),
                ),
                (
                    "credits_earned",
                    fields.DecimalField(default=Decimal("0"), max_digits=18, decimal_places=3),
                ),
                ("model_repo", fields.CharField(null=True, max_length=200)),
                (
                    "model_claim",
                    fields.CharField(
                        null=True,
                        description="What is known of the submitter's claim to that repository. None: no model, or it was never checked.",
                        max_length=16,
                    ),
                ),
                ("code_url", fields.CharField(null=True, max_length=500)),
                ("paper_url", fields.CharField(null=True, max_length=500)),
                ("scorer_version", fields.CharField(max_length=32)),
                ("truth_version", fields.CharField(max_length=64)),
                ("submitted_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                (
                    "verified_at",
                    fields.DatetimeField(
                        null=True,
                        description="When an operator verified what the submitter measured. None: nobody has.",
                        auto_now=False,
                        auto_now_add=False,
                    ),
                ),
            ],
            options={
                "table": "submissions",
                "app": "collidium",
                "unique_together": (("account_id", "task", "sha256", "scorer_version", "truth_version"),),
                "indexes": [
                    Index(fields=["task", "truth_version", "rank_score", "submitted_at", "id"]),
                    Index(fields=["task", "truth_version", "hub_username", "rank_score"]),
                    Index(fields=["task", "truth_version", "model_repo", "rank_score"]),
                    Index(fields=["submitted_at", "id"]),
                    Index(fields=["task", "submitted_at", "id"]),
                    Index(fields=["account_id", "submitted_at", "id"]),
                ],
                "pk_attr": "id",
                "table_description": "Predictions of one account that were scored.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="TruthVersion",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("task", fields.CharField(max_length=64)),
                ("version", fields.CharField(max_length=64)),
                (
                    "manifest",
                    fields.JSONField(encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads),
                ),
                ("imported_at", fields.DatetimeField(auto_now=False, auto_now_add=True)),
            ],
            options={
                "table": "truth_versions",
                "app": "collidium",
                "unique_together": (("task", "version"),),
                "pk_attr": "id",
                "table_description": "Truth that was imported for a task (its files lie in the data directory and are never served).",
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
        ops.CreateModel(
            name="PendingSignIn",
            fields=[
                (
                    "digest",
                    fields.CharField(
                        primary_key=True,
                        unique=True,
                        db_index=True,
                        description="The sha256 of the key in the browser's cookie.",
                        max_length=64,
                    ),
                ),
                ("redirect_uri", fields.TextField(unique=False)),
                ("return_to", fields.TextField(unique=False)),
                ("ends_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "pending_sign_ins",
                "app": "collidium",
                "pk_attr": "digest",
                "table_description": "A sign-in whose browser was sent to the hub and is not back.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="SignInAttempts",
            fields=[
                ("key", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=128)),
                ("minute", fields.BigIntField(db_index=True, description="Since 1970.")),
                ("count", fields.IntField(default=0)),
            ],
            options={
                "table": "sign_in_attempts",
                "app": "collidium",
                "pk_attr": "key",
                "table_description": "How many attempts of one kind came from one network within a minute.",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="WebSession",
            fields=[
                (
                    "digest",
                    fields.CharField(
                        primary_key=True,
                        unique=True,
                        db_index=True,
                        description="The sha256 of the key in the browser's cookie.",
                        max_length=64,
                    ),
                ),
                ("hub_username", fields.CharField(max_length=96)),
                (
                    "token",
                    fields.TextField(
                        description="The hub token that acts for the account, encrypted.", unique=False
                    ),
                ),
                ("begun_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("seen_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                ("ends_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "web_sessions",
                "app": "collidium",
                "indexes": [Index(fields=["hub_username", "begun_at"])],
                "pk_attr": "digest",
                "table_description": "An account that is signed in, in one browser.",
            },
            bases=["Model"],
        ),
        ops.RunPython(_forward),
    ]
