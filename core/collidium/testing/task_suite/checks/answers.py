"""Checks of the task's own predictions: baselines and the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from collidium.contracts.task import Column, Reconstruction
from collidium.testing.conformance.promise import check_name, promise
from collidium.testing.task_suite import scoring
from collidium.testing.task_suite.subject import ORACLE, Subject, baseline


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
    nothing = {"an empty answer": subject.main.slice(0, 0)}
    for what, predictions in {**subject.answers, **nothing}.items():
        metrics = subject.score(predictions)
        promise(not _better(subject, metrics, best), f"{what} beats the oracle: {metrics}, {best}")


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
