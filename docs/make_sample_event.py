"""Makes the event that the display opens with: ``python docs/make_sample_event.py DIRECTORY``.

DIRECTORY is what this command writes; its first event is taken, without what the display does not draw:

    collidium simulate --pipeline acts --channel ttbar --events 3 --pileup 40 --seed 7 --output DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.datasets.sample import CONFIGS

CONFIG: Final = "ttbar_pu40"
#: Columns that are kept, and to which multiple positions (mm), times (ns) and energies (GeV) are rounded.
COLUMNS: Final = {
    "tracker_hits": ("x", "y", "z", "time", "particle_id", "volume_id", "layer_id"),
    "particles": ("particle_id", "pdg_id", "charge", "px", "py", "pz", "vx", "vy", "vz"),
    "tracks": ("track_id", "d0", "z0", "phi", "theta", "qop", "majority_particle_id", "hit_ids"),
    "jets": ("jet_id", "pt", "eta", "phi", "mass", "flavour"),
    "calo_hits": ("detector", "x", "y", "z", "total_energy"),
}
STEPS: Final = {"x": 2**-4, "y": 2**-4, "z": 2**-4, "time": 2**-7, "total_energy": 2**-12}
#: Cells of a calorimeter are added up in the bins of the display's towers.
ETA_BIN, PHI_BIN = 0.1, 2 * np.pi / 64


def event_of(directory: Path, table: str) -> pa.Table:
    """The first event of a table with the columns and rows that are kept."""
    (shard,) = directory.glob(f"data/{CONFIG}_{table}/*.parquet")
    event = pq.read_table(shard).slice(0, 1)
    found = {name: event[name][0].values for name in COLUMNS[table]}
    if table == "particles":
        left_hits = pa.array(np.asarray(event["num_tracker_hits"][0].values) > 0)
        found = {name: values.filter(left_hits) for name, values in found.items()}
    if table == "calo_hits":
        found = in_towers({name: np.asarray(values) for name, values in found.items()})
    columns = {"event_id": event["event_id"].combine_chunks()}
    for name, values in found.items():
        if step := STEPS.get(name):
            values = pa.array((np.round(np.asarray(values) / step) * step).astype(np.float32))
        columns[name] = pa.array([values.to_pylist()], event[name].type)
    return pa.table(columns)


def in_towers(cells: dict[str, np.ndarray]) -> dict[str, pa.Array]:
    """The cells of each calorimeter added up in towers, at the energy-weighted means of their positions."""
    x, y, z, energy = (cells[name] for name in ("x", "y", "z", "total_energy"))
    eta, phi = np.arcsinh(z / np.hypot(x, y)), np.arctan2(y, x)
    bins = np.stack([cells["detector"], eta // ETA_BIN, phi // PHI_BIN], axis=1).astype(np.int64)
    towers, place = np.unique(bins, axis=0, return_inverse=True)
    total = np.bincount(place, energy)
    means = {name: np.bincount(place, cells[name] * energy) / total for name in ("x", "y", "z")}
    return {
        name: pa.array(values)
        for name, values in {"detector": towers[:, 0], **means, "total_energy": total}.items()
    }


if __name__ == "__main__":
    for name in COLUMNS:
        table = event_of(Path(sys.argv[1]), name)
        CONFIGS[CONFIG].mkdir(exist_ok=True)
        pq.write_table(table, CONFIGS[CONFIG] / f"{name}.parquet", compression="zstd", compression_level=19)
