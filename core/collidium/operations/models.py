"""Database tables of the global configuration, operators and the audit log; private to this package.

Docstrings of models are comments of tables: a change needs a migration.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tortoise import fields
from tortoise.models import Model


class GlobalConfig(Model):
    """What holds for the whole platform (one row, named platform)."""

    name = fields.CharField(max_length=16, primary_key=True)
    submissions_frozen = fields.BooleanField(default=False)
    # Set while frozen.
    frozen_at: datetime | None = fields.DatetimeField(null=True)
    frozen_by = fields.CharField(max_length=96, null=True)
    frozen_note = fields.CharField(max_length=1000, null=True)
    # Time of the last full backup.
    backed_up_at: datetime | None = fields.DatetimeField(null=True)
    updated_at = fields.DatetimeField(auto_now=True)

    class Meta(Model.Meta):
        table = "global_config"


class Operator(Model):
    """An operator with a token of its own."""

    name = fields.CharField(max_length=64, primary_key=True)
    # The sha256 of the token.
    digest = fields.CharField(max_length=64, unique=True)
    # Separated by spaces.
    scopes = fields.TextField(default="")
    # The challenge of an organiser.
    challenge = fields.CharField(max_length=64, null=True)
    created_at = fields.DatetimeField(auto_now_add=True)
    withdrawn_at: datetime | None = fields.DatetimeField(null=True)

    class Meta(Model.Meta):
        table = "operators"


class AuditEntry(Model):
    """Who did what, when, to whom."""

    id = fields.BigIntField(primary_key=True)
    at = fields.DatetimeField(auto_now_add=True)
    actor = fields.CharField(max_length=96)
    action = fields.CharField(max_length=32)
    target = fields.CharField(max_length=160)
    details: Any = fields.JSONField(default=dict)
    http_request_id = fields.CharField(max_length=64, default="")

    class Meta(Model.Meta):
        table = "audit_log"
