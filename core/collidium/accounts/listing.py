"""Accounts in lists, for operators."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from typing import Final

from tortoise.expressions import Q

from collidium.accounts.accounts import AccountView, view
from collidium.accounts.models import Account, name_key
from collidium.contracts.identity import USERNAME
from collidium.errors import UnknownCursor


class Sort(StrEnum):
    """What a list of accounts goes by."""

    NEWEST = "newest"
    NAME = "name"
    #: Most first.
    CREDITS = "credits"


_ORDER: Final = {Sort.NEWEST: ("-id",), Sort.NAME: ("name_key",), Sort.CREDITS: ("-credits", "-id")}
_ID: Final = r"[0-9]{1,18}"
#: What a cursor looks like: where the page before ended, in the terms of the order.
_CURSOR: Final = {
    Sort.NEWEST: re.compile(_ID),
    Sort.NAME: USERNAME,
    Sort.CREDITS: re.compile(rf"[0-9]{{1,15}}\.[0-9]{{3}}:{_ID}"),
}
#: What may stand in a name.
_IN_NAMES: Final = re.compile(r"[a-z0-9._-]*")


async def list_accounts(
    *,
    limit: int,
    search: str = "",
    banned: bool | None = None,
    sort: Sort = Sort.NEWEST,
    cursor: str | None = None,
) -> tuple[list[AccountView], str | None]:
    """A page of accounts whose name contains ``search`` in any case, and the cursor of the next one.

    Raises UnknownCursor, also for a cursor of another order.
    """
    wanted = search.strip().casefold()
    if not _IN_NAMES.fullmatch(wanted):
        return [], None
    query = Account.all() if cursor is None else Account.filter(_after(cursor, sort))
    if wanted:
        query = query.filter(name_key__contains=wanted)
    if banned is not None:
        query = query.filter(banned=banned)
    rows = await query.order_by(*_ORDER[sort]).limit(limit + 1)
    more = len(rows) > limit
    return [view(row) for row in rows[:limit]], _cursor(rows[limit - 1], sort) if more else None


def _cursor(last: Account, sort: Sort) -> str:
    if sort == Sort.NAME:
        return last.name_key
    return str(last.id) if sort == Sort.NEWEST else f"{last.credits:.3f}:{last.id}"


def _after(cursor: str, sort: Sort) -> Q:
    if not _CURSOR[sort].fullmatch(cursor):
        raise UnknownCursor
    if sort == Sort.NAME:
        return Q(name_key__gt=name_key(cursor))
    if sort == Sort.NEWEST:
        return Q(id__lt=int(cursor))
    balance, _, serial = cursor.partition(":")
    last = Decimal(balance)
    return Q(credits__lt=last) | Q(credits=last, id__lt=int(serial))
