"""Mixes the events of several channels into one dataset that does not tell them apart, but for one table.

Events get new ids in an order that chance alone decides, and all shards are written anew. The table
``channels`` says where each event is from: it is truth, and is withheld with the rest of it when the mix is
published. A mix is as blind as its sources are alike: columns and types that differ are refused; whether one
pipeline made them all, with beams and a detector alike, is for whoever mixes them to see to.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.task import EventRange
from collidium.datasets.publishing.preparing import Tell
from collidium.datasets.publishing.public_part import CHANNELS
from collidium.datasets.publishing.shuffling import Shuffle
from collidium.datasets.publishing.survey import SurveyedConfig, is_list, survey
from collidium.datasets.publishing.withholding import without_notes
from collidium.datasets.reading.blocks import blocks_of
from collidium.datasets.reading.shards import EventTable
from collidium.datasets.schemas import events_per_shard
from collidium.datasets.writing import ShardWriter, folder
from collidium.errors import InvalidInput, UnusableDataset
from collidium.held_files import held_directory, sweep

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}_pu\d{1,4}")
_EVENT_ID: Final = pa.field("event_id", pa.uint32(), nullable=False)
_CHANNELS_SCHEMA: Final = pa.schema([_EVENT_ID, pa.field("channel", pa.list_(pa.string()))])
_MOST_EVENTS: Final = 2**32


@dataclass(frozen=True, slots=True)
class Mixing:
    """What is to be mixed, and into what."""

    #: Datasets; a channel is what the name of a config has before ``_pu``.
    directories: Sequence[Path]
    #: ``<name>_pu<pileup>``.
    config: str
    #: A directory that is not there yet.
    output: Path
    first_event: int = 0
    #: Decides the order; None: chance does. Whoever knows it can tell the channels.
    seed: int | None = None

    def __post_init__(self) -> None:
        """Raises InvalidInput for what can be seen to be wrong before anything is read."""
        if not _NAME.fullmatch(self.config):
            raise InvalidInput(f"{self.config}: a mix is called <name>_pu<pileup>, for example anomaly_pu0")
        if self.output.exists():
            raise InvalidInput(f"{self.output} is there already: choose another directory, or delete it")
        if not 0 <= self.first_event < _MOST_EVENTS:
            raise InvalidInput(f"the first event must be 0 to {_MOST_EVENTS - 1}, not {self.first_event}")

    @property
    def pileup(self) -> int:
        """The pileup of all its events."""
        return int(self.config.rpartition("_pu")[2])


@dataclass(frozen=True, slots=True)
class Mixed:
    """What was made."""

    directory: Path
    config: str
    events: EventRange
    #: How many events each channel has: not to be told either.
    channels: Mapping[str, int]


def mix(mixing: Mixing, tell: Tell | None = None) -> Mixed:
    """Write the mix at ``mixing.output``, for its owner alone: whole, or not at all. Blocks.

    ``tell`` hears of the steps ``checking`` (bytes) and ``mixing`` (events). Raises UnusableDataset with
    everything that is wrong with the sources, or different in them.
    """
    tell = tell or (lambda *_: None)
    sources = _sources(mixing, tell)
    work = mixing.output.absolute().with_name(f".{mixing.output.name}.work")
    sweep(work)
    try:
        with held_directory(work) as scratch:
            made = _write(mixing, sources, scratch, tell)
            _publish(made.directory, mixing.output)
    finally:
        with suppress(OSError):  # another mix may be at work there
            work.rmdir()
    return Mixed(mixing.output, made.config, made.events, made.channels)


def _publish(made: Path, output: Path) -> None:
    try:
        made.rename(output)
    except OSError:
        if output.exists():
            raise InvalidInput(f"{output} was made by somebody else at the same time") from None
        raise


# -- sources --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """A channel to be mixed in."""

    channel: str
    config: SurveyedConfig
    tables: Mapping[str, EventTable]

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """Columns by their canonical names, ``event_id`` first."""
        schemas = {name: without_notes(table.schema) for name, table in self.tables.items()}
        return {
            name: pa.schema([_EVENT_ID, *(field for field in schema if field.name != "event_id")])
            for name, schema in schemas.items()
        }

    @property
    def bytes(self) -> float:
        return sum(table.bytes_per_event * len(table.event_ids) for table in self.tables.values())


def _sources(mixing: Mixing, tell: Tell) -> list[_Source]:
    """All channels of all directories. Raises UnusableDataset."""
    sources: list[_Source] = []
    for directory in mixing.directories:
        found = survey(directory, progress=lambda done, total: tell("checking", done, total))
        for config in found.configs:
            tables = {name: EventTable(name, [s.path for s in of]) for name, of in config.tables.items()}
            sources.append(_Source(config.name.rpartition("_pu")[0], config, tables))
    problems = list(_contradictions(mixing, sources))
    if problems:
        raise UnusableDataset("these datasets cannot be mixed", errors=problems)
    return sources


def _contradictions(mixing: Mixing, sources: Sequence[_Source]) -> Iterator[dict[str, Any]]:
    channels = [source.channel for source in sources]
    if len(set(channels)) < 2:
        yield _problem("channels", f"a mix needs two or more, not {', '.join(channels) or 'none'}")
    if repeated := sorted({channel for channel in channels if channels.count(channel) > 1}):
        yield _problem("channels", f"{', '.join(repeated)}: there more than once")
    events = sum(len(source.config.events) for source in sources)
    if not 0 < events <= _MOST_EVENTS - mixing.first_event:
        yield _problem(
            "events", f"there are {events}, and ids from {mixing.first_event} to {_MOST_EVENTS - 1}"
        )
    for source in sources:
        if int(source.config.name.rpartition("_pu")[2]) != mixing.pileup:
            yield _problem(source.config.name, f"has another pileup than {mixing.config}")
        if CHANNELS in source.tables:
            yield _problem(source.config.name, f"is a mix itself: it has a table {CHANNELS}")
        yield from _differences(sources[0], source)


def _differences(first: _Source, other: _Source) -> Iterator[dict[str, Any]]:
    """What tells two channels apart before anybody looks at a value."""
    ours, theirs = first.schemas, other.schemas
    for table in sorted(ours.keys() ^ theirs.keys()):
        yield _problem(other.config.name, f"table {table} is only there, or only in {first.config.name}")
    for table in sorted(ours.keys() & theirs.keys()):
        kinds, others = ({field.name: field.type for field in of[table]} for of in (ours, theirs))
        for name in sorted(kinds.keys() | others.keys()):
            if kinds.get(name) != others.get(name):
                told = f"column {name} is {others.get(name, 'missing')}, but "
                told += f"{kinds.get(name, 'missing')} in {first.config.name}"
                yield _problem(f"{other.config.name}, table {table}", told)


def _problem(field: str, detail: str) -> dict[str, Any]:
    return {"field": field, "detail": detail}


# -- writing --------------------------------------------------------------------------------------------


def _write(mixing: Mixing, sources: Sequence[_Source], scratch: Path, tell: Tell) -> Mixed:
    counts = [len(source.config.events) for source in sources]
    events = EventRange(mixing.first_event, mixing.first_event + sum(counts))
    chance = np.random.default_rng(secrets.randbits(128) if mixing.seed is None else mixing.seed)
    ids = events.start + chance.permutation(len(events))
    names = np.repeat([source.channel for source in sources], counts)[np.argsort(ids)]
    directory = scratch / "mix"
    directory.mkdir(mode=0o700)
    with Shuffle(scratch, events, sum(source.bytes for source in sources)) as shuffle:
        for done, tables in _renumbered(sources, ids):
            shuffle.deal(tables)
            tell("mixing", done, len(events))
        with ExitStack() as stack:
            writers = {
                name: stack.enter_context(_writer(mixing, directory, name, schema))
                for name, schema in {**sources[0].schemas, CHANNELS: _CHANNELS_SCHEMA}.items()
            }
            for tables in shuffle.gathered():
                for name, table in {**tables, CHANNELS: _channels_of(tables, events, names)}.items():
                    writers[name].write(table)
    channels = {source.channel: count for source, count in zip(sources, counts, strict=True)}
    return Mixed(directory, mixing.config, events, channels)


def _writer(mixing: Mixing, directory: Path, table: str, schema: pa.Schema) -> ShardWriter:
    size = events_per_shard(mixing.pileup)
    return ShardWriter(directory / folder(mixing.config, table), "train", schema, events_per_shard=size)


def _channels_of(tables: Mapping[str, pa.Table], events: EventRange, names: npt.NDArray[np.str_]) -> pa.Table:
    """The channel of each event of the tables; ``names`` are those of all events in order."""
    ids = next(iter(tables.values())).column("event_id")
    channels = names[np.asarray(ids).astype(np.int64) - events.start]
    columns: dict[str, Any] = {"event_id": ids, "channel": [[str(name)] for name in channels]}
    return pa.table(columns, schema=_CHANNELS_SCHEMA)


def _renumbered(
    sources: Sequence[_Source], ids: npt.NDArray[np.int64]
) -> Iterator[tuple[int, dict[str, pa.Table]]]:
    """The events of all sources with new ids, some at a time, and how many there were so far."""
    schemas = sources[0].schemas
    done = 0
    for source in sources:
        for events, tables in blocks_of(source.tables, source.config.events):
            new = pa.array(ids[done : done + len(events)], pa.uint32())
            done += len(events)
            for name, table in tables.items():
                _refuse_nulls(f"{source.config.name}, table {name}", table)
            yield done, {name: _with_ids(table, new, schemas[name]) for name, table in tables.items()}


def _with_ids(table: pa.Table, ids: pa.Array[Any], schema: pa.Schema) -> pa.Table:
    columns: dict[str, Any] = {name: table.column(name) for name in schema.names}
    return pa.table(columns | {"event_id": ids}).cast(schema)


def _refuse_nulls(shown: str, table: pa.Table) -> None:
    """What is missing in one channel alone would tell it."""
    for name in table.column_names:
        values: Any = table.column(name)
        while values.null_count == 0 and is_list(values.type):
            values = pc.list_flatten(values)
        if values.null_count:
            raise UnusableDataset(f"{shown}: values of {name} are missing, in events that are to be mixed")
