"""The contract of a benchmark task."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.task import Block, Card, EventRange, Tables, Tally, Task
from collidium.testing.conformance.promise import check_name, promise

#: A tally travels between processes and machines for every block.
_LARGEST_TALLY = 1024**2


def check_task(task: Task, tables: Tables, predictions: pa.Table | None = None) -> dict[str, float]:
    """Check the card, truth, scoring, and that the score does not depend on how events are cut.

    ``tables`` are dataset tables of a few events, one row per event: the card's ``truth_sources`` and
    ``inputs``. ``predictions`` must be valid; without them the first baseline's are scored. Returns the
    metrics.
    """
    _check_card(task.card)
    _check_version(task)
    task = _check_pickling(task)
    tables = {name: table.sort_by("event_id") for name, table in tables.items()}
    truth = _check_truth(task, tables)
    if predictions is None:
        predictions = _floor(task, tables)
    return _check_scoring(task, truth, predictions.select(task.card.column_names).sort_by("event_id"))


# -- card ----------------------------------------------------------------------------------------------


def _check_card(card: Card) -> None:
    check_name(card.name, "a task")
    texts = {"title": card.title, "description": card.description, "dataset": card.dataset}
    for field, text in texts.items():
        promise(bool(text.strip()), f"the card's {field} is empty")
    for part, names in {"column": card.column_names, "metric": [m.name for m in card.metrics]}.items():
        for name in names:
            check_name(name, f"a {part}")
        promise(len(set(names)) == len(names), f"the card names a {part} twice: {', '.join(names)}")
    kinds = {column.name: column.kind for column in card.columns}
    promise(kinds["event_id"] == "integer", "the column event_id must be an integer")
    promise(bool(card.truth_sources), "the card names no truth_sources, so nothing can be scored")
    for metric in card.metrics:
        promise(bool(metric.description.strip()), f"the metric {metric.name} has no description")
        promise(
            metric.reward is None or metric.reward >= 0, f"the metric {metric.name} pays less than nothing"
        )


def _check_version(task: Task) -> None:
    """The version stands with every score, so it has to be a short text."""
    version = task.version
    promise(isinstance(version, str) and 0 < len(version) <= 32, f"version must be a short text: {version!r}")


def _check_pickling(task: Task) -> Task:
    copy: Task = pickle.loads(pickle.dumps(task))  # noqa: S301 -- made in the same line
    promise(copy.card == task.card, "a task must come out of a pickle as it went in: workers get it so")
    return copy


def _floor(task: Task, tables: Tables) -> pa.Table:
    """Predictions of the first baseline, which is given the card's inputs and nothing else."""
    for reconstruct in task.baselines().values():
        return reconstruct({name: tables[name] for name in task.card.inputs})
    raise ValueError(f"task {task.card.name!r} has no baselines: give predictions to score")


# -- truth ---------------------------------------------------------------------------------------------


def _check_truth(task: Task, tables: Tables) -> Tables:
    missing = sorted(set(task.card.truth_sources) - set(tables))
    if missing:
        raise ValueError(f"tables lack the card's truth_sources {', '.join(missing)}")
    sources = {name: tables[name] for name in task.card.truth_sources}
    truth = task.prepare(sources)
    promise(task.card.rows_of in truth, f"prepare must return the card's rows_of table {task.card.rows_of!r}")
    by_event = [task.prepare(_only(sources, [event])) for event in _events(sources.values())]
    for name, table in truth.items():
        _check_truth_table(name, table)
        pieces = [block[name] for block in by_event]
        for piece in pieces:
            promise(piece.schema == table.schema, f"truth table {name!r} must have one schema in every block")
        promise(
            bool(pa.concat_tables(pieces).equals(table)),
            f"truth table {name!r} must be the same whether events are prepared together or one by one",
        )
    return truth


def _check_truth_table(name: str, table: pa.Table) -> None:
    promise("event_id" in table.column_names, f"truth table {name!r} needs a column event_id")
    events = table.column("event_id")
    promise(events.type == pa.uint32(), f"event_id of truth table {name!r} must be uint32, not {events.type}")
    numbers = np.asarray(events, dtype=np.int64)
    promise(bool(np.all(np.diff(numbers) >= 0)), f"truth table {name!r} must be sorted by event_id")


# -- scoring -------------------------------------------------------------------------------------------


def _check_scoring(task: Task, truth: Tables, predictions: pa.Table) -> dict[str, float]:
    events = _events(truth.values())
    metrics = _score(task, truth, predictions, [events])
    _check_metrics(task, metrics)
    for cut in _cuts(events):
        promise(
            _score(task, truth, predictions, cut) == metrics,
            f"metrics must not depend on how events are cut into blocks; they do for {cut}",
        )
    for what, variant in _equivalent(task, predictions):
        promise(
            _score(task, truth, variant, [events]) == metrics,
            f"metrics must not change when {what}: {metrics}",
        )
    nothing = _score(task, truth, predictions.slice(0, 0), [events])
    _check_metrics(task, nothing)
    return metrics


def _score(
    task: Task, truth: Tables, predictions: pa.Table, cut: Sequence[Sequence[int]]
) -> dict[str, float]:
    tallies: list[Tally] = []
    for events in cut:
        span = EventRange(min(events), max(events) + 1)
        block = Block(span, _of_events(predictions, events), _only(truth, events))
        problems = task.check(block)
        promise(not problems, f"check finds problems in valid predictions: {problems[:3]}")
        tallies.append(_through_pickle(task.score(block)))
    return task.metrics(_merge_in_two_steps(task, tallies))


def _through_pickle(tally: Tally) -> Tally:
    data = pickle.dumps(tally)
    promise(len(data) < _LARGEST_TALLY, f"a tally must be small, not {len(data)} bytes")
    return pickle.loads(data)  # noqa: S301 -- made two lines above


def _merge_in_two_steps(task: Task, tallies: list[Tally]) -> Tally:
    """Merging is associative: the engine may merge a part first."""
    if len(tallies) < 3:
        return task.merge(tallies)
    return task.merge([tallies[0], _through_pickle(task.merge(tallies[1:]))])


def _check_metrics(task: Task, metrics: dict[str, float]) -> None:
    declared = [metric.name for metric in task.card.metrics]
    promise(sorted(metrics) == sorted(declared), f"metrics must be {declared}, not {list(metrics)}")
    for name, value in metrics.items():
        promise(type(value) is float, f"the metric {name} must be a float, not {type(value).__name__}")
        promise(math.isfinite(value), f"the metric {name} must be finite, not {value}")


def _cuts(events: list[int]) -> Iterable[list[list[int]]]:
    """Repeat (deterministic?), one block per event, and two blocks cut at every place."""
    yield [events]
    yield [[event] for event in events]
    for place in range(1, len(events)):
        yield [events[:place], events[place:]]


def _equivalent(task: Task, predictions: pa.Table) -> Iterable[tuple[str, pa.Table]]:
    """The same answer, written differently."""
    integers = [column.name for column in task.card.columns if column.kind == "integer"]
    for width in (pa.int64(), pa.int32()):
        columns = {
            name: pc.cast(predictions[name], width) if name in integers else predictions[name]
            for name in predictions.column_names
        }
        yield f"integers are written as {width}", pa.table(columns)
    shuffled = predictions.take(np.random.default_rng(1).permutation(predictions.num_rows))
    yield "rows of an event come in another order", shuffled.sort_by("event_id")


# -- tables --------------------------------------------------------------------------------------------


def _events(tables: Iterable[pa.Table]) -> list[int]:
    ids = [np.asarray(table.column("event_id"), dtype=np.int64) for table in tables]
    return [int(event) for event in np.unique(np.concatenate(ids))]


def _only(tables: Tables, events: Sequence[int]) -> Tables:
    return {name: _of_events(table, events) for name, table in tables.items()}


def _of_events(table: pa.Table, events: Sequence[int]) -> pa.Table:
    wanted = pa.array(events, table.schema.field("event_id").type)
    return table.filter(pc.is_in(table.column("event_id"), wanted))
