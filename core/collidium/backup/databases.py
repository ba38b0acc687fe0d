"""Copies of databases: SQLite by ``VACUUM INTO``, PostgreSQL by ``pg_dump`` and ``pg_restore``."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tortoise.transactions import in_transaction

from collidium import database
from collidium.backup.contents import named_files
from collidium.database.connections import config
from collidium.errors import ConfigurationError
from collidium.runtime.logs import last_line
from collidium.settings import Settings


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy one moment of a database that others write to; they wait for no more than a look at the log."""
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as db:
        db.execute("VACUUM INTO ?", (str(target),))
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


async def snapshot(settings: Settings, target: Path) -> dict[str, str]:
    """Write one moment of the platform's database to ``target``; return the files that it names then."""
    if settings.sqlite_file is None:
        return await _dump(settings.database, target)
    await asyncio.to_thread(copy_sqlite, settings.sqlite_file, target)
    async with database.connected(f"sqlite:///{target}"):
        await database.require_known_schema()
        return await named_files()


async def _dump(url: str, target: Path) -> dict[str, str]:
    async with database.connected(url):
        await database.require_known_schema()
        async with in_transaction() as transaction:
            await transaction.execute_query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # It waits for the dump, for longer than some servers allow.
            await transaction.execute_query("SET LOCAL idle_in_transaction_session_timeout = 0")
            rows = await transaction.execute_query_dict("SELECT pg_export_snapshot() AS name")
            options = ("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={rows[0]['name']}")
            await asyncio.to_thread(_run, url, "pg_dump", *options, f"--file={target}")
            return await named_files()


async def load(url: str, source: Path) -> None:
    """Fill an empty PostgreSQL database, whole or not at all."""
    options = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
    name = f"--dbname={_credentials(url)['database']}"
    await asyncio.to_thread(_run, url, "pg_restore", *options, name, str(source))


async def tables(url: str) -> int:
    """How many tables a PostgreSQL database has, but for its own."""
    async with database.connected(url):
        rows = await database.rows_of(
            "SELECT count(*) AS number FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        return int(rows[0]["number"])


def _credentials(url: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = config(url)["connections"]["default"]["credentials"]
    return found


def _run(url: str, program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL, the password in its environment. Raises ConfigurationError."""
    found = _credentials(url)
    names = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password"}
    names |= {"PGDATABASE": "database"}
    environment = {name: str(found[key]) for name, key in names.items() if found.get(key) is not None}
    if found.get("ssl"):
        environment["PGSSLMODE"] = os.environ.get("PGSSLMODE", "require")
    try:
        done = subprocess.run(  # noqa: S603 -- of PostgreSQL, with the platform's own settings
            [program, *arguments], env=os.environ | environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise ConfigurationError(
            f"{program} is not on PATH: install the client programs of PostgreSQL (Debian: postgresql-client)"
        ) from None
    if done.returncode:
        raise ConfigurationError(f"{program} failed: {last_line(done.stderr)}")
