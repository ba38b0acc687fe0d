"""The public client's own scorer and ours on the same events, in one run: their scores and their speed.

    python perf/peer.py [--python PATH]
    python perf/peer.py --quick           a smoke
    python perf/peer.py --differences     only the table of docs/public-client.md

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
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import scoring
from measuring import Figure

from collidium.errors import InvalidInput
from collidium.scoring.engine import evaluate
from collidium_plugins.executor_processes import Processes

PEER = "colliderml[tasks]==0.4.2"
EVENTS_OF_PEER, EVENTS = 2, 24

#: Run by the peer's interpreter: hits, particles and predictions in; CPU seconds and scores of each out.
PEER_SCRIPT = """
import json, sys, time
import pyarrow.parquet as pq
from colliderml.tasks.tracking import metrics
hits, particles = map(pq.read_table, sys.argv[1:3])
for path in sys.argv[3:]:
    started = time.process_time()
    predictions = pq.read_table(path)
    scores = [
        metrics.trackml_weighted_efficiency(predictions, hits),
        metrics.fake_rate(predictions, hits),
        metrics.duplicate_rate(predictions, hits),
        metrics.physics_eff_pt1(predictions, particles),
    ]
    print(json.dumps([time.process_time() - started, scores]))
"""


def make_peer(directory: Path) -> str:
    """An environment with the peer; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    python = str(directory / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", PEER], check=True)
    return python


def write_flat_truth(directory: Path, events: list[scoring.Event]) -> tuple[Path, Path]:
    """Hits and particles, a row each, as the peer's loader gives them to its metrics."""
    hits = pa.concat_tables(
        pa.table(
            {
                "event_id": np.full(len(event["particle_id"]), event_id, np.uint32),
                "hit_id": scoring.hit_ids(event),
                "particle_id": event["particle_id"],
            }
        )
        for event_id, event in enumerate(events, scoring.FIRST_EVENT)
    )
    particles = pa.concat_tables(
        pa.table({"particle_id": event["ids"], "px": event["pt"], "py": np.zeros(len(event["pt"]))})
        for event in events
    )
    pq.write_table(hits, directory / "hits.parquet")
    pq.write_table(particles, directory / "flat-particles.parquet")
    return directory / "hits.parquet", directory / "flat-particles.parquet"


def run_peer(
    python: str, directory: Path, events: list[scoring.Event], predictions: list[Path]
) -> list[tuple[float, list[float]]]:
    """CPU seconds and scores of each file."""
    command = [python, "-c", PEER_SCRIPT, *write_flat_truth(directory, events), *predictions]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# -- scores --------------------------------------------------------------------------------------------

#: Hits of a particle, particles and noise hits of an event. Half of the particles are above 1 GeV.
SIZE, PARTICLES, NOISE, SMALL_EVENTS = 10, 40, 100, 2
Predictions = dict[str, npt.NDArray[np.int64]]


def small_events() -> list[scoring.Event]:
    """Particles of equally many hits, then noise."""
    events = []
    for number in range(SMALL_EVENTS):
        ids = np.arange(1, PARTICLES + 1, dtype=np.uint64) + np.uint64(1000 * number)
        hits = np.concatenate([np.repeat(ids, SIZE), np.zeros(NOISE, np.uint64)])
        events.append({"particle_id": hits, "ids": ids, "pt": np.where(ids % 2, 2.0, 0.5)})
    return events


def perfect(event: scoring.Event) -> Predictions:
    """A track is called as its particle, and noise is unassigned."""
    particle = event["particle_id"].astype(np.int64)
    return {"hit_id": scoring.hit_ids(event).astype(np.int64), "track_id": np.where(particle, particle, -1)}


def _half_submitted(event: scoring.Event) -> Predictions:
    kept = np.arange(len(event["particle_id"])) < SIZE * PARTICLES // 2
    return {name: column[kept] for name, column in perfect(event).items()}


def _half_unassigned(event: scoring.Event) -> Predictions:
    whole = perfect(event)
    return whole | {"track_id": np.where(whole["hit_id"] < SIZE * PARTICLES // 2, whole["track_id"], -1)}


def _noise_in_a_track(event: scoring.Event) -> Predictions:
    whole = perfect(event)
    return whole | {"track_id": np.where(whole["track_id"] < 0, 10**6, whole["track_id"])}


def _a_hit_elsewhere(event: scoring.Event) -> Predictions:
    whole = perfect(event)
    of_particle = whole["hit_id"] < SIZE * PARTICLES
    elsewhere = of_particle & (whole["hit_id"] % SIZE == 0)
    return whole | {"track_id": np.where(elsewhere, np.roll(whole["track_id"], -SIZE), whole["track_id"])}


def _in_pairs(event: scoring.Event) -> Predictions:
    whole = perfect(event)
    return whole | {"track_id": np.where(whole["track_id"] < 0, -1, (whole["track_id"] + 1) // 2)}


def _rows_repeated(event: scoring.Event) -> Predictions:
    return {name: np.concatenate([column, column]) for name, column in _half_submitted(event).items()}


def _claimed(event: scoring.Event) -> Predictions:
    whole = perfect(event)
    return whole | {
        "track_id": np.full(len(whole["hit_id"]), -1),
        "majority_particle_id": event["particle_id"].astype(np.int64),
    }


VARIANTS: dict[str, Callable[[scoring.Event], Predictions]] = {
    "perfect tracks, noise as -1": perfect,
    "perfect tracks of half of the particles, nothing else submitted": _half_submitted,
    "the same, every row twice": _rows_repeated,
    "the same, all other hits as -1": _half_unassigned,
    "perfect tracks, and a track of all noise": _noise_in_a_track,
    "one of ten hits of every particle in another track": _a_hit_elsewhere,
    "tracks of two whole particles each": _in_pairs,
    "no track, the right particles in `majority_particle_id`": _claimed,
}


def differences(python: str, directory: Path) -> Iterator[str]:
    """The four scores of each variant, there and here, and TrackML's own efficiency; rows of a table."""
    events, paths = small_events(), []
    for number, variant in enumerate(VARIANTS.values()):
        paths.append(directory / f"variant-{number}.parquet")
        tables = [
            pa.table({"event_id": np.full(len(columns["hit_id"]), event_id), **columns})
            for event_id, columns in enumerate(map(variant, events), scoring.FIRST_EVENT)
        ]
        pq.write_table(pa.concat_tables(tables), paths[-1])
    there = [
        " / ".join(f"{score:.3g}" for score in scores)
        for _, scores in run_peer(python, directory, events, paths)
    ]
    here = asyncio.run(ours(directory, events, paths))
    for (name, variant), *scores in zip(VARIANTS.items(), there, here, strict=True):
        strict = np.mean([strict_efficiency(event, variant(event)) for event in events])
        yield f"| {name} | {' | '.join(scores)} | {'invalid' if np.isnan(strict) else f'{strict:.3g}'} |"


async def ours(directory: Path, events: list[scoring.Event], paths: list[Path]) -> list[str]:
    """Our scores of each file, or why it is rejected."""
    truth, executor = await scoring.prepare(directory, events, len(events), "uniform"), Processes(1)
    shown = []
    try:
        for path in paths:
            try:
                found = await evaluate(
                    scoring.QuietTask(),
                    truth,
                    path,
                    executor=executor,
                    limits=scoring.LIMITS,
                    extra_columns="ignore",
                )
                # Those that the peer has, too.
                compared = list(found.metrics.values())[:4]
                shown.append(" / ".join(f"{score:.3g}" for score in compared))
            except InvalidInput as error:
                shown.append(f"rejected: {error.errors[0]['code']}")
    finally:
        await executor.close()
    return shown


def strict_efficiency(event: scoring.Event, predictions: Predictions) -> float:
    """TrackML's efficiency with equal weights: both majorities are more than half (arXiv:1904.06778).

    NaN where a hit is in two rows, which TrackML does not allow.
    """
    if len(np.unique(predictions["hit_id"])) < len(predictions["hit_id"]):
        return np.nan
    particle, found = event["particle_id"][predictions["hit_id"]], 0
    for track in np.unique(predictions["track_id"]):
        ids, shared = np.unique(particle[predictions["track_id"] == track], return_counts=True)
        most = shared.argmax()
        whole = np.count_nonzero(event["particle_id"] == ids[most])
        if ids[most] and 2 * shared[most] > shared.sum() and 2 * shared[most] > whole:
            found += shared[most]
    return float(found / np.count_nonzero(event["particle_id"]))


# -- speed ---------------------------------------------------------------------------------------------


def rate_of_peer(python: str, directory: Path, events: list[scoring.Event], count: int) -> float:
    """Hits per second of CPU time, in millions."""
    predictions = directory / "peer.parquet"
    scoring.write_default(predictions, events, count)
    ((seconds, _),) = run_peer(python, directory, events[:count], [predictions])
    return count * scoring.HITS / seconds / 1e6


async def rates_of_ours(
    directory: Path, events: list[scoring.Event], count: int, rounds: int
) -> dict[str, float]:
    """The same, by the way the file was written."""
    truth = await scoring.prepare(directory, events, count, "uniform")
    predictions = directory / "ours.parquet"
    rates = {}
    for writer in ("pyarrow default", "recommended"):
        scoring.WRITERS[writer](predictions, events, count)
        measured = await scoring.measure(truth, predictions, rounds)
        rates[writer] = count * scoring.HITS / statistics.median(measured.scoring) / 1e6
    return rates


def figures(quick: bool, python: str | None = None) -> Iterator[Figure]:
    """Rates of ours, whose control is the peer's."""
    of_peer, of_ours, rounds = (1, 4, 1) if quick else (EVENTS_OF_PEER, EVENTS, 5)
    events = scoring.make_events()
    with tempfile.TemporaryDirectory(prefix="perf-peer-") as name:
        directory = Path(name)
        python = python or make_peer(directory / "venv")
        ours = asyncio.run(rates_of_ours(directory, events, of_ours, rounds))
        # Its rate changes by a half from one hour to the next where ours does not.
        peer = [rate_of_peer(python, directory, events, of_peer) for _ in range(rounds)]
        for writer, rate in ours.items():
            yield Figure(f"hits scored, {writer}, by the public client's", [rate] * rounds, peer)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", help=f"interpreter of an environment with {PEER}")
    parser.add_argument("--quick", action="store_true", help="a smoke of some seconds")
    parser.add_argument("--differences", action="store_true", help="no rates")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perf-peer-") as name:
        directory = Path(name)
        python = options.python or make_peer(directory / "venv")
        print("| predictions | there | here | TrackML |\n|---|---|---|---:|")
        print("\n".join(differences(python, directory)))
        if options.differences:
            return
        print("\n| scorer | file | Mhits/s of CPU | ratio |\n|---|---|---:|---:|")
        for figure in figures(options.quick, python):
            (rate,), (peer,) = figure.values, figure.control
            print(f"| collidium | {figure.name} | {rate:.1f} of {peer:.3f} | {rate / peer:.0f} |")


if __name__ == "__main__":
    main()
