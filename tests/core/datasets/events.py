"""Datasets of a few synthetic events with the hosted tables, in any layout."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.datasets.schemas import SCHEMAS
from collidium.datasets.writing import write_dataset
from collidium.testing.synthetic import SyntheticEvents

CONFIG = "ttbar_pu0"


def tables_of(events: range, *, hits: int = 300, seed: int = 42) -> dict[str, pa.Table]:
    """The four tables of synthetic events. Hits are sorted by particle, as simulations write them."""
    made = SyntheticEvents(hits=hits, seed=seed).tables(events)
    by_particle = [
        np.argsort(np.array(ids), kind="stable")
        for ids in made["tracker_hits"].column("particle_id").to_pylist()
    ]
    made["tracker_hits"] = reordered(made["tracker_hits"], by_particle)
    owners = [np.array(ids) for ids in made["tracker_hits"].column("particle_id").to_pylist()]
    return made | {"tracks": _tracks(events, owners), "calo_hits": _calo_hits(events, owners)}


def reordered(table: pa.Table, orders: list[np.ndarray]) -> pa.Table:
    """Reorder the lists of each event."""
    columns: dict[str, Any] = {"event_id": table.column("event_id")}
    for name in table.column_names[1:]:
        lists: list[Any] = table.column(name).to_pylist()
        columns[name] = [
            [values[place] for place in order] for values, order in zip(lists, orders, strict=True)
        ]
    return pa.table(columns, schema=table.schema)


def jets_of(calo_hits: pa.Table) -> pa.Table:
    """Jets of four consecutive deposits each, with ascending flavours."""
    random = np.random.default_rng(3)
    columns: dict[str, list[list[object]]] = {name: [] for name in SCHEMAS["jets"].names[1:]}
    for deposits in calo_hits.column("x").to_pylist():
        places = [list(range(start, start + 4)) for start in range(0, len(deposits) - 3, 4)]
        columns["jet_id"].append(list(range(len(places))))
        columns["constituents"].append(list(places))
        columns["flavour"].append([5 * place // len(places) for place in range(len(places))])
        for name in ("pt", "eta", "phi", "mass"):
            columns[name].append(random.normal(size=len(places)).tolist())
    return pa.table({"event_id": calo_hits.column("event_id"), **columns}).cast(SCHEMAS["jets"])


def write(directory: Path, tables: Mapping[str, pa.Table], *, events_per_shard: int = 4) -> Path:
    """Write tables in the hosted layout."""
    write_dataset(directory, CONFIG, [tables], events_per_shard=events_per_shard)
    return directory


def write_single_shards(directory: Path, tables: Mapping[str, pa.Table], config: str = CONFIG) -> Path:
    """Write tables unchanged, in the hosted layout with a shard each."""
    for name, table in tables.items():
        folder = directory / "data" / f"{config}_{name}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / "train-00000-of-00001.parquet")
    return directory


def write_older(directory: Path, tables: Mapping[str, pa.Table]) -> Path:
    """Write tables in the older layout, in shards of three events in reverse order."""
    folder = directory / "data" / CONFIG
    folder.mkdir(parents=True)
    for name, table in tables.items():
        starts = range(0, table.num_rows, 3)
        for number, start in enumerate(reversed(starts)):
            pq.write_table(table.slice(start, 3), folder / f"{name}-{number:05}-of-{len(starts):05}.parquet")
    return directory


def write_flat(directory: Path, tables: Mapping[str, pa.Table]) -> Path:
    """Write tables directly in the directory, hits in two shards."""
    directory.mkdir(parents=True)
    for name, table in tables.items():
        if name == "tracker_hits":
            pq.write_table(table.slice(0, 5), directory / f"{name}-00000-of-00002.parquet")
            pq.write_table(table.slice(5), directory / f"{name}-00001-of-00002.parquet")
        else:
            pq.write_table(table, directory / f"{name}.parquet")
    return directory


def copy(source: Path, directory: Path) -> Path:
    shutil.copytree(source, directory)
    return directory


def _tracks(events: range, owners: list[np.ndarray]) -> pa.Table:
    """A track for each particle with at least three hits, which it refers to by position."""
    random = np.random.default_rng(1)
    columns: dict[str, list[list[object]]] = {name: [] for name in SCHEMAS["tracks"].names[1:]}
    for owner in owners:
        found = [int(of) for of in np.unique(owner) if of and np.sum(owner == of) >= 3]
        columns["track_id"].append(list(range(len(found))))
        columns["majority_particle_id"].append(list(found))
        columns["hit_ids"].append([np.flatnonzero(owner == of).tolist() for of in found])
        for name in ("d0", "z0", "phi", "theta", "qop"):
            columns[name].append(random.normal(size=len(found)).tolist())
    return pa.table({"event_id": list(events), **columns}).cast(SCHEMAS["tracks"])


def _calo_hits(events: range, owners: list[np.ndarray]) -> pa.Table:
    """A deposit for every fifth hit, in the same order."""
    random = np.random.default_rng(2)
    columns: dict[str, list[object]] = {name: [] for name in SCHEMAS["calo_hits"].names[1:]}
    for owner in owners:
        of = owner[::5].tolist()
        columns["detector"].append([10] * len(of))
        for name in ("x", "y", "z", "total_energy"):
            columns[name].append(random.normal(size=len(of)).tolist())
        columns["contrib_particle_ids"].append([[one] for one in of])
        columns["contrib_energies"].append([[1.0]] * len(of))
        columns["contrib_times"].append([[float(place)] for place in range(len(of))])
    return pa.table({"event_id": list(events), **columns}).cast(SCHEMAS["calo_hits"])


def is_written(kind: Any) -> bool:
    """Whether this release of pyarrow writes columns of a type as parquet; older ones write no views."""
    try:
        pq.write_table(pa.table({"x": pa.array([], kind)}), pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:
        return False
    return True


def first_written(*kinds: Any) -> Any:
    """The first of these types that this release of pyarrow writes as parquet."""
    return next(kind for kind in kinds if is_written(kind))
