"""Shapes of what operators ask."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from collidium.accounts import Sort
from collidium.api.answers import Page
from collidium.api.schemas.base import Amount, Body, HubUsername, Text


class GrantBody(Body):
    """A grant or, with a negative delta, a deduction."""

    hub_username: HubUsername
    delta: Amount = Field(description="Credits, to three decimal places.")
    reason: Text = Field(description="Kept as the entry's note.")


class BanBody(Body):
    """Ban (true) or unban (false) an account."""

    model_config = ConfigDict(extra="forbid", strict=True)

    hub_username: HubUsername
    banned: bool
    note: Text | None = Field(None, description="Kept in the audit log.")


class FreezeQuery(BaseModel):
    """Whether to freeze."""

    frozen: bool
    note: Text | None = Field(None, description="What for; operators see it while submissions are frozen.")


class AccountsQuery(Page):
    """Which accounts are listed, and in what order."""

    search: str = Field("", max_length=96, description="Only names that contain this, in any case.")
    banned: bool | None = Field(None, description="Only accounts that are banned (true), or that are not.")
    sort: Sort = Field(Sort.NEWEST, description="newest, name, or credits: most first.")
