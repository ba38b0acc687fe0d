"""Queries of datasets, events and models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

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


#: Part of a name, or a tag: the hub is asked for it.
_Wanted = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=200)]


class ModelsQuery(Page):
    """Query of the models."""

    search: _Wanted = Field("", description="Part of the repository's name.")
    tag: _Wanted = Field("", description="A tag that they have.")
    task: str = Field("", pattern=r"^([a-z][a-z0-9_]{0,63})?$", description="A task that they are for.")
