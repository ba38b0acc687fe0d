"""Checks of metrics: those of the card, finite, within their bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as kinds

from collidium.contracts.task import Card, Task, UnusableTruth
from collidium.testing.conformance.promise import promise
from collidium.testing.task_suite import scoring
from collidium.testing.task_suite.subject import Subject


def metrics_are_finite_and_in_bounds(subject: Subject) -> None:
    """Metrics are those of the card, floats, finite and in bounds, also for empty predictions."""
    every_other = list(range(0, subject.main.num_rows, 2))
    incomplete = {
        "every other row": subject.main.take(every_other),
        "an empty answer": subject.main.slice(0, 0),
    }
    for what, predictions in {**subject.answers, **incomplete}.items():
        _check_all(
            subject.task, scoring.tallies(subject.task, subject.truth, predictions, [subject.events]), what
        )


def _check_all(task: Task, tallies: list[object], what: str) -> None:
    tally = task.merge(tallies)
    check_metrics(task.card, task.metrics(tally), what)
    warnings = task.warnings(tally)
    texts = isinstance(warnings, list) and all(isinstance(warning, str) for warning in warnings)
    promise(texts, f"warnings must be a list of texts, not {warnings!r}")


def check_metrics(card: Card, metrics: Mapping[str, float], what: str) -> None:
    """Raise Nonconforming unless these can be the metrics of ``what``."""
    declared = [metric.name for metric in card.metrics]
    promise(card.allows(metrics), f"metrics must be {declared}, not {list(metrics)}")
    for metric in card.metrics:
        if metric.name not in metrics:
            continue
        value, (lowest, highest) = metrics[metric.name], metric.bounds
        place = f"the metric {metric.name} ({what})"
        promise(type(value) is float, f"{place} must be a float, not {type(value).__name__}")
        promise(math.isfinite(value), f"{place} must be finite, not {value}")
        promise(lowest <= value <= highest, f"{place} must lie within {metric.bounds}: {value}")


def empty_events_are_scored(subject: Subject) -> None:
    """Events without content have metrics: an empty denominator gives 0."""
    sources = {name: _emptied(table) for name, table in subject.sources.items()}
    try:
        truth = subject.task.prepare(sources)
    except UnusableTruth:
        return
    metrics = scoring.score(subject.task, truth, subject.main.slice(0, 0), [subject.events])
    check_metrics(subject.task.card, metrics, "events without content")


def _emptied(table: pa.Table) -> pa.Table:
    for number, field in enumerate(table.schema):
        if kinds.is_list(field.type) or kinds.is_large_list(field.type):
            table = table.set_column(number, field, pa.array([[]] * table.num_rows, field.type))
    return table


def resampled_metrics_are_finite(subject: Subject) -> None:
    """Events drawn with replacement have metrics, the same every time."""
    cut = [[event] for event in subject.events]
    tallies = scoring.tallies(subject.task, subject.truth, subject.main, cut)
    last = len(tallies) - 1
    draws = [[0] * len(tallies), [last] * len(tallies), list(range(len(tallies)))]
    first, again = (list(subject.task.resample(tallies, draws)) for _ in range(2))
    promise(len(first) == len(draws), f"resample must answer each of {len(draws)} draws, not {len(first)}")
    promise(repr(first) == repr(again), "resample must give the same every time")
    declared = sorted(metric.name for metric in subject.task.card.metrics)
    for metrics in first:
        finite = subject.task.card.allows(metrics) and all(math.isfinite(value) for value in metrics.values())
        promise(finite, f"resample must give finite values of {declared}, not {dict(metrics)}")
