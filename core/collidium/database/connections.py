"""Connections to the database: SQLite on a laptop, PostgreSQL as a service, with one schema."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from tortoise import Tortoise
from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.backends.base.config_generator import expand_db_url
from tortoise.backends.base.executor import EXECUTOR_CACHE
from tortoise.connection import get_connection

from collidium.database.transactions import settled
from collidium.errors import ConfigurationError
from collidium.files.held import use_write_ahead_log
from collidium.settings import sqlite_path

APP = "collidium"
MIGRATIONS = "collidium.database.migrations"
BUSY_TIMEOUT_MS = 20_000


def config(url: str) -> dict[str, Any]:
    """Tortoise's configuration for the database at ``url``; raises ConfigurationError for another kind."""
    scheme = urlsplit(url).scheme
    if path := sqlite_path(url):
        credentials = {
            "engine": "collidium.database.sqlite",
            "credentials": {"file_path": str(path), "busy_timeout": BUSY_TIMEOUT_MS},
        }
    elif scheme in {"postgres", "postgresql", "asyncpg"}:
        credentials = expand_db_url(url) | {"engine": "collidium.database.postgres"}
    else:
        raise ConfigurationError(
            f"PLATFORM_DATABASE_URL: {scheme or 'no'} scheme; use sqlite:///path or postgres://user@host/name"
        )
    return {
        "connections": {"default": credentials},
        "apps": {
            APP: {
                "models": [
                    "collidium.accounts.models",
                    "collidium.benchmarks.models",
                    "collidium.accounts.idempotency",
                    "collidium.operations.models",
                    "collidium.simulations.models",
                    "collidium.outbox.models",
                    "collidium.sessions.models",
                ],
                "migrations": MIGRATIONS,
                "default_connection": "default",
            }
        },
        "use_tz": True,
        "timezone": "UTC",
    }


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[None]:
    """Connect for the duration of the context; every task of this process uses the connection."""
    settings = config(url)
    if path := sqlite_path(url):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            await asyncio.to_thread(use_write_ahead_log, path)
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(f"the database {path} cannot be opened: {error}") from error
    # Kept by connection name, although a process may speak to both kinds in turn.
    EXECUTOR_CACHE.clear()
    await Tortoise.init(config=settings, _enable_global_fallback=True)
    try:
        if path:  # before a caller can be cancelled meanwhile: Tortoise would keep its lock for ever
            await connection().create_connection(with_db=True)
        yield
    finally:
        await settled()
        await Tortoise.close_connections()


def connection() -> BaseDBAsyncClient:
    """The connection of this task: the transaction's where there is one."""
    return get_connection("default")


def occupancy() -> dict[str, int]:
    """How many connections to PostgreSQL this process has, by state; none to SQLite."""
    found: dict[str, int] = getattr(connection(), "occupancy", dict)()
    return found


async def ping() -> None:
    """Ask the database something; raises when it does not answer."""
    await connection().execute_query("SELECT 1")
