"""Shapes of what operators see of benchmarks."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from collidium.api.schemas.base import Answer
from collidium.api.schemas.benchmarks import MySubmissionsQuery
from collidium.benchmarks.tasks.tasklist import TaskStatus
from collidium.scoring.parts import Part


class TaskStatusModel(Answer):
    """A task that is installed, or listed, or both; `reason` is why it takes no submissions."""

    name: str
    title: str
    installed: bool
    listed: bool
    distribution: str | None
    scorer_version: str | None
    truth_version: str | None
    phase: Literal["public", "final"] | None = Field(
        description="Part of the events that counts now; null: all."
    )
    public_percent: int | None = Field(description="How much of the events is public, where they are split.")
    reason: str | None

    @classmethod
    def of(cls, status: TaskStatus) -> Self:
        """The shape of a status."""
        part = Part.of(status.truth_version)
        return cls(
            name=status.name,
            title=status.title,
            installed=status.installed,
            listed=status.listed,
            distribution=status.distribution,
            scorer_version=status.scorer_version,
            truth_version=status.truth_version,
            phase=part.kind if part else None,
            public_percent=part.public_percent if part else None,
            reason=status.reason,
        )


class SubmissionsQuery(MySubmissionsQuery):
    """Which submissions are listed."""

    user: str | None = Field(None, max_length=96, description="Only those of this account.")
    unverified: bool = Field(False, description="Only self-reported ones that nobody has verified.")
