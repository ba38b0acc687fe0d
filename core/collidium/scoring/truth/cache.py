"""Truth in the storage, by the hashes of its tables, and a bounded cache of it on each machine that scores.

A version is one directory of the cache, as :mod:`.files` describes it. In the storage are
``truth/<sha256>.arrow`` for each table, and ``truth/<task>/<version>.json``, the manifest, written last.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from collidium.contracts.executor import StoredFile
from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable
from collidium.errors import ConfigurationError
from collidium.files.held import held_directory, lock, locked, scratch_directory
from collidium.runtime.shared_calls import SharedCalls
from collidium.runtime.waiting import entered_in_thread
from collidium.scoring.truth.tables import MANIFEST, Truth, TruthTable


class TruthCache:
    """What this machine has of the truth that is in the storage; many processes may share the directory."""

    def __init__(self, storage: Storage, directory: Path, max_bytes: int) -> None:
        self.directory = directory
        self._storage = storage
        self._max_bytes = max_bytes
        self._fetching = SharedCalls[Path, None](finish=True)

    async def store(self, truth: Truth) -> None:
        """Put a version, which is in the cache, into the storage. Raises StorageUnavailable."""
        for name, path in truth.paths.items():
            key = table_key(truth.tables[name])
            if not await self._storage.exists(key):
                await self._storage.put_final(key, path)
        await self._storage.put(manifest_key(truth.task, truth.version), truth.directory / MANIFEST)

    @asynccontextmanager
    async def opened(self, task: str, version: str) -> AsyncIterator[Truth]:
        """Open a version, fetched where it is not here, that stays here within the context.

        Raises :class:`~collidium.errors.ConfigurationError` where it is neither here nor in the storage, and
        StorageUnavailable.
        """
        directory = self.directory / task / version
        while (held := await asyncio.to_thread(_hold, directory)) is None:
            await self._fetching.run(directory, lambda: self._fetch(task, version))
        try:
            yield await asyncio.to_thread(Truth.open, directory)
        finally:
            os.close(held)

    async def close(self) -> None:
        """End what is being fetched."""
        await self._fetching.close()

    async def _fetch(self, task: str, version: str) -> None:
        place = self.directory / task / version
        async with (
            scratch_directory(place.parent) as scratch,
            # One process of this machine fetches and makes room.
            entered_in_thread(locked(self.directory)),
        ):
            if place.exists():
                return
            try:
                await self._storage.get(manifest_key(task, version), scratch / MANIFEST)
                truth = await asyncio.to_thread(Truth.read, scratch)
                await self._make_room(sum(table.bytes for table in truth.tables.values()))
                for name, path in truth.paths.items():
                    await self._storage.get_final(table_key(truth.tables[name]), path)
                await asyncio.to_thread(truth.verify)
            except MissingFile as error:
                raise ConfigurationError(
                    f"truth {version} of {task} is neither in {place} nor in the storage: import it again"
                ) from error
            except ConfigurationError as error:
                raise StorageUnavailable(
                    f"the storage returned another file than was stored: {error}"
                ) from error
            await asyncio.to_thread(truth.move_to, place)

    async def _make_room(self, room: int) -> None:
        """Remove versions, those used longest ago first, but for those in use or not in the storage."""
        here = await asyncio.to_thread(_by_last_use, self.directory)
        room -= self._max_bytes - sum(taken for _, taken in here)
        for directory, taken in here:
            if room <= 0:
                return
            key = manifest_key(directory.parent.name, directory.name)
            if await self._storage.exists(key) and await asyncio.to_thread(_remove, directory):
                room -= taken


def table_key(table: TruthTable) -> str:
    """Where a table of truth is in the storage."""
    return f"truth/{table.sha256}.arrow"


def stored_files(truth: Truth) -> dict[Path, StoredFile]:
    """Where other machines find the tables of an opened version."""
    return {
        path: StoredFile(table_key(truth.tables[name]), truth.tables[name].bytes, truth.tables[name].sha256)
        for name, path in truth.paths.items()
    }


def manifest_key(task: str, version: str) -> str:
    """Where the manifest of a version is in the storage."""
    return f"truth/{task}/{version}.json"


def _hold(directory: Path) -> int | None:
    """Open a version so that it is not removed until the descriptor is closed; None where it is not here."""
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
    """The versions here, and what each takes: files that the storage has, too, take nothing."""
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
        with held_directory(directory.parent) as held:
            directory.rename(held / directory.name)
        return True
    finally:
        os.close(descriptor)
