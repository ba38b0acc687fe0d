"""Shape of what operators see at one look."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from collidium.api.schemas.base import Answer, Credits


class FollowerModel(Answer):
    """A process that follows requests, and when it last looked for work."""

    process: str
    looked_at: datetime


class SilentTask(Answer):
    """A listed task that takes no submissions, and why."""

    name: str
    reason: str


class OverviewModel(Answer):
    """The platform at one look; days and months of UTC; `failure_rate` in percent of this month's ends."""

    version: str
    at: datetime = Field(description="The server's clock.")
    run_mode: Literal["mock", "real"]
    runner: str
    submissions_frozen: bool
    frozen_at: datetime | None
    frozen_by: str | None
    frozen_note: str | None
    queued: int
    running: int
    oldest_queued_at: datetime | None
    month: str
    node_hours_today: Credits
    requests_today: int
    node_hours_month: Credits
    requests_month: int
    monthly_node_hours: Credits = Field(description="What all requests of a month may take.")
    failed: int
    finished: int
    failure_rate: float
    followers: list[FollowerModel] = Field(
        description="The latest first; one that was killed is named for a day. None: nobody follows requests."
    )
    webhooks_pending: int
    plugins_failed: list[str]
    tasks_silent: list[SilentTask]
