"""Calls about the caller's account."""

from __future__ import annotations

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, paging
from collidium.records import Account, Page, Transaction


def me() -> Call[Account]:
    return Call("GET", "/v1/me", single(Account))


def transactions(limit: int | None, cursor: str | None) -> Call[Page[Transaction]]:
    return Call("GET", "/v1/me/transactions", listed(Transaction), query=paging(limit, cursor))
