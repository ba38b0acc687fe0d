"""A single event as it was sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


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
