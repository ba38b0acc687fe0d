"""Accounts and their ledger."""

from __future__ import annotations

from collidium.records.base import Credits, Record, Time


class Account(Record, frozen=True):
    """An account and its balance."""

    hub_username: str
    credits: Credits
    banned: bool
    created_at: Time
    last_seen_at: Time | None = None


class Transaction(Record, frozen=True):
    """A ledger entry."""

    id: int
    delta: Credits
    reason: str
    balance_after: Credits
    created_at: Time
    note: str = ""
    reference: str = ""
