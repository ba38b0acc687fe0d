"""``collidium backup`` and ``restore``.

A backup copies the database first, then the files, and checks those that the database names. It is made next
to its target and moved there when complete. Files that an interrupted backup has copied are used by the next
one; databases are copied again. A backup is restored into an empty data directory and database: first the
files, then the database.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Collection
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from shutil import disk_usage
from typing import Final

import msgspec

from collidium import __version__, database, operations
from collidium.backup.contents import (
    DATABASES,
    KEPT,
    MANIFEST,
    Backup,
    BackupFile,
    copied,
    copy_sqlite,
    described,
    kept_files,
    kind_of,
    load,
    missing_files,
    named_files,
    snapshot,
    storage_of,
    tables,
)
from collidium.backup.objects import drop_others, objects
from collidium.contracts.storage import StorageUnavailable
from collidium.errors import ConfigurationError, Conflict, InvalidInput
from collidium.files import durable
from collidium.files.data_directory import make_private
from collidium.files.held import locked, scratch_directory, sweep
from collidium.runtime.failpoints import reached
from collidium.runtime.progress import Progress, ProgressCount
from collidium.secrets import FILE as SECRET_KEY
from collidium.settings import Settings

__all__ = ["Backup", "make", "restore"]

#: Directory of a running or interrupted backup, next to its target.
UNFINISHED: Final = "unfinished-backup"
_REFUSED: Final = "the backup was not restored"


async def make(settings: Settings, target: Path, progress: Progress | None = None) -> Backup:
    """Back up a platform, which may be running, to a new directory.

    The platform stores files before the database names them, and they are copied after the database, so none
    is missing. Files that an interrupted backup to the same parent directory has copied are verified instead
    of copied. Raises InvalidInput if the target exists, Conflict while another backup to the parent directory
    runs, and ConfigurationError if something cannot be read or there is not enough space.
    """
    unfinished = target.parent / UNFINISHED
    directory = unfinished / "backup"
    await asyncio.to_thread(_prepare, settings, target, unfinished)
    with locked(unfinished, wait=False) as is_ours:
        if not is_ours:
            raise Conflict(f"another backup in {target.parent} is running")
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
    if missing:  # unless their owners were erased in the meantime
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


def _copy(settings: Settings, directory: Path, progress: Progress | None) -> dict[str, BackupFile]:
    """Copy the files of the data directory, SQLite databases first."""
    found = sorted(kept_files(settings.data_dir), key=lambda path: path.suffix != ".sqlite3")
    total = 0
    for path in found:
        with suppress(FileNotFoundError):  # deleted in the meantime
            total += path.stat().st_size
    free = disk_usage(directory).free + sum(path.stat().st_size for path in _files(directory))
    if total > free:
        raise ConfigurationError(f"{directory.parent} has space for {free:,} of {total:,} bytes")
    count = ProgressCount(progress, total)
    files = {}
    for path in found:
        name = str(path.relative_to(settings.data_dir))
        with suppress(FileNotFoundError):
            if path.suffix == ".sqlite3":
                (directory / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                (directory / name).unlink(missing_ok=True)
                copy_sqlite(path, directory / name)
                files[name] = described(directory / name)
                count.add(path.stat().st_size)
            else:
                files[name] = copied(path, directory / name, count.add)
    return files


def _delete_others(directory: Path, files: Collection[str]) -> None:
    """Delete files that an interrupted backup has copied and this one does not include."""
    for path in _files(directory):
        if str(path.relative_to(directory)) not in files:
            path.unlink()


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def _finish(backup: Backup, directory: Path, target: Path) -> None:
    durable.replace(directory / MANIFEST, msgspec.json.encode(backup).decode(), 0o600)
    directory.rename(target)
    durable.sync(target.parent)


async def restore(settings: Settings, source: Path, progress: Progress | None = None) -> Backup:
    """Restore a backup into the empty data directory and database of the settings, and migrate the schema.

    Returns the backup with the files that are missing now. Raises InvalidInput, with all reasons and before
    anything is written, if the backup is incomplete or the target is not empty, and ConfigurationError for a
    damaged file or a failure of the database.
    """
    backup = _read(source)
    problems = await asyncio.to_thread(_problems, backup, source, settings)
    if backup.database == kind_of(settings) == "postgresql":
        number = await tables(settings.database)
        problems += [f"the database has {number} tables: restore into an empty one"] if number else []
    if backup.storage == settings.storage != "local":
        problems += await _storage_problems(settings)
    if problems:
        raise InvalidInput(_REFUSED, errors=[{"field": "backup", "detail": problem} for problem in problems])
    await asyncio.to_thread(make_private, settings.data_dir)
    await asyncio.to_thread(sweep, settings.data_dir)
    before = await objects(settings.database) if settings.sqlite_file is None else []
    async with scratch_directory(settings.data_dir) as scratch:
        await asyncio.to_thread(_copy_back, backup, source, scratch, progress)
        reached("restore.copied")
        await asyncio.to_thread(_require_databases, scratch)
        try:
            await _put_in_place(settings, scratch / DATABASES[backup.database], scratch)
            await database.migrate(settings.database)
            async with database.connected(settings.database):
                named = await named_files()
        except BaseException as error:  # raised again, with data directory and database empty
            await asyncio.to_thread(_remove_restored, settings)
            if settings.sqlite_file is None:
                try:
                    await drop_others(settings.database, before)
                except Exception as failure:
                    error.add_note(f"the database could not be emptied: {failure}")
            raise
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
        # SQLite would apply the log of a deleted database to the restored one.
        database_files = (Path(f"{settings.sqlite_file}{end}") for end in ("", "-wal", "-journal"))
        problems += [f"there is a database already: {path}" for path in database_files if path.exists()]
    if there := next(kept_files(settings.data_dir), None):
        problems.append(f"the data directory is not empty: {there}")
    if DATABASES.get(backup.database) not in backup.files:
        problems.append("it has no database")
    if SECRET_KEY not in backup.files and settings.secret_key is None:
        problems.append(
            f"it has no {SECRET_KEY}, without which users' secrets cannot be read: "
            "set PLATFORM_SECRET_KEY to that of the server"
        )
    for name, file in backup.files.items():
        try:
            problem = _problem_of(name, file, source)
        except (OSError, ValueError):  # NUL, half of a surrogate pair, too long
            problem = "cannot be a path"
        problems += [f"{name!r} {problem}"] if problem else []
    return problems


def _problem_of(name: str, file: BackupFile, source: Path) -> str | None:
    path, parts = source / name, PurePosixPath(name).parts
    # The name becomes a path of this machine: reject links and paths that leave the backup.
    if ".." in parts or parts[:1] == ("/",) or path.resolve() != source.resolve().joinpath(*parts):
        return "leads out of the backup"
    if not path.is_file() or path.stat().st_size != file.bytes:
        return "is missing or not whole"
    return None


async def _storage_problems(settings: Settings) -> list[str]:
    """Return why the storage, which has the files of the backup, cannot be used."""
    storage = storage_of(settings)
    try:
        await storage.check()
    except StorageUnavailable as error:
        return [f"the storage cannot be used: {error}"]
    finally:
        await storage.close()
    return []


def _copy_back(backup: Backup, source: Path, scratch: Path, progress: Progress | None) -> None:
    os.umask(0o077)
    count = ProgressCount(progress, sum(file.bytes for file in backup.files.values()))
    for name, file in backup.files.items():
        if copied(source / name, scratch / name, count.add) != file:
            raise ConfigurationError(f"{_REFUSED}: {name} is damaged")


def _require_databases(directory: Path) -> None:
    """Raise ConfigurationError for a file that should be an SQLite database and is none."""
    for path in directory.rglob("*.sqlite3"):
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
                ((found,),) = db.execute("PRAGMA quick_check(1)")
                if path.name == DATABASES["sqlite"]:
                    db.execute("SELECT 1 FROM accounts LIMIT 1")
        except (sqlite3.Error, ValueError) as error:
            found = str(error)
        if found != "ok":
            name = path.relative_to(directory)
            raise ConfigurationError(f"{_REFUSED}: {name} is no database: {found}")


def _remove_restored(settings: Settings) -> None:
    """Delete what was put in place."""
    for name in KEPT:
        _remove(settings.data_dir / name)
    if settings.sqlite_file is not None:
        for end in ("", "-wal", "-shm", "-journal"):
            _remove(Path(f"{settings.sqlite_file}{end}"))


async def _put_in_place(settings: Settings, copy: Path, scratch: Path) -> None:
    """Move the files to their places, then the database, without which nothing serves them."""
    for name in KEPT:
        if (scratch / name).exists():
            await asyncio.to_thread(_remove, settings.data_dir / name)
            make_private((settings.data_dir / name).parent)
            (scratch / name).rename(settings.data_dir / name)
    durable.sync(settings.data_dir)
    reached("restore.files")
    if settings.sqlite_file is None:
        await load(settings.database, copy)
    else:
        make_private(settings.sqlite_file.parent)
        await asyncio.to_thread(shutil.move, copy, settings.sqlite_file)
        durable.sync(settings.sqlite_file.parent)


def _remove(path: Path) -> None:
    """Delete a file or a directory, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
