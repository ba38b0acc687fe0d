"""Accounts and the credit ledger."""

from collidium.accounts.accounts import (
    AccountView,
    Sort,
    banned_among,
    find,
    list_accounts,
    lock,
    recognise,
    require_not_banned,
    set_banned,
)
from collidium.accounts.ledger import (
    InsufficientCredits,
    Mismatch,
    audit,
    count_entries,
    entries,
    post,
)

__all__ = [
    "AccountView",
    "InsufficientCredits",
    "Mismatch",
    "Sort",
    "audit",
    "banned_among",
    "count_entries",
    "entries",
    "find",
    "list_accounts",
    "lock",
    "post",
    "recognise",
    "require_not_banned",
    "set_banned",
]
