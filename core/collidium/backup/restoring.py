"""Restores a backup into a place that is empty: files, then the database, which names no others."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from collidium import database
from collidium.backup import contents
from collidium.backup.contents import (
    DATABASES,
    KEPT,
    MANIFEST,
    Backup,
    Progress,
    copied,
    counting,
    kept_files,
    kind_of,
    missing_files,
    named_files,
    storage_of,
)
from collidium.contracts.storage import StorageUnavailable
from collidium.errors import ConfigurationError, InvalidInput
from collidium.files.data_directory import make_private
from collidium.files.durable import sync_directory
from collidium.files.held import scratch_directory, sweep
from collidium.runtime.failpoints import reached
from collidium.settings import Settings

_REFUSED: Final = "the backup was not restored"


async def restore(settings: Settings, source: Path, progress: Progress | None = None) -> Backup:
    """Restore a backup into the empty data directory and database of the settings.

    The schema is brought up to this release. Returns the backup, with the files that are missing now. Raises
    InvalidInput, with all reasons, for an incomplete backup and where there is something already; then
    nothing was written. Raises ConfigurationError for a file that is damaged, and where the database fails.
    """
    backup = _read(source)
    problems = await asyncio.to_thread(_problems, backup, source, settings)
    if backup.database == kind_of(settings) == "postgresql":
        number = await contents.tables(settings.database)
        problems += [f"the database has {number} tables: restore into an empty one"] if number else []
    if backup.storage == settings.storage != "local":
        problems += await _storage_problems(settings)
    if problems:
        raise InvalidInput(_REFUSED, errors=[{"field": "backup", "detail": problem} for problem in problems])
    await asyncio.to_thread(make_private, settings.data_dir)
    await asyncio.to_thread(sweep, settings.data_dir)
    async with scratch_directory(settings.data_dir) as scratch:
        await asyncio.to_thread(_copy, backup, source, scratch, progress)
        reached("restore.copied")
        try:
            await _put_in_place(settings, scratch / DATABASES[backup.database], scratch)
        except BaseException:  # raised again; what was empty is empty again
            for name in KEPT:
                await asyncio.to_thread(_remove, settings.data_dir / name)
            raise
    await database.migrate(settings.database)
    async with database.connected(settings.database):
        named = await named_files()
    return msgspec.structs.replace(backup, missing=await missing_files(named, backup.files, settings))


def _read(source: Path) -> Backup:
    try:
        return msgspec.json.decode((source / MANIFEST).read_bytes(), type=Backup)
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidInput(f"{source} is not a complete backup: {MANIFEST}: {error}") from error


def _problems(backup: Backup, source: Path, settings: Settings) -> list[str]:
    problems = []
    if backup.database not in DATABASES or backup.database != kind_of(settings):
        problems.append(f"it is of a {backup.database} database; the settings name a {kind_of(settings)} one")
    if backup.storage != settings.storage:
        problems.append(f"it is of storage {backup.storage}; the settings name {settings.storage}")
    if settings.sqlite_file is not None:
        # SQLite would apply the log of a database that was deleted to the one that is restored.
        database_files = (Path(f"{settings.sqlite_file}{end}") for end in ("", "-wal", "-journal"))
        problems += [f"there is a database already: {path}" for path in database_files if path.exists()]
    if there := next(kept_files(settings.data_dir), None):
        problems.append(f"the data directory is not empty: {there}")
    for name, file in backup.files.items():
        path, parts = source / name, PurePosixPath(name).parts
        # It becomes a path of this machine, where links in the backup lead nowhere.
        if ".." in parts or parts[:1] == ("/",) or path.resolve() != source.resolve().joinpath(*parts):
            problems.append(f"{name} leads out of the backup")
        elif not path.is_file() or path.stat().st_size != file.bytes:
            problems.append(f"{name} is missing or not whole")
    return problems


async def _storage_problems(settings: Settings) -> list[str]:
    """Why the storage, which has the files of the backup, cannot be used."""
    storage = storage_of(settings)
    try:
        await storage.check()
    except StorageUnavailable as error:
        return [f"the storage cannot be used: {error}"]
    finally:
        await storage.close()
    return []


def _copy(backup: Backup, source: Path, scratch: Path, progress: Progress | None) -> None:
    os.umask(0o077)
    count = counting(progress, sum(file.bytes for file in backup.files.values()))
    for name, file in backup.files.items():
        if copied(source / name, scratch / name, count) != file:
            raise ConfigurationError(f"{_REFUSED}: {name} is damaged")


async def _put_in_place(settings: Settings, copy: Path, scratch: Path) -> None:
    """Move files to their places, then the database: nothing serves files that have none."""
    for name in KEPT:
        if (scratch / name).exists():
            await asyncio.to_thread(_remove, settings.data_dir / name)
            make_private((settings.data_dir / name).parent)
            (scratch / name).rename(settings.data_dir / name)
    sync_directory(settings.data_dir)
    reached("restore.files")
    if settings.sqlite_file is None:
        await contents.load(settings.database, copy)
    else:
        make_private(settings.sqlite_file.parent)
        await asyncio.to_thread(shutil.move, copy, settings.sqlite_file)
        sync_directory(settings.sqlite_file.parent)


def _remove(path: Path) -> None:
    """Delete a file or a directory, which holds nothing that is kept."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
