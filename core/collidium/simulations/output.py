"""From a completed job to files in the storage backend: collected, checked, named as they are published."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from collidium.contracts.runner import Runner, RunnerRefused, RunnerUnavailable
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.contracts.task import EventRange
from collidium.data_directory import make_private
from collidium.datasets.dataset import refuse_missing
from collidium.datasets.manifest import DatasetFile, sha256_of
from collidium.datasets.shards import EventTable
from collidium.errors import UnusableDataset
from collidium.failpoints import reached
from collidium.order import Order

#: ``<table>.parquet`` or ``<table>-00000-of-00004.parquet``.
_NAME: Final = re.compile(
    r"(?P<table>[a-z][a-z0-9_]{0,63})(-(?P<number>\d{1,9})-of-(?P<count>\d{1,9}))?\.parquet"
)


class InvalidOutput(RunnerRefused):
    """The job's output is not what was ordered; the message says why, for whoever ordered it."""


async def keep(
    runner: Runner, handle: str, order: Order, request_id: str, storage: Storage, scratch: Path
) -> tuple[DatasetFile, ...]:
    """Collect, check and store the output of a completed job; safe to repeat, gives the same again.

    Files pass through ``scratch``, a directory of this request alone. What is there from an attempt that
    stopped half-way is used; it is gone when this returns or raises InvalidOutput.

    Raises :class:`InvalidOutput` unless every table holds exactly the events that were ordered, and what the
    runner and the storage raise. StorageUnavailable also while another process of this machine is at it.
    """
    async with _alone_in(scratch):
        try:
            collected = await runner.collect(handle, scratch)
            reached("collect.fetched")
            files = await asyncio.to_thread(_check, collected, order, scratch)
            for source, file in files:
                await storage.put(storage_key(request_id, file.path), source)
                reached("collect.file_stored")
        except (RunnerUnavailable, StorageUnavailable):
            raise  # what is there saves the next attempt from fetching it again
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
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise StorageUnavailable("another process is collecting the output already") from None
        # Whoever held it before may have deleted it: then the lock is on a directory without a name.
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


# -- checks -------------------------------------------------------------------------------------------------


def _check(paths: Sequence[Path], order: Order, scratch: Path) -> list[tuple[Path, DatasetFile]]:
    """The files, each with what it is published as; raises InvalidOutput."""
    tables = _tables(dict.fromkeys(paths), scratch)
    if not tables:
        raise InvalidOutput("the job completed without any output")
    files = []
    for table, shards in sorted(tables.items()):
        _check_table(table, shards, order)
        for number, shard in enumerate(shards):
            folder = f"data/{order.config}_{table}"
            files.append((shard, _describe(shard, f"{folder}/train-{number:05}-of-{len(shards):05}.parquet")))
    return files


def _tables(paths: Iterable[Path], scratch: Path) -> dict[str, list[Path]]:
    """The shards of each table in the order of their numbers; raises InvalidOutput unless all are there."""
    found: dict[str, list[tuple[int, int, Path]]] = {}
    root = scratch.resolve()
    for path in paths:
        name = _NAME.fullmatch(path.name)
        if name is None:
            raise InvalidOutput(f"the output has a file {path.name!r}, which is no table of a dataset")
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(root):
            raise InvalidOutput(f"the output file {path.name} is no file of the job's own")
        shard = (int(name["number"] or 0), int(name["count"] or 1), path)
        found.setdefault(name["table"], []).append(shard)
    for table, shards in found.items():
        shards.sort()
        if [(number, count) for number, count, _ in shards] != [(n, len(shards)) for n in range(len(shards))]:
            told = ", ".join(path.name for *_, path in shards[:5])
            raise InvalidOutput(f"table {table}: the output lacks shards, or has some twice (it has {told})")
    return {table: [path for *_, path in shards] for table, shards in found.items()}


def _check_table(table: str, shards: Sequence[Path], order: Order) -> None:
    """Raise InvalidOutput unless the shards hold events 0 to ``order.events`` - 1, each once."""
    try:
        events = EventTable(table, shards)
        refuse_missing(events, EventRange(0, order.events))
    except UnusableDataset as error:
        raise InvalidOutput(f"the output is not usable: {error}") from error
    if len(events.event_ids) != order.events:
        raise InvalidOutput(
            f"table {table} of the output holds {len(events.event_ids)} events "
            f"(up to {events.event_ids[-1]}), not the {order.events} that were ordered"
        )
    schemas = [pq.read_schema(shard) for shard in shards]
    for shard, schema in zip(shards, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise InvalidOutput(f"{shard.name} of the output has other columns than {shards[0].name}")


def _describe(source: Path, path: str) -> DatasetFile:
    return DatasetFile(path, sha256_of(source), source.stat().st_size, pq.read_metadata(source).num_rows)
