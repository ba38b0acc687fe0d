"""The shards of a dataset, of which an event is a small piece: on this machine, or on a hub."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.datasets import layout
from collidium.datasets.footers import fetch_tail
from collidium.datasets.schemas import canonical
from collidium.errors import TooLarge, UnusableDataset
from collidium.event_display.decoding import Piece
from collidium.event_display.outline import Outline, OutlineReader, Span
from collidium.event_display.tables import SHOWN

if TYPE_CHECKING:
    from collidium.hub.reader import HubReader
    from collidium.hub.repository import HubFile, Repository

#: No shard of events needs a longer footer.
LONGEST_FOOTER: Final = 8 * 1024**2
#: Read by one request.
_PIECE_BYTES: Final = 8 * 1024**2
#: Most bytes of footers, and ranges of bytes of a table, for one look.
_FOOTER_BYTES: Final = 256 * 1024**2
_MOST_SPANS: Final = 256

#: Outlines of shards by the digests of their content: such never change.
Outlines = MutableMapping[str, Outline]


class Shards(ABC):
    """The shards of one config. Its methods block."""

    config: str

    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""

    @abstractmethod
    def paths(self, table: str) -> list[str]:
        """The shards of a table, in order of their names. Raises UnusableDataset."""

    @abstractmethod
    def outline(self, path: str) -> Outline:
        """What the footer of a shard says. Raises UnusableDataset, and what :class:`HubReader` raises."""

    @abstractmethod
    def piece(
        self, table: str, path: str, groups: tuple[int, ...], directory: Path, most_bytes: int
    ) -> Piece:
        """Row groups of a shard on this machine, if need be below ``directory``.

        Raises TooLarge where they have more than ``most_bytes``, and what :class:`HubReader` raises.
        """


class LocalShards(Shards):
    """A directory with a file for each table."""

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

    def piece(
        self, table: str, path: str, groups: tuple[int, ...], directory: Path, most_bytes: int
    ) -> Piece:
        return Piece(self._directory / path, groups)


class HubShards(Shards):
    """A config of a repository, read by ranges of bytes."""

    def __init__(
        self,
        hub: HubReader,
        repository: Repository,
        config: str,
        outlines: Outlines,
        read_outline: OutlineReader,
    ) -> None:
        """Raises UnusableDataset where the repository has no such config."""
        self.config = config
        self._hub = hub
        self._repository = repository
        self._outlines = outlines
        self._read_outline = read_outline
        self._footer_bytes_left = _FOOTER_BYTES
        # The first condition is the quick one: there may be tens of thousands of files.
        self._paths = [
            path for path in repository.files if config in path and config in layout.configs([path])
        ]
        if not config or not self._paths:
            raise UnusableDataset(f"{repository.repo} has no config {config}")

    def tables(self) -> tuple[str, ...]:
        return layout.configs(self._paths)[self.config]

    def paths(self, table: str) -> list[str]:
        return layout.shards(self._paths, table, self.config)

    def outline(self, path: str) -> Outline:
        file = self._repository.files[path]
        known = self._outlines.get(file.digest)
        if known is None:
            tail = fetch_tail(self._hub, self._repository, file, LONGEST_FOOTER)
            self._footer_bytes_left -= len(tail)
            if self._footer_bytes_left < 0:
                raise TooLarge(f"config {self.config} has too many and too long footers for a look")
            known = self._read_outline(path, file.size, tail)
            self._outlines[file.digest] = known
        return known

    def piece(
        self, table: str, path: str, groups: tuple[int, ...], directory: Path, most_bytes: int
    ) -> Piece:
        """A file with holes: the footer and the wanted columns lie where they do in the shard."""
        outline, file = self.outline(path), self._repository.files[path]
        stored = canonical(table, outline.columns)
        known = {old for column, old in stored.items() if column in (*SHOWN[table].names, "event_id")}
        spans = outline.spans(groups, known)
        size = sum(stop - start for start, stop in spans)
        if size > most_bytes or len(spans) > _MOST_SPANS:
            raise TooLarge(
                f"table {table} has {size:,} bytes in {len(spans):,} places to be read for this event, and "
                f"{most_bytes:,} in {_MOST_SPANS:,} is the most for a look: ask for fewer tables, or load "
                "it with collidium.datasets"
            )
        place = directory / f"{table}.parquet"
        self._copy(file, outline, spans, place)
        return Piece(place, groups, size)

    def _copy(self, file: HubFile, outline: Outline, spans: Collection[Span], place: Path) -> None:
        with place.open("wb") as copy:
            copy.truncate(file.size)
            copy.seek(file.size - len(outline.tail))
            copy.write(outline.tail)
            address = self._repository.address(file.path)
            for span_start, span_stop in spans:
                copy.seek(span_start)
                for start in range(span_start, span_stop, _PIECE_BYTES):
                    stop = min(start + _PIECE_BYTES, span_stop)
                    copy.write(self._hub.read_range(address, file.path, start, stop)[0])
