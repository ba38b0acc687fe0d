"""Stored sketches of a truth's events, by which copies of them are recognised, and this machine's copies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, convert, structs

from collidium.contracts.task import Card, EventRange
from collidium.datasets import Dataset
from collidium.files.durable import sha256_of
from collidium.files.held import scratch_directory
from collidium.files.stored import fetch, keep
from collidium.runtime.shared_calls import SharedCalls
from collidium.runtime.waiting import in_thread
from collidium.scoring.truth import sketches
from collidium.scoring.truth.published import has_packaged
from collidium.scoring.truth.sketches import Sketches

if TYPE_CHECKING:
    from collidium.contracts.storage import Storage
    from collidium.platform import Platform

#: The file of a truth's sketches, as in its manifest; empty if none of its tables is hashed.
Stored = Mapping[str, Any]
#: The key in a manifest.
SKETCHES: Final = "sketches"


class _File(Struct, frozen=True):
    sha256: str
    bytes: int
    #: The tables whose rows are hashed.
    tables: tuple[str, ...]


async def store(
    platform: Platform, card: Card, directory: Path, config: str | None, events: EventRange, secret: str
) -> tuple[Stored, bool]:
    """Store the sketches of the events of a dataset; also return whether the package has some of them.

    Raises StorageUnavailable, and Unavailable if the system has no more threads.
    """
    async with scratch_directory(platform.settings.uploads) as scratch:
        path = scratch / "sketches.arrow"
        # It takes long: a thread that does not keep a stopping server.
        tables = await in_thread(lambda: _write(path, card, directory, config, events, secret), "sketches")
        if not tables:
            return {}, False
        packaged = await in_thread(lambda: _has_packaged(path, card), "sketches")
        size = (await asyncio.to_thread(path.stat)).st_size
        file = _File(await asyncio.to_thread(sha256_of, path), size, tables)
        await keep(platform.storage, _key(file), path, file.sha256, scratch)
    return structs.asdict(file), packaged


def _write(
    path: Path, card: Card, directory: Path, config: str | None, events: EventRange, secret: str
) -> tuple[str, ...]:
    """Write the sketches of the tables that the task reads; returns these tables."""
    dataset = Dataset(directory, config)
    own = {*card.truth_sources, *card.inputs}
    tables = tuple(name for name in sketches.hashed_tables(dataset, events) if name in own)
    if tables:
        sketches.write(path, dataset, tables, events, secret)
    return tables


def _has_packaged(path: Path, card: Card) -> bool:
    return has_packaged(card, Sketches.open(path))


def stored_keys(stored: Stored) -> dict[str, str]:
    """SHA-256 of the stored file, by key."""
    file = convert(stored, _File) if stored else None
    return {} if file is None else {_key(file): file.sha256}


def tables_of(stored: Stored) -> tuple[str, ...]:
    """Return the tables whose rows are hashed."""
    return convert(stored, _File).tables


def _key(file: _File) -> str:
    return f"truth/{file.sha256}.sketches"


class SketchCache:
    """This machine's copies of sketches, mapped into memory; processes may share the directory."""

    def __init__(self, storage: Storage, directory: Path) -> None:
        self._storage = storage
        self._directory = directory
        self._opened: dict[str, Sketches] = {}
        #: The wanted ones when copies were last deleted; None: not by this process.
        self._kept: frozenset[str] | None = None
        self._opening = SharedCalls[str, Sketches](finish=True)

    async def opened(self, stored: Stored) -> Sketches:
        """Open sketches, fetched if this machine has no copy. Raises MissingFile and StorageUnavailable."""
        file = convert(stored, _File)
        if (found := self._opened.get(file.sha256)) is None:
            found = await self._opening.run(file.sha256, lambda: self._open(file))
            self._opened[file.sha256] = found
        return found

    async def keep(self, wanted: list[Stored]) -> None:
        """Forget sketches other than the wanted ones, and delete this machine's copies of them."""
        names = frozenset(convert(stored, _File).sha256 for stored in wanted)
        if names == self._kept and self._opened.keys() <= names:
            return
        self._kept = names
        for name in self._opened.keys() - names:
            del self._opened[name]
        await asyncio.to_thread(self._delete_others, names)

    async def close(self) -> None:
        """Cancel downloads."""
        await self._opening.close()

    async def _open(self, file: _File) -> Sketches:
        path = self._path(file.sha256)
        # Another process may delete a copy, and a power cut may have damaged it.
        with suppress(FileNotFoundError):
            if await asyncio.to_thread(sha256_of, path) == file.sha256:
                return await asyncio.to_thread(Sketches.open, path)
        async with scratch_directory(self._directory) as scratch:
            copy = scratch / path.name
            await fetch(self._storage, _key(file), copy, file.sha256, final=True)
            opened = await asyncio.to_thread(Sketches.open, copy)
            await asyncio.to_thread(os.replace, copy, path)
        return opened

    def _delete_others(self, names: frozenset[str]) -> None:
        """Delete copies, also those of earlier processes, except of these names."""
        for path in self._directory.glob("*.arrow"):
            if path.stem not in names:
                with suppress(OSError):  # deleted already, or a request would fail for it
                    path.unlink()

    def _path(self, sha256: str) -> Path:
        return self._directory / f"{sha256}.arrow"
