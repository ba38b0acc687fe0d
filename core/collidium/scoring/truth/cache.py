"""Truth in the storage, and this machine's cache of it.

In the storage are ``truth/<sha256>.arrow`` for each table of a version, and ``truth/<task>/<version>.json``,
its manifest, written last.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collidium.contracts.executor import StoredFile
from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable
from collidium.errors import ConfigurationError
from collidium.files.durable import sha256_of
from collidium.files.held import lock, locked, scratch_directory
from collidium.files.stored import WrongContent, fetch, keep
from collidium.runtime.shared_calls import SharedCalls
from collidium.runtime.waiting import entered_in_thread
from collidium.scoring.truth.tables import TruthTable
from collidium.scoring.truth.versions import MANIFEST, Truth, remove_used

#: Between looks whether another process still fetches.
_PAUSE_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Hashes:
    """SHA-256 of what is stored of a truth, as far as the database has them: manifest, and tables by name."""

    manifest: str | None = None
    tables: Mapping[str, str] | None = None


class TruthCache:
    """This machine's copies of truth in the storage; processes may share the directory."""

    def __init__(self, storage: Storage, directory: Path, max_bytes: int) -> None:
        self.directory = directory
        self._storage = storage
        self._max_bytes = max_bytes
        #: Inode and times of each file when it was last found to be what its manifest says.
        self._verified: dict[Path, tuple[int, int, int]] = {}
        self._fetching = SharedCalls[Path, None](finish=True)

    async def store(self, truth: Truth, known: str | None = None) -> str:
        """Copy a version from the cache to the storage, and return the SHA-256 of its manifest there.

        ``known`` is that of an earlier import, whose manifest stays if it is in the storage: manifests of one
        version differ in when they were made. Raises StorageUnavailable.
        """
        for name, path in truth.paths.items():
            table = truth.tables[name]
            await keep(self._storage, table_key(table), path, table.sha256, truth.directory.parent)
        key, path = manifest_key(truth.task, truth.version), truth.directory / MANIFEST
        if known is not None:
            async with scratch_directory(truth.directory.parent) as scratch:
                with suppress(MissingFile, WrongContent):  # stored again below
                    return await fetch(self._storage, key, scratch / MANIFEST, known)
        await self._storage.put(key, path)
        return await asyncio.to_thread(sha256_of, path)

    @asynccontextmanager
    async def opened(self, task: str, version: str, hashes: Hashes | None = None) -> AsyncIterator[Truth]:
        """Open a version, fetched if it is not in the cache; it is not evicted within the context.

        What is fetched is compared with ``hashes``, which the database has, and with its manifest. Raises
        ConfigurationError if it is not in the storage either, and StorageUnavailable.
        """
        directory = self.directory / task / version
        while (held := await asyncio.to_thread(_hold, directory)) is None:
            await self._fetching.run(directory, lambda: self._fetch(task, version, hashes or Hashes()))
        try:
            try:
                truth = await asyncio.to_thread(self._open, directory)
            except ConfigurationError as error:
                fcntl.flock(held, fcntl.LOCK_UN)
                await asyncio.to_thread(_remove, directory)
                raise StorageUnavailable(f"{error}; it will be fetched again") from error
            yield truth
        finally:
            os.close(held)

    async def close(self) -> None:
        """Cancel downloads."""
        await self._fetching.close()

    async def read_manifest(
        self, task: str, version: str, hashes: Hashes, directory: Path
    ) -> tuple[Truth, str]:
        """Fetch a manifest into a directory; also return its SHA-256.

        Raises MissingFile and StorageUnavailable.
        """
        path = directory / MANIFEST
        sha256 = await fetch(self._storage, manifest_key(task, version), path, hashes.manifest)
        try:
            truth = await asyncio.to_thread(Truth.read, directory)
        except ConfigurationError as error:
            raise StorageUnavailable(f"the storage returned another file than was stored: {error}") from error
        if hashes.tables and hashes.tables != {name: table.sha256 for name, table in truth.tables.items()}:
            raise StorageUnavailable(
                f"the storage returned another manifest of truth {version} than was stored"
            )
        return truth, sha256

    def _open(self, directory: Path) -> Truth:
        """Open a copy, and read its files if they are new to this process or were written to.

        A copy may be the storage's own file (a hard link). Raises ConfigurationError.
        """
        truth = Truth.open(directory)
        states = {path: path.stat() for path in truth.paths.values()}
        written = {path: (one.st_ino, one.st_mtime_ns, one.st_ctime_ns) for path, one in states.items()}
        if not written.items() <= self._verified.items():
            truth.verify()
            self._verified |= written
        return truth

    async def _fetch(self, task: str, version: str, hashes: Hashes) -> None:
        place = self.directory / task / version
        async with (
            scratch_directory(place.parent) as scratch,
            # One process of a machine fetches at a time and makes room.
            _locked(self.directory),
        ):
            if place.exists():
                return
            try:
                truth, _ = await self.read_manifest(task, version, hashes, scratch)
                await self._make_room(sum(table.bytes for table in truth.tables.values()))
                for name, path in truth.paths.items():
                    table = truth.tables[name]
                    await fetch(self._storage, table_key(table), path, table.sha256, final=True)
            except MissingFile as error:
                raise ConfigurationError(
                    f"truth {version} of {task} is neither in {place} nor in the storage: import it again"
                ) from error
            await asyncio.to_thread(truth.move_to, place)

    async def _make_room(self, room: int) -> None:
        """Evict the least recently used versions, except those in use or not in the storage."""
        here = await asyncio.to_thread(_by_last_use, self.directory)
        room -= self._max_bytes - sum(taken for _, taken in here)
        for directory, taken in here:
            if room <= 0:
                return
            key = manifest_key(directory.parent.name, directory.name)
            if await self._storage.exists(key) and await asyncio.to_thread(_remove, directory):
                room -= taken


@asynccontextmanager
async def _locked(directory: Path) -> AsyncIterator[None]:
    """Hold the lock of a directory; no thread waits for it, as others would lack that thread."""
    while True:
        async with entered_in_thread(locked(directory, wait=False)) as alone:
            if alone:
                yield
                return
        await asyncio.sleep(_PAUSE_SECONDS)


def table_key(table: TruthTable) -> str:
    """The key of a table in the storage."""
    return f"truth/{table.sha256}.arrow"


def stored_files(truth: Truth) -> dict[Path, StoredFile]:
    """Where other machines find the tables of a version."""
    return {
        path: StoredFile(table_key(truth.tables[name]), truth.tables[name].bytes, truth.tables[name].sha256)
        for name, path in truth.paths.items()
    }


def manifest_key(task: str, version: str) -> str:
    """The key of a manifest in the storage."""
    return f"truth/{task}/{version}.json"


def _hold(directory: Path) -> int | None:
    """Open a version so that it is not evicted until the descriptor is closed; None if it is missing."""
    try:
        held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    fcntl.flock(held, fcntl.LOCK_SH)
    try:
        if os.path.samestat(os.fstat(held), directory.stat()):
            moment = time.time_ns()  # the kernel's own is coarser
            os.utime(directory, ns=(moment, moment))
            return held
    except FileNotFoundError:
        pass  # removed in between
    os.close(held)
    return None


def _by_last_use(root: Path) -> list[tuple[Path, int]]:
    """The versions here and their bytes, without files that are hard links of the storage's."""
    found = []
    for directory in sorted(root.glob("*/[!h]*/"), key=lambda path: path.stat().st_mtime):  # not `held-…`
        files = [path.stat() for path in directory.iterdir()]
        found.append((directory, sum(file.st_size for file in files if file.st_nlink == 1)))
    return found


def _remove(directory: Path) -> bool:
    """Remove a version, unless it is in use."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not lock(descriptor):
            return False
        remove_used(directory)
        return True
    finally:
        os.close(descriptor)
