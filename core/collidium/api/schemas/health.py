"""Shapes of what the process tells of itself."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class Health(BaseModel):
    """The process runs."""

    status: Literal["ok"]
    version: str


class Readiness(BaseModel):
    """Whether the process can do its work, and what an operator should know."""

    status: Literal["ready", "not ready"]
    database: Literal["ok", "away"]
    submissions_frozen: bool | None
    plugins_failed: list[str]
