"""The contract of a benchmark task: its card (``contracts.card``), and scoring.

Events are independent, so scoring is map and merge. A task receives blocks of events and returns small
tallies; the engine handles files, memory, processes and machines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from collidium.contracts.card import TAKEN_NAMES, Card, Column, EventRange, Metric

if TYPE_CHECKING:
    from collidium.contracts.model import ModelInterface

__all__ = [
    "NOTE",
    "TAKEN_NAMES",
    "Baseline",
    "Block",
    "Card",
    "Column",
    "Counts",
    "Curve",
    "Draws",
    "EventRange",
    "Metric",
    "Problem",
    "Reconstruction",
    "Tables",
    "Tally",
    "Task",
    "UnusableTruth",
]

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
    (``collidium.scoring.uncertainty``).

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

        Returns
        -------
        dict of str to pyarrow.Table
            As of :meth:`prepare`.
        """
        return self.prepare(tables)

    @abstractmethod
    def check(self, block: Block) -> list[Problem]:
        """Return all problems of a block that the checks of the engine do not find.

        Parameters
        ----------
        block : Block
            Predictions that passed the checks of the engine.

        Returns
        -------
        list of Problem
            Empty for a valid block.
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

        Returns
        -------
        Tally
            That of all their events.
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

        Returns
        -------
        list of Problem
            Empty for a valid submission.
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
