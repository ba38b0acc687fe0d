"""The content of backups: files of the data directory, stored files that the database names, the database.

SQLite is copied with ``VACUUM INTO``, PostgreSQL with ``pg_dump`` and ``pg_restore``.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from tortoise.transactions import in_transaction

from collidium import database, plugins, simulations
from collidium.challenges import truth_in_use
from collidium.contracts.storage import Storage
from collidium.database.connections import config
from collidium.errors import ConfigurationError
from collidium.files import durable
from collidium.files.held import PREFIX
from collidium.model_runs import model_files
from collidium.runtime.logs import last_line
from collidium.settings import Settings
from collidium.submissions import scores

MANIFEST: Final = "manifest.json"
#: Name of the database in a backup, different from all files of the data directory.
DATABASES: Final = {"sqlite": "database.sqlite3", "postgresql": "database.dump"}
#: What is copied from the data directory. Other files are temporary, caches, or belong to jobs of this
#: machine.
KEPT: Final = ("storage", "hub", "seed/state.json", "secret-key", "admin-token")
#: Directories of incomplete uploads.
_INCOMING: Final = frozenset({"INCOMING", "uploads"})
_CHUNK: Final = 1024**2


class BackupFile(msgspec.Struct, frozen=True):
    """A file of a backup."""

    bytes: int
    sha256: str


class Backup(msgspec.Struct, frozen=True):
    """The manifest of a backup, ``manifest.json`` in its directory, written last."""

    release: str
    made_at: str
    #: ``sqlite`` or ``postgresql``.
    database: str
    #: The storage backend. Files of backends other than ``local`` are checked, not copied.
    storage: str
    #: By path in the backup.
    files: Mapping[str, BackupFile]
    #: Number of stored files that the database names.
    keys: int
    #: Stored files that were missing or damaged.
    missing: tuple[str, ...] = ()


def kind_of(settings: Settings) -> str:
    """Return the kind of the settings' database, as in :attr:`Backup.database`."""
    return "sqlite" if settings.sqlite_file else "postgresql"


def kept_files(data_dir: Path) -> Iterator[Path]:
    """Yield the files of the data directory that a backup copies, including SQLite databases."""
    for name in KEPT:
        path = data_dir / name
        if path.is_file():
            yield path
        for directory, directories, names in os.walk(path):
            directories[:] = [each for each in directories if not _is_scratch(each)]
            yield from (Path(directory, each) for each in names if not _is_scratch(each))


def _is_scratch(name: str) -> bool:
    return name in _INCOMING or name.startswith((PREFIX, ".")) or ".sqlite3-" in name


async def named_files() -> dict[str, str]:
    """Return the SHA-256, empty if unknown, of each file in the storage that the database names, by key."""
    stored = await scores.stored_predictions() | await simulations.stored_files()
    stored |= {scores.storage_key(sha256): sha256 for sha256 in await model_files.stored_predictions()}
    return stored | await truth_in_use.stored_files() | await model_files.stored_models()


async def missing_files(
    named: Mapping[str, str], files: Mapping[str, BackupFile], settings: Settings
) -> tuple[str, ...]:
    """Return the keys of files that are missing or damaged in the backup, or missing in another storage."""
    if settings.storage == "local":
        found = {key: files.get(f"storage/{key}") for key in named}
        return tuple(key for key, file in found.items() if not file or named[key] not in {"", file.sha256})
    storage = storage_of(settings)
    try:
        return tuple([key for key in named if not await storage.exists(key)])
    finally:
        await storage.close()


def storage_of(settings: Settings) -> Storage:
    """Return the storage of the settings."""
    return plugins.load(settings.plugins_blocked).storages(settings).get(settings.storage)


def described(path: Path) -> BackupFile:
    """Return the size and checksum of an existing file."""
    return BackupFile(path.stat().st_size, durable.sha256_of(path))


def copied(source: Path, target: Path, count: Callable[[int], None]) -> BackupFile:
    """Copy a file durably; ``count`` is called with the number of bytes of each part.

    An existing copy with the same size and time is read, and not written.
    """
    state = source.stat()
    if _is_copy(target, state):
        count(state.st_size)
        return described(target)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    sha256, size = hashlib.sha256(), 0
    with source.open("rb") as reading, target.open("wb") as writing:
        while part := reading.read(_CHUNK):
            writing.write(part)
            sha256.update(part)
            size += len(part)
            count(len(part))
        writing.flush()
        os.fsync(writing.fileno())
    os.utime(target, ns=(state.st_atime_ns, state.st_mtime_ns))  # last: marks a complete copy
    return BackupFile(size, sha256.hexdigest())


def _is_copy(target: Path, state: os.stat_result) -> bool:
    with suppress(FileNotFoundError):
        there = target.stat()
        return (there.st_size, there.st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    return False


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a consistent snapshot of a database without blocking its writers."""
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as db:
        db.execute("VACUUM INTO ?", (str(target),))
    durable.sync(target)


async def snapshot(settings: Settings, target: Path) -> dict[str, str]:
    """Write a consistent snapshot of the platform's database; return the files that it names."""
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
            # The transaction is idle during the dump, for longer than some servers allow.
            await transaction.execute_query("SET LOCAL idle_in_transaction_session_timeout = 0")
            rows = await transaction.execute_query_dict("SELECT pg_export_snapshot() AS name")
            options = ("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={rows[0]['name']}")
            await asyncio.to_thread(_run, url, "pg_dump", *options, f"--file={target}")
            return await named_files()


async def load(url: str, source: Path) -> None:
    """Load a dump into an empty PostgreSQL database in one transaction."""
    options = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
    name = f"--dbname={_credentials(url)['database']}"
    await asyncio.to_thread(_run, url, "pg_restore", *options, name, str(source))


async def tables(url: str) -> int:
    """Return the number of tables of a PostgreSQL database, without system tables."""
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
    """Run a program of PostgreSQL with the password in its environment. Raises ConfigurationError."""
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
