"""Standard errors of metrics, by a bootstrap over groups of consecutive events; and scores in bins.

Events are independent, so metrics of events drawn with replacement scatter as those of other events would
(B. Efron, Annals of Statistics 7 (1979) 1). At most 100 groups are drawn instead of events, so that the
cost does not grow with the number of events; the estimate is then good to about 9 %. The draws follow from a
seed, the same for every file: replicates of two submissions are paired, and the scatter of their differences
is that of the gain. Known draws would disclose single events, so a server has a secret seed for each version
of truth (:mod:`collidium.truth.draw_seeds`).

Drawing from n groups scatters too little by sqrt((n - 1)/n), and an error estimated from n groups is too
small by Student's t. Replicates are widened by both factors, so that the error is half of a 68% interval
(by the first factor alone, of 63% with five events).
If a metric has fewer entries than groups, n is their number. For counts below ten the interval is at least
that of Poisson statistics. `perf/coverage.py` measures how often intervals contain the truth.

Imported by worker processes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp, floor, fsum, hypot, inf, isfinite, log, log10, sqrt
from random import Random
from typing import Final

import pyarrow as pa

from collidium.contracts.task import Block, Counts, Curve, Draws, EventRange, Tally, Task
from collidium.records import BinnedScore
from collidium.scoring import content

#: Maximum number of groups that events are drawn in.
GROUPS: Final = 100
#: Number of bootstrap draws.
REPLICATES: Final = 200

#: The seed where nothing is secret: at home, in conformance suites, and of scores of earlier releases.
PUBLIC_SEED: Final = ""

#: For smaller counts, errors are at least those of Poisson statistics.
FEW: Final = 10
#: 68.27% upper limit of a Poisson mean when nothing was counted.
UPPER_LIMIT_OF_NONE: Final = 1.148

#: Key of the predictions among the truth tables.
_PREDICTIONS: Final = ""


@dataclass(frozen=True, slots=True)
class Replicates(Mapping[str, Sequence[float]]):
    """Metric -> its value in each draw; those of two submissions are paired if their seed is the same."""

    values_by_metric: Mapping[str, Sequence[float]]
    seed: str = PUBLIC_SEED

    def __getitem__(self, name: str) -> Sequence[float]:
        return self.values_by_metric[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_metric)

    def __len__(self) -> int:
        return len(self.values_by_metric)

    def error_of_gain(self, name: str, before: Replicates | None) -> float:
        """The standard error of the difference to what was better before; None: that is exact."""
        beaten = () if before is None else before.get(name, ())
        if before is not None and beaten and before.seed != self.seed:
            return hypot(_scatter(self[name]), _scatter(beaten))
        return standard_error_of_gain(self[name], beaten)


@dataclass(frozen=True, slots=True)
class GroupTally:
    """A task's tally of the events of one group."""

    group: int
    tally: Tally


def groups_of(events: EventRange) -> tuple[EventRange, ...]:
    """The groups of an eval range; they do not depend on blocks, so blocks change no estimate."""
    count = min(len(events), GROUPS)
    edges = [events.start + len(events) * number // count for number in range(count + 1)]
    return tuple(EventRange(*pair) for pair in pairwise(edges))


def by_group(block: Block, groups: Sequence[EventRange]) -> Iterator[tuple[int, Block]]:
    """Cut a block where groups meet, without copies; yields each part with its group's number."""
    first = bisect_right(groups, block.events.start, key=lambda group: group.start) - 1
    if block.events.stop <= groups[first].stop:
        yield first, block
        return
    tables = {**block.truth, _PREDICTIONS: block.predictions}
    stop = block.events.stop
    numbers = [number for number in range(first, len(groups)) if groups[number].start < stop]
    edges = [block.events.start, *(groups[number].start for number in numbers[1:]), stop]
    slices = {name: _slices(table, edges) for name, table in tables.items()}
    for place, number in enumerate(numbers):
        part = {name: cut[place] for name, cut in slices.items()}
        yield number, Block(EventRange(*edges[place : place + 2]), part.pop(_PREDICTIONS), part)


def _slices(table: pa.Table, edges: Sequence[int]) -> list[pa.Table]:
    """Cut a sorted table at events, without copies."""
    chunks = [chunk.to_numpy() for chunk in table.column("event_id").chunks]
    rows = [sum(content.rows_below(events, edge) for events in chunks) for edge in edges]
    return [table.slice(start, stop - start) for start, stop in pairwise(rows)]


def merged(task: Task, tallies: Iterable[GroupTally]) -> list[GroupTally]:
    """Merge tallies, which are in order of events, to one for each group."""
    by_number: dict[int, list[Tally]] = {}
    for part in tallies:
        by_number.setdefault(part.group, []).append(part.tally)
    return [
        GroupTally(number, parts[0] if len(parts) == 1 else task.merge(parts))
        for number, parts in by_number.items()
    ]


def resampled(
    task: Task, tallies: Sequence[Tally], sizes: Mapping[str, int] | None = None, seed: str = PUBLIC_SEED
) -> dict[str, list[float]]:
    """The replicates of a task's metrics by a seed's draws; none for a single group, which cannot scatter.

    They are spread about their mean to give 68% intervals, by the task's ``sizes`` where these are smaller
    than the number of tallies; those of metrics with ``log_error`` are linear in the logarithm. A metric that
    is missing from a draw has no replicates: the others would scatter too little.
    Raises ValueError if the task returns metrics that its card does not name, or that are not finite.
    """
    if len(tallies) < 2:
        return {}
    names = [metric.name for metric in task.card.metrics]
    draws = _draws(len(tallies), seed)
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
    """Linearise the exponential at the mean logarithm: relative scatter becomes that of the logarithms."""
    if min(values) <= 0:
        return values
    logs = [log(value) for value in values]
    mean = fsum(logs) / len(logs)
    return [exp(mean) * (1 + value - mean) for value in logs]


def _spread(values: Sequence[float], groups: int) -> list[float]:
    """Widen the scatter of values about their mean to a 68% interval for this many groups."""
    freedom = groups - 1
    # Student's t at 68.27% by the first terms of its series in 1/freedom; good to 2% for two groups.
    student = 1 + 1 / (2 * freedom) + 1 / (4 * freedom**2) + 1 / (16 * freedom**3)
    factor = sqrt(groups / freedom) * student
    mean = fsum(values) / len(values)
    return [mean + factor * (value - mean) for value in values]


def standard_errors(
    replicates: Mapping[str, Sequence[float]], counts: Mapping[str, Counts] | None = None
) -> dict[str, float]:
    """The standard error of each metric with replicates; at least the Poisson error of small ``counts``.

    A metric that some draws lack has none.
    """
    errors = {name: _scatter(values) for name, values in replicates.items()}
    for name in errors.keys() & (counts or {}).keys():
        errors[name] = max(errors[name], _error_of_few(*(counts or {})[name]))
    return errors


def _error_of_few(counted: float, of: float) -> float:
    """Half of a 68% interval of a fraction if fewer than FEW were counted on one side; otherwise 0.

    The root of the count plus a term that falls linearly from the upper limit for no count (Poisson
    statistics, 68.27%) to 0 at FEW. At least 65% of such intervals contain the truth.
    """
    fewer = min(counted, of - counted)
    if not of or fewer >= FEW:
        return 0.0
    return min(1.0, (sqrt(fewer) + UPPER_LIMIT_OF_NONE * (1 - fewer / FEW)) / of)


def standard_error_of_gain(values: Sequence[float], before: Sequence[float]) -> float:
    """The standard error of the difference of two metrics of the same events, from their replicates.

    Fluctuations of the drawn events that both share cancel. Without replicates, ``before`` counts as exact.
    """
    if len(before) != len(values):
        return _scatter(values)
    return _scatter([value - other for value, other in zip(values, before, strict=True)])


@lru_cache(32)
def _draws(groups: int, seed: str) -> Draws:
    """The sorted numbers of the groups in each draw; reproducible."""
    key = groups if seed == PUBLIC_SEED else f"{seed}:{groups}"
    random = Random(key).random  # noqa: S311 -- of the generator's methods, the one that never changes
    return tuple(tuple(sorted(int(random() * groups) for _ in range(groups))) for _ in range(REPLICATES))


def _scatter(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


# -- scores in bins, coarse enough to disclose no single event -------------------------------------------

#: Minimum events and entries of a bin; smaller bins are merged with their neighbours.
MIN_EVENTS: Final = 20
MIN_ENTRIES: Final = 100
#: A value is rounded to this fraction of its error, and to at least this many entries.
ROUNDING: Final = 0.1
STEP_ENTRIES: Final = 5
#: Maximum curves of a submission, and bins of a curve.
MAX_CURVES: Final = 30
MAX_BINS: Final = 100


def binned_scores(curves: Sequence[Curve]) -> tuple[BinnedScore, ...]:
    """Round a task's curves to what may be published; curves without a large enough bin are left out.

    Raises ValueError for curves that break the contract :class:`~collidium.contracts.task.Curve`.
    """
    if len(curves) > MAX_CURVES:
        raise ValueError(f"{len(curves)} curves, {MAX_CURVES} are allowed")
    found = [_binned(curve) for curve in curves]
    return tuple(score for score in found if score.values)


def _binned(curve: Curve) -> BinnedScore:
    _check(curve)
    bins: list[_Bin] = []
    joined = None
    for number, low in enumerate(curve.edges[:-1]):
        one = _Bin(
            float(low),
            int(curve.part[number]),
            int(curve.whole[number]),
            int(curve.events[number]),
            float(curve.errors[number]) if curve.errors else 0.0,
        )
        joined = joined.joined(one) if joined else one
        if joined.is_large:
            bins.append(joined)
            joined = None
    if bins and joined:  # the rest is too small for a bin of its own
        bins[-1] = bins[-1].joined(joined)
    rounded = [one.rounded() for one in bins]
    return BinnedScore(
        name=curve.name,
        title=curve.title,
        quantity=curve.quantity,
        edges=(*(one.low for one in bins), float(curve.edges[-1])),
        values=tuple(value for value, _ in rounded),
        errors=tuple(error for _, error in rounded),
    )


@dataclass(frozen=True, slots=True)
class _Bin:
    low: float
    part: int
    whole: int
    events: int
    #: A systematic error, in addition to that of the counts.
    error: float

    @property
    def is_large(self) -> bool:
        return self.whole >= MIN_ENTRIES and self.events >= MIN_EVENTS

    def joined(self, other: _Bin) -> _Bin:
        # The same events may have entries in both bins, and thresholds may be wrong together.
        events, error = max(self.events, other.events), max(self.error, other.error)
        return _Bin(self.low, self.part + other.part, self.whole + other.whole, events, error)

    def rounded(self) -> tuple[float, float]:
        """The fraction and its standard error, which depends on the rounded fraction alone."""
        exact = self.part / self.whole
        error = hypot(_beta_error(exact, self.whole), self.error)
        step, digits = _step(max(ROUNDING * error, STEP_ENTRIES / self.whole))
        value = round(round(exact / step) * step, digits)
        error = hypot(_beta_error(value, self.whole), self.error, step / sqrt(12))
        return value, round(error, 1 - floor(log10(error)))


def _beta_error(fraction: float, of: int) -> float:
    """The standard deviation of the Beta distribution, which is never 0."""
    mean = (fraction * of + 1) / (of + 2)
    return sqrt(mean * (1 - mean) / (of + 3))


def _step(minimum: float) -> tuple[float, int]:
    """The next larger of 1, 2 and 5 times a power of ten, and its number of decimals."""
    digits = -floor(log10(minimum))
    factor = next(factor for factor in (1, 2, 5, 10) if factor >= round(minimum * 10**digits, 6))
    return factor / 10**digits, digits


def _check(curve: Curve) -> None:
    bins = len(curve.part)
    if not len(curve.whole) == len(curve.events) == len(curve.edges) - 1 == bins or not 0 < bins <= MAX_BINS:
        raise ValueError(f"curve {curve.name}: 1 to {MAX_BINS} bins with one more edge are needed")
    if not all(isfinite(edge) for edge in curve.edges) or any(a >= b for a, b in pairwise(curve.edges)):
        raise ValueError(f"curve {curve.name}: the edges must be finite and increasing")
    if any(not 0 <= k <= n for k, n in zip(curve.part, curve.whole, strict=True)):
        raise ValueError(f"curve {curve.name}: a part must lie between 0 and the whole")
    if len(curve.errors) not in {0, bins} or not all(0 <= error < inf for error in curve.errors):
        raise ValueError(f"curve {curve.name}: one error for each bin is needed, finite and not negative")
