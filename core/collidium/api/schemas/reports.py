"""What operators' reports are asked for."""

from __future__ import annotations

from pydantic import BaseModel, Field


class UsageQuery(BaseModel):
    """How much of a usage report."""

    limit: int = Field(50, ge=1, le=1000, description="Most users returned.")


class MonthQuery(BaseModel):
    """Which month."""

    month: str | None = Field(None, description="YYYY-MM in UTC; this month without it.", max_length=20)


class DaysQuery(BaseModel):
    """How far back."""

    days: int = Field(30, ge=1, le=3660, description="Days reported, today included.")
