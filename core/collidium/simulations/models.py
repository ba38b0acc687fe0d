"""Tables of simulation requests. Only this package reads and writes them.

Docstrings of models are comments of tables: a change needs a migration.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import msgspec
from tortoise import fields
from tortoise.models import Model

from collidium.order import Order


class SimulationRequest(Model):
    """An order of events that was paid for, and what became of it.

    The database refuses to change how a request ended.
    """

    id = fields.BigIntField(primary_key=True)
    request_id = fields.CharField(max_length=32, unique=True)
    account_id = fields.BigIntField()
    hub_username = fields.CharField(max_length=96)
    # The whole order as JSON, and what queries search for; all by order_columns.
    order_json = fields.TextField(db_default="{}")
    channel = fields.CharField(max_length=64)
    # Decimal digits, as a seed has up to 128 bits.
    seed = fields.CharField(max_length=39)
    pipeline_version = fields.CharField(max_length=64)
    config_hash = fields.CharField(max_length=64)
    private = fields.BooleanField(default=False)
    webhook_url = fields.CharField(max_length=2000, null=True)

    state = fields.CharField(max_length=16)
    # Why it is in this state, or the last trouble.
    reason = fields.CharField(max_length=500, null=True)
    created_at = fields.DatetimeField()
    started_at = fields.DatetimeField(null=True)
    finished_at = fields.DatetimeField(null=True)
    # Day and month in UTC, stored so that they do not depend on the time zone of a session.
    created_day = fields.CharField(max_length=10)
    finished_month = fields.CharField(max_length=7, null=True)

    credits_charged = fields.DecimalField(max_digits=18, decimal_places=3)
    credits_refunded = fields.DecimalField(max_digits=18, decimal_places=3, default=Decimal(0))
    estimated_node_hours = fields.DecimalField(max_digits=18, decimal_places=3)
    # The estimate until the request ends, then what was used.
    node_hours = fields.DecimalField(max_digits=18, decimal_places=3)

    # What the runner reported when the job completed.
    node_hours_used = fields.DecimalField(max_digits=18, decimal_places=3, null=True)

    runner = fields.CharField(max_length=64)
    is_mock = fields.BooleanField(default=False)
    handle = fields.CharField(max_length=200, null=True)
    node_seconds = fields.FloatField()
    # Number of parts whose files were stored when a step last ended.
    parts_stored = fields.IntField(default=0, db_default=0)
    # The files in the storage backend, once all are collected.
    output: Any = fields.JSONField(null=True)
    output_hub_repo = fields.CharField(max_length=500, null=True)
    # The requester's hub token, to publish with; deleted when the request ends.
    encrypted_token: str | None = fields.TextField(null=True)

    # The next step, empty when the request has ended.
    step = fields.CharField(max_length=16)
    # When the step is due, None when the request has ended.
    due_at: datetime | None = fields.DatetimeField(null=True, db_index=True)
    deadline_at = fields.DatetimeField(null=True)
    cancel_requested_at = fields.DatetimeField(null=True)
    # Consecutive failures of the step.
    attempts = fields.IntField(default=0)
    # Consecutive polls in which the runner did not know the job.
    denials = fields.IntField(default=0)
    # Number of worker processes that died while they read its output.
    lost_collections = fields.IntField(default=0, db_default=0)
    # The claim under which a process works on it, and when the claim expires.
    lease = fields.CharField(max_length=32, default="", db_index=True)
    leased_until = fields.DatetimeField(null=True)

    class Meta(Model.Meta):
        table = "simulation_requests"
        unique_together = (("runner", "handle"),)
        indexes = (
            ("account_id", "created_at"),
            ("account_id", "state"),
            ("account_id", "id"),
            ("state", "id"),
            ("config_hash", "state", "finished_at"),
            ("channel", "id"),
            ("state", "finished_at"),
        )

    @property
    def order(self) -> Order:
        """The order; fields that are newer than the row have their defaults."""
        return msgspec.json.decode(self.order_json, type=Order, strict=False)


def order_columns(order: Order) -> dict[str, str]:
    """Return the columns of an order."""
    seed = str(order.seed)
    text = msgspec.json.encode(order.parameters | {"seed": seed}).decode()
    return {"order_json": text, "channel": order.channel, "seed": seed}


class HistoryLine(Model):
    """A moment in the life of a request: a state it came to, or something worth telling on the way."""

    id = fields.BigIntField(primary_key=True)
    request: fields.ForeignKeyRelation[SimulationRequest] = fields.ForeignKeyField(
        "collidium.SimulationRequest", related_name="history", on_delete=fields.RESTRICT
    )
    request_id: int
    at = fields.DatetimeField()
    state = fields.CharField(max_length=16)
    reason = fields.CharField(max_length=500, null=True)

    class Meta(Model.Meta):
        table = "simulation_history"


class StoredPart(Model):
    """The files of a part in the storage backend, until the output of the request is whole, or deleted."""

    id = fields.BigIntField(primary_key=True)
    request: fields.ForeignKeyRelation[SimulationRequest] = fields.ForeignKeyField(
        "collidium.SimulationRequest", related_name="parts", on_delete=fields.RESTRICT
    )
    request_id: int
    part = fields.IntField()
    # False until all files are stored; some may be.
    stored = fields.BooleanField(default=False)
    files: Any = fields.JSONField()

    class Meta(Model.Meta):
        table = "simulation_parts"
        unique_together = (("request", "part"),)


class Reader(Model):
    """An account that was answered with another account's request, and may read it."""

    id = fields.BigIntField(primary_key=True)
    request: fields.ForeignKeyRelation[SimulationRequest] = fields.ForeignKeyField(
        "collidium.SimulationRequest", related_name="readers", on_delete=fields.RESTRICT
    )
    request_id: int
    account_id = fields.BigIntField()

    class Meta(Model.Meta):
        table = "simulation_readers"
        unique_together = (("request", "account_id"),)


class UsageTotal(Model):
    """A running total: of a month, of a day, or of an account or a channel in a month."""

    # ``<kind>:<period>:<key>``.
    id = fields.CharField(max_length=120, primary_key=True)
    kind = fields.CharField(max_length=8)
    period = fields.CharField(max_length=10)
    key = fields.CharField(max_length=96, default="")
    requests = fields.BigIntField(default=0)
    # In thousandths, because SQLite would add decimals as floats.
    milli_node_hours = fields.BigIntField(default=0)
    finished = fields.BigIntField(default=0)
    failed = fields.BigIntField(default=0)

    class Meta(Model.Meta):
        table = "usage_totals"
        indexes = (("kind", "period", "milli_node_hours"),)


class Follower(Model):
    """A process that serves or follows requests, and since when every lane of it has looked for work."""

    # ``<host>:<process id>``.
    process = fields.CharField(max_length=128, primary_key=True)
    looked_at = fields.DatetimeField(db_index=True)
    release = fields.CharField(max_length=64)
    # Fingerprint of the settings that all processes must share.
    key = fields.CharField(max_length=16)
    # False if it only serves.
    follows = fields.BooleanField(default=True)

    class Meta(Model.Meta):
        table = "followers"


class State(StrEnum):
    """States of a request."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Step(StrEnum):
    """What the follower does next for a request."""

    SUBMIT = "submit"
    FOLLOW = "follow"
    STORE = "store"
    COLLECT = "collect"
    PUBLISH = "publish"
    NONE = ""


TERMINAL: Final = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})
#: The steps in which there may be a job to cancel.
CANCELLABLE: Final = frozenset({Step.SUBMIT, Step.FOLLOW, Step.STORE})
