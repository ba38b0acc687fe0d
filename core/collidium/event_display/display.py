"""Serves lists of datasets and single events, cached, with one computation per concurrent equal request."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence, Sized
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from cachetools import LRUCache, TTLCache

from collidium.contracts import FIELD_TESLA
from collidium.contracts.executor import Executor
from collidium.datasets import sample
from collidium.datasets.row_hashes import HASHED
from collidium.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UnusableDataset,
    UpstreamError,
)
from collidium.event_display import decoding, phoenix
from collidium.event_display import tables as stream
from collidium.event_display.datasets import KEPT_SECONDS, SAMPLE, PublicDatasets
from collidium.event_display.decoding import EventJob, Format, HashJob, RowGroups, RowHashes
from collidium.event_display.shards import MAX_SHARDS, LocalShards, Shards, Workers, find, range_text
from collidium.event_display.tables import SHOWN
from collidium.files.durable import is_full
from collidium.files.held import scratch_directory
from collidium.records import DatasetEntry
from collidium.runtime.shared_calls import SharedCalls
from collidium.runtime.waiting import in_thread

if TYPE_CHECKING:
    from collidium.settings import Settings

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

#: Concurrent threads that read from the hub, and maximum number of events in progress.
_THREADS: Final = 4
_WAITING: Final = 32
#: Size of the cache of hashes of rows: 8 bytes a row.
_HASHES_BYTES: Final = 64 * 1024**2
#: Timeouts of a list and of everything else, including the wait for a thread.
_LIST_SECONDS: Final = 15.0
_ANSWER_SECONDS: Final = 60.0
#: Tables whose rows refer to rows of another table by index.
_NAMED_BY: Final = {"tracks": "tracker_hits", "jets": "calo_hits"}

MEDIA_TYPES: Final[dict[Format, str]] = {"arrow": stream.MEDIA_TYPE, "phoenix": phoenix.MEDIA_TYPE}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requested event."""

    config: str
    event_id: int
    #: None for the only dataset with this config.
    repo: str | None = None
    #: None for all tables.
    tables: tuple[str, ...] | None = None
    revision: str = "main"
    format: Format = "arrow"


@dataclass(frozen=True, slots=True)
class DatasetList:
    """The datasets that can be shown."""

    entries: Sequence[DatasetEntry]
    #: When the hub listed them, by ``time.monotonic``; None if only the sample is listed.
    listed_at: float | None = None
    #: Whether the hub failed to update the list.
    stale: bool = False

    @property
    def age_seconds(self) -> int:
        """Age of the hub's list."""
        return 0 if self.listed_at is None else int(monotonic() - self.listed_at)

    @property
    def warning(self) -> str:
        """A message for users; empty if the list is up to date."""
        if not self.stale:
            return ""
        if self.listed_at is None:
            return "the hub does not list its datasets now: only the built-in sample is shown"
        return f"the hub does not list its datasets now: this list is {self.age_seconds:,} s old"


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An encoded event."""

    content: bytes
    media_type: str
    #: Entity tag.
    tag: str


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a version of a dataset."""

    repo: str
    #: ``local`` for the sample.
    commit: str
    config: str
    event_id: int


#: Returns the hashes of an event's public rows in some tables, for comparison with those of other events.
HashesOf = Callable[[frozenset[str]], Awaitable[RowHashes]]
#: Decides whether the truth of an event is withheld; reads its hashes only if they matter.
Withholds = Callable[[StoredEvent, HashesOf], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class _Key:
    """Cache key of an event."""

    repo: str
    commit: str
    wanted: Wanted
    withheld: bool


class EventDisplay:
    """Lists and events of the hub's public datasets and of the sample."""

    def __init__(self, settings: Settings, executor: Executor) -> None:
        self._workers = Workers(executor, settings.scoring_memory_bytes)
        self._scratch = settings.uploads
        self._event_bytes = settings.event_bytes
        self._read_bytes = settings.event_read_bytes
        self._datasets = PublicDatasets(settings.hub, settings.tag, self._workers.outline)
        self._threads = asyncio.Semaphore(_THREADS)
        kept: LRUCache[_Key, ShownEvent] = LRUCache(
            settings.event_cache_bytes, lambda event: len(event.content)
        )
        # Threads cannot be cancelled, so their results are cached even if no caller waits any more.
        self._events = SharedCalls(kept, name="events", finish=True)
        known: LRUCache[tuple[StoredEvent, frozenset[str]], RowHashes] = LRUCache(
            _HASHES_BYTES, lambda hashes: len(hashes.content) + 1
        )
        self._hashes = SharedCalls(known, name="event_hashes", finish=True)
        self._lists: SharedCalls[None, DatasetList] = SharedCalls(TTLCache(1, KEPT_SECONDS), finish=True)
        self._last: DatasetList | None = None

    async def datasets(self, repo: str | None = None) -> DatasetList:
        """List the configs of all repositories and the sample, or of one repository.

        If the hub does not respond, the former returns the previous list, and the latter raises Unavailable
        or UpstreamError.
        """
        if repo == SAMPLE:
            return DatasetList(await asyncio.to_thread(self._datasets.sample))
        if repo is not None:
            return DatasetList(await self._blocking(partial(self._datasets.configs_of, repo)))
        return await self._lists.run(None, self._list)

    async def event(self, wanted: Wanted, withholds: Withholds) -> ShownEvent:
        """Return an event, without its truth if ``withholds`` decides so.

        Raises NotFound, Conflict if several datasets have the config, InvalidInput, TooLarge,
        UnusableDataset, and Unavailable or UpstreamError for failures of the hub.
        """
        repo = wanted.repo or await self._only(wanted.config)
        commit = "local"
        if repo != SAMPLE:
            found = await self._blocking(partial(self._datasets.repository, repo, wanted.revision))
            commit = found.commit
        stored = StoredEvent(repo, commit, wanted.config, wanted.event_id)

        async def hashes_of(tables: frozenset[str]) -> RowHashes:
            call = partial(self._start, self._hashes, partial(self._hash, stored, tables))
            return await self._hashes.run((stored, tables), call)

        # Not cached: an event that was public may be evaluated now.
        withheld = await withholds(stored, hashes_of)
        key = _Key(repo, commit, replace(wanted, repo=repo, revision=commit), withheld)
        return await self._events.run(key, partial(self._start, self._events, partial(self._make, key)))

    async def close(self) -> None:
        """Cancel running calls and close the connections. Idempotent."""
        await asyncio.gather(self._events.close(), self._hashes.close(), self._lists.close())
        await asyncio.to_thread(self._datasets.close)

    # -- the list ---------------------------------------------------------------------------------------

    async def _list(self) -> DatasetList:
        try:
            entries = await self._blocking(self._datasets.configs, _LIST_SECONDS)
        except (Unavailable, UpstreamError) as error:
            logger.warning("the hub does not list its datasets: %s", error.detail)
            last = self._last or DatasetList(await asyncio.to_thread(self._datasets.sample))
            return replace(last, stale=True)
        self._last = DatasetList(entries, monotonic())
        return self._last

    async def _only(self, config: str) -> str:
        listed = await self.datasets()
        repos = [found.repo for found in listed.entries if found.config == config]
        if not repos and listed.stale:
            raise Unavailable(listed.warning)
        if not repos:
            raise NotFound(f"no dataset has a config {config[:200]!r}; GET /v1/datasets lists existing ones")
        if len(repos) > 1:
            raise Conflict(
                f"several datasets have a config {config}: choose one with repo=",
                errors=[{"field": "repo", "detail": repo} for repo in repos],
            )
        return repos[0]

    # -- events -----------------------------------------------------------------------------------------

    def _start(self, running: Sized, call: Callable[[], Awaitable[Result]]) -> Awaitable[Result]:
        if len(running) >= _WAITING:
            raise Unavailable("too many events are requested now; try again in a moment", retry_after=2)
        return call()

    async def _make(self, key: _Key) -> ShownEvent:
        async with self._reading() as directory:
            job = await self._blocking(partial(self._collect, key, directory))
            what = f"event {job.event_id} of {key.repo}, config {key.wanted.config},"
            content = await self._workers.run(decoding.make, job, what)
        tag = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
        return ShownEvent(content, MEDIA_TYPES[key.wanted.format], tag)

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[Path]:
        """Open a directory for copies of row groups; a full disk raises Unavailable."""
        async with scratch_directory(self._scratch) as directory:
            try:
                yield directory
            except OSError as error:
                if is_full(error):
                    detail = "the server's disk is full"
                    raise Unavailable(detail, retry_after=300) from error
                raise

    async def _hash(self, stored: StoredEvent, tables: frozenset[str]) -> RowHashes:
        """Hash the public rows of an event in these tables; none if the dataset has no such event."""
        async with self._reading() as directory:
            job = await self._blocking(partial(self._collect_hashed, stored, tables, directory))
            what = f"event {stored.event_id} of {stored.repo}, config {stored.config},"
            return await self._workers.run(decoding.hash_rows, job, what)

    def _collect_hashed(self, stored: StoredEvent, tables: frozenset[str], directory: Path) -> HashJob:
        """Copy the columns that are hashed to this machine. Blocks."""
        shards = self._shards(stored.repo, stored.commit, stored.config)
        row_groups: dict[str, RowGroups] = {}
        unread: list[str] = []
        left = self._read_bytes
        for table in (table for table in HASHED if table in tables.intersection(shards.tables())):
            try:
                location = find(shards, table, stored.event_id)
                if location is not None:
                    row_groups[table] = shards.row_groups(table, *location, HASHED[table], directory, left)
                    left -= row_groups[table].bytes_read
                elif len(shards.paths(table)) > MAX_SHARDS:
                    unread.append(table)  # not all of them were searched
            except (TooLarge, UnusableDataset):
                unread.append(table)
        return HashJob(stored.event_id, row_groups, tuple(unread))

    def _collect(self, key: _Key, directory: Path) -> EventJob:
        """Copy the row groups that have to be decoded to this machine. Blocks."""
        wanted = key.wanted
        shards = self._shards(key.repo, key.commit, wanted.config)
        tables = _tables(shards, wanted)
        row_groups: dict[str, RowGroups] = {}
        left = self._read_bytes
        for table in _read(shards, tables, withheld=key.withheld):
            location = find(shards, table, wanted.event_id)
            if location is not None:
                columns = SHOWN[table].names
                row_groups[table] = shards.row_groups(table, *location, columns, directory, left)
                left -= row_groups[table].bytes_read
        if not any(table in row_groups for table in tables):
            raise NotFound(
                f"{key.repo}, config {wanted.config}, has no event {wanted.event_id} "
                f"({range_text(shards, tables[0])})"
            )
        return EventJob(
            event_id=wanted.event_id,
            row_groups=row_groups,
            tables=tables,
            about=_about(key),
            withheld=key.withheld,
            format=wanted.format,
            max_bytes=self._event_bytes,
        )

    def _shards(self, repo: str, commit: str, config: str) -> Shards:
        if repo == SAMPLE:
            if config not in sample.CONFIGS:
                existing = ", ".join(sample.CONFIGS)
                raise NotFound(f"the sample has no config {config[:200]!r}; there are: {existing}")
            return LocalShards(sample.CONFIGS[config], config)
        return self._datasets.shards(self._datasets.repository(repo, commit), config)

    async def _blocking(self, work: Callable[[], Result], seconds: float = _ANSWER_SECONDS) -> Result:
        """Run ``work`` in a thread, and convert errors of the hub for users of the platform."""
        bounded = partial(self._datasets.within, monotonic() + seconds, work)
        try:
            async with asyncio.timeout(seconds), self._threads:
                return await in_thread(bounded, "event-display")
        except TimeoutError:
            raise Unavailable("the hub of the datasets takes too long; try again later") from None
        except Unreachable as error:
            raise Unavailable(f"the hub of the datasets does not respond: {error.detail}") from error
        except (Unauthenticated, Forbidden) as error:
            raise NotFound("there is no such public dataset") from error


def _tables(shards: Shards, wanted: Wanted) -> tuple[str, ...]:
    """The tables of the result. Raises InvalidInput with all requested ones that do not exist."""
    tables = [table for table in SHOWN if table in shards.tables()]
    if wanted.tables is not None:
        absent = [table for table in wanted.tables if table not in tables]
        if absent:
            raise InvalidInput(
                f"tables: there are {', '.join(tables)}",
                errors=[{"field": "tables", "detail": f"no table {table[:100]!r}"} for table in absent[:20]],
            )
        tables = [table for table in tables if table in wanted.tables]
    if wanted.format == "phoenix":
        tables = [table for table in tables if table in phoenix.TABLES]
    if not tables:
        raise NotFound(f"config {wanted.config} has no tables that the event display shows")
    return tuple(tables)


def _read(shards: Shards, tables: tuple[str, ...], *, withheld: bool) -> tuple[str, ...]:
    """The tables to read, including those that the result refers to if rows are reordered."""
    if not withheld:
        return tables
    named = [_NAMED_BY[table] for table in tables if table in _NAMED_BY]
    return tuple(dict.fromkeys([*tables, *(table for table in named if table in shards.tables())]))


def _about(key: _Key) -> dict[str, str]:
    about = {
        "repo": key.repo,
        "config": key.wanted.config,
        "revision": key.commit,
        "event_id": str(key.wanted.event_id),
    }
    if key.repo == SAMPLE and key.wanted.config == sample.CONFIG:
        about["field_tesla"] = str(FIELD_TESLA)
    return about | ({"withheld": "evaluated"} if key.withheld else {})
