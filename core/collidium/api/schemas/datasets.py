"""Shapes of datasets and of single events."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from collidium.api.answers import Page
from collidium.api.schemas.base import Answer

_REPO = Field(None, max_length=200, description="Dataset repository, NAMESPACE/NAME; `sample`: the built-in.")


class DatasetModel(Answer):
    """A config of a dataset; null: its files do not tell."""

    repo: str = Field(description="`namespace/name` on the hub; `sample`: it comes with the platform.")
    config: str
    revision: str = Field(description="Commit of the repository; `local` for the sample.")
    tables: list[str]
    events: int | None
    first_event: int | None
    last_event: int | None
    bytes: int
    updated_at: datetime | None
    sample: bool
    license: str | None
    source: str | None


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
