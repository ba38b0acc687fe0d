"""Shapes of models on the hub."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from collidium.api.answers import Page

#: Part of a name, or a tag: the hub is asked for it.
_Wanted = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=200)]


class ModelsQuery(Page):
    """Query of the models."""

    search: _Wanted = Field("", description="Part of the repository's name.")
    tag: _Wanted = Field("", description="A tag that they have.")
    task: str = Field("", pattern=r"^([a-z][a-z0-9_]{0,63})?$", description="A task that they are for.")
