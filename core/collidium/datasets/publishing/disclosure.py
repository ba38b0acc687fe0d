"""Truth that a repository has published: its history keeps what any version of it had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from collidium.contracts.task import EventRange
from collidium.datasets.publishing.version import ConfigFiles
from collidium.errors import Conflict


def with_history(new: ConfigFiles, old: Mapping[str, ConfigFiles]) -> ConfigFiles:
    """The config with all events whose truth any version published.

    Raises Conflict where events are withheld whose truth was published before, and where truth would be
    published that was withheld before.
    """
    before = old.get(new.name)
    opened = [] if before is None else [EventRange.parse(events) for events in before.opened]
    withheld = None if new.withheld is None else EventRange.parse(new.withheld)
    if withheld is not None and any(withheld.overlaps(events) for events in opened):
        raise Conflict(
            f"the truth of events {withheld} of {new.name} cannot be withheld any more: a version of the "
            "repository shows it to everyone; publish under a new name"
        )
    if before is not None and before.withheld is not None:
        closed = EventRange.parse(before.withheld)
        if withheld is None or withheld.start > closed.start or withheld.stop < closed.stop:
            raise Conflict(
                f"the truth of events {closed} of {new.name}, withheld in the repository, would be "
                f"published: add --withhold-truth {closed}, or publish under a new name"
            )
    ranges = _merged([*opened, *_opened(new, withheld)])
    return replace(new, opened=[str(events) for events in ranges])


def _opened(config: ConfigFiles, withheld: EventRange | None) -> Sequence[EventRange]:
    """The events of the config that have their truth."""
    if not config.events:
        return ()
    first, stop = config.first_event, config.last_event + 1
    if withheld is None:
        return (EventRange(first, stop),)
    edges = ((first, withheld.start), (withheld.stop, stop))
    return [EventRange(a, b) for a, b in edges if a < b]


def _merged(ranges: Iterable[EventRange]) -> list[EventRange]:
    merged: list[EventRange] = []
    for events in sorted(ranges, key=lambda events: events.start):
        if merged and events.start <= merged[-1].stop:
            merged[-1] = EventRange(merged[-1].start, max(merged[-1].stop, events.stop))
        else:
            merged.append(events)
    return merged
