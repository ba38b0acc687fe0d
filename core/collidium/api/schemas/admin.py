"""Shapes of what operators ask."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from collidium.accounts import Sort
from collidium.api.answers import Page
from collidium.api.schemas.base import Amount, Body, HubUsername, Text, example


class GrantBody(Body):
    """A grant or, with a negative delta, a deduction."""

    model_config = example(hub_username="alice", delta=25, reason="for the tutorial")

    hub_username: HubUsername
    delta: Amount = Field(description="Credits, to three decimal places.")
    reason: Text = Field(description="Kept as the entry's note.")


class BanBody(Body):
    """Ban (true) or unban (false) an account."""

    model_config = ConfigDict(
        strict=True, **example(hub_username="mallory", banned=True, note="orders in a loop")
    )

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
