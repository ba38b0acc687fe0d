"""The sources of a mix: checks that columns do not distinguish channels, and matches energies of signals.

Energies are matched in ranges of 20%: nearest neighbours run out and leave a bias (an AUROC of the energy of
0.60, in ranges 0.50).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list, list_lengths
from collidium.contracts.task import EventRange
from collidium.datasets.publishing.blinding import CHANNELS
from collidium.datasets.publishing.preparing import ReportProgress
from collidium.datasets.publishing.survey import SurveyedConfig, problem, survey
from collidium.datasets.reading.shards import EventTable, blocks_of
from collidium.datasets.reading.types import EventIds
from collidium.datasets.schemas import without_notes
from collidium.errors import UnusableDataset

EVENT_ID: Final = pa.field("event_id", pa.uint32(), nullable=False)
Energies = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
#: Bin width of the natural logarithm of energies, for the match of signal and background.
WIDTH: Final = 0.2


@dataclass(frozen=True, slots=True)
class MixSource:
    """A channel and its events to be mixed."""

    channel: str
    config: SurveyedConfig
    tables: Mapping[str, EventTable]
    #: Ids of the events to mix, ascending.
    events: EventIds

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
        return sum(table.bytes_per_event * len(self.events) for table in self.tables.values())

    def blocks(self) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        """Yield the number of events of a block and its tables. Raises UnusableDataset for nulls."""
        for events, tables in blocks_of(self.tables, self.events):
            chosen = {
                name: table.filter(np.isin(np.asarray(table["event_id"]).astype(np.int64), events))
                for name, table in tables.items()
            }
            for name, table in chosen.items():
                _check_nulls(f"{self.config.name}, table {name}", table)
            yield len(events), chosen

    def visible_energies(self) -> Energies:
        """The energy of each event in the calorimeters' active layers, in GeV, shape (events,)."""
        if _CALO not in self.tables:
            raise UnusableDataset(f"{self.config.name} has no table {_CALO}, needed for visible energies")
        found = []
        for _, tables in blocks_of({_CALO: self.tables[_CALO]}, self.events):
            lengths = list_lengths(tables[_CALO], _ENERGY)
            deposits = np.asarray(pc.list_flatten(tables[_CALO].column(_ENERGY)), dtype=np.float64)
            found.append(np.bincount(np.repeat(np.arange(len(lengths)), lengths), deposits, len(lengths)))
        return np.concatenate(found)


_CALO: Final = "calo_hits"
_ENERGY: Final = "total_energy"


def matched(
    sources: Sequence[MixSource], signals: Sequence[str], percent: float, random: np.random.Generator
) -> list[MixSource]:
    """Reduce the sources to the events that :func:`matched_events` chooses by their visible energies.

    Raises UnusableDataset for unknown signals, and if energies do not match.
    """
    by_name = {source.channel: source for source in sources}
    if absent := sorted(set(signals) - by_name.keys()):
        raise UnusableDataset(f"there is no channel {', '.join(absent)} among {', '.join(by_name)}")
    if len(signals) == len(sources):
        raise UnusableDataset("a mix needs background, too: not every channel can be a signal")
    energies = {name: np.maximum(source.visible_energies(), 1e-9) for name, source in by_name.items()}
    background = {name: values for name, values in energies.items() if name not in signals}
    try:
        chosen = matched_events(background, {name: energies[name] for name in signals}, percent, random)
    except ValueError as error:
        raise UnusableDataset(str(error)) from error
    return [replace(source, events=source.events[chosen[source.channel]]) for source in sources]


def sources_of(
    directories: Sequence[Path], config: str, ids: EventRange, report: ReportProgress
) -> list[MixSource]:
    """Check all channels of all directories for a mix ``config`` with events of the range ``ids``.

    Raises UnusableDataset with all problems and differences.
    """
    sources: list[MixSource] = []
    for directory in directories:
        found = survey(directory, progress=lambda done, total: report("checking", done, total))
        for surveyed in found.configs:
            tables = {name: EventTable(name, [s.path for s in of]) for name, of in surveyed.tables.items()}
            channel = surveyed.name.rpartition("_pu")[0]
            sources.append(MixSource(channel, surveyed, tables, surveyed.events))
    problems = [*_problems_of_numbers(sources, ids), *_contradictions(sources, config)]
    if problems:
        raise UnusableDataset("these datasets cannot be mixed", errors=problems)
    return sources


def pileup_of(config: str) -> int:
    """The pileup of a config, by its name."""
    return int(config.rpartition("_pu")[2])


def _problems_of_numbers(sources: Sequence[MixSource], ids: EventRange) -> Iterator[dict[str, Any]]:
    channels = [source.channel for source in sources]
    if len(set(channels)) < 2:
        yield problem("channels", f"a mix needs two or more, not {', '.join(channels) or 'none'}")
    if repeated := sorted({channel for channel in channels if channels.count(channel) > 1}):
        yield problem("channels", f"{', '.join(repeated)}: occurs more than once")
    events = sum(len(source.config.events) for source in sources)
    if not 0 < events <= len(ids):
        yield problem("events", f"there are {events}, and ids from {ids.start} to {ids.stop - 1}")


def _contradictions(sources: Sequence[MixSource], config: str) -> Iterator[dict[str, Any]]:
    for source in sources:
        if pileup_of(source.config.name) != pileup_of(config):
            yield problem(source.config.name, f"has another pileup than {config}")
        if CHANNELS in source.tables:
            yield problem(source.config.name, f"is a mix itself: it has a table {CHANNELS}")
        yield from _differences(sources[0], source)


def _differences(first: MixSource, other: MixSource) -> Iterator[dict[str, Any]]:
    """Differences between the tables and columns of two channels."""
    ours, theirs = first.schemas, other.schemas
    for table in sorted(ours.keys() ^ theirs.keys()):
        yield problem(other.config.name, f"table {table} is only there, or only in {first.config.name}")
    for table in sorted(ours.keys() & theirs.keys()):
        kinds, others = ({field.name: field.type for field in of[table]} for of in (ours, theirs))
        for name in sorted(kinds.keys() | others.keys()):
            if kinds.get(name) != others.get(name):
                difference = f"column {name} is {others.get(name, 'missing')}, but "
                difference += f"{kinds.get(name, 'missing')} in {first.config.name}"
                yield problem(f"{other.config.name}, table {table}", difference)


def _check_nulls(shown: str, table: pa.Table) -> None:
    """Raise UnusableDataset for nulls: they would identify the channel that has them."""
    for name in table.column_names:
        values: Any = table.column(name)
        while values.null_count == 0 and is_list(values.type):
            values = pc.list_flatten(values)
        if values.null_count:
            raise UnusableDataset(f"{shown}: values of {name} are missing, in events that are to be mixed")


# -- signals: without a match, heavy particles would stand out by their energy alone ---------------------


def matched_events(
    background: Mapping[str, Energies],
    signals: Mapping[str, Energies],
    percent: float,
    random: np.random.Generator,
) -> dict[str, Indices]:
    """Choose events such that each signal is the same fraction of the background in every bin of energy.

    In bins in which a signal has too few events, fewer events of the background are chosen.

    Parameters
    ----------
    background, signals : mapping of str to numpy.ndarray of float64, shape (events,)
        Visible energies of the events of each channel, positive, in any unit.
    percent : float
        Percentage of signal in the chosen events, all signals together.
    random : numpy.random.Generator
        Chooses events and rounds their numbers.

    Returns
    -------
    dict of str to numpy.ndarray of int64, shape (chosen,)
        Indices of the chosen events of each channel, ascending.

    Raises
    ------
    ValueError
        If too few events match.
    """
    energies = {**background, **signals}
    bins = {name: np.floor(np.log(values) / WIDTH).astype(np.int64) for name, values in energies.items()}
    lowest = min(int(values.min()) for values in bins.values() if len(values))
    n_bins = max(int(values.max()) for values in bins.values() if len(values)) - lowest + 1
    counts = {name: np.bincount(values - lowest, minlength=n_bins) for name, values in bins.items()}
    total = np.sum([counts[name] for name in background], axis=0)
    share = percent / (100 - percent) / len(signals)
    kept = np.minimum(total, np.min([counts[name] for name in signals], axis=0) / share)
    if kept.sum() * share < 1:
        raise ValueError(
            f"{kept.sum():.0f} of {total.sum()} background events have visible energies of which every "
            "signal has enough events: simulate more of them, or ask for less signal"
        )
    chosen = {}
    for name, values in bins.items():
        part = share if name in signals else counts[name] / np.maximum(total, 1)
        numbers = np.floor(kept * part + random.random(n_bins)).astype(np.int64)
        order = random.permutation(len(values))
        order = order[np.argsort(values[order], kind="stable")]
        position = np.arange(len(order)) - np.repeat(np.cumsum(counts[name]) - counts[name], counts[name])
        chosen[name] = np.sort(order[position < np.repeat(numbers, counts[name])])
    return chosen
