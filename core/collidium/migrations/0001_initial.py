"""The first schema: accounts, ledger, benchmarks, operations."""

import functools
from decimal import Decimal
from json import dumps, loads

from tortoise import fields, migrations
from tortoise.fields.base import OnDelete
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


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
                "pk_attr": "id",
                "table_description": "A ledger entry, never changed and never deleted (the database refuses both).",
            },
            bases=["Model"],
        ),
        ops.CreateModel(
            name="GlobalConfig",
            fields=[
                ("name", fields.CharField(primary_key=True, unique=True, db_index=True, max_length=16)),
                ("submissions_frozen", fields.BooleanField(default=False)),
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
                ("scorer_version", fields.CharField(max_length=32)),
                ("truth_version", fields.CharField(max_length=64)),
                ("submitted_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "submissions",
                "app": "collidium",
                "unique_together": (("account_id", "task", "sha256", "scorer_version", "truth_version"),),
                "indexes": [Index(fields=["task", "truth_version", "rank_score", "submitted_at", "id"])],
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
    ]
