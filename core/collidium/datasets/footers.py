"""What a shard holds, by its footer alone: a few kB of a file that may have gigabytes."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from collidium.contracts.task import EventRange
from collidium.errors import UnusableDataset
from collidium.files import durable
from collidium.hub.reader import NoRanges

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from collidium.hub.reader import HubReader
    from collidium.hub.repository import HubFile, Repository

#: Bytes requested at first: most footers are shorter.
TAIL_BYTES: Final = 64 * 1024
#: No shard needs as much.
_MAXIMUM_TAIL_BYTES: Final = 64 * 1024**2
_ENDING: Final = 8
_MAGIC: Final = b"PAR1"


@dataclass(frozen=True, slots=True)
class Footer:
    """The relevant part of a parquet footer."""

    #: One row is one event.
    rows: int
    #: The lowest and the highest event id; None where the shard is empty or has no statistics.
    first: int | None
    last: int | None
    #: Names as stored, with their types.
    columns: dict[str, str]

    @classmethod
    def of(cls, metadata: pq.FileMetaData) -> Self:
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        ends = [_ends(group) for group in groups if group.num_rows]
        known = [end for end in ends if end is not None]
        complete = bool(known) and len(known) == len(ends)
        schema = metadata.schema.to_arrow_schema()
        return cls(
            rows=metadata.num_rows,
            first=min(first for first, _ in known) if complete else None,
            last=max(last for _, last in known) if complete else None,
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
    return _parse(path, path.name)


def fetch_footer(hub: HubReader, repository: Repository, file: HubFile) -> Footer | None:
    """The footer of a shard on a hub, without the rest; None where the hub does not give ranges.

    Raises UnusableDataset for a file that is no parquet, and what :class:`HubReader` raises.
    """
    try:
        tail = fetch_tail(hub, repository, file)
    except NoRanges:
        return None
    return _parse(io.BytesIO(tail), file.path)


def _parse(file: Path | io.BytesIO, name: str) -> Footer:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return Footer.of(pq.read_metadata(file))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UnusableDataset(f"{name}: cannot be read as parquet: {error}") from error


def fetch_tail(
    hub: HubReader, repository: Repository, file: HubFile, maximum: int = _MAXIMUM_TAIL_BYTES
) -> bytes:
    """The end of a shard with all of its footer.

    Raises UnusableDataset where there is no footer or a longer one than ``maximum`` bytes, and what
    :meth:`HubReader.read_range` raises.
    """
    length = min(TAIL_BYTES, file.size)
    if length < _ENDING + len(_MAGIC):
        raise UnusableDataset(f"{file.path}: is no parquet file")
    address = repository.address(file.path)
    tail, _ = hub.read_range(address, file.path, file.size - length, file.size)
    length = int.from_bytes(tail[-_ENDING : -len(_MAGIC)], "little") + _ENDING
    if tail[-len(_MAGIC) :] != _MAGIC or length > min(file.size, maximum):
        raise UnusableDataset(f"{file.path}: is no parquet file")
    if length > len(tail):
        tail, _ = hub.read_range(address, file.path, file.size - length, file.size)
    return tail


def load_footer(note: Path) -> Footer | None:
    """The footer that :func:`save_footer` wrote, if there is one."""
    try:
        return Footer(**json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        # Not there, or of another version: it is fetched again.
        return None


def save_footer(note: Path, footer: Footer) -> None:
    """Write a footer to a file, so that it need not be fetched again."""
    note.parent.mkdir(parents=True, exist_ok=True)
    durable.replace(note, json.dumps(asdict(footer)))
