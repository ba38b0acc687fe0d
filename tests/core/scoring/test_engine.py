"""Scores depend only on the predictions; faults of tasks are not reported as bad files."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import toy_task
from tests.counts import LONG
from tests.killing import Killer
from tests.waiting import until
from toy_task import LIMITS, SIZES, Make, Score, Toy, ToyTally

from collidium.client.predictions import write_predictions
from collidium.contracts.executor import Limits
from collidium.errors import InvalidInput, ScoringFailed, ScoringInterrupted
from collidium.scoring import engine, partitioning
from collidium_plugins import executor_processes
from collidium_plugins.executor_processes import Processes

pytestmark = pytest.mark.asyncio(loop_scope="module")

BLOCKS_AND_WORKERS = list(product((1, 2, 7), (1, 2))) if LONG else [(1, 2), (2, 1), (7, 2)]


def answers() -> pa.Table:
    """Predictions of which four in five are right, in several widths."""
    table = toy_task.items()
    wrong = np.arange(table.num_rows) % 5 == 0
    values = np.where(wrong, -1.0, np.asarray(table.column("value")))
    return table.set_column(2, "value", pa.array(values))


def shuffled(table: pa.Table) -> pa.Table:
    return table.take(np.random.default_rng(5).permutation(table.num_rows))


def shuffled_within_events(table: pa.Table) -> pa.Table:
    return shuffled(table).sort_by("event_id")


#: How the rows of a file may lie.
FILES: dict[str, Callable[[pa.Table, Path], None]] = {
    "recommended": write_predictions,
    "one row group": pq.write_table,
    "groups straddle events": lambda table, path: pq.write_table(table, path, row_group_size=13),
    "a group for each row": lambda table, path: pq.write_table(table, path, row_group_size=1),
    "shuffled within events": lambda table, path: pq.write_table(
        shuffled_within_events(table), path, row_group_size=17
    ),
    "shuffled": lambda table, path: pq.write_table(shuffled(table), path, row_group_size=29),
    "events fall": lambda table, path: pq.write_table(
        table.sort_by([("event_id", "descending")]), path, row_group_size=10
    ),
    "no statistics": lambda table, path: pq.write_table(
        shuffled(table), path, row_group_size=11, write_statistics=False
    ),
    "statistics of other columns only": lambda table, path: pq.write_table(
        table, path, row_group_size=11, write_statistics=["value"]
    ),
    "narrow": lambda table, path: pq.write_table(
        table.cast(pa.schema([("event_id", pa.int8()), ("item_id", pa.uint16()), ("value", pa.float32())])),
        path,
    ),
    "unsigned and wide": lambda table, path: pq.write_table(
        table.cast(pa.schema([("event_id", pa.uint64()), ("item_id", pa.uint64()), ("value", pa.float64())])),
        path,
        row_group_size=9,
    ),
    "dictionaries of integers": lambda table, path: pq.write_table(
        table.set_column(0, "event_id", table.column("event_id").dictionary_encode()), path, row_group_size=30
    ),
    "columns in another order": lambda table, path: pq.write_table(
        table.select(["value", "item_id", "event_id"]), path
    ),
    "empty row groups": lambda table, path: write_with_empty_groups(table, path),
}


def write_with_empty_groups(table: pa.Table, path: Path) -> None:
    with pq.ParquetWriter(path, table.schema) as writer:
        for first in range(0, table.num_rows, 50):
            writer.write_table(table.slice(0, 0), row_group_size=1)
            writer.write_table(table.slice(first, 50))


def expected(table: pa.Table, task: Toy | None = None) -> ToyTally:
    """The tally of all events at once, without the engine."""
    from collidium.contracts.task import Block

    task = task or Toy()
    items = toy_task.items()
    truth = items.rename_columns(["event_id", "item_id", "answer"])
    return task.score(Block(toy_task.EVENTS, table.sort_by("event_id"), {"answers": truth}))


@pytest.mark.parametrize("how", FILES)
@pytest.mark.parametrize("job_rows", [1, 45, None], ids=["many jobs", "some jobs", "one job"])
async def test_rows_may_lie_in_any_way(score: Score, tmp_path: Path, how: str, job_rows: int | None) -> None:
    path = tmp_path / "predictions.parquet"
    FILES[how](answers(), path)
    evaluation = await score(path, job_rows=job_rows)
    assert evaluation.rows == sum(SIZES)
    assert evaluation.metrics == Toy().metrics(expected(answers()))
    assert evaluation.warnings == [repr(expected(answers()))]
    assert list(tmp_path.iterdir()) == [path]


async def test_blocks_and_workers_change_nothing(score: Score, make: Make, tmp_path: Path) -> None:
    for how in ("recommended", "groups straddle events", "shuffled", "no statistics"):
        FILES[how](answers(), tmp_path / f"{how}.parquet")
    found = set()
    for number_of_blocks, workers in BLOCKS_AND_WORKERS:
        executor = Processes(workers)
        truth = await make(
            tmp_path / f"truth{number_of_blocks}",
            executor=executor,
            block_rows={1: 1000, 2: 98, 7: 1}[number_of_blocks],
        )
        assert len(truth.blocks) == number_of_blocks
        for path, job_rows in product(tmp_path.glob("*.parquet"), (1, None)):
            made = await score(path, against=truth, executor=executor, job_rows=job_rows)
            found.add(tuple(made.warnings))
        await executor.close()
    assert found == {(repr(expected(answers())),)}


async def test_rows_that_are_not_submitted_count_as_missing(score: Score, tmp_path: Path) -> None:
    table = answers()
    some = table.filter(pa.compute.is_in(table.column("event_id"), pa.array([11, 16])))
    pq.write_table(some, tmp_path / "some.parquet")
    evaluation = await score(tmp_path / "some.parquet", job_rows=1)
    assert evaluation.metrics["missing"] == 1 - (31 + 33) / sum(SIZES)
    left_out = f"{sum(SIZES) - 31 - 33} of {sum(SIZES)} answers have no prediction"
    assert evaluation.warnings == [left_out, "some items have no value", repr(expected(some))]


async def test_progress_ends_with_all_events(score: Score, tmp_path: Path) -> None:
    write_predictions(answers(), tmp_path / "p.parquet")
    reports: list[tuple[int, int]] = []
    await score(tmp_path / "p.parquet", progress=lambda *done: reports.append(done), job_rows=1)
    assert reports == sorted(reports)
    assert len(reports) > 1
    assert reports[-1] == (7, 7)


async def test_rows_are_sorted_on_disk_when_memory_is_short(
    score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With small limits, so that a small file needs several sorting and scoring jobs."""
    monkeypatch.setattr(partitioning, "SPAN_ROWS", 30)
    monkeypatch.setattr(partitioning, "MAX_JOB_ROWS", 40)
    sorting = []
    original = engine._Evaluation._sort_and_score

    async def spy(self: engine._Evaluation, *arguments: Any) -> object:
        sorting.append(arguments)
        return await original(self, *arguments)

    monkeypatch.setattr(engine._Evaluation, "_sort_and_score", spy)
    FILES["no statistics"](answers(), tmp_path / "p.parquet")
    assert (await score(tmp_path / "p.parquet")).warnings == [repr(expected(answers()))]
    assert len(sorting) == 1


async def test_statistics_that_lie_do_not_move_rows(score: Score, tmp_path: Path) -> None:
    table = answers()
    path = tmp_path / "p.parquet"
    with pq.ParquetWriter(path, table.schema, use_dictionary=False) as writer:
        for event in range(10, 17):
            rows = table.filter(pa.compute.equal(table.column("event_id"), event))
            writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    lie = data[-footer:].replace(packed(13), packed(15))
    path.write_bytes(data[:-footer] + lie)
    assert pq.read_metadata(path).row_group(3).column(0).statistics.max == 15
    for job_rows in (1, None):
        assert (await score(path, job_rows=job_rows)).warnings == [repr(expected(table))]


async def test_statistics_whose_least_is_above_their_greatest_are_none(score: Score, tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    table = answers()
    pq.write_table(table.filter(pa.compute.is_in(table.column("event_id"), pa.array([13, 14]))), path)
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    swapped = data[-footer:].replace(packed(13), b"????????").replace(packed(14), packed(13))
    path.write_bytes(data[:-footer] + swapped.replace(b"????????", packed(14)))
    statistics = pq.read_metadata(path).row_group(0).column(0).statistics
    assert (statistics.min, statistics.max) == (14, 13)
    assert (await score(path, job_rows=1)).rows == 7 + 40


def packed(event: int) -> bytes:
    return event.to_bytes(8, "little")


# -- faults ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", toy_task.BROKEN)
async def test_a_task_that_goes_wrong_is_not_the_submitters_fault(
    score: Score, tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "p.parquet"
    write_predictions(answers(), path)
    limits = Limits(1024**3, 4 if broken.startswith("loops") else 60)
    with caplog.at_level(logging.ERROR), pytest.raises(ScoringFailed) as raised:
        await score(path, toy_task.Broken(broken), limits=limits)
    assert raised.value.status == 503
    assert "fault of the task" not in raised.value.detail
    assert "scoring for task toy failed" in caplog.text
    if broken.startswith("raises"):
        assert "toy_task.py" in caplog.text
    assert (await score(path)).warnings == [repr(expected(answers()))]


@pytest.mark.parametrize("kind", ["recommended", "no statistics"])
@pytest.mark.parametrize("_", range(20 if LONG else 1))
async def test_a_killed_worker_changes_no_score(score: Score, tmp_path: Path, kind: str, _: int) -> None:
    path, executor = tmp_path / "p.parquet", Processes(2)
    FILES[kind](answers(), path)
    with Killer(os.getpid()) as killer:
        scores = await score(path, executor=executor)
    await executor.close()
    assert scores.warnings == [repr(expected(answers()))]
    assert len(killer.killed) == 1


async def test_a_worker_killed_at_work_is_replaced(score: Score, tmp_path: Path) -> None:
    path, pid_file = tmp_path / "p.parquet", tmp_path / "pid"
    write_predictions(answers(), path)
    scoring = asyncio.create_task(score(path, toy_task.Waits(pid_file)))
    await until(pid_file.exists)
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    assert (await scoring).metrics == (await score(path)).metrics


async def test_workers_killed_again_and_again_are_no_ones_fault(score: Score, tmp_path: Path) -> None:
    path, executor = tmp_path / "p.parquet", Processes(2)
    write_predictions(answers(), path)

    async def score_until_it_fails() -> None:
        while True:  # a call may be faster than the killer
            await score(path, executor=executor)

    with Killer(os.getpid(), inf) as killer, pytest.raises(ScoringInterrupted) as raised:
        await score_until_it_fails()
    await executor.close()
    assert (raised.value.status, raised.value.headers["Retry-After"]) == (503, "60")
    assert len(killer.killed) >= 2


async def test_workers_that_do_not_start_are_no_ones_fault(
    score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, executor = tmp_path / "p.parquet", Processes(1)
    write_predictions(answers(), path)
    monkeypatch.setattr(executor_processes, "_SCRIPT", tmp_path / "missing.py")
    with pytest.raises(ScoringInterrupted):
        await score(path, executor=executor)
    await executor.close()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
async def test_a_task_that_crashes_its_worker_is_at_fault(
    score: Score, tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "p.parquet"
    write_predictions(answers(), path)
    with pytest.raises(ScoringFailed) as raised:
        await score(path, toy_task.EndsBy(number))
    assert not isinstance(raised.value, ScoringInterrupted)


async def test_cancelling_leaves_neither_work_nor_files(score: Score, tmp_path: Path) -> None:
    path, pid_file = tmp_path / "p.parquet", tmp_path / "pid"
    FILES["no statistics"](answers(), path)
    scoring = asyncio.create_task(score(path, toy_task.Waits(pid_file)))
    await until(pid_file.exists)
    scoring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await scoring
    assert sorted(tmp_path.iterdir()) == [path, pid_file]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


async def test_workers_import_what_scoring_needs_and_no_server(
    score: Score, executor: Processes, tmp_path: Path
) -> None:
    write_predictions(answers(), tmp_path / "p.parquet")
    await score(tmp_path / "p.parquet")
    async for loaded in executor.map(toy_task.loaded_modules, [None] * 8, LIMITS):
        assert not loaded & {
            "quart",
            "hypercorn",
            "tortoise",
            "pydantic",
            "httpx",
            "huggingface_hub",
            "pluggy",
        }


@pytest.mark.parametrize("own", [{"toy_task"}, {"collidium"}], ids=["built-in", "third-party"])
async def test_a_worker_of_third_party_code_is_not_used_again(
    score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: set[str]
) -> None:
    monkeypatch.setattr("collidium.scoring.engine.OWN_PACKAGES", own)
    write_predictions(answers(), tmp_path / "p.parquet")
    executor = Processes(1)
    [before] = [pid async for pid in executor.map(toy_task.process_id, [None], LIMITS)]
    await score(tmp_path / "p.parquet", executor=executor)
    [after] = [pid async for pid in executor.map(toy_task.process_id, [None], LIMITS)]
    await executor.close()
    assert (after == before) is (own == {"toy_task"})


async def test_the_loop_stays_free_while_a_task_scores(score: Score, tmp_path: Path) -> None:
    """A task computes for a second: the loop has its turns all the time."""
    path = tmp_path / "p.parquet"
    write_predictions(answers(), path)
    scoring = asyncio.create_task(score(path, toy_task.Spins(), job_rows=1))
    turns = 0
    while not scoring.done():
        await asyncio.sleep(0.005)
        turns += 1
    await scoring
    assert turns > 30, "where it computes on the loop, there are as many turns as jobs"


async def test_problems_of_all_jobs_are_reported_at_once(score: Score, tmp_path: Path) -> None:
    table = answers().to_pydict()
    first_of_11, first_of_16 = SIZES[0], sum(SIZES[:6])
    for row in (first_of_11, first_of_11 + 1, first_of_16, 0, 1, 2, 3):
        table["item_id"][row] = 999
    table["value"][5], table["value"][-1] = None, float("nan")
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table(table), path, row_group_size=16)
    answers_of = []
    for job_rows in (1, 45, None):
        with pytest.raises(InvalidInput) as raised:
            await score(path, job_rows=job_rows)
        answers_of.append(sorted(raised.value.errors, key=lambda error: (error["code"], error["column"])))
    assert answers_of[0] == answers_of[1] == answers_of[2]
    non_finite, null, unknown = answers_of[0]
    assert (non_finite["code"], non_finite["column"], non_finite["count"]) == ("non-finite", "value", 1)
    assert non_finite["examples"] == [{"event_id": 16, "item_id": 32, "value": "nan"}]
    assert (null["code"], null["event_id"], null["examples"][0]["value"]) == ("null-value", 10, None)
    assert (unknown["code"], unknown["column"], unknown["count"]) == ("unknown-item", "item_id", 7)
    assert len(unknown["examples"]) == 5
    assert unknown["event_id"] == 10
