"""Events of a dataset in one file of another format: whole, or not at all, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.access import catalogue, download
from collidium.datasets.exporting import hepmc3, root
from collidium.datasets.reading.dataset import refuse_missing
from collidium.datasets.reading.shards import EventIds, EventTable, blocks_of
from collidium.errors import UnusableDataset
from collidium.files.durable import is_full, replacing
from collidium.hub.downloads import NoRoom, Progress
from collidium.hub.sources import HubDataset

Format = Literal["hepmc3", "root"]

#: The only table that HepMC3 has room for.
_PARTICLES: Final = "particles"


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written."""

    file: Path
    config: str
    #: The commit that the events are of; ``local`` where there was nothing to fetch.
    revision: str
    events: int
    bytes: int


def export(
    place: Path | HubDataset,
    file: Path,
    format: Format,  # noqa: A002  # its name on the command line
    *,
    config: str | None = None,
    tables: Sequence[str] | None = None,
    events: EventRange | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write events of a dataset to a file, in place of one that is there.

    Parameters
    ----------
    place
        A directory or a repository; shards are downloaded if necessary.
    file
        The file; it appears when it is complete.
    format
        ``"root"``: one tree a table (:func:`.root.write_trees`), with an extra library; ``"hepmc3"``: text of
        the generator's particles (:func:`.hepmc3.event_texts`).
    config, events
        As for :func:`~collidium.datasets.download`.
    tables
        Names of the tables of a ROOT file; all by default.
    progress
        Called with the events written and the events in all.

    Returns
    -------
    Exported
        Where it is, and how much.

    Raises
    ------
    UnusableDataset
        For tables that are missing or cannot be written.
    ConfigurationError
        Where a library is not installed.
    CollidiumError
        As :func:`~collidium.datasets.download`; also :class:`~collidium.datasets.NoRoom`.
    """
    with catalogue(place) as found:
        chosen = layout.choose(found.sizes, config)
    names = [_PARTICLES] if format == "hepmc3" else tables
    fetched = download(place, chosen or config, names, events)
    opened = {
        name: EventTable(name, [fetched.directory / path for path in paths])
        for name, paths in fetched.shards.items()
    }
    ids = next(iter(opened.values())).event_ids
    for name, table in opened.items():
        if events is not None:
            refuse_missing(table, events)
        elif not np.array_equal(table.event_ids, ids):
            raise UnusableDataset(f"table {name} has other events than {next(iter(opened))}: choose --events")
    if events is not None:
        ids = np.arange(events.start, events.stop)
    with whole(file) as output:
        blocks = _counted(blocks_of(opened, ids), len(ids), progress)
        if format == "root":
            root.write_trees(Path(output.name), blocks)
        else:
            output.write(hepmc3.HEADER)
            for block in blocks:
                output.writelines(hepmc3.event_texts(block[_PARTICLES]))
            output.write(hepmc3.FOOTER)
            output.flush()
        size = Path(output.name).stat().st_size
    return Exported(file, chosen or config or "", fetched.revision, len(ids), size)


def _counted(
    blocks: Iterator[tuple[EventIds, Mapping[str, pa.Table]]], total: int, progress: Progress | None
) -> Iterator[Mapping[str, pa.Table]]:
    done = 0
    for ids, rows in blocks:
        yield rows
        done += len(ids)
        if progress:
            progress(done, total)


@contextmanager
def whole(file: Path) -> Iterator[BinaryIO]:
    """A file next to ``file`` that gets its name in the end; gone where something goes wrong before.

    Raises NoRoom when the disk is full, and UnusableDataset where the file cannot be written.
    """
    try:
        with replacing(file) as output:
            yield output
    except OSError as error:
        if is_full(error):
            raise NoRoom(f"there is no room left for {file}") from error
        raise UnusableDataset(f"{file} cannot be written: {error.strerror}") from error
