"""Database tables of browser sessions; private to this package.

Docstrings of models are comments of tables: a change needs a migration.
"""

from __future__ import annotations

from tortoise import fields
from tortoise.models import Model


class WebSession(Model):
    """An account that is signed in, in one browser."""

    # The sha256 of the key in the browser's cookie.
    digest = fields.CharField(max_length=64, primary_key=True)
    hub_username = fields.CharField(max_length=96)
    # The hub token that acts for the account, encrypted.
    token = fields.TextField()
    # Scopes of the token on the hub, separated by spaces.
    scopes = fields.TextField(default="")
    begun_at = fields.DatetimeField()
    seen_at = fields.DatetimeField()
    ends_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "web_sessions"
        indexes = (("hub_username", "begun_at"),)


class PendingSignIn(Model):
    """A sign-in whose browser was sent to the hub and is not back."""

    # The sha256 of the key in the browser's cookie.
    digest = fields.CharField(max_length=64, primary_key=True)
    redirect_uri = fields.TextField()
    return_to = fields.TextField()
    scopes = fields.TextField(default="")
    ends_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "pending_sign_ins"


class SignInAttempts(Model):
    """How many attempts of one kind came from one network within a minute."""

    key = fields.CharField(max_length=128, primary_key=True)
    # Since the epoch.
    minute = fields.BigIntField(db_index=True)
    count = fields.IntField(default=0)

    class Meta(Model.Meta):
        table = "sign_in_attempts"
