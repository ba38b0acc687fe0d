"""Checks of the card, and of the task as an object."""

from __future__ import annotations

import pickle

from collidium.contracts.task import Card, Metric
from collidium.testing.conformance.promise import check_name, promise
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
