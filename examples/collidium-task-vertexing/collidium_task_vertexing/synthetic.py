"""Synthetic events to try the task on, no physics claimed.

``python -m collidium_task_vertexing.synthetic DIR`` writes them as a dataset.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Spread of the vertices along the beam, and of where tracks seem to begin, in mm.
BEAM = 50.0
BLUR = 0.05


def tables(events: int = 20, pileup: int = 10, first: int = 0) -> dict[str, pa.Table]:
    """``particles`` and ``tracks`` of some events, one row per event; the same every time.

    The hard scatter makes few particles with much momentum; vertices of pileup make many with little.
    """
    random = np.random.default_rng([events, pileup])
    rows = [_event(random, pileup) for _ in range(events)]
    ids = pa.array(range(first, first + events), pa.uint32())
    made = {}
    for name, columns in _COLUMNS.items():
        lists = {
            column: pa.array([row[column] for row in rows], pa.list_(kind))
            for column, kind in columns.items()
        }
        made[name] = pa.table({"event_id": ids, **lists})
    return made


_FLOAT = pa.float32()
_COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "particles": {
        "particle_id": pa.uint64(),
        "vz": _FLOAT,
        "vertex_primary": pa.uint16(),
        "primary": pa.bool_(),
    },
    "tracks": {"track_id": pa.uint16(), "z0": _FLOAT, "theta": _FLOAT, "qop": _FLOAT},
}


def _event(random: np.random.Generator, pileup: int) -> dict[str, Any]:
    sizes = np.concatenate([[20], random.integers(5, 40, pileup)])
    vertex = np.repeat(np.arange(1, pileup + 2), sizes)
    z = random.normal(0.0, BEAM, pileup + 1)[vertex - 1]
    count = len(vertex)
    theta = random.uniform(0.3, np.pi - 0.3, count)
    momentum = np.where(vertex == 1, 20.0, 0.7) * random.uniform(0.5, 1.5, count) / np.sin(theta)
    decayed = random.random(count) < 0.1
    return {
        "particle_id": np.arange(1, count + 1),
        "vz": np.where(decayed, z + random.exponential(5.0, count), z),
        "vertex_primary": vertex,
        "primary": ~decayed,
        "track_id": np.arange(count),
        "z0": z + random.normal(0.0, BLUR, count),
        "theta": theta,
        "qop": random.choice([-1.0, 1.0], count) / momentum,
    }


def write(directory: Path) -> None:
    """Write the tables as parquet files, as ``collidium truth import --from`` reads them."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, table in tables().items():
        pq.write_table(table, directory / f"{name}.parquet")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
