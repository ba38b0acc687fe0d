"""Datasets that may be looked at."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from collidium.records.base import Record, Time


class DatasetEntry(Record, frozen=True):
    """A config of a dataset; null: its files do not tell."""

    repo: Annotated[
        str, Meta(description="`namespace/name` on the hub; `sample`: it comes with the platform.")
    ]
    config: str
    revision: Annotated[str, Meta(description="Commit of the repository; `local` for the sample.")]
    tables: tuple[str, ...]
    bytes: int
    events: int | None = None
    first_event: int | None = None
    last_event: int | None = None
    updated_at: Time | None = None
    sample: bool = False
    license: str | None = None
    source: str | None = None
