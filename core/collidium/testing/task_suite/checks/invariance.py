"""Checks that scores depend only on predictions and truth, and memory on the size of a block."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.task import Block, EventRange, Tally
from collidium.testing.conformance.promise import Nonconforming, promise
from collidium.testing.task_suite import scoring
from collidium.testing.task_suite.suite import Subject

_WORKER_SECONDS = 300
#: Last lines of a worker's traceback that are shown.
_LINES_SHOWN = 3
#: Rows of truth and predictions in the small block; the large one has four times as many.
_SMALL_ROWS: Final = 2_000
_TIMES: Final = 4
#: Maximum factor of memory for four times the rows, between linear and quadratic growth.
_GROWTH: Final = 6
#: Smaller amounts of memory are not compared.
_LITTLE: Final = 1024**2


def scoring_is_deterministic(subject: Subject) -> None:
    """Scoring the same twice gives the same metrics, to the last bit."""
    for what, predictions in subject.compared.items():
        first, again = subject.score(predictions), subject.score(predictions)
        promise(scoring.same(first, again), f"{what} scores {first}, and {again} the second time")


def scoring_is_independent_of_blocks(subject: Subject) -> None:
    """Metrics do not depend on how events are cut into blocks."""
    for what, predictions in subject.compared.items():
        metrics = subject.score(predictions)
        for cut in _cuts(subject.events):
            others = subject.score(predictions, cut)
            promise(
                scoring.same(others, metrics),
                f"metrics must not depend on how events are cut into blocks; for {what} they are {metrics}, "
                f"and {others} for the blocks {cut}",
            )


def _cuts(events: list[int]) -> Iterable[list[list[int]]]:
    """One block per event, and two blocks cut at every place."""
    yield [[event] for event in events]
    for place in range(1, len(events)):
        yield [events[:place], events[place:]]


def scoring_is_independent_of_workers(subject: Subject) -> None:
    """Metrics do not depend on the process that scores a block, nor on what it scored before."""
    cut = [[event] for event in subject.events]
    for what, predictions in subject.compared.items():
        blocks = scoring.blocks(subject.truth, predictions, cut)
        tallies = _scored_elsewhere(subject, blocks[::-1])[::-1]
        others = subject.task.metrics(subject.task.merge(tallies))
        metrics = subject.score(predictions)
        promise(
            scoring.same(others, metrics),
            f"metrics must not depend on the process that scores; for {what} they are {metrics} here, "
            f"and {others} from a process that scored the last event first",
        )


def _scored_elsewhere(subject: Subject, blocks: list[Block]) -> list[Tally]:
    # With another hash seed, sets of strings have another order, as in any two workers.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "collidium.testing.scoring_worker"],
        input=pickle.dumps((subject.task, blocks)),
        capture_output=True,
        check=False,
        env=environment,
        timeout=_WORKER_SECONDS,
    )
    if done.returncode:
        message = " / ".join(done.stderr.decode(errors="replace").strip().splitlines()[-_LINES_SHOWN:])
        raise Nonconforming(f"a worker process cannot score the same blocks: {message}")
    tallies: list[Tally] = pickle.loads(done.stdout)  # noqa: S301 -- of the process started above
    return tallies


def scoring_is_independent_of_writing(subject: Subject) -> None:
    """Metrics do not depend on the order of an event's rows, nor on the width of integers."""
    for what, predictions in subject.compared.items():
        metrics = subject.score(predictions)
        for how, variant in _equivalent(subject, predictions):
            others = subject.score(variant)
            promise(
                scoring.same(others, metrics),
                f"metrics must not change when {how}; for {what} they are {metrics}, then {others}",
            )


def _equivalent(subject: Subject, predictions: pa.Table) -> Iterable[tuple[str, pa.Table]]:
    integers = [column.name for column in subject.task.card.columns if column.kind == "integer"]
    largest = max((pc.max(predictions[name]).as_py() or 0 for name in integers), default=0)
    for width in (pa.int64(), pa.int32()):
        if largest < 1 << (width.bit_width - 1):
            yield f"integers are written as {width}", _cast(predictions, integers, width)
    shuffled = predictions.take(np.random.default_rng(1).permutation(predictions.num_rows))
    yield "rows of an event come in another order", shuffled.sort_by("event_id")


def _cast(table: pa.Table, columns: list[str], kind: pa.DataType) -> pa.Table:
    for name in columns:
        place = table.column_names.index(name)
        table = table.set_column(place, name, pc.cast(table.column(name), kind))
    return table


def inputs_are_not_changed(subject: Subject) -> None:
    """No method changes its arguments, and the task holds no state."""
    task = subject.task
    before = pickle.dumps(task)
    sources, inputs = subject.sources, subject.inputs
    _unchanged(sources, lambda: task.prepare(sources), "prepare")
    for name, reconstruct in list(task.baselines().items())[:1]:
        _unchanged(inputs, lambda: reconstruct(inputs), f"baseline {name}")  # noqa: B023 -- called at once
    truth = dict(subject.truth)
    block = Block(scoring.blocks(truth, subject.main, [subject.events])[0].events, subject.main, truth)
    _unchanged(truth, lambda: (task.check(block), task.score(block)), "scoring")
    promise(pickle.dumps(task) == before, "a task must hold no state: scoring changes it")


def _unchanged(tables: dict[str, pa.Table], work: Callable[[], object], what: str) -> None:
    before = {name: pickle.dumps(table) for name, table in tables.items()}
    work()
    promise(list(tables) == list(before), f"{what} must not change the dictionary of tables it is given")
    for name, content in before.items():
        promise(pickle.dumps(tables[name]) == content, f"{what} must not change the table {name} it is given")


def memory_is_bounded_by_the_block(subject: Subject) -> None:
    """Scoring a block of four times the events takes about four times the memory, not more."""
    rows = subject.main.num_rows + sum(table.num_rows for table in subject.truth.values())
    copies = max(_SMALL_ROWS // max(rows, 1), 1)
    small, large = (_block(subject, copies * times) for times in (1, _TIMES))
    subject.task.score(small)  # caches do not count
    small_peak, large_peak = (_peak(lambda: subject.task.score(block)) for block in (small, large))  # noqa: B023 -- called before the next block
    promise(
        large_peak <= _GROWTH * max(small_peak, _LITTLE),
        f"scoring {copies * rows} rows takes {small_peak / 1024**2:.1f} MiB, and {_TIMES} times as many take "
        f"{large_peak / 1024**2:.1f} MiB: work event by event",
    )


def _block(subject: Subject, copies: int) -> Block:
    """Copies of the sample's events, with distinct ids."""
    first, last = subject.events[0], subject.events[-1]
    truth = {name: _repeated(table, copies, last - first + 1) for name, table in subject.truth.items()}
    predictions = _repeated(subject.main, copies, last - first + 1)
    return Block(EventRange(first, first + copies * (last - first + 1)), predictions, truth)


def _repeated(table: pa.Table, copies: int, step: int) -> pa.Table:
    kind = table.schema.field("event_id").type
    ids = np.asarray(table.column("event_id"), np.int64)
    events = np.concatenate([ids + number * step for number in range(copies)])
    repeated = pa.concat_tables([table] * copies).combine_chunks()
    place = table.column_names.index("event_id")
    return repeated.set_column(place, "event_id", pa.array(events, kind))


def _peak(work: Callable[[], object]) -> int:
    """Bytes that are in use at most while ``work`` runs, of Python, NumPy and Arrow."""
    pool, before = pa.proxy_memory_pool(pa.system_memory_pool()), pa.default_memory_pool()
    tracemalloc.start()
    pa.set_memory_pool(pool)
    try:
        work()
        return tracemalloc.get_traced_memory()[1] + (pool.max_memory() or 0)
    finally:
        pa.set_memory_pool(before)
        tracemalloc.stop()
