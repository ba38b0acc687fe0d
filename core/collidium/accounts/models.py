"""Database tables of accounts and the credit ledger; private to this package.

Docstrings of models are comments of tables: a change needs a migration.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tortoise import fields
from tortoise.models import Model


class Account(Model):
    """Someone with a hub account (the row may exist (banned) before the first sign-in)."""

    id = fields.BigIntField(primary_key=True)
    hub_username = fields.CharField(max_length=96, unique=True)
    # Case-insensitive: to a hub, Alice and alice are one account.
    name_key = fields.CharField(max_length=96, unique=True)
    credits = fields.DecimalField(max_digits=18, decimal_places=3, default=Decimal(0))
    banned = fields.BooleanField(default=False)
    # Whether it submits the platform's baselines, which earn nothing and are marked on leaderboards.
    baseline = fields.BooleanField(default=False)
    created_at = fields.DatetimeField(auto_now_add=True)
    signed_up_at = fields.DatetimeField(null=True)
    last_seen_at = fields.DatetimeField(null=True)

    class Meta(Model.Meta):
        table = "accounts"
        # In addition one by credits (migration 0005_long_lists).
        indexes = (("banned", "id"), ("banned", "name_key"))

    def __init__(self, **values: Any) -> None:
        if "hub_username" in values:
            values["name_key"] = name_key(values["hub_username"])
        super().__init__(**values)


def name_key(hub_username: str) -> str:
    """Return the key under which a name is unique, regardless of case."""
    return hub_username.casefold()


class SsoAccount(Model):
    """Who stands behind an account of single sign-on: a subject of an issuer, and nothing else."""

    id = fields.BigIntField(primary_key=True)
    issuer = fields.CharField(max_length=255)
    subject = fields.CharField(max_length=255)
    hub_username = fields.CharField(max_length=96, unique=True)
    # Names of organisations, separated by spaces.
    groups = fields.TextField(default="")
    # Last sign-in, which is the age of the groups.
    signed_in_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "sso_accounts"
        unique_together = (("issuer", "subject"),)


class SsoToken(Model):
    """A token that acts for an account of single sign-on."""

    # The sha256 of the token.
    digest = fields.CharField(max_length=64, primary_key=True)
    hub_username = fields.CharField(max_length=96, db_index=True)
    # Whether it belongs to a browser session; otherwise it is the account's only one for programs.
    of_session = fields.BooleanField()
    ends_at = fields.DatetimeField(db_index=True)

    class Meta(Model.Meta):
        table = "sso_tokens"


class CreditTransaction(Model):
    """A ledger entry, never changed and never deleted (the database refuses both)."""

    id = fields.BigIntField(primary_key=True)
    account: fields.ForeignKeyRelation[Account] = fields.ForeignKeyField(
        "collidium.Account", related_name="transactions", on_delete=fields.RESTRICT
    )
    account_id: int
    delta = fields.DecimalField(max_digits=18, decimal_places=3)
    balance_after = fields.DecimalField(max_digits=18, decimal_places=3)
    reason = fields.CharField(max_length=32)
    # For example a submission's metric; together with the reason unique within an account.
    reference = fields.CharField(max_length=160)
    note = fields.TextField(default="")
    created_at = fields.DatetimeField(auto_now_add=True)

    class Meta(Model.Meta):
        table = "credit_transactions"
        unique_together = (("account", "reason", "reference"),)
        indexes = (("account_id", "id"),)
