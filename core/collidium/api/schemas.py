"""Bodies and queries of the API. All problems of an input are reported at once."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
)

from collidium.accounts.idempotency import KEY
from collidium.api.answers import PageQuery
from collidium.contracts.identity import USERNAME
from collidium.outbox import HTTPS
from collidium.records.challenge_settings import PUBLIC_PERCENT
from collidium.records.evaluations import EvaluationState
from collidium.submissions import submit, teams, uploads

HubUsername = Annotated[str, StringConstraints(pattern=f"^{USERNAME.pattern}$", max_length=96)]

#: PostgreSQL cannot store null characters.
NO_NULL: Final = r"^[^\x00]*$"

#: Free text.
Text = Annotated[str, StringConstraints(pattern=NO_NULL, min_length=1, max_length=1000)]


def _in_reach(moment: datetime) -> datetime:
    if not 2000 <= moment.year < 2200:
        raise ValueError("not between the years 2000 and 2200")
    return moment.astimezone(UTC)


#: A time with time zone, in a range that arithmetic and databases support.
Date = Annotated[AwareDatetime, AfterValidator(_in_reach)]


def written_as(pattern: re.Pattern[str]) -> dict[str, JsonValue]:
    """Return what the OpenAPI document has of a pattern that the domain checks, with all other problems."""
    return {"pattern": f"^({pattern.pattern})$"}


class Body(BaseModel):
    """Base of request bodies; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


def example(fields: dict[str, JsonValue], *, strict: bool = False) -> ConfigDict:
    """Return a model configuration with an example for the OpenAPI document."""
    config = ConfigDict(json_schema_extra={"examples": [fields]})
    if strict:  # otherwise inherited
        config["strict"] = True
    return config


class IdempotencyHeaders(BaseModel):
    """Headers of an order or an operator action."""

    idempotency_key: str | None = Field(
        None,
        alias="Idempotency-Key",
        description="1 to 128 visible ASCII characters. Repeats with the same key get the first answer.",
        json_schema_extra=written_as(KEY),
    )


class FieldProblem(BaseModel):
    """One problem of the input."""

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


class LeaderboardQuery(PageQuery):
    """Query of a leaderboard."""

    model_config = ConfigDict(frozen=True)  # cached pages are keyed by their query

    pareto: bool = Field(False, description="Only the submissions on the Pareto front.")
    all: bool = Field(False, description="Every submission instead of the best of each participant.")
    hub_username: str | None = Field(
        None, max_length=96, description="Only places of this account and its team."
    )
    model_repo: str | None = Field(
        None, max_length=200, description="Only places of this hub model, NAMESPACE/NAME."
    )


class ResultsQuery(BaseModel):
    """Query of the results of a challenge."""

    model_config = ConfigDict(frozen=True)

    format: Literal["json", "csv"] = Field("json", description="A list of places, or a table.")
    all: bool = Field(False, description="Every submission instead of the best of each participant.")
    status: Literal["disqualified", "withdrawn"] | None = Field(
        None, description="Only submissions that are disqualified, or withdrawn."
    )


class HistoryQuery(BaseModel):
    """Query of a history of bests."""

    model_config = ConfigDict(frozen=True)

    metric: str | None = Field(
        None, max_length=64, description="A metric of the task; by default the primary one."
    )
    limit: int = Field(1000, ge=1, le=1000, description="Maximum number of steps: the latest ones.")


class CorrectionBody(Body):
    """A correction of an announcement."""

    model_config = example({"at": "2027-06-01T08:00:00.123456Z", "text": "The room is B 12."})

    at: Date = Field(description="Time of the announcement.")
    text: Text | None = Field(description="Markdown; null withdraws it.")


class OpenQuery(BaseModel):
    """Deadline of a challenge that is opened."""

    closes_at: Date | None = Field(None, description="With a time zone; by default no deadline.")


class RefreshBody(Body):
    """New hidden events."""

    model_config = example({"truth_version": "5f0c2b6a91d3"}, strict=True)

    truth_version: str = Field(
        max_length=64, pattern=NO_NULL, description="A truth that was imported with inputs of models."
    )


class DissolveBody(Body):
    """A team to dissolve."""

    model_config = example({"name": "Überflieger"}, strict=True)

    name: str = Field(max_length=64, pattern=NO_NULL, description="As on the leaderboard.")


class TeamBody(Body):
    """A new team."""

    model_config = example({"name": "Überflieger"}, strict=True)

    name: str = Field(
        max_length=64,
        description="Shown on the leaderboard; in any script, without invisible characters.",
        json_schema_extra={"minLength": 1, **written_as(teams.NAME)},
    )


class InvitationBody(Body):
    """A new invitation."""

    model_config = example({"uses": 30, "expires_at": "2027-06-30T12:00:00+02:00"})

    uses: int = Field(1, ge=1, le=10_000, strict=True, description="Number of accounts.")
    expires_at: Date | None = Field(None, description="With a time zone; null: in 14 days.")


class TeamQuery(BaseModel):
    """Query of an account's participation."""

    invitation: str | None = Field(
        None, max_length=200, description="Code of an invitation, to return its team."
    )


class JoinBody(Body):
    """An invitation to use."""

    model_config = example({"code": "collidium_invitation_..."}, strict=True)

    code: str = Field(max_length=200)


class MembersBody(Body):
    """Accounts to add to the members of a challenge."""

    model_config = example({"hub_usernames": ["alice", "bob"]}, strict=True)

    hub_usernames: list[Annotated[str, Field(json_schema_extra=written_as(USERNAME))]] = Field(
        min_length=1, max_length=500, description="They need not have signed in yet."
    )


class MySubmissionsQuery(PageQuery):
    """Filters of a list of an account's submissions."""

    task: str | None = Field(None, max_length=64, description="Only submissions to this task or challenge.")
    challenge: str | None = Field(None, max_length=64, description="Only submissions to this challenge.")


class ComparisonQuery(BaseModel):
    """The submission to compare with."""

    other: str = Field(max_length=64, description="The id of the other submission.")


_MODEL_REPO = Field(
    None,
    max_length=200,
    description="Hub model repository, NAMESPACE/NAME.",
    json_schema_extra=written_as(submit.MODEL_REPO),
)


class SubmitQuery(BaseModel):
    """Query of a submission."""

    model_repo: str | None = Field(
        None,
        max_length=200,
        description="Hub model repository, NAMESPACE/NAME; empty: none.",
        json_schema_extra=written_as(re.compile(f"({submit.MODEL_REPO.pattern})?")),
    )


class EvaluationsQuery(PageQuery):
    """Filters of a list of evaluations."""

    state: EvaluationState | None = Field(None, description="Only evaluations in this state.")


class AllEvaluationsQuery(EvaluationsQuery):
    """Filters of a list of evaluations of all accounts."""

    user: str | None = Field(None, max_length=96, description="Only evaluations of this account.")


class UploadHeaders(BaseModel):
    """Headers that start a resumable upload."""

    upload_complete: Literal["?0"] = Field(description="The file follows in further requests.")
    upload_length: int = Field(ge=1, le=2**53, description="Size of the file in bytes.")
    repr_digest: str = Field(
        pattern="^sha-256=:[A-Za-z0-9+/]{43}=:$", description="The file's checksum, RFC 9530."
    )


class AppendHeaders(BaseModel):
    """Headers of a request that appends to an upload."""

    upload_complete: Literal["?0", "?1"] = Field(description="`?1`: this request completes the file.")
    upload_offset: int = Field(ge=0, le=2**53, description="Number of bytes before this request.")


class FromHubBody(Body):
    """Predictions in a dataset repository of the hub."""

    model_config = example({"source": "alice/predictions:tracking.parquet@main"}, strict=True)

    source: str = Field(
        max_length=500,
        description="NAMESPACE/NAME:PATH@COMMIT, or a branch or tag instead of the commit.",
        json_schema_extra=written_as(uploads.SOURCE),
    )
    model_repo: str | None = _MODEL_REPO


class LinksBody(Body):
    """Links of a submission; omitted ones stay as they are, null removes one."""

    model_config = example(
        {"model_repo": "alice/helix-fitter", "code_url": "https://code.example.org/helix"}, strict=True
    )

    model_repo: str | None = _MODEL_REPO
    code_url: str | None = Field(
        None,
        max_length=submit.LONGEST_LINK,
        description="HTTPS address of the code.",
        json_schema_extra=written_as(HTTPS),
    )
    paper_url: str | None = Field(
        None,
        max_length=submit.LONGEST_LINK,
        description="HTTPS address of the paper.",
        json_schema_extra=written_as(HTTPS),
    )
    final: bool = Field(
        False, description="Whether it is a candidate for the final results of its challenge."
    )


class DisqualifyBody(Body):
    """Reason of a disqualification."""

    model_config = example({"reason": "trained on the evaluation events"}, strict=True)

    reason: Text = Field(description="Shown to everyone.")
    take_back: bool = Field(False, description="Take back what it earned, down to a balance of zero.")


class LeaveOutBody(Body):
    """Why a submission gets no new scores."""

    model_config = example({"reason": "its file was lost with a disk"}, strict=True)

    reason: Text = Field(description="For the audit log, and with the submission.")


class RescoreBody(Body):
    """Options of a rescoring."""

    model_config = example({"public_percent": 30, "apply": True}, strict=True)

    public_percent: int | None = Field(
        None,
        ge=PUBLIC_PERCENT.minimum,
        le=PUBLIC_PERCENT.maximum,
        description="Percentage of the events that are public from now on; null: unchanged.",
    )
    apply: bool = Field(False, description="Apply the new scores; by default only report what would change.")


# -- datasets, events, models --------------------------------------------------------------------------


_REPO = Field(
    None, max_length=200, description="Dataset repository, NAMESPACE/NAME; `sample`: the built-in one."
)


class DatasetsQuery(PageQuery):
    """Query of the datasets."""

    repo: str | None = _REPO


class EventQuery(BaseModel):
    """Selection and format of an event."""

    repo: str | None = _REPO
    tables: str | None = Field(
        None, max_length=200, description="Tables, separated by commas; by default all."
    )
    revision: str = Field("main", min_length=1, max_length=200, description="Branch, tag or commit.")
    format: Literal["arrow", "phoenix"] = Field(
        "arrow",
        description="`arrow`: one IPC stream per table; `phoenix`: JSON for the Phoenix event display.",
    )


#: Part of a name, or a tag, in a query to the hub.
_Wanted = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=200)]


class ModelsQuery(PageQuery):
    """Query of the models."""

    search: _Wanted = Field("", description="Part of the repository's name.")
    tag: _Wanted = Field("", description="Only models with this tag.")
    task: str = Field("", pattern=r"^([a-z][a-z0-9_]{0,63})?$", description="Only models for this task.")
