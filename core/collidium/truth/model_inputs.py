"""Inputs of models: public columns of a truth's events, in the storage by their hashes.

They are stored when the truth is imported, and never served.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from msgspec import Struct, convert, structs

from collidium.contracts.storage import MissingFile
from collidium.contracts.task import EventRange
from collidium.datasets import Dataset, HubDataset, fetch, layout
from collidium.datasets.access import catalogue
from collidium.datasets.publishing.blinding import PUBLIC
from collidium.datasets.schemas import folder, shard_name
from collidium.datasets.writing import ParquetFile
from collidium.errors import ConfigurationError, UnusableDataset
from collidium.files.durable import sha256_of
from collidium.files.held import scratch_directory
from collidium.files.stored import fetch as fetch_stored
from collidium.files.stored import keep as keep_stored

if TYPE_CHECKING:
    from collidium.contracts.model import ModelInterface
    from collidium.contracts.task import Task
    from collidium.inference.manifest import Manifest
    from collidium.platform import Platform

#: The config of the dataset that :func:`opened` yields.
_CONFIG: Final = "inputs"


class InputTable(Struct, frozen=True):
    """A stored table."""

    sha256: str
    bytes: int
    columns: tuple[str, ...]


#: Stored tables by name, as in a truth's manifest.
Stored = Mapping[str, Any]


async def store(
    platform: Platform,
    task: Task,
    place: Path | HubDataset,
    *,
    config: str | None,
    events: EventRange,
    cache: Path,
) -> Stored:
    """Store the inputs of a task's models; none for a task without models.

    Missing tables are left out; models that read them are refused. Raises UnusableDataset if events are
    missing, and StorageUnavailable.
    """
    interface = task.model_interface()
    if interface is None:
        return {}
    names = await asyncio.to_thread(_available, place, config, cache, _tables(interface))
    if isinstance(place, HubDataset):
        place = (await fetch(place, names, cache, config=config, events=events)).directory
    dataset = await asyncio.to_thread(Dataset, place, config)
    stored = {}
    async with scratch_directory(platform.settings.uploads) as scratch:
        columns = await asyncio.to_thread(_write, dataset, names, interface, events, scratch)
        for name in names:
            path = scratch / name
            size = (await asyncio.to_thread(path.stat)).st_size
            table = InputTable(await asyncio.to_thread(sha256_of, path), size, columns[name])
            await keep_stored(platform.storage, key_of(table), path, table.sha256, scratch)
            stored[name] = structs.asdict(table)
    return stored


@asynccontextmanager
async def opened(platform: Platform, stored: Stored) -> AsyncIterator[Dataset]:
    """Fetch stored inputs as a dataset, for the context.

    Raises ConfigurationError if they are missing, and StorageUnavailable.
    """
    async with scratch_directory(platform.settings.uploads) as scratch:
        for name, table in convert(stored, dict[str, InputTable]).items():
            path = scratch / folder(_CONFIG, name) / shard_name(0, 1)
            await asyncio.to_thread(path.parent.mkdir, parents=True)
            try:
                await fetch_stored(platform.storage, key_of(table), path, table.sha256, final=True)
            except MissingFile as error:
                raise ConfigurationError(f"inputs of models are not in the storage: {name}") from error
        yield await asyncio.to_thread(Dataset, scratch, _CONFIG)


def key_of(table: InputTable) -> str:
    """The storage key of a table."""
    return f"inputs/{table.sha256}.parquet"


def stored_keys(stored: Stored) -> dict[str, str]:
    """SHA-256 of each stored table, by key."""
    return {key_of(table): table.sha256 for table in convert(stored, dict[str, InputTable]).values()}


def missing(stored: Stored, manifest: Manifest, tables: Collection[str]) -> list[str]:
    """The tables and columns that a manifest needs and that are not stored."""
    there = convert(stored, dict[str, InputTable])
    lacks = [name for name in tables if name not in there]
    sources = {
        given.source: there[given.table].columns
        for given in manifest.inputs.values()
        if given.column and not given.feature and given.table in there
    }
    return sorted(lacks + [name for name, columns in sources.items() if name.split(".")[1] not in columns])


def _available(place: Path | HubDataset, config: str | None, cache: Path, names: Sequence[str]) -> list[str]:
    with catalogue(place, cache) as shards:
        return [name for name in names if _holds(shards.sizes, name, config)]


def _holds(paths: Collection[str], table: str, config: str | None) -> bool:
    try:
        return bool(layout.shards(paths, table, config))
    except UnusableDataset:
        return False


def _tables(interface: ModelInterface) -> tuple[str, ...]:
    of_features = [name for feature in interface.features.values() for name in feature.tables]
    return tuple(dict.fromkeys([*interface.inputs, *of_features]))


def _write(
    dataset: Dataset, names: list[str], interface: ModelInterface, events: EventRange, directory: Path
) -> dict[str, tuple[str, ...]]:
    """Write a file for each table; returns its columns."""
    files: dict[str, ParquetFile] = {}
    columns: dict[str, tuple[str, ...]] = {}
    for _, tables in dataset.read(names, events):
        for name, table in tables.items():
            public = table.select(list(_public(name, table, interface)))
            if name not in files:
                columns[name] = tuple(public.column_names)
                files[name] = ParquetFile(directory / name, public.schema)
            files[name].write(public)
    for file in files.values():
        file.close()
    return columns


def _public(name: str, table: pa.Table, interface: ModelInterface) -> Iterator[str]:
    """The event id, and columns that are published or that the task names."""
    known = {"event_id", *PUBLIC.get(name, ()), *interface.inputs.get(name, ())}
    return (column for column in table.column_names if column in known)
