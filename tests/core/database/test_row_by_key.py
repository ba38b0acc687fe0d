"""Reads by key see what is committed, and what their own transaction wrote; no writer keeps them waiting."""

from __future__ import annotations

import asyncio

import pytest
from tortoise.exceptions import OperationalError

from collidium import database
from collidium.accounts.models import Account
from collidium.database.statements import RowByKey

by_name = RowByKey(Account, "name_key")


async def test_a_row_is_found_as_the_orm_would_find_it(connected: str) -> None:
    await Account.create(hub_username="Alice")
    found = await by_name.get_or_none("alice")
    assert found is not None
    expected = await Account.get(name_key="alice")
    assert {name: getattr(found, name) for name in Account._meta.db_fields} == {
        name: getattr(expected, name) for name in Account._meta.db_fields
    }
    assert await by_name.get_or_none("bob") is None


async def test_every_read_asks_the_database(connected: str) -> None:
    await Account.create(hub_username="alice")
    for banned in (True, False, True):
        await Account.filter(name_key="alice").update(banned=banned)
        found = await by_name.get_or_none("alice")
        assert found is not None
        assert found.banned is banned


async def test_a_transaction_reads_its_own_writes_without_blocking(connected: str) -> None:
    written, may_end = asyncio.Event(), asyncio.Event()

    @database.transactional
    async def sign_up() -> Account | None:
        await Account.create(hub_username="alice")
        written.set()
        await may_end.wait()
        return await by_name.get_or_none("alice")

    transaction = asyncio.ensure_future(sign_up())
    await written.wait()
    async with asyncio.timeout(30):
        assert await by_name.get_or_none("alice") is None
    may_end.set()
    assert await transaction is not None
    assert await by_name.get_or_none("alice") is not None


async def test_a_failed_read_raises_the_orm_error_and_the_next_reads(connected: str) -> None:
    await Account.create(hub_username="alice")
    assert await by_name.get_or_none("alice") is not None
    await database.connection().execute_script("ALTER TABLE accounts RENAME TO elsewhere")
    with pytest.raises(OperationalError):
        await by_name.get_or_none("alice")
    await database.connection().execute_script("ALTER TABLE elsewhere RENAME TO accounts")
    assert await by_name.get_or_none("alice") is not None
