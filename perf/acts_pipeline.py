"""The built-in pipeline end to end: events per second, seconds by stage, memory, two processes.

    python perf/acts_pipeline.py                a quarter of an hour or so
    python perf/acts_pipeline.py --share 0.2    a fifth of the events
    python perf/acts_pipeline.py --quick        a smoke: a few events

Every stage is run as the platform runs it, as a command of its own. Seconds are of CPU (user and system time
of the stage's one process), but for the comparison of one process with two, which is of the wall clock. Those
of an event are the difference to a run of one event, whose rest is starting: Python, Pythia, ACTS. Memory is
the peak of the largest process. At the end: how fast synthetic events are made.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collidium.testing.synthetic import SyntheticEvents
from collidium_plugins.acts_pipeline import PIPELINE

CHANNEL = "ttbar"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage took."""

    cpu: float
    wall: float
    peak: int


def run(command: Sequence[str]) -> Cost:
    """Run a stage; CPU is of all its processes, the peak of the largest."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss * 1024)


def pipeline(events: int, pileup: int, processes: int = 1) -> dict[str, Cost]:
    """The cost of each stage."""
    with tempfile.TemporaryDirectory(prefix="perf-acts-") as work:
        values: Mapping[str, object] = {
            "python": sys.executable,
            "channel": CHANNEL,
            "events": events,
            "pileup": pileup,
            "seed": 42,
            "first_event": 0,
            "processes": processes,
            "work": Path(work),
            "vary": "",
            "lhe": "",
        }
        return {
            stage.name: run([word.format_map(values) for word in stage.command]) for stage in PIPELINE.stages
        }


def table_of_pileups(sizes: Mapping[int, int]) -> None:
    """A line for each pileup."""
    names = [stage.name for stage in PIPELINE.stages]
    print(
        f"| {CHANNEL}, pileup | events | {' | '.join(f'{name} (s/event)' for name in names)} | all (s/event) "
        "| events/s | starting (s) | peak (MiB) |"
    )
    print("|---:|" + "---:|" * (len(names) + 5))
    for pileup, events in sizes.items():
        one, costs = pipeline(1, pileup), pipeline(events, pileup)
        seconds = [(costs[name].cpu - one[name].cpu) / (events - 1) for name in names]
        starting = sum(cost.cpu for cost in one.values()) - sum(seconds)
        peak = max(cost.peak for cost in costs.values()) / 2**20
        cells = " | ".join(f"{second:.3f}" for second in seconds)
        print(
            f"| {pileup} | {events} | {cells} | {sum(seconds):.3f} | {1 / sum(seconds):.2f} | {starting:.1f} "
            f"| {peak:.0f} |",
            flush=True,
        )


def two_processes(events: int, pileup: int) -> None:
    """One process against two, on the wall clock; in turn, the best of two."""
    walls = {1: float("inf"), 2: float("inf")}
    for _ in range(2):
        for processes in walls:
            costs = pipeline(events, pileup, processes)
            walls[processes] = min(walls[processes], sum(cost.wall for cost in costs.values()))
    print(
        f"| {pileup} | {events} | {walls[1]:.1f} | {walls[2]:.1f} | {walls[1] / walls[2]:.2f} |", flush=True
    )


def synthetic(events: int) -> None:
    """How fast synthetic events are made."""
    maker = SyntheticEvents()
    maker.event(0)
    started = time.process_time()
    for event_id in range(events):
        maker.event(event_id)
    arrays = time.process_time() - started
    started = time.process_time()
    maker.tables(range(events))
    tables = time.process_time() - started
    print(f"| {maker.hits:,} | {events / arrays:.0f} | {events / tables:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--share", type=float, default=1.0, help="of the events")
    options = parser.parse_args()
    quick, share = options.quick, options.share
    sizes = {0: 400, 10: 100, 40: 40, 100: 16, 200: 10}
    table_of_pileups(
        {0: 3, 5: 2} if quick else {pileup: max(2, round(share * n)) for pileup, n in sizes.items()}
    )
    print("\n| pileup | events | one process (s) | two (s) | ratio |\n|---:|---:|---:|---:|---:|")
    for pileup, events in ((0, 2),) if quick else ((0, 1000), (200, 16)):
        two_processes(max(2, round(share * events)), pileup)
    print("\n| hits of a synthetic event | events/s | as arrow tables |\n|---:|---:|---:|")
    synthetic(2 if quick else 50)


if __name__ == "__main__":
    main()
