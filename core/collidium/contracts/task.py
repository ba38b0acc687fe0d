"""The contract of a benchmark task: its card, the columns of predictions, and scoring.

Events are independent, so scoring is map and merge. A task receives blocks of events and returns small
tallies; the engine handles files, memory, processes and machines.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from collidium.contracts.model import ModelInterface

#: Task names are parts of addresses, file names and commands.
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: Names that addresses of the platform use in place of task names.
TAKEN_NAMES: Final = frozenset({"mine", "submissions", "tasks"})

#: The counts of a task: small, picklable and exact (integers, or float64 summed in a fixed order). Workers
#: alone unpickle them.
Tally = Any

#: Tables of a block by name, for example ``{"tracker_hits": ..., "particles": ...}``.
Tables = Mapping[str, pa.Table]

#: Prefix of metadata of prepared tables that is a note on how the truth was made, kept in its manifest:
#: ``{NOTE + "hit_weights": "uniform"}``. Those of the dataset's shards are kept, too: pipeline and variation.
NOTE: Final = "truth."

#: For each replicate the sorted indices of the groups of events drawn with replacement.
Draws = Sequence[Sequence[int]]

#: Of a metric that is a fraction of things counted: how many there are, and of how many.
Counts = tuple[float, float]

#: Makes predictions for a block of events from tables of the dataset, one row per event.
Reconstruction = Callable[[Tables], pa.Table]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A further baseline of a task, from a plugin that is not the task's.

    ``reconstruct`` makes predictions from the card's inputs, as those of :meth:`Task.baselines`.
    """

    task: str
    name: str
    reconstruct: Reconstruction


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
        """Whether an event is in both."""
        return self.start < other.stop and other.start < self.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that predictions must have.

    Integer columns accept integers of any width; float columns accept floats and integers. The engine rejects
    nulls, non-finite numbers, values out of bounds, and different values where there must be one.
    """

    name: str
    kind: Literal["integer", "float"]
    description: str
    #: Minimum and maximum of the values, both included.
    bounds: tuple[float, float] = (-inf, inf)
    #: The scope in which all rows have the same value: an event, or the file.
    one_per: Literal["event", "file"] | None = None


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
    #: When :meth:`Task.metrics` may omit it, as text: ``"the efficiency is below 0.5"``. Other metrics are
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
        """Return whether a submission may have exactly these metrics: all but those that may be missing.

        Parameters
        ----------
        metrics : iterable of str
            Names of metrics.
        """
        names = set(metrics)
        needed = {metric.name for metric in self.metrics if not metric.missing_when}
        return needed <= names <= {metric.name for metric in self.metrics}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of predictions, with what is needed to find and fix it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A fraction in bins of a quantity, such as an efficiency against pT.

    Submitters see it after the platform merged bins of few events and rounded the values
    (``collidium.scoring.curves``).

    Parameters
    ----------
    name : str
        A short stable word, for example ``efficiency_pt``.
    title : str
        What the fraction is: ``Efficiency``.
    quantity : str
        What the bins are of, with its unit: ``pT (GeV)``.
    edges : sequence of float, shape (bins + 1,)
        Finite and increasing.
    part, whole : sequence of int, shape (bins,)
        Entries that count, of all entries in a bin.
    events : sequence of int, shape (bins,)
        Events with entries in a bin, or a lower limit.
    errors : sequence of float, shape (bins,), optional
        Standard errors in addition to those of the counts, such as that of a threshold.
    """

    name: str
    title: str
    quantity: str
    edges: Sequence[float]
    part: Sequence[int]
    whole: Sequence[int]
    events: Sequence[int]
    errors: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Predictions and truth of the same events.

    Every table is sorted by event_id; within an event the rows have the order of the submission, or that of
    :meth:`Task.prepare`. Predictions have the columns of the card, without nulls, finite and within bounds,
    integers in the submitted width, and every event_id is in ``events``. Rows that differ where a column has
    one value per event or file are reported in addition to the problems of :meth:`Task.check`, which may
    receive them; :meth:`Task.score` does not.
    """

    events: EventRange
    predictions: pa.Table
    truth: Tables = field(default_factory=dict)


class Task(ABC):
    """A benchmark task. Instances hold no state, are picklable, and are called in worker processes."""

    card: ClassVar[Card]
    #: Version of the scoring code, stored with every score. Increase it when the value of a metric changes.
    version: ClassVar[str]
    #: What an operator may choose when truth is imported: names and their values, the default first.
    truth_options: ClassVar[Mapping[str, Sequence[str]]] = {}

    @abstractmethod
    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        """Prepare the truth of a block of events, as it is kept on the server.

        Parameters
        ----------
        tables : mapping of str to pyarrow.Table
            The card's ``truth_sources``: one row per event, canonical column names, sorted by event_id.
            Lengths are in mm, energies and momenta in GeV, times in ns.

        Returns
        -------
        dict of str to pyarrow.Table
            Each with a sorted column ``event_id`` (uint32), and the same schema for every block. Metadata of
            the schema with the prefix ``NOTE`` is kept in the truth's manifest.

        Raises
        ------
        UnusableTruth
            If the dataset lacks something that the task needs.
        """

    def prepare_with(self, tables: Tables, options: Mapping[str, str]) -> dict[str, pa.Table]:
        """Prepare truth as :meth:`prepare` does, by an operator's choices; override it for ``truth_options``.

        Parameters
        ----------
        tables : mapping of str to pyarrow.Table
            As for :meth:`prepare`.
        options : mapping of str to str
            Choices among ``truth_options``; those that are missing have their default.
        """
        return self.prepare(tables)

    @abstractmethod
    def check(self, block: Block) -> list[Problem]:
        """Return all problems of a block that the checks of the engine do not find.

        Parameters
        ----------
        block : Block
            Predictions that passed the checks of the engine.
        """

    @abstractmethod
    def score(self, block: Block) -> Tally:
        """Count what the metrics need.

        Parameters
        ----------
        block : Block
            A block in which :meth:`check` found no problem.

        Returns
        -------
        Tally
            Picklable and below 1 MiB.
        """

    @abstractmethod
    def merge(self, tallies: Sequence[Tally]) -> Tally:
        """Merge tallies: associative, and independent of how events are split into blocks.

        Parameters
        ----------
        tallies : sequence of Tally
            In the order of events; not to be modified. With resampling a tally occurs several times in a row,
            and counts each time.
        """

    @abstractmethod
    def metrics(self, tally: Tally) -> dict[str, float]:
        """Compute the card's metrics.

        Parameters
        ----------
        tally : Tally
            The merged tally of all events.

        Returns
        -------
        dict of str to float
            By name; 0 for an empty denominator. Only metrics with ``missing_when`` may be omitted.
        """

    def curves(self, tally: Tally) -> Sequence[Curve]:
        """Return scores in bins, for plots.

        Parameters
        ----------
        tally : Tally
            The merged tally of all events.

        Returns
        -------
        sequence of Curve
            At most 30, of at most 100 bins each.
        """
        return ()

    def resample(self, tallies: Sequence[Tally], draws: Draws) -> Sequence[Mapping[str, float]]:
        """Compute the metrics of resampled events; their standard deviation is the standard error.

        Override it if some hundred calls of ``merge`` and ``metrics`` take long compared with scoring; the
        result may then be approximate, but must be finite and reproducible.

        Parameters
        ----------
        tallies : sequence of Tally
            One for each group of events.
        draws : sequence of sequences of int
            For each replicate the sorted indices of the groups to merge.

        Returns
        -------
        sequence of mappings of str to float
            The metrics of each replicate.
        """
        return [self.metrics(self.merge([tallies[group] for group in draw])) for draw in draws]

    def sample_sizes(self, tally: Tally) -> Mapping[str, int]:
        """Return how many entries metrics rest on, such as events of a rare class.

        Where these are fewer than the groups of events, errors are as wide as those of so many groups.

        Parameters
        ----------
        tally : Tally
            The merged tally of all events.

        Returns
        -------
        mapping of str to int
            ``{"auroc": signal_events}``; metrics that are not named rest on all events.
        """
        return {}

    def counts(self, tally: Tally) -> Mapping[str, Counts]:
        """Return the counts behind metrics that are fractions.

        Where less than ten were counted, events drawn with replacement scatter too little, and not at all
        where there was none: the error is then at least that of Poisson statistics.

        Parameters
        ----------
        tally : Tally
            The merged tally of all events.

        Returns
        -------
        mapping of str to (float, float)
            ``{"fake_rate": (fake_tracks, tracks)}``.
        """
        return {}

    def check_whole(self, tally: Tally) -> list[Problem]:
        """Return problems across blocks, such as a wrong sum.

        Parameters
        ----------
        tally : Tally
            The tally of all events, if :meth:`check` found no problem in any block.
        """
        return []

    def warnings(self, tally: Tally) -> list[str]:
        """Return warnings for a valid submission.

        Parameters
        ----------
        tally : Tally
            That of all events.

        Returns
        -------
        list of str
        """
        return []

    def baselines(self) -> Mapping[str, Reconstruction]:
        """Return complete baselines by name, simplest first: ``{"naive": ..., "helix": ...}``.

        Returns
        -------
        mapping of str to callable
            Each makes valid predictions from the card's ``inputs`` only, one row per event. The first is
            scored when truth is imported: its metrics are the floors that a first best value must exceed,
            zero without a baseline. ``collidium demo`` submits the first two, ``collidium seed`` all.
        """
        return {}

    def missing_baselines(self) -> Mapping[str, str]:
        """Return the baselines that :meth:`baselines` leaves out because software is not installed.

        Returns
        -------
        mapping of str to str
            By name what to install, as pip takes it: ``{"trees": "collidium[baselines]"}``.
        """
        return {}

    def model_files(self, baseline: str) -> Mapping[str, bytes]:
        """Return what a baseline has learned, as the files of its model repository.

        Parameters
        ----------
        baseline : str
            A name of :meth:`baselines`.

        Returns
        -------
        mapping of str to bytes
            By file name; nothing for baselines that learn nothing. ``collidium seed`` publishes them with the
            baseline's docstring as model card.
        """
        return {}

    def model_interface(self) -> ModelInterface | None:
        """Return what submitted models may read and have to return; None: the task takes no models.

        Returns
        -------
        ModelInterface or None
        """
        return None

    def model_examples(self) -> Mapping[str, Callable[[], Mapping[str, bytes]]]:
        """Return models that can be submitted as they are, by name, such as baselines.

        Returns
        -------
        mapping of str to callable
            Each returns files: ``model.onnx`` and ``manifest.toml``; it may need extras.
        """
        return {}

    def oracle(self, truth: Tables) -> pa.Table | None:
        """Return the best possible predictions, for tests only.

        The conformance suite checks that nothing scores better.

        Parameters
        ----------
        truth : mapping of str to pyarrow.Table
            As :meth:`prepare` returns it.

        Returns
        -------
        pyarrow.Table or None
            None if they are unknown.
        """
        return None


class UnusableTruth(ValueError):
    """The dataset cannot serve as truth of the task; the message names table and column."""
