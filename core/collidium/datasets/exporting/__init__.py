"""Exports events of a dataset to files of another format: HepMC3 or ROOT."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list, lengths_of
from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.access import Fetched, catalogue, download
from collidium.datasets.exporting import hepmc3
from collidium.datasets.reading.shards import EventIds, EventTable, blocks_of, common_events
from collidium.errors import ConfigurationError, Conflict, UnusableDataset
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
        ``"root"``: one tree per table (:func:`write_trees`), with an extra library; ``"hepmc3"``: text
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
        write_trees(Path(output.name), blocks)
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


def write_trees(file: Path, blocks: Iterable[Mapping[str, pa.Table]]) -> None:
    """Write a tree for each table, with an entry for each event.

    A list column becomes a ragged branch, with its length in branch ``n<column>``. Lists of lists are
    concatenated per event, and branch ``<column>_lengths`` has the length of each. Withheld lists are empty.

    Parameters
    ----------
    file
        The file, which is overwritten.
    blocks
        Rows of some events by table. All blocks have the same tables and columns.

    Raises
    ------
    ConfigurationError
        If uproot is not installed.
    """
    try:
        import awkward
        import uproot
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"{error.name} is not installed: pip install 'collidium[root]'") from error
    trees: dict[str, Any] = {}
    with uproot.recreate(file) as output:
        for block in blocks:
            for table, rows in block.items():
                branches = _branches(rows, awkward)
                if table not in trees:
                    types = {name: awkward.type(branch) for name, branch in branches.items()}
                    trees[table] = output.mktree(table, {name: kind.content for name, kind in types.items()})
                trees[table].extend(branches)


def _branches(rows: pa.Table, awkward: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in rows.column_names:
        column: Any = rows.column(name)
        if not is_list(column.type):
            found[name] = awkward.Array(np.asarray(column))
            continue
        lengths, values = lengths_of(column), pc.list_flatten(column)
        if is_list(values.type):
            inner = lengths_of(values)
            found[f"{name}_lengths"] = awkward.unflatten(inner.astype(np.int32), lengths)
            offsets = np.concatenate([[0], np.cumsum(inner)])
            ends = np.cumsum(lengths)
            lengths, values = offsets[ends] - offsets[ends - lengths], pc.list_flatten(values)
        found[name] = awkward.unflatten(np.asarray(values), lengths)
    return found
