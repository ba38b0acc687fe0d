"""The tables of models that the platform runs, which only this package reads and writes.

Docstrings of models are comments of tables: a change needs a migration.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tortoise import fields
from tortoise.models import Model

from collidium.challenges import ParticipantField
from collidium.scoring.truth.parts import ScoredTruth
from collidium.truth.columns import ScoredTruthField


class Evaluation(Model):
    """A model that the platform runs on the events of a challenge, and how far that is."""

    id = fields.CharField(max_length=32, primary_key=True)
    challenge = fields.CharField(max_length=64)
    task = fields.CharField(max_length=64)
    account_id = fields.BigIntField()
    hub_username = fields.CharField(max_length=96)
    participant = ParticipantField()
    # The hash of the model's file, which is in the storage.
    sha256 = fields.CharField(max_length=64)
    size_bytes = fields.BigIntField()
    # Empty: the file is no longer stored.
    manifest = fields.TextField()
    model_repo = fields.CharField(max_length=200, null=True)
    model_claim = fields.CharField(max_length=16, null=True)
    scorer_version = fields.CharField(max_length=32)
    truth_version = ScoredTruthField[ScoredTruth]()
    # ``received``, ``checking``, ``running``, ``scored``, ``failed``, ``cancelled``.
    state = fields.CharField(max_length=16, default="received")
    # The code of a failure.
    code = fields.CharField(max_length=32, null=True)
    # A problem of the model itself; never about hidden events.
    detail = fields.CharField(max_length=500, default="")
    received_at = fields.DatetimeField()
    checking_at = fields.DatetimeField(null=True)
    running_at = fields.DatetimeField(null=True)
    ended_at = fields.DatetimeField(null=True)
    events = fields.IntField()
    events_done = fields.IntField(default=0)
    # Size and graph of the model, and its timed blocks.
    facts: Any = fields.JSONField(null=True)
    timed: Any = fields.JSONField(default=list)
    submission_id = fields.CharField(max_length=32, null=True)
    # Whether it runs the model of an existing submission, on events of another truth version.
    again = fields.BooleanField(default=False)
    # Whether those events are public: scores are only for comparison.
    public = fields.BooleanField(default=False)
    # SHA-256 of the predictions; None: it is not scored.
    predictions = fields.CharField(max_length=64, null=True)
    # Charged credits, which are refunded if the model is not run and not at fault.
    price = fields.DecimalField(max_digits=18, decimal_places=3, default=Decimal(0))
    # The account's earlier evaluations within a day: fewer come first. None: it has ended.
    turn = fields.IntField(null=True)
    # When a process may lease it next; while leased, when the lease ends.
    due_at = fields.DatetimeField(null=True)
    lease = fields.CharField(max_length=32, default="")
    # The machine of the last lease.
    machine = fields.CharField(max_length=64, default="")
    # Number of processes that have begun the current step.
    attempts = fields.IntField(default=0)

    class Meta(Model.Meta):
        table = "evaluations"
        indexes = (
            ("turn", "due_at", "challenge"),
            ("challenge", "turn", "received_at"),
            ("challenge", "participant", "received_at"),
            ("account_id", "received_at", "id"),
            ("submission_id",),
            ("sha256",),
        )


class ModelFile(Model):
    """The file of a model in the storage: who receives or deletes it locks its row."""

    sha256 = fields.CharField(max_length=64, primary_key=True)
    # Until then no other process receives or deletes it; None: it is not being deleted.
    deleting_until = fields.DatetimeField(null=True, db_index=True)

    class Meta(Model.Meta):
        table = "model_files"


class ModelRunner(Model):
    """A process that runs models, or why it does not, and when it recorded so."""

    # ``<host>:<process id>``.
    process = fields.CharField(max_length=128, primary_key=True)
    looked_at = fields.DatetimeField(db_index=True)
    # Empty: it runs models.
    reason = fields.CharField(max_length=400, default="")

    class Meta(Model.Meta):
        table = "model_runners"
