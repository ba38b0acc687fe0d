"""Calls about the caller's account."""

from __future__ import annotations

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, paging
from collidium.records import Account, Page, Transaction


def me() -> Call[Account]:
    """The account behind the token; the first call signs it up."""
    return Call("GET", "/v1/me", single(Account))


def transactions(*, limit: int | None = None, cursor: str | None = None) -> Call[Page[Transaction]]:
    """A page of the account's ledger, newest first."""
    return Call("GET", "/v1/me/transactions", listed(Transaction), query=paging(limit, cursor))
