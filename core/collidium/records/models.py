"""Models on the hub."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from collidium.records.base import Record, Time


class HubModel(Record, frozen=True):
    """A model on the hub, as its owners describe it; null: not told."""

    model_repo: Annotated[str, Meta(description="`namespace/name` on the hub.")]
    author: str
    url: Annotated[str, Meta(description="Its page on the hub.")]
    tags: Annotated[
        tuple[str, ...], Meta(description="Its tags on the hub, without those of the platform.")
    ] = ()
    tasks: Annotated[tuple[str, ...], Meta(description="Benchmark tasks that its owners say it is for.")] = ()
    updated_at: Time | None = None
    description: str | None = None
    library: str | None = None
    likes: int | None = None
    downloads: int | None = None
