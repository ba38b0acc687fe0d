"""How fast predictions are scored, end to end with all checks, and how much memory that takes.

    python perf/scoring.py            a minute or two: 100 events, memory at 100 and 400
    python perf/scoring.py --quick    a smoke: 8 and 16 events
    python perf/scoring.py --uniform  truth of which all hits weigh the same
    python perf/scoring.py --hits 1.5e9     one large submission on two workers, its events all different;
                                            half an hour to make them, 5 bytes a hit in --directory

Synthetic events of 150,000 hits and 14,700 particles; 10% of the hits are noise, 12.5% are submitted
as -1, particle ids lie above 2**53. Rates are of CPU time of one worker, the median of some rounds;
decoding the same predictions and the same truth from parquet alone, and scoring without standard errors, are
measured in the same worker, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import scoring_calls
from measuring import Figure
from scoring_calls import QuietTask

from collidium.client.predictions import PredictionsWriter
from collidium.contracts.executor import Limits
from collidium.contracts.tables import nested
from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.scoring.engine import evaluate
from collidium.scoring.truth.importing import Origin, build
from collidium.scoring.truth.tables import TableReader
from collidium.scoring.truth.versions import Truth
from collidium.scoring.uncertainty import GROUPS
from collidium_plugins.executor_processes import Processes

HITS, PARTICLES, NOISE, UNASSIGNED = 150_000, 14_700, 0.1, 0.125
#: Events that differ; more are copies of them with other ids, which costs a scorer the same.
DISTINCT = 8
FIRST_EVENT = 90_000
LIMITS = Limits(memory_bytes=2 * 1024**3, seconds=300)

Event = dict[str, Any]


def make_events() -> list[Event]:
    rng = np.random.default_rng(20)
    return [make_event(rng) for _ in range(DISTINCT)]


def make_event(rng: np.random.Generator) -> Event:
    """particle_id of each hit, the particles, and the track_id submitted for each hit."""
    ids = np.sort(rng.choice(2**40, PARTICLES, replace=False).astype(np.uint64) + np.uint64(2**60))
    of = rng.integers(0, PARTICLES, HITS)
    noise = rng.random(HITS) < NOISE
    track = np.where(rng.random(HITS) < 0.1, rng.integers(0, PARTICLES, HITS), of)
    track[rng.random(HITS) < UNASSIGNED] = -1
    momentum = rng.exponential(1.0, PARTICLES)
    particle_id = np.where(noise, np.uint64(0), ids[of])
    z = rng.uniform(-3000, 3000, HITS).astype(np.float32)
    return {"particle_id": particle_id, "ids": ids, "pt": momentum, "track_id": track, "z": z}


def hit_ids(event: Event) -> npt.NDArray[np.uint32]:
    """Places of the event's hits."""
    return np.arange(len(event["particle_id"]), dtype=np.uint32)


def write_dataset(directory: Path, events: list[Event], count: int) -> None:
    """The events as a dataset in the hosted layout, one row per event."""

    for table in dataset_rows(FIRST_EVENT, events[0]):
        rows = (
            dataset_rows(FIRST_EVENT + number, events[number % DISTINCT])[table] for number in range(count)
        )
        first = next(rows)
        with pq.ParquetWriter(directory / f"{table}.parquet", first.schema) as writer:
            for row in (first, *rows):
                writer.write_table(row)


def dataset_rows(event_id: int, event: Event) -> dict[str, pa.Table]:
    """An event as a row of each table of a dataset."""

    def row(**columns: Any) -> pa.Table:
        lists = {name: nested([len(values)], values) for name, values in columns.items()}
        return pa.table({"event_id": pa.array([event_id], pa.uint32()), **lists})

    z = event.get("z")
    positions = {} if z is None else {"x": z, "y": z, "z": z}
    return {
        "tracker_hits": row(hit_id=hit_ids(event), particle_id=event["particle_id"], **positions),
        "particles": row(particle_id=event["ids"], pt=event["pt"], vz=np.zeros(len(event["ids"]))),
    }


def submitted(events: list[Event], count: int, dtype: type) -> Iterator[pa.Table]:
    """The predictions of each event."""
    for number in range(count):
        yield predictions(FIRST_EVENT + number, events[number % DISTINCT], dtype)


def predictions(event_id: int, event: Event, dtype: type) -> pa.Table:
    track, hits = event["track_id"].astype(dtype), hit_ids(event).astype(dtype)
    return pa.table({"event_id": np.full(HITS, event_id, dtype), "hit_id": hits, "track_id": track})


def write_recommended(path: Path, events: list[Event], count: int) -> None:
    with PredictionsWriter(path) as writer:
        for table in submitted(events, count, np.int32):
            writer.write(table)


def write_default(path: Path, events: list[Event], count: int) -> None:
    """As ``pq.write_table`` does it: 64-bit, snappy, 1 Mi rows in a group, events straddling groups."""
    pq.write_table(pa.concat_tables(submitted(events, count, np.int64)), path)


def write_shuffled(path: Path, events: list[Event], count: int) -> None:
    """As the recommended writer, rows shuffled within each event."""
    order = np.random.default_rng(1).permutation(HITS)
    with PredictionsWriter(path) as writer:
        for table in submitted(events, count, np.int32):
            writer.write(table.take(order))


WRITERS = {"recommended": write_recommended, "pyarrow default": write_default, "shuffled": write_shuffled}


def write_parquet(truth: Truth) -> list[Path]:
    """The tables of truth in what decodes fastest of parquet: what decoding alone is measured with.

    Event ids are a dictionary, other integers deltas, and nothing is compressed.
    """
    paths = []
    for name, source in truth.paths.items():
        paths.append(truth.directory.parent / f"{truth.version}-{name}.parquet")
        with TableReader(source) as reader:
            schema = reader.read(0).schema
            deltas = [field.name for field in schema if pa.types.is_integer(field.type)][1:]
            options: dict[str, Any] = {
                "compression": "none",
                "use_dictionary": ["event_id"],
                "column_encoding": dict.fromkeys(deltas, "DELTA_BINARY_PACKED"),
            }
            with pq.ParquetWriter(paths[-1], schema, **options) as writer:
                for block in truth.blocks:
                    writer.write_table(reader.read(block.index))
    return paths


async def one(executor: Processes, function: Callable[[Any], Any], item: Any = None) -> Any:
    async with aclosing(executor.map(function, [item], LIMITS)) as results:
        return await anext(results)


@dataclass(frozen=True)
class Measured:
    """CPU seconds of a worker, a number for each round, and its anonymous memory after scoring, in bytes."""

    scoring: list[float]
    without_errors: list[float]
    decoding: list[float]
    memory: int


async def measure(truth: Truth, path: Path, rounds: int) -> Measured:
    executor = Processes(1)
    scoring: list[float] = []
    without_errors: list[float] = []
    decoding: list[float] = []
    task = QuietTask()
    decoded = (path, *write_parquet(truth))
    try:
        await evaluate(task, truth, path, executor=executor, limits=LIMITS)  # imports, and first pages
        memory = await one(executor, scoring_calls.anonymous_bytes)
        for _ in range(rounds):
            for groups, seconds in ((1, without_errors), (GROUPS, scoring)):
                await one(executor, scoring_calls.draw_groups, groups)
                before = await one(executor, scoring_calls.cpu_seconds)
                await evaluate(task, truth, path, executor=executor, limits=LIMITS)
                seconds.append(await one(executor, scoring_calls.cpu_seconds) - before)
            decoding.append(await one(executor, scoring_calls.decode_alone, decoded))
    finally:
        await executor.close()
    return Measured(scoring, without_errors, decoding, memory)


async def wall(truth: Truth, path: Path, workers: int) -> float:
    """Seconds that a submission takes with so many workers: the best of some, as other work interferes."""
    executor = Processes(workers)
    seconds = []
    try:
        for _ in range(4):
            start = time.perf_counter()
            await evaluate(QuietTask(), truth, path, executor=executor, limits=LIMITS)
            seconds.append(time.perf_counter() - start)
    finally:
        await executor.close()
    return min(seconds)


@dataclass(frozen=True)
class Made:
    """A dataset that is nowhere: its events are made when they are read, and their predictions written."""

    writer: PredictionsWriter

    def read(self, tables: Any, events: EventRange) -> Iterator[tuple[EventRange, dict[str, pa.Table]]]:
        for event_id in range(events.start, events.stop):
            event = make_event(np.random.default_rng(event_id))
            self.writer.write(predictions(event_id, event, np.int32))
            yield EventRange(event_id, event_id + 1), dataset_rows(event_id, event)


async def score_once(directory: Path, hits: float, workers: int) -> None:
    """Score one submission, and print how long that takes, from the file to metrics and standard errors."""
    path = directory / "predictions.parquet"
    events = EventRange(FIRST_EVENT, FIRST_EVENT + round(hits / HITS))
    executor = Processes(1)
    with PredictionsWriter(path) as writer:
        truth = await build(
            QuietTask(),
            cast("Dataset", Made(writer)),
            origin=Origin("synthetic", str(len(events))),
            directory=directory,
            executor=executor,
            limits=LIMITS,
            events=events,
        )
    await executor.close()
    executor = Processes(workers)
    start, load = time.perf_counter(), os.getloadavg()[0]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        made = await evaluate(QuietTask(), truth, path, executor=executor, limits=LIMITS)
        seconds = time.perf_counter() - start
        calls = executor.map(scoring_calls.anonymous_bytes, [None] * 8 * workers, LIMITS)
        memory = max([size async for size in calls])
    finally:
        await executor.close()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = ended.ru_utime + ended.ru_stime - used.ru_utime - used.ru_stime
    sizes = [round(file.stat().st_size / 1e9, 3) for file in (path, *truth.paths.values())]
    print(f"{made.rows:,} hits of {len(events):,} events; GB of predictions and truth: {sizes}")
    print(f"CPU of the workers with their start: {cpu:.1f} s, {made.rows / cpu / 1e6:.1f} M hits/s")
    rate = made.rows / seconds / 1e6
    print(f"{seconds:.1f} s, {rate:.1f} M hits/s with {workers} workers; load before: {load:.1f}")
    print(f"largest anonymous memory of a worker: {memory / 2**20:.0f} MiB; scores: {made.metrics}")


async def prepare(directory: Path, events: list[Event], count: int, hits: str = "weighted") -> Truth:
    executor = Processes(1)
    source = directory / f"dataset-{count}"
    source.mkdir()
    write_dataset(source, events, count)
    try:
        return await build(
            QuietTask(),
            Dataset(source),
            origin=Origin("synthetic", str(count)),
            directory=directory,
            executor=executor,
            limits=LIMITS,
            events=EventRange(FIRST_EVENT, FIRST_EVENT + count),
            options={"hits": hits},
        )
    finally:
        await executor.close()


async def scored(writer: str, count: int, rounds: int) -> Figure:
    """Millions of hits a second of CPU, and of decoding alone."""
    events = make_events()
    with tempfile.TemporaryDirectory(prefix="perf-scoring-") as name:
        truth, path = await prepare(Path(name), events, count), Path(name) / "predictions.parquet"
        WRITERS[writer](path, events, count)
        measured = await measure(truth, path, rounds)
    hits = count * HITS / 1e6
    rates = ([hits / seconds for seconds in each] for each in (measured.scoring, measured.decoding))
    return Figure(f"hits scored, {writer}", *rates)


def figures(quick: bool) -> Iterator[Figure]:
    for writer in WRITERS:
        yield asyncio.run(scored(writer, *((8, 1) if quick else (100, 5))))


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smoke of some seconds")
    parser.add_argument("--uniform", action="store_true", help="all hits weigh the same")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hits", type=float, help="score one large submission instead")
    parser.add_argument("--directory", type=Path, help="where its files are made, and removed")
    options = parser.parse_args()
    hits = "uniform" if options.uniform else "weighted"
    with tempfile.TemporaryDirectory(prefix="perf-scoring-", dir=options.directory) as name:
        if options.hits:
            await score_once(Path(name), options.hits, workers=2)
        elif options.quick:
            await compare_writers(Path(name), few=8, many=16, rounds=options.rounds, hits=hits)
        else:
            await compare_writers(Path(name), few=100, many=400, rounds=options.rounds, hits=hits)


async def compare_writers(directory: Path, few: int, many: int, rounds: int, hits: str) -> None:
    """Print a table: rates with ``few`` events, memory with ``many`` too."""
    events = make_events()
    truths = {count: await prepare(directory, events, count, hits) for count in (few, many)}
    print(f"{'writer':16} {'bytes/hit':>9} {'Mhits/s/core':>13} {'decode alone':>13} {'ratio':>6} ", end="")
    print(f"{'errors':>7} {f'MiB at {few}':>11} {f'MiB at {many}':>11} {'wall, 2 workers':>16}")
    for writer, write in WRITERS.items():
        path, large = directory / "few.parquet", directory / "many.parquet"
        write(path, events, few)
        write(large, events, many)
        measured = await measure(truths[few], path, rounds)
        more = (await measure(truths[many], large, 0)).memory
        scored = few * HITS / 1e6
        scoring, decoding = statistics.median(measured.scoring), statistics.median(measured.decoding)
        errors = scoring / statistics.median(measured.without_errors) - 1
        seconds = await wall(truths[few], path, 2)
        print(
            f"{writer:16} {path.stat().st_size / scored / 1e6:9.2f} {scored / scoring:13.1f} "
            f"{scored / decoding:13.1f} {decoding / scoring:6.0%} {errors:+7.0%} "
            f"{measured.memory / 2**20:11.0f} {more / 2**20:11.0f} {scored / seconds:10.1f} Mh/s"
        )


if __name__ == "__main__":
    asyncio.run(main())
