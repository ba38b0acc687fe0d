"""What operators ask of benchmarks."""

from __future__ import annotations

from pydantic import Field

from collidium.api.schemas.benchmarks import MySubmissionsQuery


class SubmissionsQuery(MySubmissionsQuery):
    """Which submissions are listed."""

    user: str | None = Field(None, max_length=96, description="Only those of this account.")
    unverified: bool = Field(False, description="Only self-reported ones that nobody has verified.")
