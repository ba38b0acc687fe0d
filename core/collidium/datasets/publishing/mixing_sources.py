"""The sources of a mix: channels that only their values distinguish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.task import EventRange
from collidium.datasets.publishing.preparing import ReportProgress
from collidium.datasets.publishing.public_part import CHANNELS
from collidium.datasets.publishing.survey import SurveyedConfig, is_list, survey
from collidium.datasets.reading.shards import EventTable, blocks_of
from collidium.datasets.schemas import without_notes
from collidium.errors import UnusableDataset

EVENT_ID: Final = pa.field("event_id", pa.uint32(), nullable=False)


@dataclass(frozen=True, slots=True)
class Source:
    """A channel to be mixed in."""

    channel: str
    config: SurveyedConfig
    tables: Mapping[str, EventTable]

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """Columns by their canonical names, ``event_id`` first."""
        schemas = {name: without_notes(table.schema) for name, table in self.tables.items()}
        return {
            name: pa.schema([EVENT_ID, *(field for field in schema if field.name != "event_id")])
            for name, schema in schemas.items()
        }

    @property
    def bytes(self) -> float:
        return sum(table.bytes_per_event * len(table.event_ids) for table in self.tables.values())

    def blocks(self) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        """All events, some at a time, and how many. Raises UnusableDataset where a value is missing."""
        for events, tables in blocks_of(self.tables, self.config.events):
            for name, table in tables.items():
                _refuse_nulls(f"{self.config.name}, table {name}", table)
            yield len(events), tables


def sources_of(
    directories: Sequence[Path], config: str, ids: EventRange, report: ReportProgress
) -> list[Source]:
    """All channels of all directories, for a mix ``config`` whose events get some of the ``ids``.

    Raises UnusableDataset with everything that is wrong with them, or different in them.
    """
    sources: list[Source] = []
    for directory in directories:
        found = survey(directory, progress=lambda done, total: report("checking", done, total))
        for surveyed in found.configs:
            tables = {name: EventTable(name, [s.path for s in of]) for name, of in surveyed.tables.items()}
            sources.append(Source(surveyed.name.rpartition("_pu")[0], surveyed, tables))
    problems = [*_counted(sources, ids), *_contradictions(sources, config)]
    if problems:
        raise UnusableDataset("these datasets cannot be mixed", errors=problems)
    return sources


def pileup_of(config: str) -> int:
    """The pileup of all events of a config, which its name ends with."""
    return int(config.rpartition("_pu")[2])


def _counted(sources: Sequence[Source], ids: EventRange) -> Iterator[dict[str, Any]]:
    channels = [source.channel for source in sources]
    if len(set(channels)) < 2:
        yield _problem("channels", f"a mix needs two or more, not {', '.join(channels) or 'none'}")
    if repeated := sorted({channel for channel in channels if channels.count(channel) > 1}):
        yield _problem("channels", f"{', '.join(repeated)}: there more than once")
    events = sum(len(source.config.events) for source in sources)
    if not 0 < events <= len(ids):
        yield _problem("events", f"there are {events}, and ids from {ids.start} to {ids.stop - 1}")


def _contradictions(sources: Sequence[Source], config: str) -> Iterator[dict[str, Any]]:
    for source in sources:
        if pileup_of(source.config.name) != pileup_of(config):
            yield _problem(source.config.name, f"has another pileup than {config}")
        if CHANNELS in source.tables:
            yield _problem(source.config.name, f"is a mix itself: it has a table {CHANNELS}")
        yield from _differences(sources[0], source)


def _differences(first: Source, other: Source) -> Iterator[dict[str, Any]]:
    """What distinguishes two channels besides their values."""
    ours, theirs = first.schemas, other.schemas
    for table in sorted(ours.keys() ^ theirs.keys()):
        yield _problem(other.config.name, f"table {table} is only there, or only in {first.config.name}")
    for table in sorted(ours.keys() & theirs.keys()):
        kinds, others = ({field.name: field.type for field in of[table]} for of in (ours, theirs))
        for name in sorted(kinds.keys() | others.keys()):
            if kinds.get(name) != others.get(name):
                difference = f"column {name} is {others.get(name, 'missing')}, but "
                difference += f"{kinds.get(name, 'missing')} in {first.config.name}"
                yield _problem(f"{other.config.name}, table {table}", difference)


def _problem(field: str, detail: str) -> dict[str, Any]:
    return {"field": field, "detail": detail}


def _refuse_nulls(shown: str, table: pa.Table) -> None:
    """A column that is missing in one channel alone would identify it."""
    for name in table.column_names:
        values: Any = table.column(name)
        while values.null_count == 0 and is_list(values.type):
            values = pc.list_flatten(values)
        if values.null_count:
            raise UnusableDataset(f"{shown}: values of {name} are missing, in events that are to be mixed")
