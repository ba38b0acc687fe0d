"""Tasks, submissions and leaderboards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class EvalEvents:
    """The half-open range of events that are scored: ``start <= event_id < stop``."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class PredictionColumn:
    """A column that predictions must have; ``kind`` is ``integer`` or ``float``."""

    name: str
    kind: str
    description: str
    #: The lowest and the highest value that is accepted; None: there is none.
    bounds: tuple[int | float | None, int | float | None] = (None, None)
    #: ``event`` or ``file``, all rows of which must have the same value; None: they need not.
    one_per: str | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """A number by which submissions are told apart, and what a new best of it earns."""

    name: str
    higher_is_better: bool
    description: str
    reward: Decimal | None = None
    floor: float | None = None
    #: Measured by the submitter: it earns nothing until an operator has verified the submission.
    self_reported: bool = False
    #: When a submission has no such score; empty: it always has one.
    missing_when: str = ""
    #: How it is computed, and where it is from.
    formula: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class TaskCard:
    """What a benchmark task asks for."""

    name: str
    title: str
    description: str
    dataset: str
    eval_events: EvalEvents
    inputs: tuple[str, ...]
    columns: tuple[PredictionColumn, ...]
    metrics: tuple[Metric, ...]
    primary_metric: str
    scorer_version: str
    accepts_submissions: bool
    truth_version: str | None = None
    #: Part of the events that counts now: ``public`` or ``final``; None: all.
    phase: str | None = None
    public_percent: int | None = None
    #: What becomes of rows that are not submitted.
    left_out: str = ""
    #: Two metrics that are traded for each other: the leaderboard marks their Pareto front.
    pareto: tuple[str, str] | None = None
    #: Bytes that a file of predictions may have; None while there is no truth.
    largest_file_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Closed:
    """The answer to the end of a public phase."""

    task: str
    phase: str
    truth_version: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to predictions that were submitted; ``uncertainties`` are standard errors of scores."""

    submission_id: str
    scores: Mapping[str, float]
    credits_earned: Decimal
    deduplicated: bool
    warnings: tuple[str, ...] = ()
    rows: int | None = None
    sha256: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    uncertainties: Mapping[str, float] = field(default_factory=dict)
    model_repo: str | None = None
    model_claim: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """The answer to predictions that were only checked; problems raise InvalidInput instead."""

    valid: bool
    rows: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EarlierScores:
    """Scores of a submission that once counted, by another scorer or against other truth."""

    scores: Mapping[str, float | None]
    scorer_version: str
    truth_version: str
    scored_at: datetime
    uncertainties: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission as it is kept.

    ``model_claim`` is ``verified`` where the submitter or an organisation of theirs owned ``model_repo`` when
    it was set, else ``unverified`` or ``missing``; None where there is no model.
    """

    submission_id: str
    task: str
    hub_username: str
    submitted_at: datetime
    scores: Mapping[str, float | None]
    credits_earned: Decimal
    model_repo: str | None = None
    rows: int | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    uncertainties: Mapping[str, float] = field(default_factory=dict)
    #: What the truth is from, and its revision; None in lists.
    dataset: str | None = None
    dataset_revision: str | None = None
    verified_at: datetime | None = None
    earlier_scores: tuple[EarlierScores, ...] = ()
    warnings: tuple[str, ...] = ()
    model_claim: str | None = None
    code_url: str | None = None
    paper_url: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a leaderboard."""

    rank: int
    submission_id: str
    hub_username: str
    submitted_at: datetime
    scores: Mapping[str, float | None]
    credits_earned: Decimal
    model_repo: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    uncertainties: Mapping[str, float] = field(default_factory=dict)
    verified_at: datetime | None = None
    #: Whether no other place beats it in one of the card's ``pareto`` metrics without being worse in the
    #: other; None where the card names none.
    pareto: bool | None = None
    #: As of :class:`Submission`.
    model_claim: str | None = None


@dataclass(frozen=True, slots=True)
class BestStep:
    """A submission that was better in a metric than all before it."""

    submission_id: str
    hub_username: str
    submitted_at: datetime
    value: float
    #: Standard error of the value; None where it is not known.
    uncertainty: float | None = None
    model_repo: str | None = None
    #: When an operator verified what was self-reported; None: nobody has.
    verified_at: datetime | None = None
    #: As of :class:`Submission`.
    model_claim: str | None = None
