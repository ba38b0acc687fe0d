"""Checks of the card, of the task as an object, and of truth, the result of :meth:`Task.prepare`."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Card, Metric
from collidium.testing.conformance.promise import check_name, promise
from collidium.testing.task_suite.scoring import only
from collidium.testing.task_suite.subject import Subject

#: It is shown with every score.
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
    promise(metric.reward is None or metric.reward >= 0, f"the metric {metric.name} pays less than nothing")
    _check_bounds("metric", metric.name, metric.bounds)


def _check_bounds(part: str, name: str, bounds: tuple[float, float]) -> None:
    lowest, highest = bounds
    promise(lowest < highest, f"the {part} {name} needs bounds (lowest, highest), not {bounds}")


def version_is_a_short_text(subject: Subject) -> None:
    """The version, which stands with every score, is a short text."""
    version = subject.task.version
    good = isinstance(version, str) and 0 < len(version) <= _LONGEST_VERSION
    promise(good, f"version must be a text of at most {_LONGEST_VERSION} characters, not {version!r}")


def task_is_picklable(subject: Subject) -> None:
    """The task comes out of a pickle as it went in: so workers get it."""
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
