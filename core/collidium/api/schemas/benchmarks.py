"""Shapes of tasks, submissions and leaderboards."""

from __future__ import annotations

from datetime import datetime
from math import isfinite
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from collidium.api.answers import Page
from collidium.api.schemas.base import Answer, Body, Credits
from collidium.benchmarks.submissions.links import LONGEST_LINK, Claim

#: Metric -> standard error.
StandardErrors = Annotated[
    dict[str, float],
    Field(description="Standard errors of the scores, by a bootstrap over events; empty where unknown."),
]

VerifiedAt = Annotated[
    datetime | None, Field(description="When an operator verified what was self-reported; null: nobody has.")
]

ModelClaim = Annotated[
    Claim | None,
    Field(
        description="When it was set, `verified`: the submitter or an organisation of theirs owned it; "
        "`unverified`: another did, or the hub could not be asked; `missing`: the submitter saw no such "
        "repository; null: there is no model."
    ),
]


def _finite(bounds: object) -> object:
    """JSON knows no infinity."""
    return (
        tuple(number if isfinite(number) else None for number in bounds)
        if isinstance(bounds, tuple)
        else bounds
    )


Bounds = Annotated[
    tuple[int | float | None, int | float | None],
    BeforeValidator(_finite),
    Field(description="The lowest and the highest value that is accepted; null: there is none."),
]


class Events(Answer):
    """A half-open range of event ids."""

    start: int
    stop: int


class ColumnModel(Answer):
    """A column of predictions."""

    name: str
    kind: Literal["integer", "float"]
    description: str
    bounds: Bounds
    one_per: Literal["event", "file"] | None = Field(
        description="All rows of an event, or of the file, must have the same value; null: they need not."
    )


class MetricModel(Answer):
    """A metric of a task; ``floor`` is what a first best must beat.

    What is self-reported was measured by the submitter, and earns nothing until an operator has verified it.
    """

    name: str
    higher_is_better: bool
    description: str
    reward: Credits
    floor: float
    self_reported: bool
    missing_when: str = Field(description="When a submission has no such score; empty: it always has one.")
    formula: str = Field(description="How it is computed, in plain text; may be empty.")
    source: str = Field(description="The publication that defines it; empty where the task does.")


class TaskModel(Answer):
    """A benchmark task."""

    name: str
    title: str
    description: str
    dataset: str
    eval_events: Events
    inputs: list[str]
    columns: list[ColumnModel]
    metrics: list[MetricModel]
    primary_metric: str
    left_out: str = Field(description="What becomes of rows that are not submitted; may be empty.")
    pareto: tuple[str, str] | None = Field(
        description="Two metrics that are traded for each other: the leaderboard marks their Pareto front."
    )
    scorer_version: str
    truth_version: str | None
    phase: Literal["public", "final"] | None = Field(
        description="Part of the events that counts now; null: all."
    )
    public_percent: int | None = Field(description="How much of the events is public, where they are split.")
    accepts_submissions: bool
    largest_file_bytes: int | None = Field(
        description="Bytes that a file of predictions may have; null while there is no truth."
    )


class Closed(Answer):
    """A task whose public phase is over."""

    task: str
    phase: Literal["final"] = "final"
    truth_version: str


class Receipt(Answer):
    """The answer to a submission."""

    submission_id: str
    scores: dict[str, float]
    uncertainties: StandardErrors
    credits_earned: Credits
    deduplicated: bool
    warnings: list[str]
    model_repo: str | None
    model_claim: ModelClaim
    rows: int
    sha256: str
    scorer_version: str
    truth_version: str


class Checked(Answer):
    """The answer to a dry run."""

    valid: Literal[True] = True
    rows: int
    warnings: list[str]


class EarlierScoresModel(Answer):
    """Scores of a submission that once counted, by another scorer or against other truth."""

    scores: dict[str, float]
    uncertainties: StandardErrors
    scorer_version: str
    truth_version: str
    scored_at: datetime


class SubmissionModel(Answer):
    """A submission, as everybody may see it; earlier scores the latest first."""

    submission_id: str
    task: str
    hub_username: str
    submitted_at: datetime
    scores: dict[str, float]
    uncertainties: StandardErrors
    credits_earned: Credits
    warnings: list[str]
    model_repo: str | None
    model_claim: ModelClaim
    code_url: str | None
    paper_url: str | None
    rows: int
    size_bytes: int
    sha256: str
    scorer_version: str
    truth_version: str
    dataset: str | None = Field(description="What the truth is from; null in lists.")
    dataset_revision: str | None = Field(
        description="That dataset's revision on the hub, or `local`; null in lists."
    )
    verified_at: VerifiedAt
    earlier_scores: list[EarlierScoresModel]


class Place(BaseModel):
    """A place on a leaderboard."""

    rank: int
    submission_id: str
    hub_username: str
    submitted_at: datetime
    scores: dict[str, float]
    uncertainties: StandardErrors
    credits_earned: Credits
    model_repo: str | None
    model_claim: ModelClaim
    scorer_version: str
    truth_version: str
    verified_at: VerifiedAt
    pareto: bool | None = Field(
        description="Whether no other place beats it in one of the task's two `pareto` metrics without being "
        "worse in the other; null where the task names none."
    )


class LeaderboardQuery(Page):
    """Query of a leaderboard."""

    model_config = ConfigDict(frozen=True)  # pages are kept by what was asked for

    pareto: bool = Field(False, description="Only the places on the Pareto front.")
    hub_username: str | None = Field(None, max_length=96, description="Only the places of this account.")
    model_repo: str | None = Field(
        None, max_length=200, description="Only the places of this hub model, NAMESPACE/NAME."
    )


class BestStepModel(Answer):
    """A submission that was better in a metric than all before it, with its value and standard error."""

    submission_id: str
    hub_username: str
    submitted_at: datetime
    value: float
    uncertainty: float | None = Field(description="Standard error of the value; null where it is not known.")
    model_repo: str | None
    model_claim: ModelClaim
    verified_at: VerifiedAt


class HistoryQuery(BaseModel):
    """Query of how a best came about."""

    model_config = ConfigDict(frozen=True)

    metric: str | None = Field(
        None, max_length=64, description="A metric of the task; the primary one if none."
    )
    limit: int = Field(1000, ge=1, le=1000, description="Most steps returned: the last ones.")


class MySubmissionsQuery(Page):
    """Which of an account's submissions are listed."""

    task: str | None = Field(None, max_length=64, description="Only those to this task.")


class SubmitQuery(BaseModel):
    """Query of a submission."""

    model_repo: str | None = Field(None, max_length=200, description="Hub model repository, NAMESPACE/NAME.")


class LinksBody(Body):
    """Links of a submission; what is left out stays as it is, null removes it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model_repo: str | None = Field(None, max_length=200, description="Hub model repository, NAMESPACE/NAME.")
    code_url: str | None = Field(None, max_length=LONGEST_LINK, description="HTTPS address of the code.")
    paper_url: str | None = Field(None, max_length=LONGEST_LINK, description="HTTPS address of the paper.")
