"""Collect and check the output of a job, and store its files under the hash of their content.

The files of a part are recorded in the database before they are stored, so that no file is left behind
without a record.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from collidium.contracts.executor import OWN_FAULTS, Executor, Limits, OverLimit, WorkerDied
from collidium.contracts.runner import Runner, RunnerRefused, RunnerUnavailable, part_events
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.contracts.task import EventRange
from collidium.datasets.cards import DatasetFile
from collidium.datasets.output import PartFiles, check_tables, describe_part, find_tables, merge
from collidium.errors import UnusableDataset
from collidium.files.data_directory import make_private
from collidium.files.durable import is_full
from collidium.files.held import lock
from collidium.order import Order
from collidium.runtime.failpoints import reached
from collidium.runtime.logs import message_of
from collidium.simulations.models import TERMINAL, SimulationRequest, StoredPart

logger = logging.getLogger(__name__)


class InvalidOutput(RunnerRefused):
    """The output is not what was ordered. The message gives the reason, for the owner."""


class WorkerLost(RunnerUnavailable):
    """Workers that read the output exceeded their limits or crashed, also when the call was repeated."""


@dataclass(frozen=True, slots=True)
class Checks:
    """How untrusted output is read: the executor, the limits of a call, the maximum size of all files."""

    executor: Executor
    limits: Limits
    max_bytes: int


@dataclass(frozen=True, slots=True)
class OutputSource:
    """The job whose output is collected, and the number of its parts."""

    runner: Runner
    handle: str
    order: Order
    request_id: str
    parts: int


class Note(Protocol):
    """Records the files of a part, before the first is stored and again when all are."""

    async def __call__(self, part: int, files: PartFiles, *, stored: bool) -> None:
        """Raise to stop."""
        ...


async def keep_parts(
    source: OutputSource, wanted: Iterable[int], storage: Storage, scratch: Path, checks: Checks, note: Note
) -> dict[int, PartFiles]:
    """Collect, check and store finished parts of a job, one by one. Safe to repeat.

    Files pass through ``scratch``, a directory of this request. It is kept after a temporary failure, so
    that the next attempt uses what was fetched, and deleted otherwise and when the disk is full. Files are
    stored by content, so that a part stored twice is there once.

    Raises :class:`InvalidOutput` unless every table holds exactly the events of the part,
    :class:`WorkerLost`, and the errors of the runner and the storage; StorageUnavailable also while another
    process of this machine collects the output.
    """
    kept: dict[int, PartFiles] = {}
    async with _alone_in(scratch):
        try:
            for part in wanted:
                kept[part] = await _keep_part(source, part, storage, scratch / str(part), checks, note)
                left = checks.max_bytes - sum(file.size_bytes for file in kept[part].files)
                checks = replace(checks, max_bytes=left)
        except (RunnerUnavailable, StorageUnavailable) as error:
            if isinstance(error.__cause__, OSError) and is_full(error.__cause__):
                await _delete(scratch)
            raise
        except Exception:  # raised again
            await _delete(scratch)
            raise
        await _delete(scratch)
    return kept


async def _keep_part(
    source: OutputSource, part: int, storage: Storage, directory: Path, checks: Checks, note: Note
) -> PartFiles:
    await asyncio.to_thread(directory.mkdir, exist_ok=True)
    collected = await source.runner.collect_part(source.handle, part, directory, checks.max_bytes)
    reached("collect.fetched")
    events = part_events(source.order.events, part, source.parts)
    described, paths = await _check(
        collected, EventRange(events.start, events.stop), source.order.config, directory, checks
    )
    await note(part, described, stored=False)
    reached("collect.noted")
    for path, file in zip(paths, described.files, strict=True):
        await storage.put_final(storage_key(source.request_id, file.sha256), path)
        reached("collect.file_stored")
    await note(part, described, stored=True)
    await _delete(directory)
    return described


def merge_parts(parts: Sequence[PartFiles]) -> list[DatasetFile]:
    """Return the files of all parts as they are published. Raises InvalidOutput."""
    try:
        return merge(parts)
    except UnusableDataset as error:
        raise InvalidOutput(str(error)) from error


def storage_key(request_id: str, sha256: str) -> str:
    """Return the storage key of an output file."""
    return f"outputs/{request_id}/{sha256}.parquet"


async def discard(scratch: Path) -> None:
    """Delete what earlier attempts left behind, unless another process works on it."""
    if await asyncio.to_thread(scratch.exists):
        with suppress(StorageUnavailable):
            async with _alone_in(scratch):
                await _delete(scratch)


async def _delete(scratch: Path) -> None:
    await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)


@asynccontextmanager
async def _alone_in(directory: Path) -> AsyncIterator[None]:
    """Create a directory if absent and lock it; raises StorageUnavailable if another process holds it."""
    descriptor = await asyncio.to_thread(_locked, directory)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(directory: Path) -> int:
    while True:
        make_private(directory)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        if not lock(descriptor):
            os.close(descriptor)
            raise StorageUnavailable("another process is already collecting the output")
        # If its last holder has deleted it, the lock is on a directory without a name.
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


# -- checks -------------------------------------------------------------------------------------------------


async def _check(
    paths: Sequence[Path], events: EventRange, config: str, directory: Path, checks: Checks
) -> tuple[PartFiles, list[Path]]:
    """Return the files of a part and their paths. Raises InvalidOutput, WorkerLost and RunnerUnavailable."""
    if not paths:
        raise InvalidOutput("the job completed without any output")
    try:
        tables = await asyncio.to_thread(find_tables, paths, directory, events, checks.max_bytes)
        checking = checks.executor.map_repeating(
            check_tables, [tables], checks.limits, raises=(UnusableDataset,), local=True
        )
        async with aclosing(checking) as checked:
            found = await anext(checked)
        return await asyncio.to_thread(describe_part, tables, found, config)
    except UnusableDataset as error:
        raise InvalidOutput(str(error)) from error
    except OWN_FAULTS as error:
        ended = message_of(error) if isinstance(error, OverLimit) else "crashed the worker"
        raise WorkerLost(f"reading the output {ended}") from error
    except WorkerDied as error:  # not by what it read
        raise RunnerUnavailable(f"reading the output was interrupted: {error}") from error


# -- stored parts -------------------------------------------------------------------------------------------


async def stored_parts(row: SimulationRequest) -> dict[int, PartFiles]:
    """Return the parts whose files are in the storage."""
    parts = await StoredPart.filter(request_id=row.id, stored=True)
    return {each.part: _files(each) for each in parts}


async def withdraw_part(storage: Storage, row: SimulationRequest, files: PartFiles) -> None:
    """Delete the files of a part if the request has ended without an output while they were stored."""
    current = await SimulationRequest.get(id=row.id)
    if current.state in TERMINAL and current.output is None:
        await _delete_files(storage, row.request_id, files.files)


async def sweep_parts(storage: Storage) -> None:
    """Delete the stored parts of requests that ended without an output."""
    unneeded = StoredPart.filter(request__state__in=list(TERMINAL)).select_related("request")
    while parts := await unneeded.limit(100):
        for each in parts:
            try:
                await _delete_files(storage, each.request.request_id, _files(each).files)
            except StorageUnavailable as error:
                logger.warning("parts of ended requests could not be deleted; they will be later: %s", error)
                return
            await each.delete()


async def _delete_files(storage: Storage, request_id: str, files: Iterable[DatasetFile]) -> None:
    for file in files:
        await storage.delete(storage_key(request_id, file.sha256))


def _files(part: StoredPart) -> PartFiles:
    return PartFiles([DatasetFile(**file) for file in part.files["files"]], part.files["columns"])
