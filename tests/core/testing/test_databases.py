"""Temporary databases are new for each test and dropped afterwards."""

import os
import sqlite3
from pathlib import Path

import asyncpg
import pytest

from collidium.testing import postgres
from collidium.testing.databases import PostgresDatabases, SqliteDatabases
from collidium.testing.postgres import NoPostgres, PostgresServer


async def tables_of(url: str) -> set[str]:
    if url.startswith("sqlite:///"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            rows = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        file.close()
        return {name for (name,) in rows}
    connection = await asyncpg.connect(url)
    try:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        return {row["table_name"] for row in await connection.fetch(query)}
    finally:
        await connection.close()


async def test_an_empty_database_has_no_table(database_url: str, database_kind: str) -> None:
    assert await tables_of(database_url) == set()
    assert database_url.startswith({"sqlite": "sqlite:///", "postgresql": "postgres://"}[database_kind])


async def test_a_migrated_database_has_the_schema(migrated_database_url: str) -> None:
    assert {"accounts", "credit_transactions"} <= await tables_of(migrated_database_url)


async def test_each_migrated_database_is_a_new_copy(postgres_server: PostgresServer, tmp_path: Path) -> None:
    for databases in (PostgresDatabases(postgres_server), SqliteDatabases(tmp_path)):
        with databases.migrated() as first, databases.migrated() as second:
            assert first != second


async def test_a_database_is_dropped_in_spite_of_connections(postgres_server: PostgresServer) -> None:
    with PostgresDatabases(postgres_server).empty() as url:
        left_open = await asyncpg.connect(url)
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await asyncpg.connect(url)
    left_open.terminate()


def test_a_failed_test_leaves_no_server() -> None:
    with pytest.raises(ZeroDivisionError), PostgresServer() as server:
        _ = 1 / 0
    assert not server.directory.exists()
    assert not Path(f"/proc/{server.pid}").exists()


def test_missing_postgresql_is_reported_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(postgres, "_DEBIAN", Path("/nonexistent"))
    monkeypatch.setattr(postgres, "_WHEELS", ())
    with pytest.raises(NoPostgres, match="--database sqlite"), PostgresServer():
        pass


def test_nothing_of_the_callers_settings_is_in_the_environment() -> None:
    assert [name for name in os.environ if name.startswith(("PLATFORM_", "ADMIN_TOKEN", "HF_TOKEN"))] == []
    assert "collidium-home-" in os.environ["HF_HOME"]
