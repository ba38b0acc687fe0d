"""A server on embedded defaults whose tracking task is scored against the demo's real events 3 and 4."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.tables import flatten
from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.server import ServerProcess

FIRST, STOP = 3, 5


@contextmanager
def benchmark_server(directory: Path) -> Iterator[ServerProcess]:
    """The server, with truth imported."""
    with ServerProcess(directory) as server:
        events = ("--config", "ttbar_pu0", "--events", f"{FIRST}:{STOP}")
        done = server.run("truth", "import", "tracking", "--from", str(EVENTS_DIRECTORY), *events)
        if done.returncode:
            raise RuntimeError(done.stderr)
        yield server


def write_oracle(path: Path, *, seed: int = 0) -> pa.Table:
    """Write perfect predictions, each seed another file; returns them."""
    hits = flatten(pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet"), ["hit_id", "particle_id"])
    events = hits.column("event_id").to_numpy()
    hits = hits.filter(pa.array((events >= FIRST) & (events < STOP)))
    hits = hits.take(np.random.default_rng(seed).permutation(hits.num_rows))
    oracle = hits.set_column(2, "track_id", hits["particle_id"].cast(pa.int64()))
    pq.write_table(oracle, path)
    return oracle
