"""Events in the JSON format of Phoenix, the event display of the HEP Software Foundation.

Phoenix takes lengths in mm, energies and momenta in MeV, and q/p in 1/MeV. It draws an object per calorimeter
entry, so cells are summed to towers first. Source: the loader of phoenix-event-display 3.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.task import EventRange
from collidium.datasets.access import catalogue, download
from collidium.datasets.exporting import Exported, whole
from collidium.datasets.reading.dataset import Dataset
from collidium.errors import UnusableDataset
from collidium.event_display.tables import shown
from collidium.hub.sources import HubDataset
from collidium.physics import calibration
from collidium.physics.constants import HCAL_CODE
from collidium.runtime.progress import Progress

MEDIA_TYPE: Final = "application/json"
#: The tables that Phoenix can draw.
TABLES: Final[tuple[str, ...]] = ("tracker_hits", "tracks", "calo_hits", "jets")

Floats = npt.NDArray[np.float64]
Entries = list[dict[str, Any]]

_MEV: Final = 1000.0
#: Size of a tower in eta and phi.
_ETA_STEP: Final = 0.1
_PHI_STEP: Final = 2 * np.pi / 64
#: Towers with less than this fraction of the highest energy are left out: there are thousands.
_MINIMUM_SHARE: Final = 0.001
#: Radius parameter of the platform's jets.
_CONE: Final = 0.4
#: Colours of detector volumes, distinguishable with colour blindness.
_COLOURS: Final = ("0x0072b2", "0xe69f00", "0x009e73", "0xcc79a7", "0x56b4e9", "0xd55e00", "0xf0e442")

#: Bytes of a table that are in memory at once, unless a single event has more.
_BLOCK_BYTES: Final = 8 * 1024**2


def document(tables: Mapping[str, pa.Table], event_id: int, about: Mapping[str, str]) -> bytes:
    """Return a file with one event, from tables of :func:`~.tables.shown`."""
    return json.dumps({name_of(event_id): event(tables, event_id, about)}, allow_nan=False).encode()


def name_of(event_id: int) -> str:
    """Return the name of an event in a file."""
    return f"Event {event_id}"


def event(tables: Mapping[str, pa.Table], event_id: int, about: Mapping[str, str]) -> dict[str, Any]:
    """Return an event with its non-empty collections of hits, tracks, towers and jets."""
    hits, cells = tables.get("tracker_hits"), tables.get("calo_hits")
    tracks, jets = tables.get("tracks"), tables.get("jets")
    made: dict[str, dict[str, Entries]] = {
        "Hits": {} if hits is None else _hits(hits),
        "Tracks": {} if tracks is None else {"Tracks": _tracks(tracks, hits)},
        "CaloClusters": {} if cells is None else _towers(cells),
        "Jets": {} if jets is None else {"Jets": _jets(jets)},
    }
    filled = {
        kind: {name: entries for name, entries in collections.items() if entries}
        for kind, collections in made.items()
    }
    return {
        "runNumber": 0,
        "eventNumber": event_id,
        **({"withheld": about["withheld"]} if "withheld" in about else {}),
        **{kind: collections for kind, collections in filled.items() if collections},
    }


# -- hits -----------------------------------------------------------------------------------------------


def _hits(table: pa.Table) -> dict[str, Entries]:
    """Hits by volume. Phoenix takes type and colour of a collection from its first hit."""
    if (columns := _columns(table, "x", "y", "z")) is None:
        return {}
    points = np.column_stack(columns).round(3)
    volumes = _ids(table, "volume_id")
    finite = np.isfinite(points).all(axis=1)
    found = {}
    for number, volume in enumerate(np.unique(volumes[finite])):
        entries: Entries = [{"pos": point} for point in points[finite & (volumes == volume)].tolist()]
        entries[0] |= {"type": "Point", "color": _COLOURS[number % len(_COLOURS)]}
        found[f"Hits, volume {volume}" if "volume_id" in table.column_names else "Hits"] = entries
    return found


# -- tracks ---------------------------------------------------------------------------------------------


def _tracks(table: pa.Table, hits: pa.Table | None) -> Entries:
    """Tracks from the perigee through their hits; Phoenix extrapolates those with too few."""
    if (columns := _columns(table, "d0", "z0", "phi", "theta", "qop")) is None:
        return []
    parameters = np.column_stack(columns)
    trails = list(_trails(table, hits))
    return [
        _track(values, trail)
        for values, trail in zip(parameters, trails, strict=True)
        if np.isfinite(values).all() and 0 < values[3] < np.pi and values[4]
    ]


def _track(values: Floats, trail: Floats) -> dict[str, Any]:
    d0, z0, phi, theta, qop = map(float, values)
    # The sign of ACTS: d0 along the direction (-sin phi, cos phi).
    perigee = np.array([[-d0 * np.sin(phi), d0 * np.cos(phi), z0]])
    points = np.concatenate([perigee, trail[np.argsort(np.linalg.norm(trail - perigee, axis=1))]])
    return {
        "pos": points.round(3).tolist(),
        "dparams": [d0, z0, phi, theta, qop / _MEV],
        "d0": d0,
        "z0": z0,
        "phi": phi,
        "eta": float(-np.log(np.tan(theta / 2))),
        "pT": float(np.sin(theta) / abs(qop) * _MEV),
    }


def _trails(table: pa.Table, hits: pa.Table | None) -> Iterator[Floats]:
    """Positions of the hits of each track, shape (hits, 3)."""
    none = np.empty((0, 3))
    positions = None if hits is None else _columns(hits, "x", "y", "z")
    if hits is None or positions is None or "hit_ids" not in table.column_names:
        yield from [none] * table.num_rows
        return
    points = np.column_stack(positions)
    row_of = {hit: row for row, hit in enumerate(_ids(hits, "hit_id").tolist())}
    for ids in table.column("hit_ids").to_pylist():
        trail = points[[row_of[hit] for hit in ids or () if hit in row_of]]
        yield trail[np.isfinite(trail).all(axis=1)]


# -- calorimeters and jets ------------------------------------------------------------------------------


def _towers(table: pa.Table) -> dict[str, Entries]:
    """Cells summed in bins of eta and phi, as seen from the centre of the detector."""
    columns = _columns(table, "x", "y", "z", "total_energy")
    if columns is None:
        return {}
    cells = np.column_stack(columns)
    detectors = _ids(table, "detector")
    sound = np.isfinite(cells).all(axis=1) & (np.hypot(cells[:, 0], cells[:, 1]) > 0)
    cells, detectors = cells[sound], detectors[sound]
    if "detector" not in table.column_names:
        return {"Calorimeters": _tower_entries(cells)}
    cells[:, 3] *= np.nan_to_num(calibration(detectors), nan=1.0)
    hadronic = detectors >= HCAL_CODE
    return {"ECal": _tower_entries(cells[~hadronic]), "HCal": _tower_entries(cells[hadronic])}


def _tower_entries(cells: Floats) -> Entries:
    """``cells`` are x, y, z in mm and the energy in GeV, shape (cells, 4)."""
    radius = np.hypot(cells[:, 0], cells[:, 1])
    eta, phi = np.arcsinh(cells[:, 2] / radius), np.arctan2(cells[:, 1], cells[:, 0])
    steps = np.column_stack([np.floor(eta / _ETA_STEP), np.minimum(np.floor(phi / _PHI_STEP), 31)]).astype(
        np.int64
    )
    towers, owner = np.unique(steps, axis=0, return_inverse=True)
    energy = np.bincount(owner.ravel(), cells[:, 3], len(towers)) * _MEV
    count = np.bincount(owner.ravel(), minlength=len(towers))
    distance = np.bincount(owner.ravel(), np.linalg.norm(cells[:, :3], axis=1), len(towers)) / count
    return [
        {
            "eta": float((tower[0] + 0.5) * _ETA_STEP),
            "phi": float((tower[1] + 0.5) * _PHI_STEP),
            "energy": round(float(energy[row]), 1),
            "radius": round(float(distance[row]), 1),
        }
        for row, tower in enumerate(towers)
        if energy[row] > _MINIMUM_SHARE * energy.max()
    ]


def _jets(table: pa.Table) -> Entries:
    if (columns := _columns(table, "pt", "eta", "phi", "mass")) is None:
        return []
    jets = np.column_stack(columns)
    return [
        {
            "eta": eta,
            "phi": phi,
            "energy": float(np.hypot(pt * np.cosh(eta), mass) * _MEV),
            "pT": pt * _MEV,
            "coneR": _CONE,
        }
        for pt, eta, phi, mass in jets[np.isfinite(jets).all(axis=1)].tolist()
        if abs(eta) < 10
    ]


# -- columns --------------------------------------------------------------------------------------------


def _columns(table: pa.Table, *names: str) -> list[Floats] | None:
    """Columns as floats, with nulls as NaN; None if one is missing."""
    if any(name not in table.column_names for name in names):
        return None
    return [table.column(name).to_numpy(zero_copy_only=False).astype(np.float64) for name in names]


def _ids(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """A column of small integers, with nulls as 0; zeros if it is missing."""
    if name not in table.column_names:
        return np.zeros(table.num_rows, np.int64)
    column: Any = table.column(name)
    return np.asarray(pc.fill_null(column, 0)).astype(np.int64)


def export(
    place: Path | HubDataset,
    events: EventRange,
    file: Path,
    *,
    config: str | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write events to ``file``, and download their shards if necessary.

    ``progress`` is called with the number of events written and the total. Raises as
    :func:`~collidium.datasets.download`, UnusableDataset for tables that cannot be read, and
    :class:`~collidium.datasets.NoRoom` if the disk is full.
    """
    chosen, names = _tables_of(place, config)
    fetched = download(place, chosen or config, names, events)
    dataset = Dataset(fetched.directory, chosen or config)
    with whole(file) as output:
        for number, (event_id, event) in enumerate(_events_of(dataset, names, events)):
            name = json.dumps(name_of(event_id))
            text = f"{name}: {json.dumps(event, allow_nan=False)}"
            output.write(f"{',' if number else '{'}\n{text}".encode())
            if progress:
                progress(number + 1, len(events))
        output.write(b"\n}\n")
        size = output.tell()
    return Exported(file, chosen or config or "", fetched.revision, len(events), size)


def _tables_of(place: Path | HubDataset, config: str | None) -> tuple[str, list[str]]:
    """The config and its tables that Phoenix draws. Raises UnusableDataset."""
    with catalogue(place) as found:
        configs = {entry.config: entry.tables for entry in found.configs()}
    matching = [name for name in configs if config in (None, name) or name == ""]
    if len(matching) != 1:
        existing = ", ".join(configs) or "none"
        problem = f"there is no config {config}" if config else "there are several configs, or none"
        raise UnusableDataset(f"{problem}: choose one of: {existing}")
    names = [table for table in TABLES if table in configs[matching[0]]]
    if not names:
        raise UnusableDataset(f"the dataset has none of the tables {', '.join(TABLES)}")
    return matching[0], names


def _events_of(
    dataset: Dataset, names: list[str], events: EventRange
) -> Iterator[tuple[int, dict[str, Any]]]:
    for block, tables in dataset.read(names, events, block_bytes=_BLOCK_BYTES):
        for row, event_id in enumerate(range(block.start, block.stop)):
            one = {name: shown(name, table.slice(row, 1)) for name, table in tables.items()}
            yield event_id, event(one, event_id, {})
