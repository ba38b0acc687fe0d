"""Exports events of a dataset to files of another format: HepMC3 or ROOT.

An export resumes by files, as a truncated ROOT file cannot be extended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.access import Fetched, catalogue, download
from collidium.datasets.exporting import hepmc3, root
from collidium.datasets.reading.shards import EventTable, blocks_of, common_events
from collidium.datasets.reading.types import EventIds
from collidium.errors import Conflict, UnusableDataset
from collidium.files import durable
from collidium.files.durable import is_full, replacing
from collidium.hub.downloads import NoRoom
from collidium.hub.sources import HubDataset
from collidium.runtime.progress import Progress, ProgressCount

Format = Literal["hepmc3", "root"]

#: The only table of a HepMC3 file.
_PARTICLES: Final = "particles"


@dataclass(frozen=True, slots=True)
class Exported:
    """The written files, of which ``file`` is the first."""

    file: Path
    config: str
    #: Source commit; ``local`` for a dataset in a local directory.
    revision: str
    events: int
    bytes: int
    files: int = 1
    #: Number of files that an interrupted export had written before.
    reused: int = 0
    #: ``table.column (type)`` of the columns that the format cannot hold.
    left_out: Sequence[str] = ()


def export(
    place: Path | HubDataset,
    file: Path,
    format: Format,  # noqa: A002  # its name on the command line
    *,
    config: str | None = None,
    tables: Sequence[str] | None = None,
    events: EventRange | None = None,
    events_per_file: int | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write events of a dataset to one file or several. Memory is bounded, and files are never incomplete.

    Parameters
    ----------
    place
        A directory or a repository; shards are downloaded if necessary.
    file
        The file, which is overwritten.
    format
        ``"root"``: one tree per table (:func:`.root.write_trees`), with an extra library; ``"hepmc3"``: text
        of the generator's particles (:func:`.hepmc3.event_texts`).
    config, events
        As for :func:`~collidium.datasets.download`.
    tables
        Names of the tables of a ROOT file; default: all.
    events_per_file
        Write ``events-00000-of-00007.root`` and so on for a ``file`` ``events.root``. Repeating an
        interrupted export writes the missing files; ``events.root.json`` records their source and options.
    progress
        Called with the number of events written and the total.

    Returns
    -------
    Exported
        The files and their size.

    Raises
    ------
    UnusableDataset
        If tables are missing or cannot be written.
    Conflict
        If the files of an interrupted export have another source or other options.
    ConfigurationError
        If a library is not installed.
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
    if events is None:
        ids = common_events(opened, ": choose --events")
    else:
        for table in opened.values():
            table.refuse_missing(events)
        ids = np.arange(events.start, events.stop)
    per_file = events_per_file or max(len(ids), 1)
    starts = range(0, len(ids), per_file) if events_per_file else [0]
    files, reused = [file], set[Path]()
    if events_per_file:
        total = f"{len(starts):05}"
        files = [file.with_name(f"{file.stem}-{n:05}-of-{total}{file.suffix}") for n in range(len(starts))]
        ends = [*ids[:1].tolist(), *ids[-1:].tolist(), len(ids)]
        options = {"format": format, "events": ends, "events_per_file": per_file}
        reused = _written_before(file, files, options | _source(fetched))
    for start, one in zip(starts, files, strict=True):
        if one not in reused:
            blocks = blocks_of(opened, ids[start : start + per_file])
            count = ProgressCount(progress, len(ids), done=start)
            with whole(one) as output:
                _write(output, format, _counted(blocks, count))
    return Exported(
        file=files[0] if files else file,
        config=chosen or config or "",
        revision=fetched.revision,
        events=len(ids),
        bytes=sum(one.stat().st_size for one in files),
        files=len(files),
        reused=len(reused),
        left_out=root.left_out({name: table.schema for name, table in opened.items()})
        if format == "root"
        else (),
    )


def _source(fetched: Fetched) -> dict[str, Any]:
    """Identify the source of events: a commit, or local files with their sizes and times."""
    if fetched.revision != "local":
        return {"revision": fetched.revision, "shards": fetched.shards}
    paths = [path for shards in fetched.shards.values() for path in shards]
    found = {path: (fetched.directory / path).stat() for path in paths}
    return {"shards": {path: [status.st_size, status.st_mtime_ns] for path, status in found.items()}}


def _written_before(file: Path, files: Sequence[Path], content: Mapping[str, Any]) -> set[Path]:
    """Return those of the ``files`` that an export with the same ``content`` wrote before.

    Records the content for the next time. Raises Conflict if the existing record differs.
    """
    note = file.with_name(f"{file.name}.json")
    text = json.dumps(content, indent=1)
    try:
        if note.exists():
            if note.read_bytes() != text.encode():
                raise Conflict(
                    f"{note} is of an export of other data or with other options, such as a source that has "
                    "changed since: remove it to write all files again, or choose another --output"
                )
            return {one for one in files if one.exists()}
        for one in files:
            one.unlink(missing_ok=True)
        durable.replace(note, text)
    except OSError as error:
        raise UnusableDataset(f"{note} cannot be written: {error.strerror}") from error
    return set()


def _write(output: BinaryIO, file_format: Format, blocks: Iterator[Mapping[str, pa.Table]]) -> None:
    if file_format == "root":
        root.write_trees(Path(output.name), blocks)
        return
    output.write(hepmc3.HEADER)
    for block in blocks:
        output.writelines(hepmc3.event_texts(block[_PARTICLES]))
    output.write(hepmc3.FOOTER)


def _counted(
    blocks: Iterable[tuple[EventIds, Mapping[str, pa.Table]]], count: ProgressCount
) -> Iterator[Mapping[str, pa.Table]]:
    """Yield the tables of blocks, and count the events of each block once it is written."""
    for ids, rows in blocks:
        yield rows
        count.add(len(ids))


@contextmanager
def whole(file: Path) -> Iterator[BinaryIO]:
    """Write ``file`` atomically: after an error nothing has changed.

    Raises NoRoom if the disk is full, and UnusableDataset if the file cannot be written.
    """
    try:
        with replacing(file) as output:
            yield output
    except OSError as error:
        if is_full(error):
            raise NoRoom(f"the disk is full: {file} was not written") from error
        raise UnusableDataset(f"{file} cannot be written: {error.strerror}") from error
