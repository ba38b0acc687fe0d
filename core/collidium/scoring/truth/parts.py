"""Public and final parts of a truth.

Until a challenge closes, its leaderboard may count a public part of the events and hold back the final part.
Each part is a version of its own, which shares the files of the whole and counts some groups of its events,
so that scores, bests and leaderboards of the parts are never mixed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Literal

from collidium.contracts.task import EventRange
from collidium.scoring.uncertainty import groups_of

_PART: Final = re.compile(r"([0-9a-f]+)-(public|final)([0-9]{1,2})")


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the groups of events of a truth."""

    #: Version of the whole truth.
    truth: str
    kind: Literal["public", "final"]
    #: Percentage of the events that is public.
    public_percent: int

    @classmethod
    def of(cls, version: str | None) -> Part | None:
        """The part that a truth version names; None for a whole truth."""
        match = _PART.fullmatch(version or "")
        if match is None:
            return None
        return cls(match[1], "public" if match[2] == "public" else "final", int(match[3]))

    def __str__(self) -> str:
        return f"{self.truth}-{self.kind}{self.public_percent}"

    @property
    def final(self) -> Part:
        """The part that is held back while the public part counts."""
        return replace(self, kind="final")

    def groups(self, count: int) -> frozenset[int]:
        """The numbers of its groups among ``count``; each part has at least one if there are two."""
        drawn = sorted(range(count), key=_keys(self.truth, count).__getitem__)
        public = min(max(round(count * self.public_percent / 100), 1), count - 1)
        return frozenset(drawn[:public] if self.kind == "public" else drawn[public:])


def events_of(version: str, events: EventRange) -> list[EventRange]:
    """The events that count in this version of a truth about ``events``, as sorted disjoint ranges."""
    part = Part.of(version)
    if part is None:
        return [events]
    groups = groups_of(events)
    ranges: list[EventRange] = []
    for number in sorted(part.groups(len(groups))):
        group = groups[number]
        if ranges and ranges[-1].stop == group.start:
            group = EventRange(ranges.pop().start, group.stop)
        ranges.append(group)
    return ranges


def whole(version: str) -> str:
    """The version of the whole truth that a version is or is a part of."""
    part = Part.of(version)
    return version if part is None else part.truth


def is_public(version: str | None) -> bool:
    """Whether a truth version is a public part, by which no credits are earned."""
    part = Part.of(version)
    return part is not None and part.kind == "public"


def _keys(truth: str, count: int) -> list[float]:
    """A random number for each group, reproducible and the same for both parts."""
    random = Random(int(truth, 16)).random  # noqa: S311 -- nothing is gained by knowing which events are public
    return [random() for _ in range(count)]
