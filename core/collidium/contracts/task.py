"""A benchmark task: what is asked, what an answer looks like, and how an answer is scored.

Events are independent, so scoring is map and merge. A task sees blocks of events and returns small
tallies; files, memory, processes and machines belong to the engine.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Final, Literal

import pyarrow as pa

#: Task names stand in addresses, file names and commands.
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: What stands in addresses where the names of tasks do.
TAKEN_NAMES: Final = frozenset({"mine", "submissions", "tasks"})

#: Whatever a task counts: small, picklable and exact (integers, or float64 summed in a fixed order).
Tally = Any

#: Tables of a block by name, for example ``{"tracker_hits": ..., "particles": ...}``.
Tables = Mapping[str, pa.Table]

#: Numbers of groups of events that were drawn with replacement, sorted; once for each replicate.
Draws = Sequence[Sequence[int]]

#: Makes predictions for a block of events from tables of the dataset, one row per event.
Reconstruction = Callable[[Tables], pa.Table]


@dataclass(frozen=True, slots=True)
class EventRange:
    """The half-open range of event ids ``start <= event_id < stop``; written ``start:stop``."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise ValueError(f"an event range needs 0 <= start < stop, not {self.start}:{self.stop}")

    @classmethod
    def parse(cls, text: str) -> EventRange:
        """Read ``"90000:100000"``; raises ValueError for anything else."""
        start, colon, stop = text.partition(":")
        if not (colon and start.strip().isdecimal() and stop.strip().isdecimal()):
            raise ValueError(f"an event range is written START:STOP, for example 90000:100000, not {text!r}")
        return cls(int(start), int(stop))

    def __str__(self) -> str:
        return f"{self.start}:{self.stop}"

    def __len__(self) -> int:
        return self.stop - self.start

    def __contains__(self, event_id: int) -> bool:
        return self.start <= event_id < self.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that predictions must have.

    Integer columns take integers of any width and no others; float columns take floats and integers.
    Nulls, non-finite numbers, values out of bounds and values that differ where there must be one are
    refused by the engine, for every task.
    """

    name: str
    kind: Literal["integer", "float"]
    description: str
    #: The lowest and the highest value that predictions may have, both included.
    bounds: tuple[float, float] = (-inf, inf)
    #: Within what the column has one value alone: all rows of an event, or all of the file.
    one_per: Literal["event", "file"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number that tells submissions apart; the first metric of a card is the primary one."""

    name: str
    higher_is_better: bool
    description: str
    #: Credits for a new best, where ``higher_is_better``; None takes the platform's setting.
    reward: int | None = None
    #: The lowest and the highest value that there can be, whatever is submitted.
    bounds: tuple[float, float] = (-inf, inf)
    #: Whether it rests on what the submitter measured, a time for example: shown as such, and it earns
    #: nothing until an operator has verified the submission.
    self_reported: bool = False
    #: When :meth:`Task.metrics` may leave it out, as people are told: ``"the efficiency is below 0.5"``.
    #: A metric without this is always there. What lacks the primary metric has no place on the leaderboard.
    missing_when: str = ""
    #: How it is computed, in plain text: ``"jets of light flavour that pass / all of them"``.
    formula: str = ""
    #: The publication that defines it; empty where the task does.
    source: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """What a task tells the world about itself."""

    name: str
    title: str
    description: str
    dataset: str
    eval_events: EventRange
    inputs: tuple[str, ...]
    columns: tuple[Column, ...]
    #: Dataset tables from which truth is prepared.
    truth_sources: tuple[str, ...]
    #: The prepared truth table that holds one row for each row that predictions may have at the most.
    #: The engine refuses longer files before decoding anything.
    rows_of: str
    metrics: tuple[Metric, ...]
    #: What becomes of rows that are not submitted, for whoever thinks of leaving the hard ones out.
    left_out: str = ""
    #: Two metrics that are traded for each other: the leaderboard marks the submissions that no other beats
    #: in one of them without being worse in the other.
    pareto: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"task name {self.name!r}: use a to z, 0 to 9 and _, at most 64, a letter first")
        if self.name in TAKEN_NAMES:
            raise ValueError(f"task name {self.name!r}: the platform's own addresses have it")
        if not self.metrics:
            raise ValueError(f"task {self.name!r} has no metric")
        if "event_id" not in self.column_names:
            raise ValueError(f"task {self.name!r}: predictions need a column event_id")
        traded = {metric.name for metric in self.metrics}.intersection(self.pareto or ())
        if self.pareto is not None and not len(self.pareto) == len(traded) == 2:
            raise ValueError(
                f"task {self.name!r}: pareto names two metrics of the card, not {', '.join(self.pareto)}"
            )

    @property
    def primary_metric(self) -> Metric:
        return self.metrics[0]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def allows(self, metrics: Iterable[str]) -> bool:
        """Whether these names can be those of a submission's metrics: all, but for what may be missing."""
        names = set(metrics)
        needed = {metric.name for metric in self.metrics if not metric.missing_when}
        return needed <= names <= {metric.name for metric in self.metrics}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with predictions, told so that its author can find and mend it."""

    #: A short stable word, for example ``duplicate-row``, ``unknown-hit``, ``negative-id``.
    code: str
    #: One sentence for a person: what is wrong and what was expected.
    detail: str
    column: str | None = None
    event_id: int | None = None
    #: How many rows have this problem.
    count: int = 1
    #: A few example rows, as ``{column: value}``.
    examples: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Predictions and truth of the same events.

    Every table is sorted by event_id (the order of rows within an event is the submitter's, respectively
    that of :meth:`Task.prepare`). Prediction columns are those of the card, without nulls, finite and within
    bounds, integers in the width in which they were submitted, and every event_id lies in ``events``. Where
    a column has one value per event or file, rows that differ are refused beside what :meth:`Task.check`
    finds, so that it may still see them, and :meth:`Task.score` does not.
    """

    events: EventRange
    predictions: pa.Table
    truth: Tables = field(default_factory=dict)


class Task(ABC):
    """A benchmark task. Instances hold no state, are picklable, and are called in worker processes."""

    card: ClassVar[Card]
    #: Version of the scoring code: part of every score. Raise it when a metric changes its value.
    version: ClassVar[str]

    @abstractmethod
    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        """Truth of a block of events, as it is kept on the server, from the dataset's own tables.

        ``tables`` are the card's ``truth_sources``, one row per event, canonical column names, sorted by
        event_id. Each table returned has an ``event_id`` column (uint32), sorted, and the same schema for
        every block. Raises :class:`UnusableTruth` when the dataset lacks something needed.
        """

    @abstractmethod
    def check(self, block: Block) -> list[Problem]:
        """All problems of this block of predictions that the engine's own checks do not find."""

    @abstractmethod
    def score(self, block: Block) -> Tally:
        """Count what the metrics need. Only called for blocks in which :meth:`check` found nothing."""

    @abstractmethod
    def merge(self, tallies: Sequence[Tally]) -> Tally:
        """One tally from several, in order of events: associative, and exact whatever the cut.

        Where events are resampled a tally comes several times in a row, and counts each time.
        """

    @abstractmethod
    def metrics(self, tally: Tally) -> dict[str, float]:
        """The card's metrics; an empty denominator gives 0.

        Only those may be left out whose card says when (``missing_when``).
        """

    def resample(self, tallies: Sequence[Tally], draws: Draws) -> Sequence[Mapping[str, float]]:
        """The metrics of resampled events, one for each of ``draws``: their scatter is the standard error.

        ``tallies`` are those of groups of events; a draw names the groups to be merged. Override it where
        some hundred calls of ``merge`` and ``metrics`` take long beside scoring; the result may then be
        approximate, but must be finite and the same every time.
        """
        return [self.metrics(self.merge([tallies[group] for group in draw])) for draw in draws]

    def check_whole(self, tally: Tally) -> list[Problem]:
        """Problems that no block shows alone, from the tally of all events: a sum that is wrong, for example.

        Only asked where :meth:`check` found nothing in any block.
        """
        return []

    def warnings(self, tally: Tally) -> list[str]:
        """What a submitter should know although the submission is valid."""
        return []

    def baselines(self) -> Mapping[str, Reconstruction]:
        """Complete, honest answers to the task by name, simplest first: ``{"naive": ..., "helix": ...}``.

        Each makes valid predictions from the card's ``inputs`` alone. The first is the floor: it is scored
        when truth is imported, and a first best must beat it. Without any, a first best must beat zero. All
        show the way: ``collidium demo`` submits every one.
        """
        return {}

    def oracle(self, truth: Tables) -> pa.Table | None:
        """The best predictions that there can be, from prepared truth; None where nobody can tell them.

        For tests alone: nothing may score better, and the conformance suite sees that it is so.
        """
        return None


class UnusableTruth(ValueError):
    """The dataset given cannot serve as truth of the task; the message names table and column."""


def in_digits(bound: float) -> str:
    """An integer with all of its digits, so that it can be compared with what was submitted."""
    return str(bound) if isinstance(bound, int) else f"{bound:.15g}"
