"""Temporary databases for tests: empty ones, and migrated ones, which are copies of a template."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from collidium.testing.postgres import PostgresServer

_SQLITE = "sqlite:///"


class Databases(Protocol):
    """Creates databases of one kind. Context managers return the address, and drop the database on exit."""

    def empty(self) -> AbstractContextManager[str]:
        """A database without tables."""
        ...

    def migrated(self) -> AbstractContextManager[str]:
        """A database with the platform's schema."""
        ...

    def copy(self, url: str) -> AbstractContextManager[str]:
        """A copy of a database, which must have no connections."""
        ...


def migrate(url: str) -> None:
    """Migrate the database to the latest schema. May be called within an event loop."""
    from collidium import database

    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(database.migrate(url))).result()


def required_settings(url: str) -> dict[str, str]:
    """The environment variables that are required with a database of this kind."""
    if url.startswith(_SQLITE):
        return {}
    return {
        "ADMIN_TOKEN": "admin-of-tests",
        "PLATFORM_SECRET_KEY": "key-of-tests",
        "PLATFORM_HUB_URL": "local",
    }


class SqliteDatabases:
    """SQLite files below a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made = 0
        self._template: str | None = None

    @contextmanager
    def empty(self) -> Iterator[str]:
        yield sqlite_url(self._next())

    @contextmanager
    def migrated(self) -> Iterator[str]:
        if self._template is None:
            self._template = sqlite_url(self._directory / "template.sqlite3")
            migrate(self._template)
        with self.copy(self._template) as url:
            yield url

    @contextmanager
    def copy(self, url: str) -> Iterator[str]:
        original = Path(url.removeprefix(_SQLITE))
        if original.with_name(original.name + "-wal").exists():
            raise RuntimeError("the database has a write-ahead log: a copy of the file would be inconsistent")
        path = self._next()
        shutil.copyfile(original, path)
        yield sqlite_url(path)

    def _next(self) -> Path:
        self._made += 1
        return self._directory / f"test_{self._made}.sqlite3"


class PostgresDatabases:
    """Databases of a temporary server."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._template: str | None = None

    @contextmanager
    def empty(self) -> Iterator[str]:
        yield from self._fresh("template0")

    @contextmanager
    def migrated(self) -> Iterator[str]:
        if self._template is None:
            template = self._server.create()
            migrate(self._server.url(template))
            self._template = template
        yield from self._fresh(self._template)

    @contextmanager
    def copy(self, url: str) -> Iterator[str]:
        yield from self._fresh(urlsplit(url).path.removeprefix("/"))

    def _fresh(self, template: str) -> Iterator[str]:
        name = self._server.create(template)
        try:
            yield self._server.url(name)
        finally:
            self._server.drop(name)


def sqlite_url(path: Path) -> str:
    """The address of an SQLite file for the setting ``PLATFORM_DATABASE_URL``."""
    return f"{_SQLITE}{path}"
