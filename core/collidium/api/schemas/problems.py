"""Shapes of errors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class FieldProblem(BaseModel):
    """One thing wrong with what was sent."""

    model_config = ConfigDict(extra="allow")

    detail: str
    field: str | None = None
    code: str | None = None
    column: str | None = None
    event_id: int | None = None
    count: int | None = None
    examples: list[dict[str, Any]] | None = None


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldProblem] | None = None
