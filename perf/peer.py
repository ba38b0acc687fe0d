"""The public client's own scorer and ours, on the same events in one run.

    python perf/peer.py [--python PATH]

The peer is the package colliderml 0.4.2 with its extra ``tasks``, in an environment of its own (made for the
run, or that of the interpreter at PATH). Both read the same predictions from parquet, as pyarrow writes
them, and compute all four metrics; the peer gets its truth as the flat tables that it makes itself when it
loads a dataset, which is not counted. Rates are of CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scoring
from measuring import Figure

PEER = "colliderml[tasks]==0.4.2"
EVENTS_OF_PEER, EVENTS = 2, 24

#: Run by the peer's interpreter: predictions, hits, particles in; CPU seconds and scores out.
PEER_SCRIPT = """
import json, sys, time
import pyarrow.parquet as pq
from colliderml.tasks.tracking import metrics
hits, particles = pq.read_table(sys.argv[2]), pq.read_table(sys.argv[3])
started = time.process_time()
predictions = pq.read_table(sys.argv[1])
scores = [
    metrics.trackml_weighted_efficiency(predictions, hits),
    metrics.fake_rate(predictions, hits),
    metrics.duplicate_rate(predictions, hits),
    metrics.physics_eff_pt1(predictions, particles),
]
print(json.dumps({"seconds": time.process_time() - started, "scores": scores}))
"""


def make_peer(directory: Path) -> str:
    """An environment with the peer; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    python = str(directory / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", PEER], check=True)
    return python


def write_flat_truth(directory: Path, events: list[scoring.Event]) -> tuple[Path, Path]:
    """Hits and particles, a row each, as the peer's loader gives them to its metrics."""
    ids = range(scoring.FIRST_EVENT, scoring.FIRST_EVENT + len(events))
    hits = pa.concat_tables(
        pa.table(
            {
                "event_id": np.full(scoring.HITS, event_id, np.uint32),
                "hit_id": np.arange(scoring.HITS, dtype=np.uint32),
                "particle_id": event["particle_id"],
            }
        )
        for event_id, event in zip(ids, events, strict=True)
    )
    particles = pa.concat_tables(
        pa.table({"particle_id": event["ids"], "px": event["pt"], "py": np.zeros(len(event["pt"]))})
        for event in events
    )
    pq.write_table(hits, directory / "hits.parquet")
    pq.write_table(particles, directory / "flat-particles.parquet")
    return directory / "hits.parquet", directory / "flat-particles.parquet"


def rate_of_peer(python: str, directory: Path, events: list[scoring.Event]) -> float:
    """Hits per second of CPU time, in millions."""
    predictions = directory / "peer.parquet"
    scoring.write_default(predictions, events, EVENTS_OF_PEER)
    truth = write_flat_truth(directory, events[:EVENTS_OF_PEER])
    run = subprocess.run(
        [python, "-c", PEER_SCRIPT, predictions, *truth], check=True, capture_output=True, text=True
    )
    return EVENTS_OF_PEER * scoring.HITS / float(json.loads(run.stdout)["seconds"]) / 1e6


async def rates_of_ours(directory: Path, events: list[scoring.Event]) -> dict[str, float]:
    """The same, by the way the file was written."""
    truth = await scoring.prepare(directory, events, EVENTS)
    predictions = directory / "ours.parquet"
    rates = {}
    for writer in ("pyarrow default", "recommended"):
        scoring.WRITERS[writer](predictions, events, EVENTS)
        seconds, _, _ = await scoring.measure(truth, predictions, rounds=5)
        rates[writer] = EVENTS * scoring.HITS / statistics.median(seconds) / 1e6
    return rates


def figures(quick: bool) -> Iterator[Figure]:
    events = scoring.make_events()
    with tempfile.TemporaryDirectory(prefix="perf-peer-") as name:
        peer = rate_of_peer(make_peer(Path(name) / "venv"), Path(name), events)
        for writer, rate in asyncio.run(rates_of_ours(Path(name), events)).items():
            yield Figure(f"hits scored, {writer}, by the public client's", [rate], [peer])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", help=f"interpreter of an environment with {PEER}")
    given = parser.parse_args().python
    events = scoring.make_events()
    with tempfile.TemporaryDirectory(prefix="perf-peer-") as name:
        directory = Path(name)
        peer = rate_of_peer(given or make_peer(directory / "venv"), directory, events)
        ours = asyncio.run(rates_of_ours(directory, events))
    print("| scorer | file | Mhits/s of CPU | ratio |\n|---|---|---:|---:|")
    print(f"| {PEER} | pyarrow default | {peer:.3f} | 1 |")
    for writer, rate in ours.items():
        print(f"| collidium | {writer} | {rate:.1f} | {rate / peer:.0f} |")


if __name__ == "__main__":
    main()
