"""Shapes of the operators' reports, and of what they ask for."""

from __future__ import annotations

from pydantic import BaseModel, Field

from collidium.api.schemas.base import Answer, Credits


class UserUsageModel(Answer):
    """What one account ordered this month."""

    hub_username: str
    node_hours: Credits
    requests: int


class UsageModel(Answer):
    """This month (UTC) as a whole, and the accounts with most node-hours, most first."""

    month: str
    total_node_hours: Credits
    total_requests: int
    users: list[UserUsageModel]


class ChannelUsageModel(Answer):
    """What was ordered of one channel in a month."""

    channel: str
    requests: int
    node_hours: Credits


class DayUsageModel(Answer):
    """What was ordered on one day (UTC)."""

    date: str
    node_hours: Credits
    requests: int


class FailuresModel(Answer):
    """How requests ended this month; `failure_rate` in percent of those that ended."""

    month: str
    failure_rate: float
    failed: int
    finished: int


class UsageQuery(BaseModel):
    """How much of a usage report."""

    limit: int = Field(50, ge=1, le=1000, description="Most users returned.")


class MonthQuery(BaseModel):
    """Which month."""

    month: str | None = Field(None, description="YYYY-MM in UTC; this month without it.", max_length=20)


class DaysQuery(BaseModel):
    """How far back."""

    days: int = Field(30, ge=1, le=3660, description="Days reported, today included.")
