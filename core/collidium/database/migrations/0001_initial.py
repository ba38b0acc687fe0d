"""The schema, and what the database itself refuses.

The ledger is append-only and no balance is below zero. How a request ended is never changed, but for one thing:
of what failed, more can be given back. These are triggers and checks by hand because Tortoise's migrations drop
constraints of a model's Meta.
"""

from decimal import Decimal
from typing import Any

from tortoise import fields, migrations
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


def _table(
    model: str, table: str, description: str, columns: dict[str, fields.Field[Any]], **options: Any
) -> ops.CreateModel:
    """Create the table of a model, whose key is the first of the columns."""
    key = next(iter(columns))
    options |= {"table": table, "app": "collidium", "pk_attr": key, "table_description": description}
    return ops.CreateModel(model, list(columns.items()), options)


def _reference(name: str, model: str, related_name: str) -> fields.Field[Any]:
    """Refer to a row of another model, which stays as long as this one."""
    return fields.ForeignKeyField(
        f"collidium.{model}", related_name, fields.RESTRICT, source_field=f"{name}_id", to_field="id"
    )


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SQLITE if editor.DIALECT == "sqlite" else POSTGRESQL)


class Migration(migrations.Migration):
    initial = True

    operations = [
        _table(
            "Account",
            "accounts",
            "Someone with a hub account (the row may exist (banned) before the first sign-in).",
            {
                "id": fields.BigIntField(primary_key=True),
                "hub_username": fields.CharField(unique=True, max_length=96),
                "name_key": fields.CharField(unique=True, max_length=96),
                "credits": fields.DecimalField(default=Decimal(0), max_digits=18, decimal_places=3),
                "banned": fields.BooleanField(default=False),
                "baseline": fields.BooleanField(default=False),
                "created_at": fields.DatetimeField(auto_now_add=True),
                "signed_up_at": fields.DatetimeField(null=True),
                "last_seen_at": fields.DatetimeField(null=True),
            },
        ),
        _table(
            "Arrival",
            "arrivals",
            "A file on its way to a challenge, for whose end it may count.",
            {
                "id": fields.CharField(primary_key=True, max_length=32),
                "challenge": fields.CharField(db_index=True, max_length=64),
                "received_at": fields.DatetimeField(null=True),
                "leased_until": fields.DatetimeField(),
            },
        ),
        _table(
            "AuditEntry",
            "audit_log",
            "Who did what, when, to whom.",
            {
                "id": fields.BigIntField(primary_key=True),
                "at": fields.DatetimeField(auto_now_add=True),
                "actor": fields.CharField(max_length=96),
                "action": fields.CharField(max_length=32),
                "target": fields.CharField(max_length=160),
                "details": fields.JSONField(default=dict),
                "http_request_id": fields.CharField(default="", max_length=64),
            },
        ),
        _table(
            "Best",
            "benchmark_bests",
            "The best value of a metric so far, which only ever gets better.",
            {
                "id": fields.BigIntField(primary_key=True),
                "challenge": fields.CharField(max_length=64),
                "truth_version": fields.CharField(max_length=64),
                "metric": fields.CharField(max_length=64),
                "value": fields.FloatField(),
                "submission_id": fields.CharField(max_length=32),
            },
            unique_together=(("challenge", "truth_version", "metric"),),
        ),
        _table(
            "SsoAccount",
            "sso_accounts",
            "Who stands behind an account of single sign-on: a subject of an issuer, and nothing else.",
            {
                "id": fields.BigIntField(primary_key=True),
                "issuer": fields.CharField(max_length=255),
                "subject": fields.CharField(max_length=255),
                "hub_username": fields.CharField(unique=True, max_length=96),
                "groups": fields.TextField(default=""),
                "signed_in_at": fields.DatetimeField(),
            },
            unique_together=(("issuer", "subject"),),
        ),
        _table(
            "SsoToken",
            "sso_tokens",
            "A token that acts for an account of single sign-on.",
            {
                "digest": fields.CharField(primary_key=True, max_length=64),
                "hub_username": fields.CharField(db_index=True, max_length=96),
                "of_session": fields.BooleanField(),
                "ends_at": fields.DatetimeField(db_index=True),
            },
        ),
        _table(
            "CreditTransaction",
            "credit_transactions",
            "A ledger entry, never changed and never deleted (the database refuses both).",
            {
                "id": fields.BigIntField(primary_key=True),
                "account": _reference("account", "Account", "transactions"),
                "delta": fields.DecimalField(max_digits=18, decimal_places=3),
                "balance_after": fields.DecimalField(max_digits=18, decimal_places=3),
                "reason": fields.CharField(max_length=32),
                "reference": fields.CharField(max_length=160),
                "note": fields.TextField(default=""),
                "created_at": fields.DatetimeField(auto_now_add=True),
            },
            unique_together=(("account", "reason", "reference"),),
            indexes=[Index(fields=["account_id", "id"])],
        ),
        _table(
            "Evaluation",
            "evaluations",
            "A model that the platform runs on the events of a challenge, and how far that is.",
            {
                "id": fields.CharField(primary_key=True, max_length=32),
                "challenge": fields.CharField(max_length=64),
                "task": fields.CharField(max_length=64),
                "account_id": fields.BigIntField(),
                "hub_username": fields.CharField(max_length=96),
                "participant": fields.CharField(max_length=48),
                "sha256": fields.CharField(max_length=64),
                "size_bytes": fields.BigIntField(),
                "manifest": fields.TextField(),
                "model_repo": fields.CharField(null=True, max_length=200),
                "model_claim": fields.CharField(null=True, max_length=16),
                "scorer_version": fields.CharField(max_length=32),
                "truth_version": fields.CharField(max_length=64),
                "state": fields.CharField(default="received", max_length=16),
                "code": fields.CharField(null=True, max_length=32),
                "detail": fields.CharField(default="", max_length=500),
                "received_at": fields.DatetimeField(),
                "checking_at": fields.DatetimeField(null=True),
                "running_at": fields.DatetimeField(null=True),
                "ended_at": fields.DatetimeField(null=True),
                "events": fields.IntField(),
                "events_done": fields.IntField(default=0),
                "facts": fields.JSONField(null=True),
                "timed": fields.JSONField(default=list),
                "submission_id": fields.CharField(null=True, max_length=32),
                "turn": fields.IntField(null=True),
                "due_at": fields.DatetimeField(null=True),
                "lease": fields.CharField(default="", max_length=32),
                "attempts": fields.IntField(default=0),
            },
            indexes=[
                Index(fields=["turn", "due_at", "challenge"]),
                Index(fields=["challenge", "turn", "received_at"]),
                Index(fields=["challenge", "participant", "received_at"]),
                Index(fields=["account_id", "received_at", "id"]),
            ],
        ),
        _table(
            "Follower",
            "followers",
            "A process that serves or follows requests, and since when every lane of it has looked for work.",
            {
                "process": fields.CharField(primary_key=True, max_length=128),
                "looked_at": fields.DatetimeField(db_index=True),
                "release": fields.CharField(max_length=64),
                "key": fields.CharField(max_length=16),
                "follows": fields.BooleanField(default=True),
            },
        ),
        _table(
            "GlobalConfig",
            "global_config",
            "What holds for the whole platform (one row, named platform).",
            {
                "name": fields.CharField(primary_key=True, max_length=16),
                "submissions_frozen": fields.BooleanField(default=False),
                "frozen_at": fields.DatetimeField(null=True),
                "frozen_by": fields.CharField(null=True, max_length=96),
                "frozen_note": fields.CharField(null=True, max_length=1000),
                "backed_up_at": fields.DatetimeField(null=True),
                "updated_at": fields.DatetimeField(auto_now=True),
            },
        ),
        _table(
            "IdempotencyKey",
            "idempotency_keys",
            "The answer that a key of an owner was given, None while what was asked is being done.",
            {
                "id": fields.BigIntField(primary_key=True),
                "owner": fields.CharField(max_length=128),
                "key": fields.CharField(max_length=128),
                "question": fields.CharField(max_length=64),
                "answer": fields.TextField(null=True),
            },
            unique_together=(("owner", "key"),),
        ),
        _table(
            "Challenge",
            "challenges",
            "A task, its truth and its leaderboard. Each task has one of its own name, which has no dates.",
            {
                "name": fields.CharField(primary_key=True, max_length=64),
                "task": fields.CharField(max_length=64),
                "title": fields.CharField(default="", max_length=200),
                "listed": fields.BooleanField(default=True),
                "opens_at": fields.DatetimeField(null=True),
                "closes_at": fields.DatetimeField(null=True),
                "notice": fields.CharField(default="", max_length=64),
                "ended_at": fields.DatetimeField(null=True),
                "practice": fields.BooleanField(default=False),
                "submissions_per_day": fields.IntField(null=True),
                "final_submissions": fields.IntField(default=2),
                "rewarded": fields.BooleanField(default=True),
                "rules": fields.TextField(default=""),
                "announcements": fields.JSONField(default=list),
                "access": fields.CharField(default="open", max_length=16),
                "organisation": fields.CharField(null=True, max_length=96),
                "team_size": fields.IntField(default=0),
                "teams_frozen_at": fields.DatetimeField(null=True),
                "truth_version": fields.CharField(null=True, max_length=64),
                "revision": fields.BigIntField(default=0),
                "changed_at": fields.DatetimeField(auto_now=True),
            },
        ),
        _table(
            "Operator",
            "operators",
            "An operator with a token of its own.",
            {
                "name": fields.CharField(primary_key=True, max_length=64),
                "digest": fields.CharField(unique=True, max_length=64),
                "scopes": fields.TextField(default=""),
                "challenge": fields.CharField(null=True, max_length=64),
                "created_at": fields.DatetimeField(auto_now_add=True),
                "withdrawn_at": fields.DatetimeField(null=True),
            },
        ),
        _table(
            "OutboxEvent",
            "outbox_events",
            "An event, as it is sent to every receiver.",
            {
                "id": fields.CharField(primary_key=True, max_length=40),
                "type": fields.CharField(max_length=64),
                "reference": fields.CharField(max_length=64),
                "body": fields.TextField(),
                "created_at": fields.DatetimeField(),
            },
        ),
        _table(
            "Delivery",
            "webhook_deliveries",
            "An event on its way to one address.",
            {
                "id": fields.BigIntField(primary_key=True),
                "event": _reference("event", "OutboxEvent", "deliveries"),
                "account_id": fields.BigIntField(),
                "url": fields.CharField(max_length=2000),
                "host": fields.CharField(default="", max_length=255),
                "state": fields.CharField(default="pending", max_length=16),
                "attempts": fields.IntField(default=0),
                "last_status": fields.IntField(null=True),
                "last_error": fields.CharField(null=True, max_length=500),
                "created_at": fields.DatetimeField(),
                "next_attempt_at": fields.DatetimeField(null=True),
                "delivered_at": fields.DatetimeField(null=True),
            },
            indexes=[
                Index(fields=["state", "next_attempt_at", "id"]),
                Index(fields=["account_id", "id"]),
                Index(fields=["event_id"]),
                Index(fields=["state", "account_id", "host", "next_attempt_at", "id"]),
            ],
        ),
        _table(
            "Scoring",
            "scorings",
            "What one scorer made of a submission against one truth. What counts stands in its row, too.",
            {
                "id": fields.BigIntField(primary_key=True),
                "submission_id": fields.CharField(max_length=32),
                "scorer_version": fields.CharField(max_length=32),
                "truth_version": fields.CharField(max_length=64),
                "scores": fields.JSONField(),
                "uncertainties": fields.JSONField(null=True),
                "replicates": fields.JSONField(null=True),
                "primary_draws": fields.BinaryField(null=True),
                "curves": fields.JSONField(null=True),
                "warnings": fields.JSONField(default=list),
                "scored_at": fields.DatetimeField(),
                "applied_at": fields.DatetimeField(null=True),
            },
            unique_together=(("submission_id", "scorer_version", "truth_version"),),
        ),
        _table(
            "SimulationRequest",
            "simulation_requests",
            "An order of events that was paid for, and what became of it.",
            {
                "id": fields.BigIntField(primary_key=True),
                "request_id": fields.CharField(unique=True, max_length=32),
                "account_id": fields.BigIntField(),
                "hub_username": fields.CharField(max_length=96),
                "channel": fields.CharField(max_length=64),
                "events": fields.IntField(),
                "pileup": fields.IntField(),
                "seed": fields.CharField(max_length=39),
                "vary": fields.CharField(default="", max_length=200),
                "pipeline_version": fields.CharField(max_length=64),
                "config_hash": fields.CharField(max_length=64),
                "private": fields.BooleanField(default=False),
                "webhook_url": fields.CharField(null=True, max_length=2000),
                "state": fields.CharField(max_length=16),
                "reason": fields.CharField(null=True, max_length=500),
                "created_at": fields.DatetimeField(),
                "started_at": fields.DatetimeField(null=True),
                "finished_at": fields.DatetimeField(null=True),
                "created_day": fields.CharField(max_length=10),
                "finished_month": fields.CharField(null=True, max_length=7),
                "credits_charged": fields.DecimalField(max_digits=18, decimal_places=3),
                "credits_refunded": fields.DecimalField(default=Decimal(0), max_digits=18, decimal_places=3),
                "estimated_node_hours": fields.DecimalField(max_digits=18, decimal_places=3),
                "node_hours": fields.DecimalField(max_digits=18, decimal_places=3),
                "node_hours_used": fields.DecimalField(null=True, max_digits=18, decimal_places=3),
                "runner": fields.CharField(max_length=64),
                "is_mock": fields.BooleanField(default=False),
                "handle": fields.CharField(null=True, max_length=200),
                "node_seconds": fields.FloatField(),
                "parts_stored": fields.IntField(default=0, db_default=0),
                "output": fields.JSONField(null=True),
                "output_hub_repo": fields.CharField(null=True, max_length=500),
                "encrypted_token": fields.TextField(null=True),
                "step": fields.CharField(max_length=16),
                "due_at": fields.DatetimeField(null=True, db_index=True),
                "deadline_at": fields.DatetimeField(null=True),
                "cancel_requested_at": fields.DatetimeField(null=True),
                "attempts": fields.IntField(default=0),
                "denials": fields.IntField(default=0),
                "lost_collections": fields.IntField(default=0, db_default=0),
                "lease": fields.CharField(default="", db_index=True, max_length=32),
                "leased_until": fields.DatetimeField(null=True),
            },
            unique_together=(("runner", "handle"),),
            indexes=[
                Index(fields=["account_id", "created_at"]),
                Index(fields=["account_id", "state"]),
                Index(fields=["account_id", "id"]),
                Index(fields=["state", "id"]),
                Index(fields=["config_hash", "state", "finished_at"]),
                Index(fields=["channel", "id"]),
                Index(fields=["state", "finished_at"]),
            ],
        ),
        _table(
            "HistoryLine",
            "simulation_history",
            "A moment in the life of a request: a state it came to, or something worth telling on the way.",
            {
                "id": fields.BigIntField(primary_key=True),
                "request": _reference("request", "SimulationRequest", "history"),
                "at": fields.DatetimeField(),
                "state": fields.CharField(max_length=16),
                "reason": fields.CharField(null=True, max_length=500),
            },
        ),
        _table(
            "StoredPart",
            "simulation_parts",
            "The files of a part in the storage backend, until the output of the request is whole, or deleted.",
            {
                "id": fields.BigIntField(primary_key=True),
                "request": _reference("request", "SimulationRequest", "parts"),
                "part": fields.IntField(),
                "stored": fields.BooleanField(default=False),
                "files": fields.JSONField(),
            },
            unique_together=(("request", "part"),),
        ),
        _table(
            "Reader",
            "simulation_readers",
            "An account that was answered with another account's request, and may read it.",
            {
                "id": fields.BigIntField(primary_key=True),
                "request": _reference("request", "SimulationRequest", "readers"),
                "account_id": fields.BigIntField(),
            },
            unique_together=(("request", "account_id"),),
        ),
        _table(
            "Submission",
            "submissions",
            "Predictions of one account that were scored.",
            {
                "id": fields.CharField(primary_key=True, max_length=32),
                "challenge": fields.CharField(max_length=64),
                "task": fields.CharField(max_length=64),
                "account_id": fields.BigIntField(),
                "hub_username": fields.CharField(max_length=96),
                "sha256": fields.CharField(max_length=64),
                "size_bytes": fields.BigIntField(),
                "rows": fields.BigIntField(),
                "scores": fields.JSONField(),
                "uncertainties": fields.JSONField(null=True),
                "participant": fields.CharField(max_length=48),
                "team": fields.CharField(null=True, max_length=64),
                "standing": fields.CharField(default="ranked", max_length=16),
                "standing_reason": fields.CharField(null=True, max_length=1000),
                "chosen_at": fields.DatetimeField(null=True),
                "rank_score": fields.FloatField(null=True),
                "represents": fields.BooleanField(default=False),
                "warnings": fields.JSONField(default=list),
                "credits_earned": fields.DecimalField(default=Decimal(0), max_digits=18, decimal_places=3),
                "model_repo": fields.CharField(null=True, max_length=200),
                "model_claim": fields.CharField(null=True, max_length=16),
                "code_url": fields.CharField(null=True, max_length=500),
                "paper_url": fields.CharField(null=True, max_length=500),
                "from_hub": fields.CharField(null=True, max_length=500),
                "evaluation_id": fields.CharField(null=True, max_length=32),
                "model": fields.JSONField(null=True),
                "scorer_version": fields.CharField(max_length=32),
                "truth_version": fields.CharField(max_length=64),
                "submitted_at": fields.DatetimeField(),
                "verified_at": fields.DatetimeField(null=True),
                "baseline": fields.BooleanField(default=False),
            },
            unique_together=(
                ("account_id", "challenge", "sha256", "scorer_version", "truth_version", "participant"),
            ),
            indexes=[
                Index(fields=["challenge", "truth_version", "rank_score", "submitted_at", "id"]),
                Index(
                    fields=["challenge", "truth_version", "represents", "rank_score", "submitted_at", "id"]
                ),
                Index(fields=["challenge", "participant", "submitted_at"]),
                Index(fields=["challenge", "truth_version", "hub_username", "rank_score"]),
                Index(fields=["challenge", "truth_version", "model_repo", "rank_score"]),
                Index(fields=["submitted_at", "id"]),
                Index(fields=["task", "submitted_at", "id"]),
                Index(fields=["account_id", "submitted_at", "id"]),
            ],
        ),
        _table(
            "Team",
            "teams",
            "People who compete in a challenge as one participant.",
            {
                "id": fields.BigIntField(primary_key=True),
                "challenge": fields.CharField(max_length=64),
                "name": fields.CharField(max_length=64),
                "name_key": fields.CharField(max_length=64),
                "captain_id": fields.BigIntField(),
                "created_at": fields.DatetimeField(auto_now_add=True),
            },
            unique_together=(("challenge", "name_key"),),
        ),
        _table(
            "TeamMember",
            "team_members",
            "An account in its only team of a challenge.",
            {
                "id": fields.BigIntField(primary_key=True),
                "challenge": fields.CharField(max_length=64),
                "team_id": fields.BigIntField(db_index=True),
                "account_id": fields.BigIntField(db_index=True),
                "hub_username": fields.CharField(max_length=96),
            },
            unique_together=(("challenge", "account_id"),),
        ),
        _table(
            "Member",
            "challenge_members",
            "Someone who may submit to a challenge for members only, who may not have signed in yet.",
            {
                "id": fields.BigIntField(primary_key=True),
                "challenge": fields.CharField(max_length=64),
                "hub_username": fields.CharField(max_length=96),
                "name_key": fields.CharField(db_index=True, max_length=96),
                "added_at": fields.DatetimeField(auto_now_add=True),
            },
            unique_together=(("challenge", "name_key"),),
        ),
        _table(
            "Invitation",
            "invitations",
            "A code that admits to the members of a challenge, or to a team, so many times until its end.",
            {
                "digest": fields.CharField(primary_key=True, max_length=64),
                "challenge": fields.CharField(db_index=True, max_length=64),
                "team_id": fields.BigIntField(null=True),
                "uses_left": fields.IntField(),
                "expires_at": fields.DatetimeField(),
            },
        ),
        _table(
            "TruthVersion",
            "truth_versions",
            "Truth that was imported for a task (its files lie in the data directory and are never served).",
            {
                "id": fields.BigIntField(primary_key=True),
                "task": fields.CharField(max_length=64),
                "version": fields.CharField(max_length=64),
                "manifest": fields.JSONField(),
                "imported_at": fields.DatetimeField(auto_now_add=True),
            },
            unique_together=(("task", "version"),),
        ),
        _table(
            "Upload",
            "uploads",
            "A file of predictions that comes in several requests.",
            {
                "id": fields.CharField(primary_key=True, max_length=32),
                "account_id": fields.BigIntField(db_index=True),
                "challenge": fields.CharField(max_length=64),
                "sha256": fields.CharField(max_length=64),
                "size_bytes": fields.BigIntField(),
                "model_repo": fields.CharField(null=True, max_length=200),
                "submission_id": fields.CharField(null=True, max_length=32),
                "began_at": fields.DatetimeField(),
                "expires_at": fields.DatetimeField(db_index=True),
            },
        ),
        _table(
            "UsageTotal",
            "usage_totals",
            "A running total: of a month, of a day, or of an account or a channel in a month.",
            {
                "id": fields.CharField(primary_key=True, max_length=120),
                "kind": fields.CharField(max_length=8),
                "period": fields.CharField(max_length=10),
                "key": fields.CharField(default="", max_length=96),
                "requests": fields.BigIntField(default=0),
                "milli_node_hours": fields.BigIntField(default=0),
                "finished": fields.BigIntField(default=0),
                "failed": fields.BigIntField(default=0),
            },
            indexes=[Index(fields=["kind", "period", "milli_node_hours"])],
        ),
        _table(
            "Webhook",
            "webhooks",
            "The webhook of an account: its URL, and the secret that signs events.",
            {
                "id": fields.BigIntField(primary_key=True),
                "account_id": fields.BigIntField(unique=True),
                "url": fields.CharField(null=True, max_length=2000),
                "secret": fields.TextField(),
                "created_at": fields.DatetimeField(),
            },
        ),
        _table(
            "Recipient",
            "mail_recipients",
            "What an account wants to be notified of, and its e-mail address.",
            {
                "id": fields.BigIntField(primary_key=True),
                "account_id": fields.BigIntField(unique=True),
                "address": fields.CharField(null=True, max_length=254),
                "confirmed_at": fields.DatetimeField(null=True),
                "rejections": fields.IntField(default=0),
                "off": fields.JSONField(default=list),
            },
        ),
        _table(
            "PendingSignIn",
            "pending_sign_ins",
            "A sign-in whose browser was sent to the hub and is not back.",
            {
                "digest": fields.CharField(primary_key=True, max_length=64),
                "redirect_uri": fields.TextField(),
                "return_to": fields.TextField(),
                "scopes": fields.TextField(default=""),
                "ends_at": fields.DatetimeField(),
            },
        ),
        _table(
            "SignInAttempts",
            "sign_in_attempts",
            "How many attempts of one kind came from one network within a minute.",
            {
                "key": fields.CharField(primary_key=True, max_length=128),
                "minute": fields.BigIntField(db_index=True),
                "count": fields.IntField(default=0),
            },
        ),
        _table(
            "WebSession",
            "web_sessions",
            "An account that is signed in, in one browser.",
            {
                "digest": fields.CharField(primary_key=True, max_length=64),
                "hub_username": fields.CharField(max_length=96),
                "token": fields.TextField(),
                "scopes": fields.TextField(default=""),
                "begun_at": fields.DatetimeField(),
                "seen_at": fields.DatetimeField(),
                "ends_at": fields.DatetimeField(),
            },
            indexes=[Index(fields=["hub_username", "begun_at"])],
        ),
        ops.RunPython(_forward),
    ]
