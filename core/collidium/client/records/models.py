"""Models on the hub."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model that its owners share on the hub; None: not told."""

    #: ``namespace/name``.
    model_repo: str
    author: str
    #: Its page on the hub.
    url: str
    tags: tuple[str, ...] = ()
    #: Benchmark tasks that its owners say it is for.
    tasks: tuple[str, ...] = ()
    updated_at: datetime | None = None
    description: str | None = None
    library: str | None = None
    likes: int | None = None
    downloads: int | None = None
