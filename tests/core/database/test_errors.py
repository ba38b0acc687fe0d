"""Databases that end, fill up or are locked: what is raised means "away", and nothing is lost by it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import cast

import asyncpg
import pytest
from asyncpg.exceptions._base import DataError as BadArgument
from tests.full_disk import full_disk, limited_files
from tortoise.exceptions import (
    DBConnectionError,
    DoesNotExist,
    IntegrityError,
    OperationalError,
    TransactionManagementError,
)
from tortoise.transactions import in_transaction

from collidium import database, settings
from collidium.accounts.models import Account
from collidium.database.errors import is_away
from collidium.errors import ConfigurationError
from collidium.testing.databases import sqlite_url


def of_sqlite(code: int, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    error = kind("message")
    error.sqlite_errorcode = code
    return error


def postgres_error(state: str, severity: str = "ERROR") -> Exception:
    """What asyncpg makes of PostgreSQL's message."""
    error: Exception = asyncpg.PostgresError.new({"C": state, "M": "message", "V": severity, "S": "FEHLER"})
    return error


AWAY = {
    "tortoise cannot connect": DBConnectionError("refused"),
    "asyncpg: the connection broke": asyncpg.ConnectionDoesNotExistError("in the middle of operation"),
    "asyncpg: closed already": asyncpg.InterfaceError("cannot perform operation: connection is closed"),
    "asyncpg: out of step": asyncpg.InternalClientError("cannot switch to state 12"),
    "asyncpg: half an answer": asyncpg.exceptions.ProtocolError("unexpected end"),
    "shutdown": postgres_error("57P01", "FATAL"),
    "crash": postgres_error("57P02", "FATAL"),
    "starting up": postgres_error("57P03", "FATAL"),
    "dropped": postgres_error("57P04", "FATAL"),
    "cancelled": postgres_error("57014"),
    "too many connections": postgres_error("53300", "FATAL"),
    "disk full": postgres_error("53100"),
    "input or output": postgres_error("58030"),
    "wrong password after a restart": postgres_error("28P01", "FATAL"),
    "a state that no one knows": postgres_error("ZZZZZ", "PANIC"),
    "connection failure": postgres_error("08006"),
    "standby": TransactionManagementError(postgres_error("25006")),
    "idle too long": TransactionManagementError(postgres_error("25P03", "FATAL")),
    "no lock in time": postgres_error("55P03"),
    "deadlock": postgres_error("40P01"),
    "SQLite, locked": OperationalError(of_sqlite(sqlite3.SQLITE_BUSY)),
    "SQLite, locked by a snapshot": OperationalError(of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT)),
    "SQLite, no turn": TransactionManagementError(of_sqlite(sqlite3.SQLITE_BUSY)),
    "SQLite, input or output": of_sqlite(sqlite3.SQLITE_IOERR_WRITE),
    "SQLite, disk full": of_sqlite(sqlite3.SQLITE_FULL),
    "SQLite, gone": of_sqlite(sqlite3.SQLITE_CANTOPEN),
    "SQLite, read-only": of_sqlite(sqlite3.SQLITE_READONLY),
}
HERE = {
    "a bug": ValueError("message"),
    "not the database's": ConnectionRefusedError("message"),
    "no row": DoesNotExist("message"),
    "twice": IntegrityError(postgres_error("23505")),
    "syntax": OperationalError(postgres_error("42601")),
    "no table": OperationalError(postgres_error("42P01")),
    "failed transaction": TransactionManagementError(postgres_error("25P02")),
    "finished": TransactionManagementError("Transaction already finalised"),
    "asyncpg: an argument": BadArgument("invalid input for query argument $1"),
    "asyncpg: another schema": asyncpg.OutdatedSchemaCacheError("message"),
    "SQLite, no table": OperationalError(of_sqlite(sqlite3.SQLITE_ERROR)),
    "SQLite, broken": of_sqlite(sqlite3.SQLITE_CORRUPT, sqlite3.DatabaseError),
    "SQLite, without a code": sqlite3.ProgrammingError("message"),
}


@pytest.mark.parametrize("error", AWAY.values(), ids=AWAY)
def test_a_database_that_is_away(error: Exception) -> None:
    assert is_away(error)


@pytest.mark.parametrize("error", HERE.values(), ids=HERE)
def test_everything_else(error: Exception) -> None:
    assert not is_away(error)


async def test_socket_errors_of_the_driver_are_recognised(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as of_the_database:
        await asyncpg.connect(host=str(tmp_path))
    assert is_away(of_the_database.value)
    with pytest.raises(FileNotFoundError) as missing:
        await asyncio.open_unix_connection(str(tmp_path / "missing"))
    assert not is_away(missing.value)


# -- PostgreSQL ----------------------------------------------------------------------------------------------

#: The pool has no more.
CONNECTIONS = 5


async def transactions_at_once() -> None:
    """Have as many transactions open at once as there are connections; hangs when one of those is lost."""
    all_open = asyncio.Barrier(CONNECTIONS)

    async def transaction() -> None:
        async with in_transaction() as client:
            await client.execute_query("SELECT 1")
            await all_open.wait()

    async with asyncio.timeout(20):
        await asyncio.gather(*(transaction() for _ in range(CONNECTIONS)))


@pytest.fixture
def terminate() -> Iterator[Callable[[str], None]]:
    """Ends everybody else's sessions; this event loop sees nothing of it meanwhile."""

    async def end_others(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await connection.close()

    with ThreadPoolExecutor(1) as thread:
        yield lambda url: thread.submit(lambda: asyncio.run(end_others(url))).result()


@pytest.mark.only_on("postgresql")
async def test_transactions_that_cannot_begin_leave_the_pool_whole(
    connected: str, terminate: Callable[[str], None]
) -> None:
    async def begin() -> None:
        async with in_transaction():
            raise AssertionError("begun after all")

    await transactions_at_once()
    terminate(connected)
    # Until the sessions' last words have been read, and before it is seen that they are over.
    for _ in range(2):
        await asyncio.sleep(0)
    ends = await asyncio.gather(*(begin() for _ in range(CONNECTIONS)), return_exceptions=True)
    assert [type(end) for end in ends] == [asyncpg.InternalClientError] * CONNECTIONS
    assert all(isinstance(end, Exception) and is_away(end) for end in ends)
    await transactions_at_once()


@pytest.mark.only_on("postgresql")
async def test_a_transaction_that_is_torn_leaves_nothing(
    connected: str, terminate: Callable[[str], None]
) -> None:
    @database.transactional
    async def torn() -> None:
        await Account.create(hub_username="ghost")
        terminate(connected)
        await Account.create(hub_username="spirit")

    with pytest.raises(Exception) as ended:  # noqa: PT011 -- which one depends on the moment
        await torn()
    assert is_away(ended.value)
    await transactions_at_once()
    assert not await Account.exists()


@pytest.mark.only_on("postgresql")
async def test_a_refused_connection_reports_an_unreachable_database(
    connected: str, terminate: Callable[[str], None]
) -> None:
    unknown_user = connected.replace("app@", "unknown@")
    with pytest.raises(ConfigurationError, match="cannot be reached: role"):
        await database.check(unknown_user)


# -- SQLite --------------------------------------------------------------------------------------------------


async def test_sqlite_on_a_full_disk_is_a_configuration_error(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "full.sqlite3")
    await database.migrate(url)
    # Too small for the index of the write-ahead log, which each first connection creates.
    with limited_files(4096), pytest.raises(ConfigurationError, match=r"full\.sqlite3 cannot be opened: "):
        await database.check(url)
    assert await database.check(url) == []


@pytest.mark.only_on("sqlite")
async def test_a_commit_that_finds_the_disk_full_is_not_in_the_way(connected: str) -> None:
    file = cast("Path", settings.sqlite_path(connected))

    @database.transactional
    async def create(name: str) -> None:
        await Account.create(hub_username=name)

    await create("first")
    with full_disk(file), pytest.raises(sqlite3.OperationalError) as ended:
        await create("second")
    assert is_away(ended.value)
    async with asyncio.timeout(20):
        await create("third")
    assert await Account.all().values_list("hub_username", flat=True) == ["first", "third"]


@pytest.mark.only_on("sqlite")
async def test_a_transaction_that_cannot_begin_blocks_no_other(connected: str) -> None:
    file = cast("Path", settings.sqlite_path(connected))

    @database.transactional
    async def count() -> int:
        return await Account.all().count()

    await database.connection().execute_script("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TransactionManagementError) as ended:
            await count()
        other.execute("ROLLBACK")
    assert is_away(ended.value)
    async with asyncio.timeout(20):
        assert await count() == 0
