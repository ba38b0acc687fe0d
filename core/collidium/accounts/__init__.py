"""Accounts and the credit ledger."""

from collidium.accounts.accounts import AccountView, find, recognise, set_banned
from collidium.accounts.ledger import Entry, InsufficientCredits, Mismatch, audit, entries, post

__all__ = [
    "AccountView",
    "Entry",
    "InsufficientCredits",
    "Mismatch",
    "audit",
    "entries",
    "find",
    "post",
    "recognise",
    "set_banned",
]
