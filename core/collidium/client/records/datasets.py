"""Datasets that may be looked at, and single events of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A config of a dataset; None: its files do not tell."""

    #: ``namespace/name`` on the hub; ``sample``: it comes with the platform.
    repo: str
    config: str
    revision: str
    tables: tuple[str, ...]
    bytes: int
    events: int | None = None
    first_event: int | None = None
    last_event: int | None = None
    updated_at: datetime | None = None
    sample: bool = False
    license: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class EventData:
    """An event as it was sent."""

    content: bytes = field(repr=False)
    media_type: str

    def tables(self) -> dict[str, pa.Table]:
        """Its tables by their names, a row for each hit, cell, particle, track or jet.

        The metadata of each table's schema says what it is of. Raises ValueError for an event that was asked
        for in another format.
        """
        # It needs pyarrow, which whoever passes the bytes on does not.
        from collidium.event_display import tables as stream

        return stream.read(self.content)
