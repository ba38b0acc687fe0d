"""Makes a backup next to its place, moved there when whole: the database first, then files."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import disk_usage

import msgspec

from collidium import __version__, database
from collidium.backup.contents import (
    DATABASES,
    MANIFEST,
    Backup,
    File,
    Progress,
    copied,
    kept_files,
    kind_of,
    missing_files,
    named_files,
)
from collidium.backup.databases import copy_sqlite, snapshot
from collidium.errors import ConfigurationError, InvalidInput
from collidium.files import durable
from collidium.files.held import scratch_directory, sweep
from collidium.runtime.failpoints import reached
from collidium.settings import Settings


async def make(settings: Settings, target: Path, progress: Progress | None = None) -> Backup:
    """Back up a platform, which may be running, to a directory that does not exist yet.

    Files are stored before the database names them, and are copied after it: none is missing. What a killed
    backup left next to ``target`` is deleted first. Raises InvalidInput for a target that exists, and
    ConfigurationError where something cannot be read or there is no room.
    """
    await asyncio.to_thread(_prepare, settings, target)
    async with scratch_directory(target.parent) as directory:
        kind = kind_of(settings)
        named = await snapshot(settings, directory / DATABASES[kind])
        reached("backup.database")
        files = await asyncio.to_thread(_copy, settings, directory, progress)
        files[DATABASES[kind]] = await asyncio.to_thread(_described, directory / DATABASES[kind])
        missing = await missing_files(named, files, settings)
        if missing:  # unless their owners were erased since
            async with database.connected(settings.database):
                still = await named_files()
            missing = tuple(path for path in missing if path in still)
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        backup = Backup(__version__, made_at, kind, settings.storage, files, len(named), missing)
        reached("backup.files")
        await asyncio.to_thread(_finish, backup, directory, target)
    return backup


def _prepare(settings: Settings, target: Path) -> None:
    if target.exists():
        raise InvalidInput(f"{target} exists already; name a new directory")
    if settings.sqlite_file is not None and not settings.sqlite_file.exists():
        raise ConfigurationError(f"there is no database {settings.sqlite_file}")
    sweep(target.parent)


def _copy(settings: Settings, directory: Path, progress: Progress | None) -> dict[str, File]:
    """Copy databases of the data directory, then all else."""
    found = sorted(kept_files(settings.data_dir), key=lambda path: path.suffix != ".sqlite3")
    total = 0
    for path in found:
        with suppress(FileNotFoundError):  # deleted since, with what named it
            total += path.stat().st_size
    if total > (free := disk_usage(directory).free):
        raise ConfigurationError(f"{directory.parent} has room for {free:,} of {total:,} bytes")
    done = 0

    def count(number: int) -> None:
        nonlocal done
        done += number
        if progress:
            progress(min(done, total), total)

    files = {}
    for path in found:
        name = str(path.relative_to(settings.data_dir))
        with suppress(FileNotFoundError):
            if path.suffix == ".sqlite3":
                (directory / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                copy_sqlite(path, directory / name)
                files[name] = _described(directory / name)
                count(path.stat().st_size)
            else:
                files[name] = copied(path, directory / name, count)
    return files


def _described(path: Path) -> File:
    return File(path.stat().st_size, durable.sha256_of(path))


def _finish(backup: Backup, directory: Path, target: Path) -> None:
    durable.replace(directory / MANIFEST, msgspec.json.encode(backup).decode(), 0o600)
    directory.rename(target)
    durable.sync_directory(target.parent)
