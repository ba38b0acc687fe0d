"""Shapes of the caller's account and ledger."""

from __future__ import annotations

from datetime import datetime

from collidium.api.schemas.base import Answer, Credits


class Me(Answer):
    """The caller's account."""

    hub_username: str
    credits: Credits
    banned: bool
    created_at: datetime
    last_seen_at: datetime | None


class Transaction(Answer):
    """A ledger entry."""

    id: int
    delta: Credits
    reason: str
    note: str
    reference: str
    balance_after: Credits
    created_at: datetime
