"""Versions of a task's truth: their files, their public and final parts, and this machine's cache of them.

Truth is made once from a dataset, cut into blocks of whole events, and never served. A version is a directory
with ``manifest.json``, which describes it, and one file for each table (:mod:`.tables`). In the storage are
``truth/<sha256>.arrow`` for each table, and ``truth/<task>/<version>.json``, the manifest, written last.

Until a challenge closes, its leaderboard may count a public part of the events and hold back the final part.
Each part is a version of its own, which shares the files of the whole and counts some groups of its events,
so that scores, bests and leaderboards of the parts are never mixed.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

from collidium.contracts.executor import StoredFile
from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable
from collidium.contracts.task import EventRange
from collidium.errors import ConfigurationError
from collidium.files.durable import sha256_of
from collidium.files.held import held_directory, lock, locked, scratch_directory
from collidium.files.stored import fetch, keep
from collidium.runtime.shared_calls import SharedCalls
from collidium.runtime.waiting import entered_in_thread
from collidium.scoring.blocks import TruthBlock
from collidium.scoring.truth.tables import TruthTable
from collidium.scoring.uncertainty import groups_of

MANIFEST: Final = "manifest.json"
#: How tables are stored; truth in another form is imported again.
FORM: Final = "arrow-2"
_PART: Final = re.compile(r"([0-9a-f]+)-(public|final)([0-9]{1,2})")


@dataclass(frozen=True, slots=True)
class Truth:
    """One version of a task's truth; :meth:`open` opens it."""

    directory: Path
    task: str
    #: Short hash of the content and the origin of the truth.
    version: str
    dataset: str
    revision: str
    events: EventRange
    tables: Mapping[str, TruthTable]
    blocks: tuple[TruthBlock, ...]
    scorer_version: str
    #: When it was made, RFC 3339.
    created_at: str
    #: The metrics of the task's baseline; empty for a task without one.
    floors: Mapping[str, float]
    #: The task's notes on how it was made, by name.
    notes: Mapping[str, str]
    form: str = FORM

    @classmethod
    def read(cls, directory: Path) -> Truth:
        """Read the manifest. Raises :class:`~collidium.errors.ConfigurationError`."""
        try:
            return cls._from_manifest(directory, json.loads((directory / MANIFEST).read_bytes()))
        except OSError as error:
            raise ConfigurationError(f"truth in {directory} is not there: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"{directory / MANIFEST} is not a manifest of truth: {error!r}"
            ) from error

    @classmethod
    def open(cls, directory: Path) -> Truth:
        """Read the manifest and check that its files exist with the right sizes.

        Raises :class:`~collidium.errors.ConfigurationError`.
        """
        truth = cls.read(directory)
        try:
            sizes = {name: path.stat().st_size for name, path in truth.paths.items()}
        except OSError as error:
            raise ConfigurationError(f"truth in {directory} is incomplete: {error}") from error
        for name, size in sizes.items():
            if size != truth.tables[name].bytes:
                raise ConfigurationError(
                    f"truth table {truth.paths[name]} has {size} bytes, not {truth.tables[name].bytes}"
                )
        return truth

    @property
    def paths(self) -> dict[str, Path]:
        """The file of each table."""
        return {name: table_path(self.directory, name) for name in self.tables}

    def rows(self, table: str) -> int:
        """Rows of a table, of all events."""
        return self.tables[table].rows

    def verify(self) -> None:
        """Read every file and compare its hash; raises :class:`~collidium.errors.ConfigurationError`."""
        for name, path in self.paths.items():
            if sha256_of(path) != self.tables[name].sha256:
                raise ConfigurationError(f"truth table {path} does not match its manifest: import it again")

    def as_dict(self) -> dict[str, Any]:
        """The manifest."""
        blocks = [[block.events.start, block.events.stop, block.rows] for block in self.blocks]
        fields = asdict(self) | {"blocks": blocks}
        del fields["directory"]
        return fields

    def save(self) -> None:
        """Write the manifest into the directory."""
        (self.directory / MANIFEST).write_text(json.dumps(self.as_dict(), indent=1, allow_nan=False) + "\n")

    def move_to(self, place: Path) -> Truth:
        """Move the directory to ``place`` atomically; an existing version there is kept if it is whole."""
        self.save()
        self.directory.chmod(0o755)
        try:
            self.directory.rename(place)
        except OSError:
            # A directory with files is never replaced: another process was first.
            if not place.exists():
                raise
            if not _is_whole(place):  # its files may be the storage's own
                _remove_used(place)
                self.directory.rename(place)
        return Truth.open(place)

    @classmethod
    def _from_manifest(cls, directory: Path, manifest: Mapping[str, Any]) -> Truth:
        if manifest["form"] != FORM:
            raise ValueError(f"its form is {manifest['form']}, not {FORM}: import it again")
        read = {
            "directory": directory,
            "events": EventRange(**manifest["events"]),
            "tables": {name: TruthTable(**table) for name, table in manifest["tables"].items()},
            "blocks": tuple(
                TruthBlock(index, EventRange(start, stop), rows)
                for index, (start, stop, rows) in enumerate(manifest["blocks"])
            ),
        }
        return cls(**(dict(manifest) | read))


def table_path(directory: Path, table: str) -> Path:
    """The file of a truth table."""
    return directory / f"{table}.arrow"


# -- public and final parts -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the groups of events of a truth."""

    #: Version of the whole truth.
    truth: str
    kind: Literal["public", "final"]
    #: Percentage of the events that is public.
    public_percent: int

    @classmethod
    def of(cls, version: str | None) -> Part | None:
        """The part that a truth version names; None for a whole truth."""
        match = _PART.fullmatch(version or "")
        if match is None:
            return None
        return cls(match[1], "public" if match[2] == "public" else "final", int(match[3]))

    def __str__(self) -> str:
        return f"{self.truth}-{self.kind}{self.public_percent}"

    @property
    def final(self) -> Part:
        """The part that is held back while the public part counts."""
        return replace(self, kind="final")

    def groups(self, count: int) -> frozenset[int]:
        """The numbers of its groups among ``count``; each part has at least one if there are two."""
        drawn = sorted(range(count), key=_keys(self.truth, count).__getitem__)
        public = min(max(round(count * self.public_percent / 100), 1), count - 1)
        return frozenset(drawn[:public] if self.kind == "public" else drawn[public:])


def events_of(version: str, events: EventRange) -> list[EventRange]:
    """The events that count in this version of a truth about ``events``, as sorted disjoint ranges."""
    part = Part.of(version)
    if part is None:
        return [events]
    groups = groups_of(events)
    ranges: list[EventRange] = []
    for number in sorted(part.groups(len(groups))):
        group = groups[number]
        if ranges and ranges[-1].stop == group.start:
            group = EventRange(ranges.pop().start, group.stop)
        ranges.append(group)
    return ranges


def whole(version: str) -> str:
    """The version of the whole truth that a version is or is a part of."""
    part = Part.of(version)
    return version if part is None else part.truth


def is_public(version: str | None) -> bool:
    """Whether a truth version is a public part, by which no credits are earned."""
    part = Part.of(version)
    return part is not None and part.kind == "public"


def _keys(truth: str, count: int) -> list[float]:
    """A random number for each group, reproducible and the same for both parts."""
    random = Random(int(truth, 16)).random  # noqa: S311 -- nothing is gained by knowing which events are public
    return [random() for _ in range(count)]


@dataclass(frozen=True, slots=True)
class Hashes:
    """SHA-256 of what is stored of a truth, as far as the database has them: manifest, and tables by name."""

    manifest: str | None = None
    tables: Mapping[str, str] | None = None


# -- the cache --------------------------------------------------------------------------------------------


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
                with suppress(MissingFile, StorageUnavailable):
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
            entered_in_thread(locked(self.directory)),
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


def _is_whole(directory: Path) -> bool:
    try:
        Truth.open(directory).verify()
    except ConfigurationError:
        return False
    return True


def _remove_used(directory: Path) -> None:
    """Remove a version; processes that have mapped its files keep them."""
    with held_directory(directory.parent) as held:
        directory.rename(held / directory.name)


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
        _remove_used(directory)
        return True
    finally:
        os.close(descriptor)
