"""Submissions and leaderboards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, field

from collidium.records.base import Credits, Record, Time
from collidium.records.evaluations import ModelThatRan, Reproduction
from collidium.records.tasks import EvalEvents, PublicPercent

#: Score by metric.
Scores = Mapping[str, float]

#: Standard error by metric.
StandardErrors = Annotated[
    Mapping[str, float],
    Meta(description="Standard errors of the scores, by a bootstrap over events; empty where unknown."),
]

VerifiedAt = Annotated[
    Time | None,
    Meta(description="When an operator verified what was self-reported; null: not verified."),
]

Baseline = Annotated[
    bool, Meta(description="Whether the platform submitted it as a baseline: it earns nothing.")
]

Unranked = Annotated[str | None, Meta(description="Why it has no rank now; null: it has one.")]

TeamName = Annotated[str | None, Meta(description="The team that it was submitted for; null: none.")]

ModelClaim = Annotated[
    Annotated[str, Meta(extra_json_schema={"enum": ["verified", "unverified", "missing"]})] | None,
    Meta(
        description="When it was set, `verified`: the submitter or an organisation of theirs owned it; "
        "`unverified`: another did, or the hub could not be asked; `missing`: the submitter saw no such "
        "repository; null: there is no model."
    ),
]


class Receipt(Record, frozen=True):
    """The answer to a submission."""

    submission_id: str
    scores: Scores
    credits_earned: Credits
    deduplicated: bool
    warnings: tuple[str, ...] = ()
    rows: int | None = None
    sha256: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    uncertainties: StandardErrors = field(default_factory=dict)
    model_repo: str | None = None
    model_claim: ModelClaim = None
    unranked: Unranked = None


class Checked(Record, frozen=True):
    """The answer to predictions that were only checked; problems are an error (422) instead."""

    valid: Annotated[bool, Meta(extra_json_schema={"enum": [True]})]
    rows: int
    warnings: tuple[str, ...] = ()


class BinnedScore(Record, frozen=True):
    """A fraction in bins of a quantity; those of few events are merged, values rounded."""

    name: str
    title: str
    quantity: Annotated[str, Meta(description="What the bins are of, with its unit.")]
    edges: Annotated[tuple[float, ...], Meta(description="Of the bins: one more than there are values.")]
    values: tuple[float, ...]
    errors: Annotated[tuple[float, ...], Meta(description="Standard errors of the values.")]


class LocalScores(Record, frozen=True):
    """What predictions score on this machine, as a server scores them."""

    task: str
    scores: Scores
    uncertainties: StandardErrors
    rows: int
    events: EvalEvents
    dataset: str
    dataset_revision: str
    scorer_version: str
    truth_version: str
    warnings: tuple[str, ...] = ()
    curves: tuple[BinnedScore, ...] = ()


class EarlierScores(Record, frozen=True):
    """Scores of a submission that once counted, by another scorer or against other truth."""

    scores: Scores
    scorer_version: str
    truth_version: str
    scored_at: Time
    uncertainties: StandardErrors = field(default_factory=dict)


class Submission(Record, frozen=True):
    """The public record of a submission; earlier scores the latest first."""

    submission_id: str
    challenge: str
    task: str
    hub_username: str
    submitted_at: Time
    scores: Scores
    credits_earned: Credits
    model_repo: str | None = None
    rows: int | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    uncertainties: StandardErrors = field(default_factory=dict)
    dataset: Annotated[str | None, Meta(description="What the truth is from; null in lists.")] = None
    dataset_revision: Annotated[
        str | None, Meta(description="That dataset's revision on the hub, or `local`; null in lists.")
    ] = None
    verified_at: VerifiedAt = None
    earlier_scores: tuple[EarlierScores, ...] = ()
    warnings: tuple[str, ...] = ()
    model_claim: ModelClaim = None
    code_url: str | None = None
    paper_url: str | None = None
    from_hub: Annotated[
        str | None, Meta(description="NAMESPACE/NAME:PATH@COMMIT; null: the file was uploaded.")
    ] = None
    unranked: Unranked = None
    team: TeamName = None
    chosen_at: Annotated[
        Time | None,
        Meta(description="When it was chosen for the final results; null: it was not."),
    ] = None
    baseline: Baseline = False
    curves: Annotated[tuple[BinnedScore, ...], Meta(description="Scores in bins; empty in lists.")] = ()
    model: ModelThatRan = None
    reproduction: Annotated[
        Reproduction | None, Meta(description="On public events; null: it was not asked for, and in lists.")
    ] = None


class Difference(Record, frozen=True):
    """How far two submissions are apart in a metric."""

    value: Annotated[float, Meta(description="That of the first less that of the other.")]
    uncertainty: Annotated[float | None, Meta(description="Its standard error; null: not known.")]
    paired: Annotated[bool, Meta(description="Whether the error is of the same resampled events of both.")]


class Comparison(Record, frozen=True):
    """Two submissions to the same task."""

    submission_id: str
    other_id: str
    differences: Annotated[dict[str, Difference], Meta(description="By metric, those that both have.")]


class Place(Record, frozen=True):
    """A place on a leaderboard."""

    rank: int
    submission_id: str
    hub_username: str
    submitted_at: Time
    scores: Scores
    credits_earned: Credits
    model_repo: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    uncertainties: StandardErrors = field(default_factory=dict)
    verified_at: VerifiedAt = None
    pareto: Annotated[
        bool | None,
        Meta(
            description="Whether no other place beats it in one of the task's two `pareto` metrics without "
            "being worse in the other; null where the task names none."
        ),
    ] = None
    model_claim: ModelClaim = None
    team: TeamName = None
    baseline: Baseline = False
    model: ModelThatRan = None
    rank_low: Annotated[
        int | None,
        Meta(
            description="The best rank within its interval of 95%, from a bootstrap over events that all "
            "share; null: not known, or not yet."
        ),
    ] = None
    rank_high: Annotated[int | None, Meta(description="The worst rank within that interval.")] = None
    may_be_equal: Annotated[
        bool | None,
        Meta(description="Whether the next better place is less than two standard errors of the gain away."),
    ] = None


class Result(Record, frozen=True):
    """A submission in the file of results."""

    rank: Annotated[int | None, Meta(description="null for baselines, and for what is not ranked.")]
    status: Annotated[
        Annotated[
            str, Meta(extra_json_schema={"enum": ["ranked", "not_final", "disqualified", "withdrawn"]})
        ],
        Meta(
            description="Those without a rank are only in the file of all submissions; `not_final`: not among"
            " its participant's final submissions."
        ),
    ]
    submission_id: str
    hub_username: str
    submitted_at: Time
    scores: Scores
    credits_earned: Credits
    reason: Annotated[str | None, Meta(description="Why it was disqualified.")] = None
    uncertainties: StandardErrors = field(default_factory=dict)
    scorer_version: str | None = None
    truth_version: str | None = None
    verified_at: VerifiedAt = None
    model_repo: str | None = None
    model_claim: ModelClaim = None
    team: TeamName = None
    baseline: Baseline = False
    model: ModelThatRan = None
    rank_low: int | None = None
    rank_high: int | None = None
    may_be_equal: bool | None = None


class RankChange(Record, frozen=True):
    """How the rank of a submission changes; null: it has none."""

    submission_id: str
    hub_username: str
    rank_before: int | None
    rank: int | None
    earns: Annotated[Credits, Meta(description="Credits that are paid now.")]


class Ranking(Record, frozen=True):
    """What changes on a leaderboard, or would change."""

    challenge: str
    applied: bool
    changes: tuple[RankChange, ...]


class Rescoring(Record, frozen=True):
    """An operator's order to score the submissions to a challenge again, and what became of it."""

    challenge: str
    applies: Annotated[
        bool, Meta(description="Whether the new scores come into force; else this shows what would change.")
    ]
    asked_at: Time
    done: Annotated[int, Meta(description="Submissions scored so far.")]
    submissions: Annotated[
        int, Meta(description="Submissions to score; 0 where nothing has to be, or it has not begun.")
    ]
    public_percent: PublicPercent = None
    seen_whole: Annotated[
        int,
        Meta(
            description="Of a split: submissions whose participants have seen scores on all events, "
            "those of the final part included."
        ),
    ] = 0
    ended_at: Annotated[Time | None, Meta(description="null: it is under way.")] = None
    problem: Annotated[str | None, Meta(description="Why it failed, and nothing has changed.")] = None
    changes: Annotated[
        tuple[RankChange, ...], Meta(description="How ranks change, when it has ended: the first 10,000.")
    ] = ()
    unscored: Annotated[
        dict[str, str], Meta(description="Why submissions were not scored again, by their ids.")
    ] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether nothing changes any more."""
        return self.ended_at is not None

    @property
    def state(self) -> str:
        """``scoring``, ``done`` or ``failed``."""
        return "failed" if self.problem else "done" if self.has_ended else "scoring"


class BestStep(Record, frozen=True):
    """A submission that was better in a metric than all before it."""

    submission_id: str
    hub_username: str
    submitted_at: Time
    value: float
    uncertainty: Annotated[
        float | None, Meta(description="Standard error of the value; null where it is not known.")
    ] = None
    model_repo: str | None = None
    verified_at: VerifiedAt = None
    model_claim: ModelClaim = None
    team: TeamName = None
