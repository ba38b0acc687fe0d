"""Where in a table an event lies, from few of the footers of its shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from collidium.event_display.outline import Outline
from collidium.event_display.shards import Shards

#: Of more shards in disorder nobody can be asked to wait for all footers.
MOST_SHARDS: Final = 256


@dataclass(frozen=True, slots=True)
class Place:
    """The row groups of a shard, one of which may have the event."""

    path: str
    groups: tuple[int, ...]


def find(shards: Shards, table: str, event_id: int) -> Place | None:
    """Where the event lies; None where no shard can have it.

    Shards mostly follow each other, so that few footers tell; where they do not, all of few shards are asked.
    Blocks; raises as ``shards`` do.
    """
    paths = shards.paths(table)
    path = _bisected(shards, paths, event_id)
    if path is None and len(paths) > MOST_SHARDS:
        return None
    for candidate in paths if path is None else [path]:
        if groups := shards.outline(candidate).holding(event_id):
            return Place(candidate, groups)
    return None


def told_range(shards: Shards, table: str) -> str:
    """Which events there are, in words. Blocks; raises as ``shards`` do."""
    paths = shards.paths(table)
    spans = [shards.outline(path).events for path in (paths if len(paths) <= MOST_SHARDS else ())]
    known = [span for span in spans if span is not None]
    if not known:
        return "which ones it has it does not tell"
    return f"there are {min(span.start for span in known)} to {max(span.stop for span in known) - 1}"


def _bisected(shards: Shards, paths: Sequence[str], event_id: int) -> str | None:
    """The shard that has the event among its own, if they rise with the shards."""
    first, stop = 0, len(paths)
    while first < stop:
        middle = (first + stop) // 2
        outline: Outline = shards.outline(paths[middle])
        if outline.events is None:
            return None
        if event_id < outline.events.start:
            stop = middle
        elif event_id >= outline.events.stop:
            first = middle + 1
        else:
            return paths[middle] if outline.holding(event_id) else None
    return None
