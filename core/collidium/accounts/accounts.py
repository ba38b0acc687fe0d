"""Accounts: sign-up with the first valid token, bans, and lists."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final

from tortoise.backends.sqlite.client import SqliteClient
from tortoise.expressions import Q
from tortoise.timezone import now

from collidium import records
from collidium.accounts import idempotency, ledger, sso
from collidium.accounts.models import Account, name_key
from collidium.contracts.identity import ERASED, USERNAME
from collidium.database import Statement, connection, in_chunks, transactional
from collidium.database.statements import RowByKey
from collidium.errors import Conflict, Forbidden, NotFound, UnknownCursor

#: Precision of ``last_seen_at``, so that not every call writes.
LAST_SEEN_PRECISION = timedelta(minutes=5)

_by_name: Final = RowByKey(Account, "name_key")


class AccountView(records.Account, frozen=True, kw_only=True):
    """An account with its row id, and whether it submits baselines; neither is part of the API's record."""

    id: int
    baseline: bool


async def recognise(hub_username: str, *, signup_grant: Decimal) -> AccountView:
    """Return the account of a validated token's owner, and create it on the first call.

    The ban is read from the database each time. Raises :class:`~collidium.errors.Forbidden` for a banned
    account.
    """
    account = await _by_name.get_or_none(name_key(hub_username))
    if account is None or account.signed_up_at is None:
        account = await _sign_up(hub_username, signup_grant)
    elif account.last_seen_at is None or now() - account.last_seen_at > LAST_SEEN_PRECISION:
        account.last_seen_at = now()
        await Account.filter(id=account.id).update(last_seen_at=account.last_seen_at)
    if account.banned:
        raise banned_error(hub_username)
    if ERASED.fullmatch(account.name_key):
        raise Forbidden(f"no account signs in as {hub_username}")
    return AccountView.of(account)


async def find(hub_username: str) -> AccountView:
    """Return the account with that name, case-insensitively; raises NotFound."""
    account = None
    if USERNAME.fullmatch(hub_username):
        account = await Account.get_or_none(name_key=name_key(hub_username))
    if account is None:
        raise NotFound(f"there is no account {hub_username[:100]!r}")
    return AccountView.of(account)


async def find_or_add(hub_username: str) -> AccountView:
    """Return the account with that name, added if it has not signed in yet; raises NotFound for no name."""
    if USERNAME.fullmatch(hub_username) and not ERASED.fullmatch(name_key(hub_username)):
        await _ensure_row(hub_username)
    return await find(hub_username)


async def id_if_known(hub_username: str) -> int | None:
    """Return the id of the account with that name; None if there is none."""
    account = await Account.get_or_none(name_key=name_key(hub_username))
    return account.id if account else None


async def id_of(hub_username: str | None) -> int | None:
    """Return the id of the account with that name, or None for None; raises NotFound."""
    return None if hub_username is None else (await find(hub_username)).id


@transactional
async def require_not_banned(account_id: int) -> None:
    """Raise Forbidden for a banned account.

    Within a transaction the account is locked, so that a ban cannot come before the transaction ends.
    """
    account = await Account.select_for_update().get(id=account_id)
    if account.banned:
        raise banned_error(account.hub_username)


def locked(account_id: int, first: str) -> Statement:
    """Return the statement that locks an account for the transaction and reads ``banned`` and ``credits``.

    On PostgreSQL it first calls the function ``first``, whose lock must be taken before that of the account.
    """
    if isinstance(connection(), SqliteClient):
        return Statement("SELECT banned, credits FROM accounts WHERE id = ?", (account_id,))
    return Statement(
        f"SELECT banned, credits FROM (SELECT {first}) AS before, accounts WHERE accounts.id = ? "  # noqa: S608 -- a constant
        "FOR UPDATE OF accounts",
        (account_id,),
    )


#: SQL condition: whether ``owner`` is the id of a banned account.
IS_BANNED: Final = "EXISTS (SELECT 1 FROM accounts WHERE accounts.id = owner AND banned)"


@transactional
async def lock(account_ids: Collection[int]) -> None:
    """Lock accounts for the transaction, in a fixed order; call it before paying several accounts."""
    for ids in in_chunks(sorted(set(account_ids))):
        await Account.filter(id__in=ids).order_by("id").select_for_update().only("id")


async def banned_among(account_ids: Collection[int]) -> set[int]:
    """Return which of the accounts are banned."""
    banned: set[int] = set()
    for ids in in_chunks(account_ids):
        banned.update(account.id for account in await Account.filter(id__in=ids, banned=True).only("id"))
    return banned


@transactional
async def set_banned(hub_username: str, banned: bool) -> AccountView:
    """Ban or unban an account. An unknown name can be banned in advance; unbanning one raises NotFound."""
    if banned:
        await _ensure_row(hub_username)
    account = await Account.select_for_update().get_or_none(name_key=name_key(hub_username))
    if account is None:
        raise NotFound(f"there is no account {hub_username[:100]!r}")
    account.banned = banned
    await account.save(update_fields=["banned"])
    return AccountView.of(account)


@transactional
async def forget(account_id: int, becomes: str, *, banned: bool) -> None:
    """Rename an account that is erased; delete its sign-on identity, and idempotency keys that name it."""
    account = await Account.select_for_update().get(id=account_id)
    await idempotency.forget(f"account:{account_id}", account.hub_username)
    await sso.forget(account.hub_username)
    account.hub_username, account.name_key = becomes, name_key(becomes)
    account.banned, account.last_seen_at = banned, None
    await account.save(update_fields=["hub_username", "name_key", "banned", "last_seen_at"])


@transactional
async def mark_baseline(hub_username: str) -> AccountView:
    """Return the account that submits the platform's baselines; create it without a grant.

    It earns nothing. Raises Conflict if the account belongs to a user.
    """
    await _ensure_row(hub_username)
    account = await Account.select_for_update().get(name_key=name_key(hub_username))
    if not account.baseline:
        if account.signed_up_at is not None:
            raise Conflict(f"the account {account.hub_username} is a user's: baselines need one of their own")
        account.baseline, account.signed_up_at = True, now()
        await account.save(update_fields=["baseline", "signed_up_at"])
    return AccountView.of(account)


@transactional
async def _sign_up(hub_username: str, signup_grant: Decimal) -> Account:
    """Grant the sign-up credits once, however many first calls are concurrent; nothing for a banned name."""
    await _ensure_row(hub_username)
    account = await Account.select_for_update().get(name_key=name_key(hub_username))
    if account.signed_up_at is None and not account.banned:
        account.signed_up_at = account.last_seen_at = now()
        # An operator who banned the name in advance may have used another case than the hub.
        account.hub_username = hub_username
        await account.save(update_fields=["hub_username", "signed_up_at", "last_seen_at"])
        if signup_grant:
            entry = await ledger.post(account.id, signup_grant, reason="signup_grant", reference="signup")
            account.credits = entry.balance_after
    return account


async def _ensure_row(hub_username: str) -> None:
    await Account.bulk_create([Account(hub_username=hub_username)], ignore_conflicts=True)


def banned_error(hub_username: str) -> Forbidden:
    """Return the exception for a banned account."""
    return Forbidden(f"the account {hub_username} is banned: ask the operators of the server")


class Sort(StrEnum):
    """Order of a list of accounts."""

    NEWEST = "newest"
    NAME = "name"
    CREDITS = "credits"


_ORDER: Final = {Sort.NEWEST: ("-id",), Sort.NAME: ("name_key",), Sort.CREDITS: ("-credits", "-id")}
_ID: Final = r"[0-9]{1,18}"
#: Format of cursors: sort keys of the last account on the previous page.
_CURSOR: Final = {
    Sort.NEWEST: re.compile(_ID),
    Sort.NAME: USERNAME,
    Sort.CREDITS: re.compile(rf"[0-9]{{1,15}}\.[0-9]{{3}}:{_ID}"),
}
#: Characters of names.
_IN_NAMES: Final = re.compile(r"[a-z0-9._-]*")


async def list_accounts(
    *,
    limit: int,
    search: str = "",
    banned: bool | None = None,
    sort: Sort = Sort.NEWEST,
    cursor: str | None = None,
) -> tuple[list[AccountView], str | None]:
    """Return a page of accounts whose name contains ``search`` (case-insensitive), and the next cursor.

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
    return [AccountView.of(row) for row in rows[:limit]], _cursor(rows[limit - 1], sort) if more else None


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
    # The first condition is a range of an index, which the second one alone is not.
    return Q(credits__lte=last) & (Q(credits__lt=last) | Q(id__lt=int(serial)))
