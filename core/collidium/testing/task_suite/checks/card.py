"""Checks of the card, the task object, the truth, and the predictions of baselines and oracle."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from collidium.contracts.task import Card, Column, Metric, Reconstruction
from collidium.testing.conformance.promise import check_name, promise
from collidium.testing.task_suite import scoring
from collidium.testing.task_suite.scoring import only
from collidium.testing.task_suite.suite import ORACLE, Subject, baseline

_LONGEST_VERSION = 32


def card_is_complete(subject: Subject) -> None:
    """The card has every text, and names of the right form, each once."""
    card = subject.task.card
    check_name(card.name, "a task")
    texts = {"title": card.title, "description": card.description, "dataset": card.dataset}
    for field, text in texts.items():
        promise(bool(text.strip()), f"the card's {field} is empty")
    for column in card.columns:
        promise(bool(column.description.strip()), f"the column {column.name} has no description")
        _check_bounds("column", column.name, column.bounds)
    _check_names(card)
    kinds = {column.name: column.kind for column in card.columns}
    promise(kinds["event_id"] == "integer", "the column event_id must be an integer")
    promise(bool(card.truth_sources), "the card names no truth_sources, so nothing can be scored")
    for metric in card.metrics:
        _check_metric(metric)


def _check_names(card: Card) -> None:
    for part, names in {"column": card.column_names, "metric": [m.name for m in card.metrics]}.items():
        for name in names:
            check_name(name, f"a {part}")
        promise(len(set(names)) == len(names), f"the card names a {part} twice: {', '.join(names)}")


def _check_metric(metric: Metric) -> None:
    promise(bool(metric.description.strip()), f"the metric {metric.name} has no description")
    reason = "a metric that predictions cannot change needs a reason in uninformative_because"
    promise(metric.informative or bool(metric.uninformative_because.strip()), f"{metric.name}: {reason}")
    promise(metric.reward is None or metric.reward >= 0, f"the metric {metric.name} pays less than nothing")
    _check_bounds("metric", metric.name, metric.bounds)


def _check_bounds(part: str, name: str, bounds: tuple[float, float]) -> None:
    lowest, highest = bounds
    promise(lowest < highest, f"the {part} {name} needs bounds (lowest, highest), not {bounds}")


def version_is_a_short_text(subject: Subject) -> None:
    """The version, which is shown with every score, is a short text."""
    version = subject.task.version
    good = isinstance(version, str) and 0 < len(version) <= _LONGEST_VERSION
    promise(good, f"version must be a text of at most {_LONGEST_VERSION} characters, not {version!r}")


def task_is_picklable(subject: Subject) -> None:
    """The task can be pickled, which is how workers get it."""
    copy = pickle.loads(pickle.dumps(subject.task))  # noqa: S301 -- made in the same line
    promise(copy.card == subject.task.card, "the task must come out of a pickle as it went in")


def truth_is_well_formed(subject: Subject) -> None:
    """Truth tables are sorted by event_id (uint32), without nulls, and rows_of is one of them."""
    rows_of = subject.task.card.rows_of
    promise(rows_of in subject.truth, f"prepare must return the card's rows_of table {rows_of!r}")
    for name, table in subject.truth.items():
        _check_table(name, table, subject.events)


def _check_table(name: str, table: pa.Table, events: list[int]) -> None:
    promise("event_id" in table.column_names, f"truth table {name!r} needs a column event_id")
    ids = table.column("event_id")
    promise(ids.type == pa.uint32(), f"event_id of truth table {name!r} must be uint32, not {ids.type}")
    nulls = [column for column in table.column_names if table.column(column).null_count]
    promise(not nulls, f"truth table {name!r} has nulls in {', '.join(nulls)}")
    numbers = np.asarray(ids, dtype=np.int64)
    promise(bool(np.all(np.diff(numbers) >= 0)), f"truth table {name!r} must be sorted by event_id")
    strange = sorted(set(numbers.tolist()) - set(events))
    promise(not strange, f"truth table {name!r} has events that are not in its sources: {strange[:3]}")


def truth_is_independent_of_blocks(subject: Subject) -> None:
    """Truth is the same, and has one schema, whether events are prepared together or one by one."""
    by_event = [subject.task.prepare(only(subject.sources, [event])) for event in subject.events]
    for name, table in subject.truth.items():
        pieces = [block.get(name) for block in by_event]
        for piece in pieces:
            known = piece is not None and piece.schema == table.schema
            promise(known, f"truth table {name!r} must have one schema in every block")
        whole = pa.concat_tables([piece for piece in pieces if piece is not None])
        promise(
            bool(whole.equals(table)),
            f"truth table {name!r} must be the same whether events are prepared together or one by one",
        )


def answers_are_valid(subject: Subject) -> None:
    """Baselines, given the inputs alone, and the oracle make valid predictions."""
    for name in subject.task.baselines():
        check_name(name, "a baseline")
    maximum = subject.truth[subject.task.card.rows_of].num_rows
    for what, predictions in subject.answers.items():
        for column in subject.task.card.columns:
            _check_column(what, column, predictions.column(column.name))
            _check_one_value(what, column, predictions)
        promise(
            predictions.num_rows <= maximum,
            f"{what} has {predictions.num_rows} rows, more than rows_of allows: {maximum}",
        )
        events = set(predictions.column("event_id").to_pylist())
        promise(events <= set(subject.events), f"{what} has rows of other events")
        for block in scoring.blocks(subject.truth, predictions, [subject.events]):
            problems = subject.task.check(block)
            promise(not problems, f"check finds problems in valid predictions ({what}): {problems[:3]}")


def answers_are_valid_as_a_whole(subject: Subject) -> None:
    """The task's own predictions have no problem after merging, whatever the blocks."""
    for what, predictions in subject.answers.items():
        for cut in ([subject.events], [[event] for event in subject.events]):
            tallies = scoring.tallies(subject.task, subject.truth, predictions, cut)
            problems = subject.task.check_whole(subject.task.merge(tallies))
            promise(not problems, f"check_whole finds problems in valid predictions ({what}): {problems[:3]}")


def _check_column(what: str, column: Column, values: pa.ChunkedArray[Any]) -> None:
    place = f"{what}, column {column.name}"
    promise(values.null_count == 0, f"{place}: has nulls")
    if column.kind == "integer":
        promise(kinds.is_integer(values.type), f"{place}: must be integers, not {values.type}")
    number = kinds.is_integer(values.type) or kinds.is_floating(values.type)
    promise(number, f"{place}: must be numbers, not {values.type}")
    numbers = np.asarray(values, np.float64)
    promise(bool(np.all(np.isfinite(numbers))), f"{place}: must be finite")
    lowest, highest = column.bounds
    inside = bool(np.all((numbers >= lowest) & (numbers <= highest)))
    promise(inside, f"{place}: must lie within {lowest:g} and {highest:g}, as the card says")


def _check_one_value(what: str, column: Column, predictions: pa.Table) -> None:
    if column.one_per is None:
        return
    keys = ["event_id", column.name] if column.one_per == "event" else [column.name]
    values = predictions.select(keys).group_by(keys).aggregate([])
    one = values.num_rows <= (len(set(values["event_id"].to_pylist())) if column.one_per == "event" else 1)
    promise(one, f"{what}, column {column.name}: must have one value per {column.one_per}, as the card says")


def floor_is_independent_of_blocks(subject: Subject) -> None:
    """The first baseline scores the same, except for measured metrics, given all events or one by one."""
    measured = {metric.name for metric in subject.task.card.metrics if metric.self_reported}
    for name, reconstruct in list(subject.task.baselines().items())[:1]:
        together, apart = (
            {name: value for name, value in subject.score(answer).items() if name not in measured}
            for answer in (subject.answers[baseline(name)], _one_by_one(subject, reconstruct))
        )
        promise(
            scoring.same(together, apart),
            f"baseline {name} must not depend on how events are cut into blocks: {together}, {apart}",
        )


def _one_by_one(subject: Subject, reconstruct: Reconstruction) -> pa.Table:
    pieces = [reconstruct(scoring.only(subject.inputs, [event])) for event in subject.events]
    columns = subject.task.card.column_names
    return pa.concat_tables([piece.select(columns) for piece in pieces], promote_options="permissive")


def nothing_beats_the_oracle(subject: Subject) -> None:
    """No predictions have a better primary metric than the oracle, if the task has one."""
    if ORACLE not in subject.answers:
        return
    best = subject.score(subject.answers[ORACLE])
    oracle = subject.answers[ORACLE]
    parts = {f"1 of {step} rows of the oracle": _every(oracle, step) for step in (2, 3, 5, 7)}
    nothing = {"an empty answer": subject.main.slice(0, 0)}
    for what, predictions in {**subject.answers, **parts, **nothing}.items():
        metrics = subject.score(predictions)
        promise(not _better(subject, metrics, best), f"{what} beats the oracle: {metrics}, {best}")


def oracle_beats_the_floor(subject: Subject) -> None:
    """The oracle has a better primary metric than the first baseline, unless submitters measure it."""
    if ORACLE not in subject.answers or subject.task.card.primary_metric.self_reported:
        return
    best = subject.score(subject.answers[ORACLE])
    for name in list(subject.task.baselines())[:1]:
        floor = subject.score(subject.answers[baseline(name)])
        promise(
            _better(subject, best, floor),
            f"the oracle must beat baseline {name}: {best}, {floor}; can anything be found?",
        )


def _every(table: pa.Table, step: int) -> pa.Table:
    return table.take(np.arange(0, table.num_rows, step))


def repeated_rows_earn_nothing(subject: Subject) -> None:
    """Repeated rows are rejected, or score as if they occurred once."""
    for what, predictions in subject.compared.items():
        half = predictions.slice(0, predictions.num_rows // 2)
        twice = pa.concat_tables([half, half]).sort_by("event_id")
        (block,) = scoring.blocks(subject.truth, twice, [subject.events])
        if not subject.task.check(block):
            once, metrics = subject.score(half), subject.score(twice)
            promise(not _better(subject, metrics, once), f"half of {what} scores {once}, twice {metrics}")


def _better(subject: Subject, metrics: Mapping[str, float], others: Mapping[str, float]) -> bool:
    """Whether the primary metric is better; a missing one is worse than any."""
    metric = subject.task.card.primary_metric
    if metric.name not in metrics or metric.name not in others:
        return metric.name in metrics
    gain = metrics[metric.name] - others[metric.name]
    return gain > 0 if metric.higher_is_better else gain < 0
