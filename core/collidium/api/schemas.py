"""The shapes of requests and answers, as the OpenAPI document shows them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

from collidium.contracts.identity import USERNAME


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    return value


#: Credits leave as JSON numbers; three decimal places survive a float64 up to 10^12.
Credits = Annotated[Decimal, PlainSerializer(float, return_type=float), WithJsonSchema({"type": "number"})]

#: Credits as they come in: a JSON number; text that looks like one is refused.
Amount = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]

HubUsername = Annotated[str, StringConstraints(pattern=f"^{USERNAME.pattern}$", max_length=96)]


#: What a person typed: PostgreSQL stores no null character.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", min_length=1, max_length=1000)]


class Answer(BaseModel):
    """Base of answers, read from the domain's own records."""

    model_config = ConfigDict(from_attributes=True)


class Body(BaseModel):
    """Base of request bodies: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class FieldProblem(BaseModel):
    """One thing wrong with what was sent."""

    model_config = ConfigDict(extra="allow")

    detail: str
    field: str | None = None
    code: str | None = None
    column: str | None = None
    event_id: int | None = None
    count: int | None = None
    examples: list[dict[str, Any]] | None = None


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldProblem] | None = None


class Me(Answer):
    """The caller's account."""

    hub_username: str
    credits: Credits
    banned: bool
    created_at: datetime
    last_seen_at: datetime | None


class Transaction(Answer):
    """A ledger entry."""

    id: int
    delta: Credits
    reason: str
    note: str
    reference: str
    balance_after: Credits
    created_at: datetime


class Events(Answer):
    """A half-open range of event ids."""

    start: int
    stop: int


class ColumnModel(Answer):
    """A column of predictions."""

    name: str
    kind: Literal["integer", "float"]
    description: str


class MetricModel(Answer):
    """A metric of a task; ``floor`` is what a first best must beat."""

    name: str
    higher_is_better: bool
    description: str
    reward: Credits
    floor: float


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
    scorer_version: str
    truth_version: str | None
    accepts_submissions: bool


class Receipt(Answer):
    """The answer to a submission."""

    submission_id: str
    scores: dict[str, float]
    credits_earned: Credits
    deduplicated: bool
    warnings: list[str]
    rows: int
    sha256: str
    scorer_version: str
    truth_version: str


class Checked(Answer):
    """The answer to a dry run."""

    valid: Literal[True] = True
    rows: int
    warnings: list[str]


class SubmissionModel(Answer):
    """A submission, as everybody may see it."""

    submission_id: str
    task: str
    hub_username: str
    submitted_at: datetime
    scores: dict[str, float]
    credits_earned: Credits
    warnings: list[str]
    model_repo: str | None
    rows: int
    size_bytes: int
    sha256: str
    scorer_version: str
    truth_version: str


class Place(BaseModel):
    """A place on a leaderboard."""

    rank: int
    submission_id: str
    hub_username: str
    submitted_at: datetime
    scores: dict[str, float]
    credits_earned: Credits
    model_repo: str | None
    scorer_version: str
    truth_version: str


class SubmitQuery(BaseModel):
    """Query of a submission."""

    model_repo: str | None = Field(None, max_length=200, description="Hub model repository, NAMESPACE/NAME.")


class GrantBody(Body):
    """A grant or, with a negative delta, a deduction."""

    hub_username: HubUsername
    delta: Amount = Field(description="Credits, to three decimal places.")
    reason: Text = Field(description="Kept as the entry's note.")


class Granted(Answer):
    """What a grant did."""

    hub_username: str
    new_balance: Credits
    transaction_id: int


class BanBody(Body):
    """Ban (true) or unban (false) an account."""

    model_config = ConfigDict(extra="forbid", strict=True)

    hub_username: HubUsername
    banned: bool


class Banned(Answer):
    """Whether the account is banned now."""

    hub_username: str
    banned: bool


class FreezeQuery(BaseModel):
    """Whether to freeze."""

    frozen: bool


class Frozen(BaseModel):
    """Whether submissions of simulation requests are frozen now."""

    submissions_frozen: bool


class AuditModel(Answer):
    """A line of the audit log."""

    id: int
    at: datetime
    actor: str
    action: str
    target: str
    details: dict[str, Any]
    http_request_id: str


class Health(BaseModel):
    """The process runs."""

    status: Literal["ok"]
    version: str


class Readiness(BaseModel):
    """Whether the process can do its work, and what an operator should know."""

    status: Literal["ready", "not ready"]
    database: Literal["ok", "away"]
    submissions_frozen: bool | None
    plugins_failed: list[str]
