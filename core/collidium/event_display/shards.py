"""Shards of a dataset, local or on a hub, and the worker processes that decode untrusted ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, MutableMapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from collidium.contracts.executor import OWN_FAULTS, Executor, Limits, WorkerDied
from collidium.datasets import layout
from collidium.datasets.catalogue import fetch_tail
from collidium.datasets.schemas import canonical
from collidium.errors import CollidiumError, TooLarge, Unavailable, UnusableDataset
from collidium.event_display.decoding import Outline, OutlineReader, RowGroups, Span, read_outline

if TYPE_CHECKING:
    from collidium.hub.reader import HubReader
    from collidium.hub.repository import HubFile, Repository

#: Maximum size of a footer.
MAX_FOOTER_BYTES: Final = 8 * 1024**2
#: Maximum size of a range request.
_RANGE_BYTES: Final = 8 * 1024**2
#: Maximum size of all footers of a config, and number of byte ranges of a table, per event.
_FOOTER_BYTES: Final = 256 * 1024**2
_MAX_SPANS: Final = 256
#: Maximum number of shards whose footers are all read to find an event.
MAX_SHARDS: Final = 256

#: Outlines of shards by the digests of their contents.
Outlines = MutableMapping[str, Outline]
Item = TypeVar("Item")
Result = TypeVar("Result")
#: Time limit of decoding.
SECONDS: Final = 30.0
#: How long a thread waits for a worker and its result.
_WORKER_SECONDS: Final = 120.0
logger = logging.getLogger(__name__)


class LocalShards:
    """The shards of one config: a directory with a file for each table. Its methods block."""

    def __init__(self, directory: Path, config: str) -> None:
        self.config = config
        self._directory = directory

    def tables(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self._directory.glob("*.parquet")))

    def paths(self, table: str) -> list[str]:
        return [f"{table}.parquet"]

    def outline(self, path: str) -> Outline:
        content = (self._directory / path).read_bytes()
        return Outline.of(path, len(content), content)

    def row_groups(
        self,
        table: str,
        path: str,
        groups: tuple[int, ...],
        columns: Collection[str],
        directory: Path,
        max_bytes: int,
    ) -> RowGroups:
        return RowGroups(self._directory / path, groups)


class HubShards:
    """The shards of one config of a repository, read by ranges of bytes. Its methods block."""

    def __init__(
        self,
        hub: HubReader,
        repository: Repository,
        config: str,
        outlines: Outlines,
        read_outline: OutlineReader,
    ) -> None:
        """Raises UnusableDataset if the repository has no such config."""
        self.config = config
        self._hub = hub
        self._repository = repository
        self._outlines = outlines
        self._read_outline = read_outline
        self._footer_bytes_left = _FOOTER_BYTES
        # The first condition is the fast one: there may be tens of thousands of files.
        self._paths = [
            path for path in repository.files if config in path and config in layout.configs([path])
        ]
        if not config or not self._paths:
            raise UnusableDataset(f"{repository.repo} has no config {config}")

    def tables(self) -> tuple[str, ...]:
        """Return the names of the tables."""
        return layout.configs(self._paths)[self.config]

    def paths(self, table: str) -> list[str]:
        """Return the paths of a table's shards in order. Raises UnusableDataset."""
        return layout.shards(self._paths, table, self.config)

    def outline(self, path: str) -> Outline:
        """Return the outline of a shard. Raises UnusableDataset, and as :class:`HubReader`."""
        file = self._repository.files[path]
        known = self._outlines.get(file.digest)
        if known is None:
            tail = fetch_tail(self._hub, self._repository, file, MAX_FOOTER_BYTES)
            self._footer_bytes_left -= len(tail)
            if self._footer_bytes_left < 0:
                raise TooLarge(f"the footers of config {self.config} are too large for the event display")
            known = self._read_outline(path, file.size, tail)
            self._outlines[file.digest] = known
        return known

    def row_groups(
        self,
        table: str,
        path: str,
        groups: tuple[int, ...],
        columns: Collection[str],
        directory: Path,
        max_bytes: int,
    ) -> RowGroups:
        """Copy columns of row groups to a sparse file in ``directory``, at their positions in the shard.

        Raises TooLarge if they have more than ``max_bytes``, and as :class:`HubReader`.
        """
        outline, file = self.outline(path), self._repository.files[path]
        stored = canonical(table, outline.columns)
        known = {old for column, old in stored.items() if column in (*columns, "event_id")}
        spans = outline.spans(groups, known)
        size = sum(stop - start for start, stop in spans)
        if size > max_bytes or len(spans) > _MAX_SPANS:
            raise TooLarge(
                f"this event needs {size:,} bytes in {len(spans):,} byte ranges of table {table}, and the "
                f"limit is {max_bytes:,} in {_MAX_SPANS:,}: request fewer tables, or load it with "
                "collidium.datasets"
            )
        path_here = directory / f"{table}.parquet"
        self._copy(file, outline, spans, path_here)
        return RowGroups(path_here, groups, size)

    def _copy(self, file: HubFile, outline: Outline, spans: Collection[Span], target: Path) -> None:
        with target.open("wb") as copy:
            copy.truncate(file.size)
            copy.seek(file.size - len(outline.tail))
            copy.write(outline.tail)
            address = self._repository.address(file.path)
            for span_start, span_stop in spans:
                copy.seek(span_start)
                for start in range(span_start, span_stop, _RANGE_BYTES):
                    stop = min(start + _RANGE_BYTES, span_stop)
                    copy.write(self._hub.read_range(address, file.path, start, stop)[0])


Shards = LocalShards | HubShards


def find(shards: Shards, table: str, event_id: int) -> tuple[str, tuple[int, ...]] | None:
    """Return the shard and the row groups that may have the event; None if no shard can have it.

    Bisects sorted shards, so that few footers are read. Otherwise reads the footers of up to
    :data:`MAX_SHARDS` shards. Blocks; raises as ``shards`` does.
    """
    paths = shards.paths(table)
    path = _bisected(shards, paths, event_id)
    if path is None and len(paths) > MAX_SHARDS:
        return None
    for candidate in paths if path is None else [path]:
        if groups := shards.outline(candidate).holding(event_id):
            return candidate, groups
    return None


def range_text(shards: Shards, table: str) -> str:
    """Describe the range of event ids, for messages. Blocks; raises as ``shards`` does."""
    paths = shards.paths(table)
    spans = [shards.outline(path).events for path in (paths if len(paths) <= MAX_SHARDS else ())]
    known = [span for span in spans if span is not None]
    if not known:
        return "its footers record no event range"
    return f"there are {min(span.start for span in known)} to {max(span.stop for span in known) - 1}"


def _bisected(shards: Shards, paths: Sequence[str], event_id: int) -> str | None:
    """The shard with the event, if event ids increase with the shards."""
    first, stop = 0, len(paths)
    while first < stop:
        middle = (first + stop) // 2
        outline: Outline = shards.outline(paths[middle])
        if outline.events is None:
            return None
        if event_id < outline.events.start:
            stop = middle
        elif event_id >= outline.events.stop:
            first = middle + 1
        else:
            return paths[middle] if outline.holding(event_id) else None
    return None


class Workers:
    """Runs decoding functions in an executor. Belongs to the event loop in which it is created."""

    def __init__(self, executor: Executor, memory_bytes: int) -> None:
        self._executor = executor
        self._limits = Limits(memory_bytes, SECONDS)
        self._loop = asyncio.get_running_loop()

    async def run(self, function: Callable[[Item], Result], item: Item, what: str) -> Result:
        """Return ``function(item)``; ``what`` names the input, for messages.

        Raises UnusableDataset, Unavailable if workers are killed or do not start, and the function's errors
        of the platform.
        """
        try:
            made = self._executor.map_repeating(
                function, [item], self._limits, raises=(CollidiumError,), local=True
            )
            async with aclosing(made):
                return await anext(made)
        except OWN_FAULTS as error:
            raise UnusableDataset(
                f"{what} cannot be shown: decoding it exceeds the limits, or its file is damaged"
            ) from error
        except WorkerDied as error:
            logger.warning("decoding %s was interrupted: %s", what, error)
            raise Unavailable("decoding was interrupted; try again in a moment") from error
        except CollidiumError:
            raise
        except Exception as error:  # untrusted input may raise anything
            logger.exception("%s cannot be decoded", what)
            raise UnusableDataset(f"{what} cannot be decoded") from error

    def outline(self, name: str, size: int, tail: bytes) -> Outline:
        """Read the outline of a shard from its end. Blocks. Raises UnusableDataset and Unavailable."""
        running = self.run(read_outline, (name, size, tail), name)
        reading = asyncio.run_coroutine_threadsafe(running, self._loop)
        try:
            return reading.result(_WORKER_SECONDS)
        except TimeoutError:
            reading.cancel()
            raise Unavailable("all worker processes are busy; try again in a moment") from None
