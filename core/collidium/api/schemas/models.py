"""Shapes of models on the hub."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from collidium.api.answers import Page
from collidium.api.schemas.base import Answer

#: Part of a name, or a tag: the hub is asked for it.
_Wanted = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=200)]


class HubModelModel(Answer):
    """A model on the hub, as its owners describe it; null: not told."""

    model_repo: str = Field(description="`namespace/name` on the hub.")
    author: str
    updated_at: datetime | None
    tags: list[str] = Field(description="Its tags on the hub, without those of the platform.")
    tasks: list[str] = Field(description="Benchmark tasks that its owners say it is for.")
    description: str | None
    library: str | None
    likes: int | None
    downloads: int | None
    url: str = Field(description="Its page on the hub.")


class ModelsQuery(Page):
    """Query of the models."""

    search: _Wanted = Field("", description="Part of the repository's name.")
    tag: _Wanted = Field("", description="A tag that they have.")
    task: str = Field("", pattern=r"^([a-z][a-z0-9_]{0,63})?$", description="A task that they are for.")
