"""What a shard holds, told by its footer alone: a few kB of a file that may have gigabytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from collidium.contracts.task import EventRange
from collidium.errors import UnusableDataset
from collidium.files import durable

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from collidium.hub.reader import HubReader
    from collidium.hub.repository import HubFile, Repository

#: Bytes asked for at first: most footers are shorter.
TAIL_BYTES: Final = 64 * 1024
#: No shard needs as much.
_MOST_TAIL_BYTES: Final = 64 * 1024**2
_ENDING: Final = 8
_MAGIC: Final = b"PAR1"


@dataclass(frozen=True, slots=True)
class Footer:
    """What the footer of a shard says."""

    #: One row is one event.
    rows: int
    row_groups: int
    #: Size in memory, nearly.
    uncompressed_bytes: int
    #: The least and the greatest event id; None where the shard is empty or does not tell.
    first: int | None
    last: int | None
    #: Names as stored, with their types.
    columns: dict[str, str]

    @classmethod
    def of(cls, metadata: pq.FileMetaData) -> Self:
        """What matters of a parquet footer."""
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        ends = [_ends(group) for group in groups if group.num_rows]
        known = [end for end in ends if end is not None]
        told = bool(known) and len(known) == len(ends)
        schema = metadata.schema.to_arrow_schema()
        return cls(
            rows=metadata.num_rows,
            row_groups=len(groups),
            uncompressed_bytes=sum(group.total_byte_size for group in groups),
            first=min(first for first, _ in known) if told else None,
            last=max(last for _, last in known) if told else None,
            columns={field.name: str(field.type) for field in schema},
        )

    def may_hold(self, events: EventRange) -> bool:
        """Whether the shard may have events of the range."""
        if self.first is None or self.last is None:
            return self.rows > 0
        return self.first < events.stop and self.last >= events.start


def _ends(group: Any) -> tuple[int, int] | None:
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema == "event_id":
            found = column.statistics
            if found is None or not found.has_min_max or not isinstance(found.min, int):
                return None
            return found.min, found.max
    return None


def read_footer(path: Path) -> Footer:
    """The footer of a local shard. Raises UnusableDataset for a file that is no parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return Footer.of(pq.read_metadata(path))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UnusableDataset(f"{path.name}: cannot be read as parquet: {error}") from error


def fetch_footer(hub: HubReader, repository: Repository, file: HubFile) -> Footer | None:
    """The footer of a shard on a hub, without the rest; None where the hub does not give ranges.

    Raises UnusableDataset for a file that is no parquet, and what :class:`HubReader` raises.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail = fetch_tail(hub, repository, file)
    if tail is None:
        return None
    try:
        return Footer.of(pq.read_metadata(pa.BufferReader(tail)))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UnusableDataset(f"{file.path}: cannot be read as parquet: {error}") from error


def fetch_tail(
    hub: HubReader, repository: Repository, file: HubFile, longest: int = _MOST_TAIL_BYTES
) -> bytes | None:
    """The end of a shard with all of its footer; None where the hub does not give ranges.

    Raises UnusableDataset where there is no footer or a longer one, and what :class:`HubReader` raises.
    """
    tail = _tail(hub, repository, file, TAIL_BYTES)
    if tail is None:
        return None
    length = int.from_bytes(tail[-_ENDING : -len(_MAGIC)], "little") + _ENDING
    if tail[-len(_MAGIC) :] != _MAGIC or length > min(file.size, longest):
        raise UnusableDataset(f"{file.path}: is no parquet file")
    return tail if length <= len(tail) else _tail(hub, repository, file, length)


def _tail(hub: HubReader, repository: Repository, file: HubFile, length: int) -> bytes | None:
    length = min(length, file.size)
    if length < _ENDING + len(_MAGIC):
        return b"\0" * _ENDING
    wanted = f"{file.size - length}-{file.size - 1}"

    def ask() -> bytes | None:
        with hub.open(repository.address(file.path), file.path, byte_range=wanted) as response:
            if response.status_code != 206 or response.headers.get("Content-Length") != str(length):
                return None
            return response.read()

    return hub.patiently(ask)


def remembered(directory: Path, digest: str) -> Footer | None:
    """The footer of the content ``digest`` that :func:`remember` kept."""
    try:
        return Footer(**json.loads((directory / f"{digest}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        # Not there, or of another version: it is asked for again.
        return None


def remember(directory: Path, digest: str, footer: Footer) -> None:
    """Keep a footer, so that nobody asks the hub for it again."""
    directory.mkdir(parents=True, exist_ok=True)
    durable.replace(directory / f"{digest}.json", json.dumps(asdict(footer)))
