"""Checks of tallies: small, exact, and merged in any order to the same result."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Mapping

from collidium.contracts.task import Tally, Task
from collidium.testing.conformance.promise import promise
from collidium.testing.task_suite import scoring
from collidium.testing.task_suite.subject import Subject

#: A tally travels between processes and machines for every block.
LARGEST_TALLY = 1024**2
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
    for how, merge in _GROUPINGS.items():
        others = subject.task.metrics(merge(subject.task, list(tallies)))
        promise(
            scoring.same(others, metrics),
            f"merge must be associative: {metrics} all at once, {others} {how}",
        )


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
