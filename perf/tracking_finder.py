"""CPU time and scores of the track finder `helix`, next to the Kalman filter's tracks of the same events.

    python perf/tracking_finder.py                  makes its events first: some minutes
    python perf/tracking_finder.py --work DIR       keeps them in DIR for the next time, or uses those there
    python perf/tracking_finder.py --quick          the five real events of the platform alone

Events are top-quark pairs of the built-in pipeline, 20 without pileup and two with 200 collisions. Seconds
are of CPU, the smallest of three rounds (one with pileup) for each event, then their mean. Scores are the
task's own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.task import Block, EventRange
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium_tasks.tracking import TrackingTask
from collidium_tasks.tracking.baselines import EventHits, ckf, events_of, helix

TASK = TrackingTask()
TABLES = ("tracker_hits", "particles", "tracks")
#: Pileup, number of events and rounds.
SAMPLES = ((0, 20, 3), (200, 2, 1))
SEED = 61803


def simulated(work: Path, pileup: int, events: int) -> dict[str, pa.Table]:
    """The tables of top-quark pairs, made unless they are there."""
    directory = work / f"ttbar_pu{pileup}"
    if not (directory / "README.md").exists():
        order = ("--channel", "ttbar", "--events", events, "--pileup", pileup, "--seed", SEED)
        options = ("--pipeline", "acts", "--runtime", "none", "--output", directory)
        command = [sys.executable, "-m", "collidium", "simulate", *map(str, (*options, *order))]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    dataset = Dataset(directory, f"ttbar_pu{pileup}")
    return {name: dataset.table(name).load(EventRange(0, events)) for name in TABLES}


def seconds(hits: pa.Table, rounds: int) -> float:
    """Mean CPU seconds of an event."""

    def once(event: EventHits) -> float:
        start = time.process_time()
        helix.track_numbers(event)
        return time.process_time() - start

    events = list(events_of(hits))
    return sum(min(once(event) for _ in range(rounds)) for event in events) / len(events)


def row(name: str, tables: dict[str, pa.Table], rounds: int) -> str:
    """A row of the table: hits and seconds of an event, and the metrics of both."""
    hits = tables["tracker_hits"]
    events = hits.column("event_id").to_pylist()
    truth = TASK.prepare(tables)
    found = [
        TASK.metrics(TASK.score(Block(EventRange(events[0], events[-1] + 1), predictions, truth)))
        for predictions in (helix.reconstruct(tables), ckf(tables))
    ]
    scores = [
        f"{metrics[metric]:.3f}"
        for metric in ("trackml_weighted_efficiency", "physics_eff_pt1", "fake_rate")
        for metrics in found
    ]
    mean = sum(map(len, hits.column("x"))) // len(events)
    return f"| {name} | {len(events)} | {mean} | {seconds(hits, rounds):.3f} | {' | '.join(scores)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    print("| events | | hits | CPU, s | efficiency | `ckf` | above 1 GeV | `ckf` | fakes | `ckf` |")
    print(f"|---|{'---:|' * 9}")
    print(row("real", {name: pq.read_table(EVENTS_DIRECTORY / f"{name}.parquet") for name in TABLES}, 3))
    if not options.quick:
        with tempfile.TemporaryDirectory(prefix="perf-finder-") as scratch:
            for pileup, events, rounds in SAMPLES:
                tables = simulated(options.work or Path(scratch), pileup, events)
                print(row(f"pileup {pileup}", tables, rounds))


if __name__ == "__main__":
    main()
