"""The shapes of requests, all problems of which are reported at once; answers are records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
)

from collidium.api.answers import Page
from collidium.benchmarks.submissions.links import LONGEST_LINK
from collidium.contracts.identity import DOMAIN, USERNAME
from collidium.records.evaluations import EvaluationState

HubUsername = Annotated[str, StringConstraints(pattern=f"^{USERNAME.pattern}$", max_length=96)]

Organisation = Annotated[
    str, StringConstraints(pattern=f"^({USERNAME.pattern}|{DOMAIN.pattern})$", max_length=96)
]

#: What a person typed: PostgreSQL stores no null character.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", min_length=1, max_length=1000)]


def _in_reach(moment: datetime) -> datetime:
    if not 2000 <= moment.year < 2200:
        raise ValueError("not between the years 2000 and 2200")
    return moment.astimezone(UTC)


#: A date with a time zone, which arithmetic and databases can take.
Date = Annotated[AwareDatetime, AfterValidator(_in_reach)]


class Body(BaseModel):
    """Base of request bodies: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


def example(fields: dict[str, JsonValue], *, strict: bool = False) -> ConfigDict:
    """A model's configuration that adds an example of it to the OpenAPI document."""
    config = ConfigDict(json_schema_extra={"examples": [fields]})
    if strict:  # else what the base class has
        config["strict"] = True
    return config


class IdempotencyHeaders(BaseModel):
    """Headers of an order or an operator action."""

    idempotency_key: str | None = Field(
        None,
        alias="Idempotency-Key",
        description="1 to 128 visible ASCII characters: the same key again gives the first answer.",
    )


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


# -- tasks, submissions, leaderboards ------------------------------------------------------------------


class LeaderboardQuery(Page):
    """Query of a leaderboard."""

    model_config = ConfigDict(frozen=True)  # pages are kept by what was asked for

    pareto: bool = Field(False, description="Only the submissions on the Pareto front.")
    all: bool = Field(False, description="Every submission, and not the best of each participant alone.")
    hub_username: str | None = Field(
        None, max_length=96, description="Only the places of this account and its team."
    )
    model_repo: str | None = Field(
        None, max_length=200, description="Only the places of this hub model, NAMESPACE/NAME."
    )


class ResultsQuery(BaseModel):
    """Query of the results of a challenge."""

    model_config = ConfigDict(frozen=True)

    format: Literal["json", "csv"] = Field("json", description="As a list of places, or as a table.")
    all: bool = Field(False, description="Every submission, and not the best of each participant alone.")
    status: Literal["disqualified", "withdrawn"] | None = Field(
        None, description="Only the submissions that were disqualified, or withdrawn."
    )


class HistoryQuery(BaseModel):
    """Query of how a best came about."""

    model_config = ConfigDict(frozen=True)

    metric: str | None = Field(
        None, max_length=64, description="A metric of the task; the primary one if none."
    )
    limit: int = Field(1000, ge=1, le=1000, description="Most steps returned: the last ones.")


class ChallengeBody(Body):
    """What operators set of a challenge."""

    model_config = example({"title": "Jets for beginners", "closes_at": "2027-06-30T12:00:00+02:00"})

    title: str = Field("", pattern=r"^[^\x00-\x1f\x7f]*$", max_length=200, description="A name for people.")
    opens_at: Date | None = Field(None, description="With a time zone; null: from the beginning.")
    closes_at: Date | None = Field(None, description="With a time zone; null: never.")
    public_percent: int | None = Field(
        None, ge=1, le=99, description="Per cent of the events that count until it closes; the rest then."
    )
    submissions_per_day: int | None = Field(
        None, ge=1, le=10_000, description="Of a participant in a UTC day; null: as the platform has it."
    )
    final_submissions: int = Field(
        2, ge=1, le=100, description="How many of a participant final results are chosen from."
    )
    practice: bool = Field(False, description="Whether submissions are scored after closing, unranked.")
    rewarded: bool = Field(False, description="Whether new bests earn credits.")
    access: Literal["open", "members"] = Field("open", description="Who may submit.")
    organisation: Organisation | None = Field(
        None,
        description="An organisation of the hub that is admitted in addition to members, a group of single "
        "sign-on (`lab.sso`), or a domain of e-mail addresses that it has verified (`@cern.ch`).",
    )
    team_size: int = Field(0, ge=0, le=100, description="How many people a team may have; below 2: no teams.")
    teams_frozen_at: Date | None = Field(
        None, description="With a time zone: from when on teams stay as they are; null: from closing on."
    )
    rules: str = Field("", pattern=r"^[^\x00]*$", max_length=50_000, description="Markdown.")
    announcement: Text | None = Field(None, description="Markdown; the latest is shown first.")


class NewChallengeBody(ChallengeBody):
    """A new challenge."""

    model_config = example({"name": "jets-2027", "task": "jets", "public_percent": 30})

    name: str = Field(max_length=64, description="Words of a-z and 0-9, joined by hyphens.")
    task: str = Field(max_length=64, description="A task that is installed and has truth.")
    truth_version: str | None = Field(
        None,
        pattern=r"^[^\x00]*$",
        max_length=64,
        description="Of the task; null: that of the task's own challenge.",
    )


class CorrectionBody(Body):
    """A correction of an announcement."""

    model_config = example({"at": "2027-06-01T08:00:00.123456Z", "text": "The room is B 12."})

    at: Date = Field(description="Which: when it was announced.")
    text: Text | None = Field(description="Markdown; null: it is withdrawn.")


class OpenQuery(BaseModel):
    """Until when a challenge is open."""

    closes_at: Date | None = Field(None, description="With a time zone; none: until it is closed.")


class RefreshBody(Body):
    """New hidden events."""

    model_config = example({"truth_version": "5f0c2b6a91d3"}, strict=True)

    truth_version: str = Field(
        max_length=64, pattern=r"^[^\x00]*$", description="Of a truth imported with inputs of models."
    )


class DissolveBody(Body):
    """A team that is taken apart."""

    model_config = example({"name": "Überflieger"}, strict=True)

    name: str = Field(max_length=64, pattern=r"^[^\x00]*$", description="As the leaderboard has it.")


class TeamBody(Body):
    """A new team."""

    model_config = example({"name": "Überflieger"}, strict=True)

    name: str = Field(max_length=64, description="Shown on the leaderboard; in any script.")


class InvitationBody(Body):
    """Whom an invitation admits."""

    model_config = example({"uses": 30, "expires_at": "2027-06-30T12:00:00+02:00"})

    uses: int = Field(1, ge=1, le=10_000, strict=True, description="How many accounts.")
    expires_at: Date | None = Field(None, description="With a time zone; null: in 14 days.")


class TeamQuery(BaseModel):
    """Query of how an account takes part."""

    invitation: str | None = Field(None, max_length=200, description="A code: to which team it admits.")


class JoinBody(Body):
    """An invitation to use."""

    model_config = example({"code": "collidium_invitation_..."}, strict=True)

    code: str = Field(max_length=200)


class MembersBody(Body):
    """Accounts to add to the members of a challenge."""

    model_config = example({"hub_usernames": ["alice", "bob"]}, strict=True)

    hub_usernames: list[str] = Field(
        min_length=1, max_length=500, description="They need not have signed in yet."
    )


class MySubmissionsQuery(Page):
    """Which of an account's submissions are listed."""

    task: str | None = Field(None, max_length=64, description="Only those to this task, or challenge.")
    challenge: str | None = Field(None, max_length=64, description="Only those to this challenge.")


class ComparisonQuery(BaseModel):
    """What a submission is compared with."""

    other: str = Field(max_length=64, description="The id of the other submission.")


class SubmitQuery(BaseModel):
    """Query of a submission."""

    model_repo: str | None = Field(None, max_length=200, description="Hub model repository, NAMESPACE/NAME.")


class EvaluationsQuery(Page):
    """Which evaluations of models are listed."""

    state: EvaluationState | None = Field(None, description="Only those in this state.")


class AllEvaluationsQuery(EvaluationsQuery):
    """Which of everybody's evaluations are listed."""

    user: str | None = Field(None, max_length=96, description="Only those of this account.")


class UploadHeaders(BaseModel):
    """Headers that begin an upload in several requests."""

    upload_complete: Literal["?0"] = Field(description="The file follows in other requests.")
    upload_length: int = Field(ge=1, le=2**53, description="Bytes of the file.")
    repr_digest: str = Field(
        pattern="^sha-256=:[A-Za-z0-9+/]{43}=:$", description="The file's checksum, RFC 9530."
    )


class AppendHeaders(BaseModel):
    """Headers of a request that appends to an upload."""

    upload_complete: Literal["?0", "?1"] = Field(description="`?1`: the file ends with this request.")
    upload_offset: int = Field(ge=0, le=2**53, description="Bytes that came before.")


class FromHubBody(Body):
    """Predictions in a dataset repository of the hub."""

    model_config = example({"source": "alice/predictions:tracking.parquet@main"}, strict=True)

    source: str = Field(max_length=500, description="NAMESPACE/NAME:PATH@COMMIT; or a branch or tag.")
    model_repo: str | None = Field(None, max_length=200, description="Hub model repository, NAMESPACE/NAME.")


class LinksBody(Body):
    """Links of a submission; what is left out stays as it is, null removes it."""

    model_config = example(
        {"model_repo": "alice/helix-fitter", "code_url": "https://code.example.org/helix"}, strict=True
    )

    model_repo: str | None = Field(None, max_length=200, description="Hub model repository, NAMESPACE/NAME.")
    code_url: str | None = Field(None, max_length=LONGEST_LINK, description="HTTPS address of the code.")
    paper_url: str | None = Field(None, max_length=LONGEST_LINK, description="HTTPS address of the paper.")
    final: bool = Field(False, description="Whether it is chosen for the final results of its challenge.")


class DisqualifyBody(Body):
    """Why a submission is disqualified."""

    model_config = example({"reason": "trained on the evaluation events"}, strict=True)

    reason: Text = Field(description="Everybody sees it.")
    take_back: bool = Field(False, description="Take what it earned, down to a balance of zero.")


class RescoreBody(Body):
    """How the submissions to a challenge are scored again."""

    model_config = example({"public_percent": 30, "apply": True}, strict=True)

    public_percent: int | None = Field(
        None,
        ge=1,
        le=99,
        description="Per cent of the events that are the public part from now on; null: as it is.",
    )
    apply: bool = Field(False, description="Apply the new scores; else only find what would change.")


# -- datasets, events, models --------------------------------------------------------------------------


_REPO = Field(None, max_length=200, description="Dataset repository, NAMESPACE/NAME; `sample`: the built-in.")


class DatasetsQuery(Page):
    """Query of the datasets."""

    repo: str | None = _REPO


class EventQuery(BaseModel):
    """Which event, and how it is sent."""

    repo: str | None = _REPO
    tables: str | None = Field(None, max_length=200, description="Tables, separated by commas; default: all.")
    revision: str = Field("main", min_length=1, max_length=200, description="Branch, tag or commit.")
    format: Literal["arrow", "phoenix"] = Field(
        "arrow", description="`arrow`: IPC streams, one for each table; `phoenix`: JSON for that display."
    )


#: Part of a name, or a tag: the hub is asked for it.
_Wanted = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=200)]


class ModelsQuery(Page):
    """Query of the models."""

    search: _Wanted = Field("", description="Part of the repository's name.")
    tag: _Wanted = Field("", description="A tag that they have.")
    task: str = Field("", pattern=r"^([a-z][a-z0-9_]{0,63})?$", description="A task that they are for.")
