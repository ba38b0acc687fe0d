"""Standard errors of metrics: a bootstrap over groups of consecutive events.

Events are independent, so metrics of events drawn with replacement scatter as those of other events would
(B. Efron, Annals of Statistics 7 (1979) 1). At most 100 groups are drawn, not events, so that the cost does
not grow with these; the estimate itself is then good to about 9 %. The draws are the same for every file:
replicates of two submissions are pairs, and the scatter of their differences is that of the gain.

Drawing from n groups scatters by sqrt((n - 1)/n) too little, and an error that is itself an estimate from n
groups is too small by Student's t: replicates are spread out by both, so that the error is half of a 68%
interval. Where a metric rests on fewer entries than groups, n is their number. Where less than ten of
something was counted, the interval is at least that of Poisson statistics. `perf/coverage.py` measures how
often intervals contain the truth.

Imported by worker processes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import exp, fsum, isfinite, log, sqrt
from random import Random
from typing import Final

import pyarrow as pa

from collidium.contracts.task import Block, Counts, Draws, EventRange, Tally, Task
from collidium.scoring import content

#: Groups that events are drawn in; each event is one where there are fewer.
GROUPS: Final = 100
#: How often events are drawn.
REPLICATES: Final = 200

#: Metric -> its value each time that events were drawn.
Replicates = Mapping[str, Sequence[float]]

#: Counts from which on the bootstrap alone gives the error.
FEW: Final = 10
#: Mean of which 68.27% of the samples have one at least: the upper limit where there was none.
UPPER_LIMIT_OF_NONE: Final = 1.148

#: No table of truth has this name.
_PREDICTIONS: Final = ""


@dataclass(frozen=True, slots=True)
class GroupTally:
    """What a task counted in events of one group, by the group's number."""

    group: int
    tally: Tally


def groups_of(events: EventRange) -> tuple[EventRange, ...]:
    """The groups of an eval range: it depends on nothing else, so no cut into blocks changes an estimate."""
    count = min(len(events), GROUPS)
    edges = [events.start + len(events) * number // count for number in range(count + 1)]
    return tuple(EventRange(*pair) for pair in pairwise(edges))


def by_group(block: Block, groups: Sequence[EventRange]) -> Iterator[tuple[int, Block]]:
    """A block cut where groups meet, each part with its group's number; not copied."""
    first = bisect_right(groups, block.events.start, key=lambda group: group.start) - 1
    if block.events.stop <= groups[first].stop:
        yield first, block
        return
    tables = {**block.truth, _PREDICTIONS: block.predictions}
    stop = block.events.stop
    numbers = [number for number in range(first, len(groups)) if groups[number].start < stop]
    edges = [block.events.start, *(groups[number].start for number in numbers[1:]), stop]
    cuts = {name: _rows_below(table, edges) for name, table in tables.items()}
    for place, number in enumerate(numbers):
        part = {
            name: table.slice(rows[place], rows[place + 1] - rows[place])
            for name, table in tables.items()
            for rows in [cuts[name]]
        }
        yield number, Block(EventRange(*edges[place : place + 2]), part.pop(_PREDICTIONS), part)


def _rows_below(table: pa.Table, edges: Sequence[int]) -> list[int]:
    """For each edge, how many rows of a table, sorted by event, have events below it."""
    chunks = [chunk.to_numpy() for chunk in table.column("event_id").chunks]
    return [sum(content.rows_below(events, edge) for events in chunks) for edge in edges]


def merged(task: Task, tallies: Iterable[GroupTally]) -> list[GroupTally]:
    """One tally for each group, in order of events, as the ``tallies`` are."""
    by_number: dict[int, list[Tally]] = {}
    for part in tallies:
        by_number.setdefault(part.group, []).append(part.tally)
    return [
        GroupTally(number, parts[0] if len(parts) == 1 else task.merge(parts))
        for number, parts in by_number.items()
    ]


def resampled(
    task: Task, tallies: Sequence[Tally], sizes: Mapping[str, int] | None = None
) -> dict[str, list[float]]:
    """The replicates of a task's metrics; none of a single group, which cannot scatter.

    They are spread about their mean as 68% intervals need it, by the task's ``sizes`` where these are fewer
    than the tallies; those of metrics with ``log_error`` are linear in the logarithm. A metric that is
    missing from a draw has none: what is left of it would scatter less than it does.
    Raises ValueError where the task gives other metrics than its card names, or numbers that are none.
    """
    if len(tallies) < 2:
        return {}
    names = [metric.name for metric in task.card.metrics]
    draws = _draws(len(tallies))
    made = task.resample(tallies, draws)
    if len(made) != len(draws) or not all(map(task.card.allows, made)):
        raise ValueError(f"resample must give {', '.join(names)} once for each of {len(draws)} draws")
    everywhere = [name for name in names if all(name in metrics for metrics in made)]
    replicates = {name: [float(metrics[name]) for metrics in made] for name in everywhere}
    bad = [name for name, values in replicates.items() if not all(map(isfinite, values))]
    if bad:
        raise ValueError(f"these metrics of resampled events are not finite: {', '.join(bad)}")
    logarithmic = {metric.name for metric in task.card.metrics if metric.log_error}
    return {
        name: _spread(
            _linear_in_log(values) if name in logarithmic else values,
            max(min(len(tallies), (sizes or {}).get(name, len(tallies))), 2),
        )
        for name, values in replicates.items()
    }


def _linear_in_log(values: Sequence[float]) -> Sequence[float]:
    """Tangents of the exponential at the mean logarithm: they scatter as the logarithms do, relatively."""
    if min(values) <= 0:
        return values
    logs = [log(value) for value in values]
    mean = fsum(logs) / len(logs)
    return [exp(mean) * (1 + value - mean) for value in logs]


def _spread(values: Sequence[float], groups: int) -> list[float]:
    """Values that scatter about their mean as much as a 68% interval of so many groups is wide."""
    freedom = groups - 1
    # Student's t at 68.27% by the first terms of its series in 1/freedom; good to 2% for two groups.
    student = 1 + 1 / (2 * freedom) + 1 / (4 * freedom**2) + 1 / (16 * freedom**3)
    factor = sqrt(groups / freedom) * student
    mean = fsum(values) / len(values)
    return [mean + factor * (value - mean) for value in values]


def standard_errors(replicates: Replicates, counts: Mapping[str, Counts] | None = None) -> dict[str, float]:
    """The standard error of each metric that has replicates, by few ``counts`` at least that of these."""
    errors = {name: _scatter(values) for name, values in replicates.items()}
    for name in errors.keys() & (counts or {}).keys():
        errors[name] = max(errors[name], _error_of_few(*(counts or {})[name]))
    return errors


def _error_of_few(counted: float, of: float) -> float:
    """Half of a 68% interval of a fraction, where less than FEW were counted on one side; else 0.

    The root of the number, and so much in addition that it is the upper limit where nothing was counted
    (Poisson statistics, 68.27%) and nothing for FEW. At least 65% of such intervals contain the truth.
    """
    fewer = min(counted, of - counted)
    if not of or fewer >= FEW:
        return 0.0
    return min(1.0, (sqrt(fewer) + UPPER_LIMIT_OF_NONE * (1 - fewer / FEW)) / of)


def standard_error_of_gain(values: Sequence[float], before: Sequence[float]) -> float:
    """The standard error of the difference of two metrics of the same events, from their replicates.

    What both owe to the events drawn cancels. Without replicates ``before`` counts as exactly known.
    """
    if len(before) != len(values):
        return _scatter(values)
    return _scatter([value - other for value, other in zip(values, before, strict=True)])


@cache
def _draws(groups: int) -> Draws:
    """The numbers of the groups drawn, as many as there are, sorted; the same on every machine and day."""
    random = Random(groups).random  # noqa: S311 -- of the generator's methods, the one that never changes
    return tuple(tuple(sorted(int(random() * groups) for _ in range(groups))) for _ in range(REPLICATES))


def _scatter(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
