"""Accounts and their ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Account:
    """The caller's account."""

    hub_username: str
    credits: Decimal
    banned: bool
    created_at: datetime
    last_seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    """A ledger entry."""

    id: int | str
    delta: Decimal
    reason: str
    balance_after: Decimal
    created_at: datetime
    note: str | None = None
    reference: str | None = None
