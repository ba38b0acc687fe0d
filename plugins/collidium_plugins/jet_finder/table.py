"""Computes the table ``jets`` from calorimeter cells and particles, and adds it to a dataset.

The flavour of a jet is that of the weakly decaying hadrons of the hard scatter in it.

Electrons and photons count as light jets: to remove them would take truth. Hadrons are found by a list of
codes, as excited states break the rules about digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collidium.contracts.tables import list_lengths, nested, positions_in_event
from collidium.datasets import layout
from collidium.datasets.reading.dataset import parquet_files
from collidium.datasets.reading.shards import EventTable, blocks_of, common_events
from collidium.datasets.schemas import SCHEMAS
from collidium.datasets.writing import ShardWriter
from collidium.errors import Conflict, UnusableDataset
from collidium.files.held import work_directory
from collidium.runtime.progress import Progress, ProgressCount
from collidium_plugins.jet_finder.clustering import (
    FourVectors,
    Integers,
    anti_kt,
    deposits,
    flat_columns,
    towers,
)

#: Minimum pT of jets, GeV, and maximum |η|, which is within the tracker.
MIN_PT: Final = 20.0
MAX_ETA: Final = 2.5

#: Margin of FastJet's minimum pT, GeV, for different rounding of sums.
_MARGIN: Final = 0.01
#: Scale of the momenta of hadrons, which are clustered as ghosts (M. Cacciari, G. Salam, Phys. Lett. B 659
#: (2008) 119).
_GHOST: Final = 1e-100

SCHEMA: Final = SCHEMAS["jets"]

BOTTOM: Final = 5
CHARM: Final = 4
LIGHT: Final = 0

#: Flavour of weakly decaying hadrons with b or c quarks, by absolute PDG id. Source of the numbers: Monte
#: Carlo numbering scheme, Review of Particle Physics, R. L. Workman et al., PTEP 2022, 083C01, chapter 45.
WEAKLY_DECAYING: Final[Mapping[int, int]] = {
    # B0, B+, Bs, Bc
    **dict.fromkeys((511, 521, 531, 541), BOTTOM),
    # Λb; Ξb-, Ξb0; Ωb; with c: Ξbc, Ωbc, Ωbcc; with two: Ξbb, Ωbb, Ωbbc; three
    **dict.fromkeys((5122, 5132, 5232, 5332, 5142, 5242, 5342, 5442), BOTTOM),
    **dict.fromkeys((5512, 5522, 5532, 5542, 5554), BOTTOM),
    # D+, D0, Ds
    **dict.fromkeys((411, 421, 431), CHARM),
    # Λc; Ξc0, Ξc+; Ωc; with two: Ξcc, Ωcc; three
    **dict.fromkeys((4122, 4132, 4232, 4332, 4412, 4422, 4432, 4444), CHARM),
}
_TABLE: Final = "jets"
_SOURCE: Final = "calo_hits"
#: Working directory within the dataset; hidden files are not part of a dataset.
_WORK: Final = ".jets"
_NAMES: Final = {"b": BOTTOM, "c": CHARM, "light": LIGHT}


def flavour_of(pdg_id: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return 5 for weakly decaying hadrons with b quarks, 4 for those with c and no b quarks, else 0."""
    known = np.array(sorted(WEAKLY_DECAYING))
    flavours = np.array([WEAKLY_DECAYING[number] for number in known.tolist()], np.uint8)
    kind = np.abs(pdg_id)
    place = np.minimum(np.searchsorted(known, kind), len(known) - 1)
    return np.where(known[place] == kind, flavours[place], np.uint8(LIGHT))


def strongest(
    flavours: npt.NDArray[np.uint8], jet: npt.NDArray[np.int64], jets: int
) -> npt.NDArray[np.uint8]:
    """Return the flavour of each jet from hadrons in ``jet`` (or -1): b before c, light without any."""
    found = np.full(jets, LIGHT, np.uint8)
    inside = jet >= 0
    np.maximum.at(found, jet[inside], flavours[inside])
    return found


#: Minimum pT of hadrons that determine the flavour, GeV.
HADRON_MIN_PT: Final = 5.0

_MOMENTUM: Final = ("px", "py", "pz", "energy")
_COLUMNS: Final = ("pdg_id", "vertex_primary", *_MOMENTUM)
_HARD_SCATTER: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class Hadrons:
    """Weakly decaying hadrons with b or c quarks."""

    vectors: FourVectors
    flavour: npt.NDArray[np.uint8]


def heavy_hadrons(particles: pa.Table) -> Hadrons:
    """Return those of table ``particles`` from the hard scatter with a pT of at least HADRON_MIN_PT.

    Raises UnusableDataset if columns are missing or withheld.
    """
    columns = _columns(particles)
    event = np.repeat(np.arange(particles.num_rows), list_lengths(particles, _COLUMNS[0]))
    momenta = (columns[name].astype(np.float64) for name in _MOMENTUM)
    every = FourVectors(event, *momenta)
    flavour = flavour_of(columns["pdg_id"].astype(np.int64))
    chosen = (flavour != LIGHT) & (columns["vertex_primary"] == _HARD_SCATTER) & (every.pt >= HADRON_MIN_PT)
    return Hadrons(every.take(chosen), flavour[chosen])


def _columns(particles: pa.Table) -> dict[str, npt.NDArray[Any]]:
    present = [name for name in _COLUMNS if name in particles.column_names]
    if withheld := [name for name in present if particles.column(name).null_count]:
        raise UnusableDataset(f"table particles, column {withheld[0]}: has nulls; its truth may be withheld")
    return flat_columns(particles, "particles", _COLUMNS, "flavours of jets need it")


def jets(calo_hits: pa.Table, particles: pa.Table | None) -> pa.Table:
    """Return table ``jets`` of the events of ``calo_hits``; without ``particles`` flavours are null.

    Tables have the same events, one per row. Jets are sorted by decreasing pT. Raises UnusableDataset for
    unusable tables.
    """
    cells = deposits(calo_hits)
    hadrons = None if particles is None else heavy_hadrons(particles)
    jet, of_hadrons = _clustered(cells.vectors, hadrons, calo_hits.num_rows)
    order = np.argsort(jet, kind="stable")[np.count_nonzero(jet < 0) :]
    found = cells.vectors.take(order).summed(jet[order], jet.max(initial=-1) + 1)
    chosen = _chosen(found)
    counts = np.bincount(found.event[chosen], minlength=calo_hits.num_rows)
    columns: dict[str, Any] = {name: getattr(found, name)[chosen] for name in ("pt", "eta", "phi", "mass")}
    columns["jet_id"] = positions_in_event(counts)
    columns["constituents"] = _constituents(chosen, jet[order], cells.place[order])
    if hadrons is not None:
        columns["flavour"] = strongest(hadrons.flavour, of_hadrons, len(found))[chosen]
    return _table(calo_hits.column("event_id"), counts, columns)


def _clustered(cells: FourVectors, hadrons: Hadrons | None, events: int) -> tuple[Integers, Integers]:
    """Return the jet of each cell and of each hadron, or -1."""
    inputs, tower = towers(cells)
    places = np.arange(len(inputs))
    if hadrons is not None:
        inputs = inputs.concatenated(hadrons.vectors.scaled(_GHOST))
        places = np.argsort(inputs.event, kind="stable")
    jet = np.empty(len(inputs), np.int64)
    jet[places] = anti_kt(inputs.take(places), events, MIN_PT - _MARGIN).jet
    cut = tower.max(initial=-1) + 1
    return jet[:cut][tower], jet[cut:]


def _chosen(found: FourVectors) -> Integers:
    """Return the jets to keep, in the order of the table."""
    kept = np.flatnonzero((found.pt >= MIN_PT) & (np.abs(found.eta) < MAX_ETA))
    columns = (found.phi, found.eta, -found.pt, found.event)
    return kept[np.lexsort([column[kept] for column in columns])]


def _constituents(chosen: Integers, jet: Integers, place: Integers) -> pa.Array[Any]:
    """Return the sorted positions of the cells of each chosen jet."""
    rank = np.full(jet.max(initial=-1) + 1, len(chosen))
    rank[chosen] = np.arange(len(chosen))
    order = np.lexsort((place, rank[jet]))
    sizes = np.bincount(rank[jet], minlength=len(chosen) + 1)[:-1]  # without jets that are not chosen
    return nested(sizes, pa.array(place[order][: sizes.sum()]))


def _table(event_id: pa.ChunkedArray[Any], counts: Integers, columns: Mapping[str, Any]) -> pa.Table:
    arrays: list[Any] = [event_id]
    for field in list(SCHEMA)[1:]:
        if field.name in columns:
            arrays.append(nested(counts, pa.array(columns[field.name])).cast(field.type))
        else:
            arrays.append(pa.nulls(len(counts), field.type))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


@dataclass(frozen=True, slots=True)
class Added:
    """The table that was added."""

    #: A folder of shards, or a file.
    path: str
    events: int
    jets: int
    #: Number of jets by flavour; None without flavours.
    flavours: dict[str, int] | None


def add_jets(
    directory: Path, config: str | None, *, flavours: bool = True, progress: Progress | None = None
) -> Added:
    """Add the table ``jets`` to a config of a dataset, completely or not at all.

    Blocking; memory is bounded by blocks of events. Raises Conflict if the config has jets, and
    UnusableDataset if tables or columns are missing, or if ``flavours`` is set and no jet has a b or c
    hadron.
    """
    paths = sorted(parquet_files(directory))
    chosen = layout.choose(paths, config)
    if _TABLE in layout.configs(paths)[chosen]:
        raise Conflict(f"{chosen or directory} already has a table {_TABLE}: remove it to create it again")
    names = (_SOURCE, "particles") if flavours else (_SOURCE,)
    shards = {name: [directory / path for path in layout.shards(paths, name, chosen)] for name in names}
    tables = {name: EventTable(name, files) for name, files in shards.items()}
    events = common_events(tables)
    target, events_per_shard = _target(shards[_SOURCE], chosen)
    counts = np.zeros(256, np.int64)
    with work_directory(directory / _WORK) as scratch:
        made, size = scratch / _TABLE, events_per_shard or max(len(events), 1)
        with ShardWriter(made, "train", SCHEMA, events_per_shard=size) as writer:
            count = ProgressCount(progress, len(events))
            for _, rows in blocks_of(tables, events):
                block = jets(rows[_SOURCE], rows.get("particles"))
                writer.write(block)
                counts += _flavours(block)
                count.add(block.num_rows)
            if flavours and counts.any() and counts[LIGHT] == counts.sum():
                raise UnusableDataset(
                    "table particles has no b or c hadron in any jet: many datasets list only particles that "
                    "reach the detector, which do not determine flavours; --without-flavour omits them"
                )
        (made if events_per_shard else writer.paths[0]).replace(target)
    named = {name: int(counts[flavour]) for name, flavour in _NAMES.items()} if flavours else None
    return Added(str(target.relative_to(directory)), len(events), int(counts.sum()), named)


def _target(shards: list[Path], config: str) -> tuple[Path, int | None]:
    """Return the path of the table, and the events per shard if it is a folder of shards, not one file."""
    folder = shards[0].parent
    if config and folder.name == f"{config}_{_SOURCE}":
        events = max(pq.read_metadata(shard).num_rows for shard in shards)
        return folder.with_name(f"{config}_{_TABLE}"), max(events, 1)
    return folder / f"{_TABLE}.parquet", None


def _flavours(block: pa.Table) -> npt.NDArray[np.int64]:
    """Count jets by flavour; jets without flavour count as light."""
    flavour = np.asarray(pc.list_flatten(block.column("flavour")))
    counts = np.bincount(flavour, minlength=256)
    total = int(np.asarray(pc.list_value_length(block.column("pt"))).sum())
    counts[LIGHT] += total - len(flavour)
    return counts
