"""From a completed job to files in the storage backend: collected, checked, named as they are published."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from collidium.contracts.executor import Executor, Limits, OverLimit, WorkerDied
from collidium.contracts.runner import Runner, RunnerRefused, RunnerUnavailable
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.contracts.task import EventRange
from collidium.datasets.cards import DatasetFile
from collidium.datasets.output import check_tables, describe, find_tables
from collidium.errors import UnusableDataset
from collidium.files.data_directory import make_private
from collidium.files.durable import is_full
from collidium.files.held import lock
from collidium.order import Order
from collidium.runtime.failpoints import reached
from collidium.runtime.logs import message_of


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


async def keep(
    runner: Runner,
    handle: str,
    order: Order,
    request_id: str,
    storage: Storage,
    scratch: Path,
    checks: Checks,
) -> tuple[DatasetFile, ...]:
    """Collect, check and store the output of a completed job; safe to repeat, gives the same again.

    Files pass through ``scratch``, a directory of this request alone. What is there from an attempt that
    stopped half-way is used; it is gone when this returns or raises InvalidOutput, and when the disk is full.

    Raises :class:`InvalidOutput` unless every table holds exactly the events that were ordered,
    :class:`WorkerLost` where a worker did not survive reading them, and what the runner and the storage
    raise. StorageUnavailable also while another process of this machine is at it.
    """
    async with _alone_in(scratch):
        try:
            collected = await runner.collect(handle, scratch, checks.max_bytes)
            reached("collect.fetched")
            files = await _check(collected, order, scratch, checks)
            for source, file in files:
                await storage.put_final(storage_key(request_id, file.path), source)
                reached("collect.file_stored")
        except (RunnerUnavailable, StorageUnavailable) as error:
            if isinstance(error.__cause__, OSError) and is_full(error.__cause__):
                await _delete(scratch)  # or the disk stays full, and the next attempt fails as well
            raise  # else what is there saves the next attempt from fetching it again
        except Exception:  # raised again; only what it left is of no use
            await _delete(scratch)
            raise
        await _delete(scratch)
    return tuple(file for _, file in files)


def storage_key(request_id: str, path: str) -> str:
    """Where an output file of a request is kept."""
    return f"outputs/{request_id}/{path}"


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
    paths: Sequence[Path], order: Order, scratch: Path, checks: Checks
) -> list[tuple[Path, DatasetFile]]:
    """The files, each with what it is published as; raises InvalidOutput and WorkerLost."""
    if not paths:
        raise InvalidOutput("the job completed without any output")
    events = EventRange(0, order.events)
    try:
        tables = await asyncio.to_thread(find_tables, paths, scratch, events, checks.max_bytes)
        checking = checks.executor.map(
            check_tables, [tables], checks.limits, raises=(UnusableDataset,), local=True
        )
        async with aclosing(checking) as checked:
            rows = await anext(checked)
        return await asyncio.to_thread(describe, tables, rows, order.config)
    except UnusableDataset as error:
        raise InvalidOutput(str(error)) from error
    except OverLimit as error:
        raise WorkerLost(f"reading the output {message_of(error)}") from error
    except WorkerDied as error:
        raise WorkerLost("reading the output crashed its reader") from error
