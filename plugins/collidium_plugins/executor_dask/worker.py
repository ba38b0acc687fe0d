"""The part of the executor ``dask`` that runs in Dask workers."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

from distributed import WorkerPlugin, get_worker

from collidium.contracts.executor import StoredFile
from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable
from collidium.files.stored import fetch
from collidium.runtime.shared_calls import SharedCalls
from collidium_plugins.executor_processes import Answer, EncodedCall, Processes

_NAME: Final = "collidium"


class StoredFiles:
    """A cache of the storage's files in a directory; calls fetch those that are missing."""

    def __init__(self, storage: Storage, directory: Path, max_bytes: int) -> None:
        self._storage = storage
        self._directory = directory
        self._max_bytes = max_bytes
        #: Least recently used first.
        self._here: dict[StoredFile, Path] = {}
        #: Inode, size and times of each file when it was compared.
        self._compared: dict[StoredFile, tuple[int, ...]] = {}
        self._uses: Counter[StoredFile] = Counter()
        self._fetching = SharedCalls[StoredFile, None]()

    @asynccontextmanager
    async def opened(self, files: Sequence[StoredFile]) -> AsyncIterator[list[Path]]:
        """Provide local paths of files within the context. Raises StorageUnavailable."""
        self._uses.update(files)
        try:
            for file in files:
                if not self._is_unchanged(file):
                    await self._fetching.run(file, lambda file=file: self._fetch(file))  # type: ignore[misc]  # mypy infers no lambda with a default
                self._here[file] = self._here.pop(file)
            yield [self._here[file] for file in files]
        finally:
            self._uses -= Counter(files)  # drops counts of 0

    def _is_unchanged(self, file: StoredFile) -> bool:
        """Whether a file is here as it was compared: others clean temporary directories, and fill disks."""
        path = self._here.get(file)
        return path is not None and _state(path) == self._compared[file]

    async def _fetch(self, file: StoredFile) -> None:
        excess = sum(held.bytes for held in self._here.keys() | {file}) - self._max_bytes
        for other in [other for other in self._here if not self._uses[other]]:
            if excess <= 0:
                break
            del self._compared[other]
            self._here.pop(other).unlink(missing_ok=True)
            excess -= other.bytes
        path = self._directory / hashlib.sha256(file.key.encode()).hexdigest()
        new = path.with_suffix(".new")
        try:
            await fetch(self._storage, file.key, new, file.sha256)
        except MissingFile as error:
            raise StorageUnavailable(f"the storage has no file {file.key} any more") from error
        new.replace(path)  # calls that have mapped a changed one keep it
        self._compared[file] = _state(path)
        self._here[file] = path


def _state(path: Path) -> tuple[int, ...]:
    """Inode, size and times of a file; empty if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class WorkerCalls(WorkerPlugin):
    """Runs the calls of a worker in local processes, and ends cancelled ones, which Dask does not."""

    name = _NAME

    def __init__(self, processes: Processes, files: StoredFiles) -> None:
        self._processes = processes
        self._files = files
        self._running: dict[str, asyncio.Task[Answer]] = {}

    async def run(self, key: str, call: EncodedCall) -> Answer:
        """Run a call. Raises OverLimit, WorkerDied and StorageUnavailable."""
        self._running[key] = asyncio.create_task(self._run(call))
        try:
            return await self._running[key]
        finally:
            del self._running[key]

    async def _run(self, call: EncodedCall) -> Answer:
        async with self._files.opened(call.files) as paths:
            return await self._processes.run_with(call, paths)

    def transition(self, key: Any, start: Any, finish: Any, **_: Any) -> None:
        """Cancel the call if Dask moves the task out of the state ``executing`` before the call has ended."""
        if finish != "executing" and (call := self._running.get(key)):
            call.cancel()


async def run(key: str, call: EncodedCall) -> Answer:
    """Run a call on the current worker."""
    return await cast("WorkerCalls", get_worker().plugins[_NAME]).run(key, call)
