"""Makes a backup next to its place, moved there when whole: the database first, then files.

What an interrupted one has copied stays there for the next one, but for databases, which are one moment.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import disk_usage
from typing import Final

import msgspec

from collidium import __version__, database, operations
from collidium.backup.contents import (
    DATABASES,
    MANIFEST,
    Backup,
    File,
    Progress,
    copied,
    copy_sqlite,
    counting,
    described,
    kept_files,
    kind_of,
    missing_files,
    named_files,
    snapshot,
)
from collidium.errors import ConfigurationError, Conflict, InvalidInput
from collidium.files import durable
from collidium.files.data_directory import make_private
from collidium.files.held import locked
from collidium.runtime.failpoints import reached
from collidium.settings import Settings

#: Next to the places of backups: the one that is being made, or was interrupted.
UNFINISHED: Final = "unfinished-backup"


async def make(settings: Settings, target: Path, progress: Progress | None = None) -> Backup:
    """Back up a platform, which may be running, to a directory that does not exist yet.

    Files are stored before the database names them, and are copied after it: none is missing. What an
    interrupted backup to the same parent directory has copied is read again, not copied. Raises InvalidInput
    for a target that exists, Conflict while another is made next to it, and ConfigurationError where
    something cannot be read or there is no room.
    """
    unfinished = target.parent / UNFINISHED
    directory = unfinished / "backup"
    await asyncio.to_thread(_prepare, settings, target, unfinished)
    with locked(unfinished, wait=False) as is_ours:
        if not is_ours:
            raise Conflict(f"another backup is made in {target.parent} now")
        make_private(directory)
        backup = await _make(settings, directory, progress)
        await asyncio.to_thread(_finish, backup, directory, target)
        unfinished.rmdir()
    if not backup.missing:
        async with database.connected(settings.database):
            await operations.note_backup()
    return backup


async def _make(settings: Settings, directory: Path, progress: Progress | None) -> Backup:
    kind = kind_of(settings)
    copy = directory / DATABASES[kind]
    copy.unlink(missing_ok=True)
    named = await snapshot(settings, copy)
    reached("backup.database")
    files = await asyncio.to_thread(_copy, settings, directory, progress)
    files[copy.name] = await asyncio.to_thread(described, copy)
    await asyncio.to_thread(_delete_others, directory, files)
    missing = await missing_files(named, files, settings)
    if missing:  # unless their owners were erased since
        async with database.connected(settings.database):
            still = await named_files()
        missing = tuple(path for path in missing if path in still)
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    reached("backup.files")
    return Backup(__version__, made_at, kind, settings.storage, files, len(named), missing)


def _prepare(settings: Settings, target: Path, unfinished: Path) -> None:
    if target.exists():
        raise InvalidInput(f"{target} exists already; name a new directory")
    if settings.sqlite_file is not None and not settings.sqlite_file.exists():
        raise ConfigurationError(f"there is no database {settings.sqlite_file}")
    os.umask(0o077)
    make_private(unfinished)
    if unfinished.lstat().st_uid != os.getuid():
        raise ConfigurationError(f"{unfinished} belongs to another account, which could read the backup")


def _copy(settings: Settings, directory: Path, progress: Progress | None) -> dict[str, File]:
    """Copy databases of the data directory, then all else."""
    found = sorted(kept_files(settings.data_dir), key=lambda path: path.suffix != ".sqlite3")
    total = 0
    for path in found:
        with suppress(FileNotFoundError):  # deleted since, with what named it
            total += path.stat().st_size
    free = disk_usage(directory).free + sum(path.stat().st_size for path in _files(directory))
    if total > free:
        raise ConfigurationError(f"{directory.parent} has room for {free:,} of {total:,} bytes")
    count = counting(progress, total)
    files = {}
    for path in found:
        name = str(path.relative_to(settings.data_dir))
        with suppress(FileNotFoundError):
            if path.suffix == ".sqlite3":
                (directory / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                (directory / name).unlink(missing_ok=True)
                copy_sqlite(path, directory / name)
                files[name] = described(directory / name)
                count(path.stat().st_size)
            else:
                files[name] = copied(path, directory / name, count)
    return files


def _delete_others(directory: Path, files: Collection[str]) -> None:
    """Delete what an interrupted backup has copied that is not kept any more."""
    for path in _files(directory):
        if str(path.relative_to(directory)) not in files:
            path.unlink()


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def _finish(backup: Backup, directory: Path, target: Path) -> None:
    durable.replace(directory / MANIFEST, msgspec.json.encode(backup).decode(), 0o600)
    directory.rename(target)
    durable.sync_directory(target.parent)
