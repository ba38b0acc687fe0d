"""The public description of a task: its events, the columns of predictions, and its metrics.

Apart from tasks, so that programs that only show cards load no arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, get_args

#: Task names are parts of addresses, file names and commands.
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
Kind = Literal["integer", "float"]
#: The kinds of columns.
KINDS: Final = get_args(Kind)
#: Names that addresses of the platform use in place of task names.
TAKEN_NAMES: Final = frozenset({"mine", "submissions", "tasks"})


@dataclass(frozen=True, slots=True)
class EventRange:
    """The half-open range of event ids ``start <= event_id < stop``, written ``start:stop``.

    Raises
    ------
    ValueError
        Unless ``0 <= start < stop``.

    Examples
    --------
    >>> events = EventRange(90000, 100000)
    >>> str(events), len(events), 99999 in events, 100000 in events
    ('90000:100000', 10000, True, False)
    """

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise ValueError(f"an event range needs 0 <= start < stop, not {self.start}:{self.stop}")

    @classmethod
    def parse(cls, text: str) -> EventRange:
        """Parse a range.

        Parameters
        ----------
        text : str
            ``START:STOP``, for example ``90000:100000``.

        Returns
        -------
        EventRange

        Raises
        ------
        ValueError
            For any other text.

        Examples
        --------
        >>> EventRange.parse("0:500")
        EventRange(start=0, stop=500)
        """
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

    def overlaps(self, other: EventRange) -> bool:
        """Return whether an event is in both ranges.

        Parameters
        ----------
        other : EventRange

        Returns
        -------
        bool
        """
        return self.start < other.stop and other.start < self.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that predictions must have.

    Integer columns accept integers of any width; float columns accept floats and integers. The engine rejects
    nulls, non-finite numbers, values out of bounds, and different values where there must be one.

    Raises
    ------
    ValueError
        For an unknown kind.
    """

    name: str
    kind: Kind
    description: str
    #: Minimum and maximum of the values, both included.
    bounds: tuple[float, float] = (-inf, inf)
    #: The scope in which all rows have the same value: an event, or the file.
    one_per: Literal["event", "file"] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"column {self.name!r} has the kind {self.kind!r}: choose {' or '.join(KINDS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A score of submissions; the first metric of a card is the primary one."""

    name: str
    higher_is_better: bool
    description: str
    #: Credits for a new best value, where ``higher_is_better``; None: the platform's setting.
    reward: int | None = None
    #: Minimum and maximum over all possible submissions.
    bounds: tuple[float, float] = (-inf, inf)
    #: Whether the submitter measures it, such as a time: it is marked, and earns nothing until an operator
    #: verifies the submission.
    self_reported: bool = False
    #: When :meth:`.Task.metrics` may omit it, as text: ``"the efficiency is below 0.5"``. Other metrics are
    #: required. A submission without the primary metric is not on the leaderboard.
    missing_when: str = ""
    #: About how many scored events it takes to be defined for a good submission; 0: few.
    events_needed: int = 0
    #: Whether errors are those of its logarithm, as for one over a small fraction.
    log_error: bool = False
    #: How it is computed, in plain text: ``"jets of light flavour that pass / all of them"``.
    formula: str = ""
    #: The publication that defines it; empty where the task does.
    source: str = ""
    #: Whether some predictions have another value than others; if not, why it is a metric all the same.
    informative: bool = True
    uninformative_because: str = ""
    #: What leaderboards call it, in a few words: ``"Fake rate"``; empty: its name.
    title: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """The public description of a task.

    Raises
    ------
    ValueError
        For an invalid name, no metric, no column ``event_id``, or an invalid ``pareto``.
    """

    name: str
    title: str
    description: str
    dataset: str
    eval_events: EventRange
    inputs: tuple[str, ...]
    columns: tuple[Column, ...]
    #: Dataset tables from which truth is prepared.
    truth_sources: tuple[str, ...]
    #: The prepared truth table whose number of rows is the maximum for predictions.
    #: The engine rejects longer files before it decodes them.
    rows_of: str
    metrics: tuple[Metric, ...]
    #: How missing rows affect the score.
    left_out: str = ""
    #: Two competing metrics: the leaderboard marks the submissions on their Pareto front.
    pareto: tuple[str, str] | None = None
    #: Whether only submissions are ranked and rewarded whose self-reported metrics the platform has measured,
    #: because it ran their models (:meth:`.Task.model_interface`).
    ranks_measured: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"task name {self.name!r}: use a to z, 0 to 9 and _, at most 64, a letter first")
        if self.name in TAKEN_NAMES:
            raise ValueError(f"task name {self.name!r}: it is reserved for the platform's addresses")
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
        """Return whether a submission may have exactly these metrics: all but those that may be missing.

        Parameters
        ----------
        metrics : iterable of str
            Names of metrics.

        Returns
        -------
        bool
        """
        names = set(metrics)
        needed = {metric.name for metric in self.metrics if not metric.missing_when}
        return needed <= names <= {metric.name for metric in self.metrics}


def in_digits(bound: float) -> str:
    """Format a bound, an integer with all of its digits.

    Parameters
    ----------
    bound : float

    Examples
    --------
    >>> in_digits(2**63 - 1), in_digits(0.5)
    ('9223372036854775807', '0.5')
    """
    return str(bound) if isinstance(bound, int) else f"{bound:.15g}"
