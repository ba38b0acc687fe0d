"""Accounts and the credit ledger."""

from collidium.accounts.accounts import (
    IS_BANNED,
    AccountView,
    Sort,
    banned_among,
    banned_error,
    find,
    list_accounts,
    lock,
    locked,
    mark_baseline,
    recognise,
    require_not_banned,
    set_banned,
)
from collidium.accounts.ledger import (
    InsufficientCredits,
    Mismatch,
    audit,
    charge,
    count_entries,
    entries,
    post,
)

__all__ = [
    "IS_BANNED",
    "AccountView",
    "InsufficientCredits",
    "Mismatch",
    "Sort",
    "audit",
    "banned_among",
    "banned_error",
    "charge",
    "count_entries",
    "entries",
    "find",
    "list_accounts",
    "lock",
    "locked",
    "mark_baseline",
    "post",
    "recognise",
    "require_not_banned",
    "set_banned",
]
