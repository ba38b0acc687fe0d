"""How fast rankings are scored, next to scikit-learn, and how much memory that takes.

    python perf/ranking.py            some minutes: 10,000,000 rows of each task
    python perf/ranking.py --quick    a smoke: 20,000 rows

Synthetic truth, and float64 scores that separate signal from background middlingly; a fifth of the values are
rounded so that they have equals. One event in ten is a signal, one jet in five a b jet, one in five a c jet,
with ten jets in an event. What is timed is CPU, by turns, the median of some rounds: a worker that scores a
file with all checks and standard errors; the same without standard errors; the metrics of arrays in memory by
our functions; and scikit-learn's roc_auc_score and roc_curve of the same arrays.
"""

from __future__ import annotations

import argparse
import asyncio
import pickle
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import scoring_calls
from scoring_calls import QuietAnomalyTask, QuietJetsTask
from sklearn.metrics import roc_auc_score, roc_curve

from collidium.client.predictions import PredictionsWriter
from collidium.contracts.executor import Limits
from collidium.contracts.task import Block, EventRange, Task
from collidium.datasets import Dataset
from collidium.scoring.engine import ScoringResult, evaluate
from collidium.scoring.truth.importing import Origin, build
from collidium.scoring.truth.versions import Truth
from collidium_plugins.executor_processes import Processes
from collidium_tasks.jets.card import BOTTOM, CHARM, LIGHT

ROWS, QUICK_ROWS = 10_000_000, 20_000
JETS_PER_EVENT = 10
LIMITS = Limits(memory_bytes=2 * 1024**3, seconds=600)

Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Case:
    """A task, truth and predictions of all its rows, and the same metrics by scikit-learn."""

    task: Task
    #: The dataset's table, a list of ``per_event`` for each event.
    table: str
    per_event: int
    truth: Columns
    predictions: Columns
    by_scikit_learn: Callable[[], dict[str, float]]

    @property
    def events(self) -> EventRange:
        return EventRange(0, len(next(iter(self.truth.values()))) // self.per_event)

    def event_ids(self) -> npt.NDArray[np.uint32]:
        return np.repeat(np.arange(len(self.events), dtype=np.uint32), self.per_event)


def scores(rng: np.random.Generator, better: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Between 0 and 1, higher where ``better``, mostly."""
    score = 1 / (1 + np.exp(-(rng.normal(size=len(better)) + 1.5 * better)))
    return np.where(rng.random(len(better)) < 0.2, np.round(score, 3), score)


def anomaly(rows: int, rng: np.random.Generator) -> Case:
    signal = rng.random(rows) < 0.1
    score = scores(rng, signal)

    def by_scikit_learn() -> dict[str, float]:
        false, true, _ = roc_curve(signal, score)
        at_one_percent = float(np.interp(0.01, false, true))
        return {"auroc": float(roc_auc_score(signal, score)), "signal_efficiency_fpr1": at_one_percent}

    truth = {"channel": np.where(signal, "zprime", "ttbar")}
    return Case(QuietAnomalyTask(), "channels", 1, truth, {"anomaly_score": score}, by_scikit_learn)


def jets(rows: int, rng: np.random.Generator) -> Case:
    flavour = rng.choice(np.array([BOTTOM, CHARM, LIGHT], np.uint8), rows, p=[0.2, 0.2, 0.6])
    odds = np.stack([scores(rng, flavour == code) for code in (BOTTOM, CHARM, LIGHT)])
    bottom, charm, light = odds / odds.sum(axis=0)

    def rejection(other: npt.NDArray[np.float64], code: int) -> float:
        chosen = (flavour == BOTTOM) | (flavour == code)
        discriminant = bottom[chosen] / (bottom[chosen] + other[chosen])
        false, true, _ = roc_curve(flavour[chosen] == BOTTOM, discriminant)
        return float(1 / np.interp(0.7, true, false))

    def by_scikit_learn() -> dict[str, float]:
        return {
            "btag_auc": float(roc_auc_score(flavour == BOTTOM, bottom)),
            "light_rejection_70": rejection(light, LIGHT),
            "c_rejection_70": rejection(charm, CHARM),
        }

    jet_id = np.tile(np.arange(JETS_PER_EVENT, dtype=np.uint16), rows // JETS_PER_EVENT)
    return Case(
        QuietJetsTask(),
        "jets",
        JETS_PER_EVENT,
        {"jet_id": jet_id, "flavour": flavour},
        {"jet_id": jet_id, "prob_b": bottom, "prob_c": charm, "prob_light": light},
        by_scikit_learn,
    )


# -- files ----------------------------------------------------------------------------------------------


def slices(case: Case) -> Iterator[slice]:
    """Rows of whole events, about a million at a time."""
    step = 2**20 // case.per_event * case.per_event
    rows = len(case.events) * case.per_event
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def write_dataset(case: Case, directory: Path) -> None:
    """The truth as a dataset in the hosted layout."""
    ids = np.arange(len(case.events), dtype=np.uint32)
    writer = None
    for rows in slices(case):
        offsets = np.arange(0, rows.stop - rows.start + 1, case.per_event, dtype=np.int32)
        lists = {
            name: pa.ListArray.from_arrays(pa.array(offsets), pa.array(column[rows]))
            for name, column in case.truth.items()
        }
        events = ids[rows.start // case.per_event : rows.stop // case.per_event]
        table = pa.table({"event_id": events, **lists})
        writer = writer or pq.ParquetWriter(directory / f"{case.table}.parquet", table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def write_predictions(case: Case, path: Path) -> None:
    ids = case.event_ids()
    with PredictionsWriter(path) as writer:
        for rows in slices(case):
            columns = {name: column[rows] for name, column in case.predictions.items()}
            writer.write(pa.table({"event_id": ids[rows].astype(np.int32), **columns}))


# -- measuring ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """CPU seconds, one for each round, and bytes of a worker after scoring."""

    scoring: list[float]
    without_errors: list[float]
    kernel: list[float]
    by_scikit_learn: list[float]
    memory: int
    tally: int


async def one(executor: Processes, function: Callable[[Any], Any], item: Any = None) -> Any:
    async with aclosing(executor.map(function, [item], LIMITS)) as results:
        return await anext(results)


async def measure(case: Case, directory: Path, rounds: int) -> Measured:
    executor = Processes(1)
    path = directory / "predictions.parquet"
    write_dataset(case, directory)
    write_predictions(case, path)
    scoring: list[float] = []
    without_errors: list[float] = []
    kernel: list[float] = []
    reference: list[float] = []
    try:
        truth = await build(
            case.task,
            Dataset(directory),
            origin=Origin("synthetic", "1"),
            directory=directory / "truth",
            executor=executor,
            limits=LIMITS,
            events=case.events,
        )
        made = await score(case, truth, path, executor)  # imports, and first pages
        memory = await one(executor, scoring_calls.anonymous_bytes)
        block = await asyncio.to_thread(in_memory, case, truth)
        tally = len(pickle.dumps(case.task.score(block)))
        for _ in range(rounds):
            for errors, seconds in ((False, without_errors), (True, scoring)):
                await one(executor, scoring_calls.set_errors, errors)
                before = await one(executor, scoring_calls.cpu_seconds)
                await score(case, truth, path, executor)
                seconds.append(await one(executor, scoring_calls.cpu_seconds) - before)
            kernel.append(timed(lambda: case.task.metrics(case.task.score(block)))[0])
            seconds_taken, metrics = timed(case.by_scikit_learn)
            reference.append(seconds_taken)
            compare(made.metrics, metrics)
    finally:
        await executor.close()
    return Measured(scoring, without_errors, kernel, reference, memory, tally)


async def score(case: Case, truth: Truth, path: Path, executor: Processes) -> ScoringResult:
    return await evaluate(case.task, truth, path, executor=executor, limits=LIMITS)


def in_memory(case: Case, truth: Truth) -> Block:
    tables = scoring_calls.truth_tables(truth)
    predictions: dict[str, Any] = {"event_id": case.event_ids().astype(np.int32), **case.predictions}
    return Block(case.events, pa.table(predictions), tables)


def timed(work: Callable[[], dict[str, float]]) -> tuple[float, dict[str, float]]:
    before = time.process_time()
    made = work()
    return time.process_time() - before, made


def compare(ours: dict[str, float], theirs: dict[str, float]) -> None:
    """Both must have computed the same."""
    for name, value in theirs.items():
        assert abs(ours[name] - value) <= 1e-9 * abs(value), (name, ours[name], value)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smoke of some seconds")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows, rounds = (QUICK_ROWS, 1) if options.quick else (ROWS, options.rounds)
    print(f"{rows:,} rows; rates in M rows/s of CPU time")
    print(
        f"{'task':10}{'file':>7}{'arrays':>8}{'scikit-learn':>14}{'file / its':>12}{'arrays / its':>14}",
        end="",
    )
    print(f"{'errors':>8}{'MiB':>7}{'tally MiB':>11}")
    for make in (anomaly, jets):
        with tempfile.TemporaryDirectory(prefix="perf-ranking-") as name:
            measured = await measure(make(rows, np.random.default_rng(5)), Path(name), rounds)
        show(make.__name__, rows, measured)


def show(name: str, rows: int, measured: Measured) -> None:
    scoring, plain, kernel, reference = map(
        statistics.median,
        (measured.scoring, measured.without_errors, measured.kernel, measured.by_scikit_learn),
    )
    millions = rows / 1e6
    print(f"{name:10}{millions / scoring:7.2f}{millions / kernel:8.2f}{millions / reference:14.2f}", end="")
    print(f"{reference / scoring:12.1f}{reference / kernel:14.1f}{scoring / plain - 1:+8.0%}", end="")
    print(f"{measured.memory / 2**20:7.0f}{measured.tally / 2**20:11.0f}")


if __name__ == "__main__":
    asyncio.run(main())
