"""Bodies and queries of the operators' API."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    WithJsonSchema,
)

from collidium import challenges
from collidium.accounts import Sort
from collidium.accounts.ledger import LARGEST
from collidium.api.answers import PageQuery
from collidium.api.declaration import declared_model
from collidium.api.schemas import (
    NO_NULL,
    Body,
    Date,
    HubUsername,
    MySubmissionsQuery,
    Text,
    example,
    written_as,
)
from collidium.operations import Scope
from collidium.operations.operators import CHALLENGE, NAME
from collidium.records.challenge_settings import CHALLENGE_SETTINGS, PUBLIC_PERCENT
from collidium.simulations.reports import MONTH


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    return value


#: Credits as a JSON number; numeric strings are rejected.
Amount = Annotated[
    Decimal,
    BeforeValidator(_number),
    WithJsonSchema(
        {"type": "number", "minimum": -int(LARGEST), "maximum": int(LARGEST), "not": {"const": 0}}
    ),
]


#: A name or a version that is looked up.
Name = Annotated[str, Field(pattern=NO_NULL, max_length=64)]


class GrantBody(Body):
    """A grant, or with a negative delta a deduction."""

    model_config = example({"hub_username": "alice", "delta": 25, "reason": "for the tutorial"})

    hub_username: HubUsername
    delta: Amount = Field(description="Credits, to three decimal places.")
    reason: Text = Field(description="Note of the ledger entry.")


class BanBody(Body):
    """Ban (true) or unban (false) an account."""

    model_config = example(
        {"hub_username": "mallory", "banned": True, "note": "orders in a loop"}, strict=True
    )

    hub_username: HubUsername
    banned: bool
    note: Text | None = Field(None, description="For the audit log.")


class FreezeQuery(BaseModel):
    """The new state of the freeze."""

    frozen: bool
    note: Text | None = Field(None, description="Reason, which operators see while requests are frozen.")


class OperatorBody(Body):
    """A new operator."""

    model_config = example({"name": "anna", "scopes": ["accounts", "reports"]})

    name: str = Field(max_length=64, description="As in the audit log.", json_schema_extra=written_as(NAME))
    scopes: list[Annotated[str, Field(json_schema_extra={"enum": list(Scope)})]] = Field(
        max_length=10, description=f"Some of: {', '.join(Scope)}.", json_schema_extra={"minItems": 1}
    )
    challenge: str | None = Field(
        None,
        max_length=64,
        description="The challenge of an organiser.",
        json_schema_extra=written_as(CHALLENGE),
    )


class AccountsQuery(PageQuery):
    """Filters and order of a list of accounts."""

    search: str = Field("", max_length=96, description="Part of the names, case-insensitive.")
    banned: bool | None = Field(None, description="Only banned accounts (true), or only others (false).")
    sort: Sort = Field(Sort.NEWEST, description="newest, name, or credits (most first).")


class SubmissionsQuery(MySubmissionsQuery):
    """Filters of a list of submissions."""

    user: str | None = Field(None, max_length=96, description="Only submissions of this account.")
    unverified: bool = Field(False, description="Only self-reported submissions that are not verified.")


class SettingsBody(Body):
    """What bodies have in addition to the settings of a challenge."""

    model_config = example({"title": "Jets for beginners", "closes_at": "2027-06-30T12:00:00+02:00"})

    announcement: Text | None = Field(None, description="Markdown; the latest announcement is shown first.")


class NewSettingsBody(SettingsBody):
    """What a new challenge has in addition to its settings."""

    model_config = example({"name": "jets-2027", "task": "jets", "public_percent": 30})

    name: str = Field(
        max_length=challenges.LONGEST_NAME,
        description="Two words or more of a-z and 0-9, joined by hyphens.",
        json_schema_extra=written_as(challenges.NAME),
    )
    task: str = Field(max_length=64, description="An installed task with truth.")
    truth_version: Name | None = Field(
        None, description="A truth of the task; null: that of the task's own challenge."
    )


ChallengeBody: Final = declared_model(
    "ChallengeBody", "Settings of a challenge.", SettingsBody, CHALLENGE_SETTINGS
)
NewChallengeBody: Final = declared_model(
    "NewChallengeBody", "A new challenge.", NewSettingsBody, CHALLENGE_SETTINGS
)


class SplitQuery(BaseModel):
    """A public part of the events of a challenge, or of a new one with the other fields."""

    public_percent: int = Field(
        ge=PUBLIC_PERCENT.minimum,
        le=PUBLIC_PERCENT.maximum,
        description="Percentage of the events that would count.",
    )
    task: Name | None = Field(None, description="The task of a new challenge.")
    truth_version: Name | None = Field(None, description="The truth of a new challenge.")
    closes_at: Date | None = Field(None, description="When it is going to close, with a time zone.")


class ChallengeSubmissionsQuery(PageQuery):
    """Filters of a list of submissions to a challenge."""

    user: str | None = Field(None, max_length=96, description="Only submissions of this account.")


class UsageQuery(BaseModel):
    """Length of a usage report."""

    limit: int = Field(50, ge=1, le=1000, description="Maximum number of users.")


class MonthQuery(BaseModel):
    """Month of a report."""

    month: str | None = Field(
        None,
        description="YYYY-MM in UTC; by default this month.",
        max_length=20,
        json_schema_extra=written_as(MONTH),
    )


class DaysQuery(BaseModel):
    """Number of days of a report."""

    days: int = Field(30, ge=1, le=3660, description="Number of days, including today.")


_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def _written(value: object) -> object:
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise ValueError("not a time as RFC 3339 writes it, such as 2026-11-21T09:00:00Z")
    return value


Time = Annotated[
    AwareDatetime, BeforeValidator(_written), WithJsonSchema({"type": "string", "format": "date-time"})
]


class RefundsBody(Body):
    """Period of failures to refund: from ``from`` until before ``to``."""

    model_config = example({"from": "2026-11-21T09:00:00Z", "to": "2026-11-21T11:30:00Z"})

    begin: Time = Field(alias="from")
    end: Time = Field(alias="to", description="At most 31 days later.")
    apply: bool = Field(
        False, strict=True, description="Make the refunds; by default they are only previewed."
    )
    digest: str | None = Field(
        None, max_length=64, description="`digest` of the preview; required with `apply`."
    )
    note: Text | None = Field(None, description="Note of the ledger entries and the audit log.")
