"""What a backup holds, and which stored files the database names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from collidium import plugins, simulations
from collidium.benchmarks.submissions import evaluations, scorings
from collidium.benchmarks.truth import truth_versions
from collidium.contracts.storage import Storage
from collidium.files import durable
from collidium.files.held import PREFIX
from collidium.settings import Settings

MANIFEST: Final = "manifest.json"
#: The database of the platform; another name than any file below the data directory has.
DATABASES: Final = {"sqlite": "database.sqlite3", "postgresql": "database.dump"}
#: Below the data directory. All else there is scratch, a cache, or belongs to jobs of this machine.
KEPT: Final = ("storage", "hub", "seed/state.json", "secret-key", "admin-token")
#: Directories of files that are being received.
_INCOMING: Final = frozenset({"INCOMING", "uploads"})
_CHUNK: Final = 1024**2

#: Called with the bytes copied so far, and of all.
Progress = Callable[[int, int], None]


class File(msgspec.Struct, frozen=True):
    """A file of a backup."""

    bytes: int
    sha256: str


class Backup(msgspec.Struct, frozen=True):
    """What a backup holds; ``manifest.json`` in its directory, which is written last."""

    release: str
    made_at: str
    #: ``sqlite`` or ``postgresql``.
    database: str
    #: The storage backend. Files of any other than ``local`` are checked, not copied.
    storage: str
    #: By path in the backup.
    files: Mapping[str, File]
    #: How many stored files the database names.
    keys: int
    #: Those that were not there, or damaged.
    missing: tuple[str, ...] = ()


def kind_of(settings: Settings) -> str:
    """The kind of database of the settings, as in :attr:`Backup.database`."""
    return "sqlite" if settings.sqlite_file else "postgresql"


def kept_files(data_dir: Path) -> Iterator[Path]:
    """Everything below the data directory that a backup copies; SQLite databases are among them."""
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
    """SHA-256 of the files in the storage that the connected database names, by key; empty if unknown."""
    stored = await scorings.stored_predictions() | await simulations.stored_files()
    stored |= {scorings.storage_key(sha256): sha256 for sha256 in await evaluations.stored_predictions()}
    return stored | await truth_versions.stored_files() | await evaluations.stored_models()


async def missing_files(
    named: Mapping[str, str], files: Mapping[str, File], settings: Settings
) -> tuple[str, ...]:
    """Keys of files that the backup lacks or has damaged; where it has none, that the storage lacks."""
    if settings.storage == "local":
        found = {key: files.get(f"storage/{key}") for key in named}
        return tuple(key for key, file in found.items() if not file or named[key] not in {"", file.sha256})
    storage = storage_of(settings)
    try:
        return tuple([key for key in named if not await storage.exists(key)])
    finally:
        await storage.close()


def storage_of(settings: Settings) -> Storage:
    """The storage that the settings name."""
    return plugins.load(settings.plugins_blocked).storages(settings).get(settings.storage)


def counting(progress: Progress | None, total: int) -> Callable[[int], None]:
    """Return what takes bytes that were copied, and reports them with those before."""
    done = 0

    def count(number: int) -> None:
        nonlocal done
        done += number
        if progress:
            progress(min(done, total), total)

    return count


def described(path: Path) -> File:
    """A file that is there."""
    return File(path.stat().st_size, durable.sha256_of(path))


def copied(source: Path, target: Path, count: Callable[[int], None]) -> File:
    """Copy a file, safe on disk; ``count`` is called with the bytes of each part.

    A copy of the same size and time that is there is read again, and not written.
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
    os.utime(target, ns=(state.st_atime_ns, state.st_mtime_ns))  # last: it says that the copy is whole
    return File(size, sha256.hexdigest())


def _is_copy(target: Path, state: os.stat_result) -> bool:
    with suppress(FileNotFoundError):
        there = target.stat()
        return (there.st_size, there.st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    return False
