"""Requests of operators."""

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

from collidium.accounts import Sort
from collidium.api.answers import Page
from collidium.api.schemas import Body, HubUsername, MySubmissionsQuery, Text, example
from collidium.operations import Scope


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    return value


#: Credits as they come in: a JSON number; text that looks like one is refused.
Amount = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]


class GrantBody(Body):
    """A grant or, with a negative delta, a deduction."""

    model_config = example({"hub_username": "alice", "delta": 25, "reason": "for the tutorial"})

    hub_username: HubUsername
    delta: Amount = Field(description="Credits, to three decimal places.")
    reason: Text = Field(description="Kept as the entry's note.")


class BanBody(Body):
    """Ban (true) or unban (false) an account."""

    model_config = example(
        {"hub_username": "mallory", "banned": True, "note": "orders in a loop"}, strict=True
    )

    hub_username: HubUsername
    banned: bool
    note: Text | None = Field(None, description="Kept in the audit log.")


class FreezeQuery(BaseModel):
    """Whether to freeze."""

    frozen: bool
    note: Text | None = Field(None, description="What for; operators see it while submissions are frozen.")


class OperatorBody(Body):
    """An operator to add."""

    model_config = example({"name": "anna", "scopes": ["accounts", "reports"]})

    name: str = Field(max_length=64, description="As in the audit log.")
    scopes: list[str] = Field(max_length=10, description=f"Some of: {', '.join(Scope)}.")
    challenge: str | None = Field(None, max_length=64, description="The challenge of an organiser.")


class AccountsQuery(Page):
    """Which accounts are listed, and in what order."""

    search: str = Field("", max_length=96, description="Only names that contain this, in any case.")
    banned: bool | None = Field(None, description="Only accounts that are banned (true), or that are not.")
    sort: Sort = Field(Sort.NEWEST, description="newest, name, or credits: most first.")


class SubmissionsQuery(MySubmissionsQuery):
    """Which submissions are listed."""

    user: str | None = Field(None, max_length=96, description="Only those of this account.")
    unverified: bool = Field(False, description="Only self-reported ones that no operator has verified.")


class ChallengeSubmissionsQuery(Page):
    """Which submissions to a challenge are listed."""

    user: str | None = Field(None, max_length=96, description="Only those of this account.")


class UsageQuery(BaseModel):
    """How much of a usage report."""

    limit: int = Field(50, ge=1, le=1000, description="Most users returned.")


class MonthQuery(BaseModel):
    """Which month."""

    month: str | None = Field(None, description="YYYY-MM in UTC; this month without it.", max_length=20)


class DaysQuery(BaseModel):
    """How far back."""

    days: int = Field(30, ge=1, le=3660, description="Days reported, today included.")


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
    """Which failures are refunded: those from ``from`` until before ``to``."""

    model_config = example({"from": "2026-11-21T09:00:00Z", "to": "2026-11-21T11:30:00Z"})

    begin: Time = Field(alias="from")
    end: Time = Field(alias="to", description="At most 31 days later.")
    apply: bool = Field(False, strict=True, description="Without it, nothing is paid: a preview.")
    digest: str | None = Field(None, max_length=64, description="To apply: that of the preview.")
    note: Text | None = Field(None, description="Kept as the entries' note, and in the audit log.")
