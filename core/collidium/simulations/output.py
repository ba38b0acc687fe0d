"""From the finished parts of a job to files in the storage: collected, checked, named by content.

What is stored of a job that still runs is noted before, so that no file stays without a name.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from collidium.contracts.executor import Executor, Limits, OverLimit, WorkerDied
from collidium.contracts.runner import Runner, RunnerRefused, RunnerUnavailable, part_events
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.contracts.task import EventRange
from collidium.database import transactional
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
from collidium.simulations.transitions import held

logger = logging.getLogger(__name__)


class InvalidOutput(RunnerRefused):
    """The job's output is not what was ordered; the message gives the reason, for its owner."""


class WorkerLost(RunnerUnavailable):
    """A worker that read the output used more than it may, or died."""


@dataclass(frozen=True, slots=True)
class Checks:
    """What reads untrusted output: an executor with the limits of a call, and the most bytes of all files."""

    executor: Executor
    limits: Limits
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Source:
    """A job whose output is collected, and how many parts it has."""

    runner: Runner
    handle: str
    order: Order
    request_id: str
    parts: int


class Note(Protocol):
    """Remembers the files of a part: before the first is stored, and once all are."""

    async def __call__(self, part: int, files: PartFiles, *, stored: bool) -> None:
        """May raise to stop."""
        ...


async def keep_parts(
    source: Source, wanted: Iterable[int], storage: Storage, scratch: Path, checks: Checks, note: Note
) -> dict[int, PartFiles]:
    """Collect, check and store finished parts of a job, one by one; safe to repeat, gives the same again.

    Files pass through ``scratch``, a directory of this request alone. What is there from an attempt that
    stopped half-way is used; it is gone when this returns or raises InvalidOutput, and when the disk is full.
    They are stored by their content, so that a part stored twice is there once.

    Raises :class:`InvalidOutput` unless every table holds exactly the events of the part,
    :class:`WorkerLost` where a worker did not survive reading them, and what the runner and the storage
    raise. StorageUnavailable also while another process of this machine is at it.
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
                await _delete(scratch)  # or the disk stays full, and the next attempt fails as well
            raise  # else what is there saves the next attempt from fetching it again
        except Exception:  # raised again; only what it left is of no use
            await _delete(scratch)
            raise
        await _delete(scratch)
    return kept


async def _keep_part(
    source: Source, part: int, storage: Storage, directory: Path, checks: Checks, note: Note
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
    """The files of all parts as they are published. Raises InvalidOutput."""
    try:
        return merge(parts)
    except UnusableDataset as error:
        raise InvalidOutput(str(error)) from error


def storage_key(request_id: str, sha256: str) -> str:
    """Where an output file of a request is kept: by its content, as its number is known only at the end."""
    return f"outputs/{request_id}/{sha256}.parquet"


async def discard(scratch: Path) -> None:
    """Delete what earlier attempts left behind, if anything; not what another process is working on."""
    if await asyncio.to_thread(scratch.exists):
        with suppress(StorageUnavailable):
            async with _alone_in(scratch):
                await _delete(scratch)


async def _delete(scratch: Path) -> None:
    await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)


# -- one at a time ------------------------------------------------------------------------------------------


@asynccontextmanager
async def _alone_in(directory: Path) -> AsyncIterator[None]:
    """Hold a directory, made when absent; raises StorageUnavailable when another process holds it."""
    descriptor = await asyncio.to_thread(_hold, directory)
    try:
        yield
    finally:
        os.close(descriptor)


def _hold(directory: Path) -> int:
    while True:
        make_private(directory)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        if not lock(descriptor):
            os.close(descriptor)
            raise StorageUnavailable("another process is collecting the output already")
        # Its last holder may have deleted it: then the lock is on a directory without a name.
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


# -- checks -------------------------------------------------------------------------------------------------


async def _check(
    paths: Sequence[Path], events: EventRange, config: str, directory: Path, checks: Checks
) -> tuple[PartFiles, list[Path]]:
    """The files of a part and where each is; raises InvalidOutput and WorkerLost."""
    if not paths:
        raise InvalidOutput("the job completed without any output")
    try:
        tables = await asyncio.to_thread(find_tables, paths, directory, events, checks.max_bytes)
        checking = checks.executor.map(
            check_tables, [tables], checks.limits, raises=(UnusableDataset,), local=True
        )
        async with aclosing(checking) as checked:
            found = await anext(checked)
        return await asyncio.to_thread(describe_part, tables, found, config)
    except UnusableDataset as error:
        raise InvalidOutput(str(error)) from error
    except OverLimit as error:
        raise WorkerLost(f"reading the output {message_of(error)}") from error
    except WorkerDied as error:
        raise WorkerLost("reading the output crashed its reader") from error


@transactional
async def note_part(claimed: SimulationRequest, part: int, files: PartFiles, *, stored: bool) -> None:
    """Remember the files of a part, before they are stored or once they are. Raises LeaseLost."""
    row = await held(claimed)
    here = StoredPart.filter(request_id=row.id, part=part)
    if stored:
        row.parts_stored += await here.filter(stored=False).update(stored=True)
        await row.save(update_fields=["parts_stored"])
    elif not await here.update(files=asdict(files)):
        await StoredPart.create(request_id=row.id, part=part, files=asdict(files))


async def stored_parts(row: SimulationRequest) -> dict[int, PartFiles]:
    """The parts whose files are in the storage."""
    parts = await StoredPart.filter(request_id=row.id, stored=True)
    return {each.part: _files(each) for each in parts}


async def withdraw_part(storage: Storage, row: SimulationRequest, files: PartFiles) -> None:
    """Delete what was stored after the request had ended without an output, when nothing names it."""
    now = await SimulationRequest.get(id=row.id)
    if now.state in TERMINAL and now.output is None:
        await _delete_files(storage, row.request_id, files.files)


async def sweep_parts(storage: Storage) -> None:
    """Delete the stored parts of requests that ended without an output; those that cannot be stay noted."""
    over = StoredPart.filter(request__state__in=list(TERMINAL)).select_related("request")
    while parts := await over.limit(100):
        for each in parts:
            try:
                await _delete_files(storage, each.request.request_id, _files(each).files)
            except StorageUnavailable as error:
                logger.warning("parts of requests that have ended stay in the storage for now: %s", error)
                return
            await each.delete()


async def _delete_files(storage: Storage, request_id: str, files: Iterable[DatasetFile]) -> None:
    for file in files:
        await storage.delete(storage_key(request_id, file.sha256))


def _files(part: StoredPart) -> PartFiles:
    return PartFiles([DatasetFile(**file) for file in part.files["files"]], part.files["columns"])
