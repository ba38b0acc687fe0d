"""What is asked of datasets and of single events."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from collidium.api.answers import Page

_REPO = Field(None, max_length=200, description="Dataset repository, NAMESPACE/NAME; `sample`: the built-in.")


class DatasetsQuery(Page):
    """Query of the datasets."""

    repo: str | None = _REPO


class EventQuery(BaseModel):
    """Which event, and how it is sent."""

    repo: str | None = _REPO
    tables: str | None = Field(None, max_length=200, description="Tables, separated by commas; default: all.")
    revision: str = Field("main", min_length=1, max_length=200, description="Branch, tag or commit.")
    format: Literal["arrow", "phoenix"] = Field(
        "arrow", description="`arrow`: IPC streams, one for each table; `phoenix`: JSON for that display."
    )
