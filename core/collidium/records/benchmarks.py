"""Tasks, submissions and leaderboards."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import hypot
from typing import Annotated, Final, Literal, get_args

from msgspec import Meta, field

from collidium.records.base import Credits, Record, Time

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

#: What becomes of a submitted model, in this order; the last three are ends.
EvaluationState = Literal["received", "checking", "running", "scored", "failed", "cancelled"]

#: Which events count now.
Phase = Annotated[
    Annotated[str, Meta(extra_json_schema={"enum": ["public", "final"]})] | None,
    Meta(description="Part of the events that counts now; null: all."),
]

PublicPercent = Annotated[
    int | None, Meta(description="How much of the events is public, where they are split.")
]


class EvalEvents(Record, frozen=True):
    """The half-open range of events that are scored: ``start <= event_id < stop``."""

    start: int
    stop: int


class TaskData(Record, frozen=True):
    """Events of a task that anyone may fetch: some of a dataset, at one commit."""

    repository: str
    revision: Annotated[str, Meta(description="A commit, 40 hexadecimal digits.")]
    config: str
    tables: tuple[str, ...]
    events: EvalEvents
    bytes: Annotated[int, Meta(description="Of the shards that hold these events.")]
    hub: Annotated[
        str | None, Meta(description="Address of the hub; null: the server's local hub, at `/hub`.")
    ] = None
    download: Annotated[str, Meta(description="The command that fetches them.")] = ""


class PredictionColumn(Record, frozen=True):
    """A column that predictions must have."""

    name: str
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["integer", "float"]})]
    description: str
    bounds: Annotated[
        tuple[int | float | None, int | float | None],
        Meta(description="The lowest and the highest value that is accepted; null: there is none."),
    ] = (None, None)
    one_per: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": ["event", "file"]})] | None,
        Meta(
            description="All rows of an event, or of the file, must have the same value; null: they need not."
        ),
    ] = None


class Metric(Record, frozen=True):
    """A metric of a task; ``reward`` is what a new best earns, ``floor`` what a first best must beat.

    What is self-reported was measured by the submitter, and earns nothing until an operator has verified it.
    """

    name: str
    higher_is_better: bool
    description: str
    reward: Credits | None = None
    floor: float | None = None
    self_reported: bool = False
    missing_when: Annotated[
        str, Meta(description="When a submission has no such score; empty: it always has one.")
    ] = ""
    formula: Annotated[str, Meta(description="How it is computed, in plain text; may be empty.")] = ""
    source: Annotated[
        str, Meta(description="The publication that defines it; empty where the task does.")
    ] = ""
    title: Annotated[str, Meta(description="Its name in a few words; may be empty.")] = ""


class TaskCard(Record, frozen=True):
    """A benchmark task."""

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
    phase: Phase = None
    public_percent: PublicPercent = None
    left_out: Annotated[
        str, Meta(description="What becomes of rows that are not submitted; may be empty.")
    ] = ""
    pareto: Annotated[
        tuple[str, str] | None,
        Meta(
            description="Two metrics that are traded for each other: the leaderboard marks their Pareto "
            "front."
        ),
    ] = None
    ranks_measured: Annotated[
        bool,
        Meta(description="Whether only models are ranked that the platform has run and measured."),
    ] = False
    largest_file_bytes: Annotated[
        int | None,
        Meta(description="Bytes that a file of predictions may have; null while there is no truth."),
    ] = None
    largest_model_bytes: Annotated[
        int | None, Meta(description="Bytes that a model may have; null: the server runs none.")
    ] = None
    model_price: Annotated[Credits, Meta(description="Credits for running a model.")] = Decimal(0)
    truth_notes: Annotated[
        Mapping[str, str], Meta(description="How the truth was made, such as what hits weigh; may be empty.")
    ] = field(default_factory=dict)
    training_data: Annotated[
        TaskData | None, Meta(description="Events with truth to learn from; null: the operators name none.")
    ] = None
    evaluation_data: Annotated[
        TaskData | None, Meta(description="Inputs of the scored events; null: the operators name none.")
    ] = None


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


class ModelGraph(Record, frozen=True):
    """What a model computes with, reads and returns, by its file and its manifest."""

    operators: Annotated[dict[str, int], Meta(description="How often each is there.")]
    inputs: Annotated[dict[str, str], Meta(description="Input -> source, type and layout.")]
    outputs: Annotated[dict[str, str], Meta(description="Output -> columns of predictions.")]
    batch: str
    license: Annotated[str, Meta(description="As the manifest names it; empty where it does not.")] = ""


class EvaluatedModel(Record, frozen=True):
    """A model that the platform has run: its file, its size and its speed."""

    sha256: str
    file_bytes: int
    n_params: Annotated[int, Meta(description="Numbers in the file, or a quarter of their bytes if more.")]
    nodes: int
    opset: int
    manifest_sha256: str = ""
    runtime: Annotated[str, Meta(description="What ran it, with its version.")] = ""
    seconds: Annotated[
        float | None, Meta(description="CPU seconds of an event on the nominal machine; null: not measured.")
    ] = None
    seconds_error: float | None = None
    wall_seconds: Annotated[
        float | None, Meta(description="Of an event on the machine that measured; null: not measured.")
    ] = None
    memory_bytes: Annotated[int | None, Meta(description="The most that its process has held.")] = None
    joules: Annotated[
        float | None,
        Meta(description="Of an event, with all else that the machine did; null: it reports no energy."),
    ] = None
    graph: Annotated[ModelGraph | None, Meta(description="null in lists.")] = None


ModelThatRan = Annotated[
    EvaluatedModel | None,
    Meta(description="The model that the platform ran; null: predictions were sent."),
]


class Evaluation(Record, frozen=True):
    """A model that the platform runs on the events of a challenge."""

    evaluation_id: str
    challenge: str
    task: str
    hub_username: str
    state: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(EvaluationState))})]
    received_at: Time
    model_sha256: str
    model_bytes: int
    events: int
    events_done: Annotated[int, Meta(description="In tenths of all, while it runs.")] = 0
    code: Annotated[str | None, Meta(description="Why it failed.")] = None
    reason: Annotated[str | None, Meta(description="The same as text.")] = None
    checking_at: Time | None = None
    running_at: Time | None = None
    ended_at: Time | None = None
    n_params: int | None = None
    submission_id: Annotated[str | None, Meta(description="What became of it, when it is scored.")] = None
    again: Annotated[
        bool,
        Meta(description="Whether it runs that submission's model on other events: final, new or public."),
    ] = False
    public: Annotated[bool, Meta(description="Whether these are public, and never count.")] = False
    truth_version: str = ""
    price: Annotated[Credits, Meta(description="Credits that were charged for it.")] = Decimal(0)
    machine: Annotated[
        str | None, Meta(description="Where it runs or ran last; null for all but operators.")
    ] = None
    model_repo: str | None = None
    deduplicated: Annotated[
        bool, Meta(description="In the answer to a submission: whether the same model was sent before.")
    ] = False

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state in ("scored", "failed", "cancelled")


#: Results agree that are so many standard errors apart at most, or equal where they have none.
AGREE: Final = 3


class Reproduced(Record, frozen=True):
    """A result of a model on the events that count, and on others."""

    name: str
    value: float
    uncertainty: float | None
    again: float
    again_uncertainty: float | None

    @property
    def agrees(self) -> bool:
        """Whether both are within three standard errors."""
        error = hypot(self.uncertainty or 0, self.again_uncertainty or 0)
        return abs(self.value - self.again) <= AGREE * error


class Reproduction(Record, frozen=True):
    """A model of a submission, run again on public events; `results` when it is scored."""

    evaluation_id: str
    state: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(EvaluationState))})]
    received_at: Time
    truth_version: str
    dataset: str
    eval_events: EvalEvents
    results: tuple[Reproduced, ...] = ()
    agrees: Annotated[
        bool | None, Meta(description="Whether all are within three standard errors; null: not scored.")
    ] = None


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


class TaskStatus(Record, frozen=True):
    """A task that is installed, or listed, or both; ``reason`` is why it takes no submissions."""

    name: str
    title: str
    installed: bool
    listed: bool
    distribution: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    phase: Phase = None
    public_percent: PublicPercent = None
    reason: str | None = None
