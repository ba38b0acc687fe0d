"""Checks of metrics and tallies. Tallies must be small, and merge to the same result in any order."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from collidium.contracts.tables import is_list
from collidium.contracts.task import Card, Tally, Task, UnusableTruth
from collidium.testing.conformance.promise import promise
from collidium.testing.task_suite import scoring
from collidium.testing.task_suite.suite import Subject


def metrics_are_finite_and_in_bounds(subject: Subject) -> None:
    """Metrics are those of the card, floats, finite and in bounds, even for empty predictions."""
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
    """Raise Nonconforming unless the metrics of ``what`` are valid."""
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


def metrics_measure_something(subject: Subject) -> None:
    """Each metric that the task measures, and does not call uninformative, tells some predictions apart."""
    found = [subject.score(predictions) for predictions in (*subject.answers.values(), *_parts(subject.main))]
    promise(
        any(not scoring.same(metrics, found[0]) for metrics in found),
        f"the metrics of all predictions are equal, {found[0]}: baseline, oracle and parts of these",
    )
    for metric in subject.task.card.metrics:
        if metric.informative and not metric.self_reported:
            values = {found_in.get(metric.name) for found_in in found}
            promise(
                len(values) > 1 or values == {None},  # these events may be too few to define it
                f"{metric.name} is {values.pop()} for every prediction: check its definition, or set "
                "informative=False with a reason in uninformative_because",
            )


def _parts(predictions: pa.Table) -> list[pa.Table]:
    """Some of the rows, from most to none."""
    rows = np.arange(predictions.num_rows)
    kept = (rows % 3 > 0, rows % 2 > 0, rows % 5 == 0, rows < 0)
    return [predictions.filter(pa.array(which)) for which in kept]


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
        if is_list(field.type):
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


#: Tallies are sent between processes and machines for every block.
LARGEST_TALLY = 1024**2
#: Merged events, so that rounding shows.
_MANY = 60
#: Tolerance for another order of summing floats.
_ROUNDING = 1e-9

Merging = Callable[[Task, list[Tally]], Tally]


def _by_event(subject: Subject) -> list[Tally]:
    cut = [[event] for event in subject.events]
    return scoring.tallies(subject.task, subject.truth, subject.main, cut)


def tallies_are_small_and_picklable(subject: Subject) -> None:
    """A tally is picklable and smaller than 1 MiB, before merging and after."""
    tallies = _by_event(subject)
    for tally in [*tallies, subject.task.merge(tallies)]:
        size = len(pickle.dumps(tally))
        promise(size < LARGEST_TALLY, f"a tally must be small, not {size} bytes")


def merging_is_associative(subject: Subject) -> None:
    """Merging some of the tallies first changes nothing, to the last bit."""
    tallies = _by_event(subject)
    metrics = subject.task.metrics(subject.task.merge(tallies))
    promise(
        len({repr(sorted(of.items())) for of in _regrouped(subject.task, tallies)}) == 1,
        "merge must be associative: the metrics of many events depend on which are merged first, as sums of "
        "floats do; count integers, or add exactly (fractions.Fraction, math.fsum over all values)",
    )
    for how, merge in _GROUPINGS.items():
        others = subject.task.metrics(merge(subject.task, list(tallies)))
        promise(
            scoring.same(others, metrics),
            f"merge must be associative: {metrics} all at once, {others} {how}",
        )


def _regrouped(task: Task, tallies: list[Tally]) -> Iterator[dict[str, float]]:
    """The metrics of many events, in one order, merged in groups of several sizes."""
    many = [scoring.through_pickle(tallies[number % len(tallies)]) for number in range(_MANY)]
    for size in (1, 2, 3, 5, 8, 13):
        groups = [task.merge(many[start : start + size]) for start in range(0, _MANY, size)]
        yield task.metrics(task.merge([scoring.through_pickle(group) for group in groups]))


def _one_to_the_next(task: Task, tallies: list[Tally]) -> Tally:
    merged = tallies[0]
    for tally in tallies[1:]:
        merged = scoring.through_pickle(task.merge([merged, tally]))
    return merged


def _from_the_end(task: Task, tallies: list[Tally]) -> Tally:
    merged = tallies[-1]
    for tally in tallies[-2::-1]:
        merged = scoring.through_pickle(task.merge([tally, merged]))
    return merged


def _in_halves(task: Task, tallies: list[Tally]) -> Tally:
    if len(tallies) == 1:
        return task.merge(tallies)
    half = len(tallies) // 2
    return task.merge([_in_halves(task, tallies[:half]), _in_halves(task, tallies[half:])])


_GROUPINGS: Mapping[str, Merging] = {
    "one to the next": _one_to_the_next,
    "from the end": _from_the_end,
    "in halves": _in_halves,
}


def merging_is_commutative(subject: Subject) -> None:
    """Merging in another order changes nothing but the rounding of floats."""
    tallies = _by_event(subject)
    metrics = subject.task.metrics(subject.task.merge(tallies))
    for how, order in {"backwards": tallies[::-1], "from the middle": tallies[2:] + tallies[:2]}.items():
        others = subject.task.metrics(subject.task.merge(order))
        promise(
            set(others) == set(metrics), f"merge must be commutative: {list(metrics)}, {list(others)} {how}"
        )
        for name, value in metrics.items():
            promise(
                math.isclose(others[name], value, rel_tol=_ROUNDING, abs_tol=_ROUNDING) or value != value,
                f"merge must be commutative: {name} is {value} in order of events, {others[name]} {how}",
            )


def merging_changes_no_tally(subject: Subject) -> None:
    """Merging does not change the tallies, which may be merged again."""
    tallies = _by_event(subject)
    before = [pickle.dumps(tally) for tally in tallies]
    given = list(tallies)
    subject.task.merge(given)
    kept = len(given) == len(tallies) and all(one is other for one, other in zip(given, tallies, strict=True))
    promise(kept, "merge must not change the sequence of tallies it is given")
    promise(
        [pickle.dumps(tally) for tally in tallies] == before, "merge must not change the tallies it is given"
    )
