"""Datasets of the event display: public repositories with the platform's tag, and the built-in sample."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Final, TypeVar

from cachetools import LRUCache

from collidium.datasets import layout, sample
from collidium.errors import (
    Forbidden,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UnusableDataset,
    UpstreamError,
)
from collidium.event_display.decoding import Outline, OutlineReader
from collidium.event_display.shards import HubShards, LocalShards, Outlines, Shards
from collidium.event_display.tables import SHOWN
from collidium.hub.reader import HubReader
from collidium.hub.repository import Repository, tagged
from collidium.hub.sources import HubDataset
from collidium.records import DatasetEntry

Result = TypeVar("Result")

#: The repository name of the sample. Names on a hub have a slash.
SAMPLE: Final = "sample"
#: Maximum number of repositories in the list.
LISTED: Final = 200
#: How long responses about repositories are cached.
KEPT_SECONDS: Final = 30.0
#: Time limit for a list; repositories not read within it are omitted. The latest come first.
LISTING_SECONDS: Final = 10.0
#: Maximum number of footers read per repository; further configs are listed without their event range.
_MAX_FOOTERS: Final = 512
#: The first existing one of these tables is used to count events.
_COUNTED: Final = tuple(sorted(SHOWN, key=lambda name: (name != "tracker_hits", name)))
#: Connections to the hub, and threads that read a list.
_CONNECTIONS: Final = 8
_PARALLEL: Final = 4
#: Maximum numbers of files and listed configs of a repository.
_FILES: Final = 50_000
_CONFIGS: Final = 100
#: Maximum number of cached files of all repositories, and size of cached outlines.
_FILES_KEPT: Final = 200_000
_OUTLINE_BYTES: Final = 32 * 1024**2
#: Measured memory of a column of a row group in an outline.
_CHUNK_BYTES: Final = 1024

_REPO: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
#: Valid names of folders of the hosted layout.
_CONFIG: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
_REVISION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")


class _QuickReader(HubReader):
    """A reader with short timeouts, for requests of interactive pages."""

    read_seconds: ClassVar[float] = 10.0
    attempts: ClassVar[int] = 2
    longest_wait: ClassVar[float] = 2.0

    def __init__(self, endpoint: str) -> None:
        from collidium.runtime.network import Deadline, keep_deadline

        super().__init__(endpoint, connections=_CONNECTIONS)
        #: Of the calls of the current thread.
        self.deadline = Deadline()
        keep_deadline(self.deadline, self._client)

    def pages(self, path: str, subject: str, **query: str) -> Iterator[Any]:
        for number, item in enumerate(super().pages(path, subject, **query)):
            if number == _FILES:
                raise UnusableDataset(
                    f"{subject} has more than {_FILES:,} files, too many for the event display"
                )
            yield item


class PublicDatasets:
    """The public datasets of a hub with a tag. Its methods block."""

    def __init__(self, hub: str, tag: str, read_outline: OutlineReader) -> None:
        self._endpoint = hub
        self._tag = tag
        self._read_outline = read_outline
        self._lock = threading.Lock()
        self._reader: _QuickReader | None = None
        #: Each with the time at which it expires.
        self._repositories: LRUCache[tuple[str, str], tuple[float, Repository]] = LRUCache(
            _FILES_KEPT, getsizeof=lambda found: 1 + len(found[1].files)
        )
        self._outlines: Outlines = _OutlineCache(_OUTLINE_BYTES)
        self._listed: LRUCache[tuple[str, str], tuple[DatasetEntry, ...]] = LRUCache(4 * LISTED)

    def close(self) -> None:
        """Cancel running calls and close the connections. Idempotent."""
        if self._reader is not None:
            self._reader.stopped.set()
            self._reader.__exit__()

    def within(self, deadline: float, work: Callable[[], Result]) -> Result:
        """Run ``work`` with a deadline for its calls to the hub in the current thread."""
        self._hub().deadline.at = deadline
        return work()

    def configs(self) -> list[DatasetEntry]:
        """List all configs: those of the sample, then of repositories, the latest first.

        Raises Unreachable or Unavailable if the hub does not respond, and UpstreamError for an invalid
        response.
        """
        until, deadline = monotonic() + LISTING_SECONDS, self._hub().deadline.at
        found = [str(item["repo"]) for item in tagged(self._hub(), self._tag, LISTED)]

        def configs_of(repo: str) -> tuple[DatasetEntry, ...]:
            return self.within(deadline, partial(self.configs_of, repo)) if monotonic() < until else ()

        with ThreadPoolExecutor(_PARALLEL, "collidium-datasets") as threads:
            listed = list(threads.map(configs_of, [repo for repo in found if _REPO.fullmatch(repo)]))
        return [*self.sample(), *(config for configs in listed for config in configs)]

    def configs_of(self, repo: str) -> tuple[DatasetEntry, ...]:
        """List the configs of a repository; none if it cannot be shown. Raises as :meth:`configs`."""
        try:
            repository = self.repository(repo, "main")
        except (NotFound, UpstreamError, UnusableDataset):
            return ()
        with self._lock:
            known = self._listed.get((repo, repository.commit))
        if known is None:
            known = tuple(config for config in self._configs(repository) if config.tables)
            with self._lock:
                self._listed[repo, repository.commit] = known
        return known

    def sample(self) -> list[DatasetEntry]:
        """List the configs of the sample."""
        return [_sample_entry(config, directory) for config, directory in sample.CONFIGS.items()]

    def repository(self, repo: str, revision: str) -> Repository:
        """Return a public repository, from the cache if the hub does not respond.

        Raises NotFound, and as :meth:`configs`.
        """
        if not (_REPO.fullmatch(repo) and _REVISION.fullmatch(revision)) or ".." in repo + revision:
            raise NotFound(f"there is no dataset {repo[:200]!r}: repositories are named NAMESPACE/NAME")
        with self._lock:
            until, found = self._repositories.get((repo, revision), (0.0, None))
        if found is None or until < monotonic():
            try:
                source = HubDataset(repo, self._endpoint, revision)
                found = Repository.read(self._hub(), source, is_wanted=self._is_shown)
            except (NotFound, Unauthenticated, Forbidden) as error:
                with self._lock:
                    self._repositories.pop((repo, revision), None)
                raise NotFound(f"the hub has no public dataset {repo} with a revision {revision}") from error
            except (Unreachable, Unavailable):
                if found is None:
                    raise
            with self._lock:
                self._repositories[repo, revision] = monotonic() + KEPT_SECONDS, found
        if not self._is_shown(found):
            raise NotFound(
                f"{repo} is not shown: only public dataset repositories with the tag {self._tag!r} are"
            )
        return found

    def _is_shown(self, repository: Repository) -> bool:
        return not (repository.private or repository.gated) and self._tag in repository.tags

    def shards(self, repository: Repository, config: str) -> Shards:
        """Return a config of a repository. Raises NotFound, which lists the existing ones."""
        try:
            if not _CONFIG.fullmatch(config):
                raise UnusableDataset(f"there is no config {config[:200]!r}")
            return HubShards(self._hub(), repository, config, self._outlines, self._read_outline)
        except UnusableDataset as error:
            existing = ", ".join(filter(_CONFIG.fullmatch, layout.configs(repository.files))) or "none"
            raise NotFound(f"{error.detail}; there are: {existing}") from None

    def _hub(self) -> _QuickReader:
        with self._lock:
            if self._reader is None:
                self._reader = _QuickReader(self._endpoint)
            return self._reader

    def _configs(self, repository: Repository) -> Iterator[DatasetEntry]:
        names = [name for name in layout.configs(repository.files) if _CONFIG.fullmatch(name)]
        left = _MAX_FOOTERS
        for name in names[:_CONFIGS]:
            shards = self.shards(repository, name)
            left -= len(_counted(shards))
            yield self._config(repository, shards, with_events=left >= 0)

    def _config(self, repository: Repository, shards: Shards, *, with_events: bool) -> DatasetEntry:
        tables = tuple(table for table in shards.tables() if table in SHOWN)
        paths = [path for table in tables for path in shards.paths(table)]
        numbers: tuple[int | None, int | None, int | None] = (None, None, None)
        if tables and with_events:
            # A damaged config is listed all the same; opening it reports the error.
            with suppress(UnusableDataset, UpstreamError, NotFound, TooLarge, Unauthenticated, Forbidden):
                numbers = _events(shards)
        return DatasetEntry(
            repository.repo,
            shards.config,
            repository.commit,
            tables,
            sum(repository.files[path].size for path in paths),
            *numbers,
            updated_at=_moment(repository.last_modified),
        )


def _sample_entry(config: str, directory: Path) -> DatasetEntry:
    shards = LocalShards(directory, config)
    return DatasetEntry(
        SAMPLE,
        config,
        "local",
        shards.tables(),
        sum(path.stat().st_size for path in directory.glob("*.parquet")),
        *_events(shards),
        sample=True,
        license=sample.LICENSE,
        source=sample.SOURCES[config],
    )


def _events(shards: Shards) -> tuple[int | None, int | None, int | None]:
    """The number of events, and the first and last event id if all footers record them."""
    outlines = [shards.outline(path) for path in _counted(shards)]
    count = sum(outline.rows for outline in outlines)
    spans = [outline.events for outline in outlines if outline.rows]
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans):
        return count, None, None
    return count, min(span.start for span in known), max(span.stop for span in known) - 1


def _counted(shards: Shards) -> list[str]:
    """The shards that are used to count events."""
    table = next((name for name in _COUNTED if name in shards.tables()), None)
    return [] if table is None else shards.paths(table)


def _moment(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else None


class _OutlineCache(LRUCache[str, Outline]):
    """Outlines by digest of their shard, in bounded memory. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes, _bytes_of)
        self._lock = threading.Lock()

    def get(self, key: str, default: Any = None) -> Any:
        with self._lock:
            return super().get(key, default)

    def __setitem__(self, key: str, outline: Outline) -> None:
        with self._lock:
            if _bytes_of(outline) <= self.maxsize:
                super().__setitem__(key, outline)


def _bytes_of(outline: Outline) -> int:
    """Approximate size in memory."""
    return len(outline.tail) + _CHUNK_BYTES * sum(1 + len(group.spans) for group in outline.groups)
