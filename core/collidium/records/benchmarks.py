"""Submissions, scores and leaderboards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, field

from collidium.records.base import Credits, Record, Time
from collidium.records.evaluations import ModelThatRan, Reproduction
from collidium.records.tasks import EvalEvents, PublicPercent

#: Scores by metric.
Scores = Mapping[str, float]

#: Standard errors by metric.
StandardErrors = Annotated[
    Mapping[str, float],
    Meta(description="Standard errors of the scores, from a bootstrap over events; empty if unknown."),
]

VerifiedAt = Annotated[
    Time | None,
    Meta(description="When an operator verified the self-reported scores; null: not verified."),
]

Baseline = Annotated[bool, Meta(description="Whether it is a baseline of the platform, which earns nothing.")]

Unranked = Annotated[str | None, Meta(description="Why it has no rank; null: it has one.")]

TeamName = Annotated[str | None, Meta(description="Team of the submission; null: none.")]

ModelClaim = Annotated[
    Annotated[str, Meta(extra_json_schema={"enum": ["verified", "unverified", "missing"]})] | None,
    Meta(
        description="`verified`: the submitter or one of their organisations owned the model when it was "
        "linked; `unverified`: another did, or the hub was unavailable; `missing`: the submitter saw no such "
        "repository; null: there is no model."
    ),
]


#: What is said of a leaderboard whose truth everybody can read.
PUBLIC_TRUTH: Final = "practice: its truth is public"
Practice = Annotated[str | None, Meta(description="Why its leaderboard is for practice; null: it is not.")]


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
    practice: Practice = None


class Checked(Record, frozen=True):
    """The result of validating predictions; problems are an error (422) instead."""

    valid: Annotated[bool, Meta(extra_json_schema={"enum": [True]})]
    rows: int
    warnings: tuple[str, ...] = ()


class BinnedScore(Record, frozen=True):
    """A fraction in bins of a quantity; bins with few events are merged, values rounded."""

    name: str
    title: str
    quantity: Annotated[str, Meta(description="The binned quantity, with its unit.")]
    edges: Annotated[tuple[float, ...], Meta(description="Edges of the bins: one more than values.")]
    values: tuple[float, ...]
    errors: Annotated[tuple[float, ...], Meta(description="Standard errors of the values.")]


class LocalScores(Record, frozen=True):
    """Scores of predictions on this machine, identical to those of a server."""

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
    """Former scores of a submission, by another scorer or against other truth."""

    scores: Scores
    scorer_version: str
    truth_version: str
    scored_at: Time
    uncertainties: StandardErrors = field(default_factory=dict)


class Submission(Record, frozen=True):
    """The public record of a submission; earlier scores, the latest first."""

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
    dataset: Annotated[str | None, Meta(description="Source of the truth; null in lists.")] = None
    dataset_revision: Annotated[
        str | None, Meta(description="Revision of that dataset on the hub, or `local`; null in lists.")
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
        Meta(description="When it was chosen for the final results; null: not chosen."),
    ] = None
    baseline: Baseline = False
    curves: Annotated[tuple[BinnedScore, ...], Meta(description="Scores in bins; empty in lists.")] = ()
    model: ModelThatRan = None
    practice: Practice = None
    reproduction: Annotated[
        Reproduction | None, Meta(description="On public events; null if not requested, and in lists.")
    ] = None


class Difference(Record, frozen=True):
    """The difference between two submissions in a metric."""

    value: Annotated[float, Meta(description="The first submission minus the other.")]
    uncertainty: Annotated[float | None, Meta(description="Its standard error; null: unknown.")]
    paired: Annotated[
        bool, Meta(description="Whether the error is computed from the same resampled events of both.")
    ]


class Comparison(Record, frozen=True):
    """The differences between two submissions to the same task."""

    submission_id: str
    other_id: str
    differences: Annotated[dict[str, Difference], Meta(description="By metric, for metrics that both have.")]


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
            "being worse in the other; null if the task has none."
        ),
    ] = None
    model_claim: ModelClaim = None
    team: TeamName = None
    baseline: Baseline = False
    model: ModelThatRan = None
    rank_low: Annotated[
        int | None,
        Meta(
            description="Lower end of the 95% interval of the rank, from a bootstrap over common events; "
            "null: unknown, or not computed yet."
        ),
    ] = None
    rank_high: Annotated[int | None, Meta(description="Upper end of that interval.")] = None
    may_be_equal: Annotated[
        bool | None,
        Meta(description="Whether the next better place is less than two standard errors away."),
    ] = None


class Result(Record, frozen=True):
    """A submission in the file of results."""

    rank: Annotated[int | None, Meta(description="null for baselines and unranked submissions.")]
    status: Annotated[
        Annotated[
            str, Meta(extra_json_schema={"enum": ["ranked", "not_final", "disqualified", "withdrawn"]})
        ],
        Meta(
            description="Unranked submissions are only in the file of all submissions; `not_final`: not "
            "among its participant's final submissions."
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
    """A change of the rank of a submission; null: no rank."""

    submission_id: str
    hub_username: str
    rank_before: int | None
    rank: int | None
    earns: Annotated[Credits, Meta(description="Credits that it earns by the change.")]


class Ranking(Record, frozen=True):
    """Changes of a leaderboard, made or previewed."""

    challenge: str
    applied: bool
    changes: tuple[RankChange, ...]


class Rescoring(Record, frozen=True):
    """A rescoring of the submissions to a challenge, and its result."""

    challenge: str
    applies: Annotated[
        bool, Meta(description="Whether the new scores are applied; otherwise this is a preview.")
    ]
    asked_at: Time
    done: Annotated[int, Meta(description="Submissions scored so far.")]
    submissions: Annotated[
        int, Meta(description="Submissions to score; 0 if there are none, or it has not started.")
    ]
    public_percent: PublicPercent = None
    seen_whole: Annotated[
        int,
        Meta(
            description="With a new split: submissions whose participants have seen scores on all events, "
            "including those of the final part."
        ),
    ] = 0
    ended_at: Annotated[Time | None, Meta(description="null: in progress.")] = None
    problem: Annotated[str | None, Meta(description="Why it failed; nothing has changed then.")] = None
    changes: Annotated[
        tuple[RankChange, ...], Meta(description="Rank changes, once it has ended: the first 10,000.")
    ] = ()
    unscored: Annotated[
        dict[str, str], Meta(description="Reasons why submissions were not scored again, by their ids.")
    ] = field(default_factory=dict)
    waiting: Annotated[
        dict[str, str],
        Meta(
            description="Why submissions cannot be scored now, by their ids: nothing changes until they are, "
            "or an operator leaves them out."
        ),
    ] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.ended_at is not None

    @property
    def state(self) -> str:
        """``scoring``, ``waiting``, ``done`` or ``failed``."""
        if self.has_ended:
            return "failed" if self.problem else "done"
        return "waiting" if self.waiting else "scoring"


class WaitingFile(Record, frozen=True):
    """A submission that a rescoring or the end of its challenge waits for: its file cannot be scored now."""

    challenge: str
    submission_id: str
    hub_username: str
    reason: Annotated[str, Meta(description="Why it waits, or why it was left out.")]
    since: Time
    attempts: Annotated[int, Meta(description="Attempts to score it so far.")]
    retry_at: Annotated[
        Time | None, Meta(description="When the files are tried again; null: a day has passed, or left out.")
    ] = None
    left_out_at: Annotated[
        Time | None,
        Meta(
            description="When an operator left it out, or, for one without a rank, it was tried for a day; "
            "null: it waits."
        ),
    ] = None


class BestStep(Record, frozen=True):
    """A submission that improved the best value of a metric."""

    submission_id: str
    hub_username: str
    submitted_at: Time
    value: float
    uncertainty: Annotated[float | None, Meta(description="Standard error of the value; null: unknown.")] = (
        None
    )
    model_repo: str | None = None
    verified_at: VerifiedAt = None
    model_claim: ModelClaim = None
    team: TeamName = None
