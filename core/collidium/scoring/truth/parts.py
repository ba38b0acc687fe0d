"""Public and final parts of a truth.

Until a challenge closes, its leaderboard may count a public part of the events and hold back the final part.
Each part is a version of its own, which shares the files of the whole and counts some groups of its events,
so that scores, bests and leaderboards of the parts are never mixed.
"""

from __future__ import annotations

import re
from random import Random
from typing import Final, Literal, Self

from collidium.contracts.task import EventRange
from collidium.scoring.uncertainty import groups_of

_PART: Final = re.compile(r"([0-9a-f]+)-(public|final)([0-9]{1,2})")


class ScoredTruth(str):
    """A version of truth that scores are of: a whole truth, or its public or final part.

    It is its text as well, as members of ``StrEnum`` are: databases, addresses, records and exports have it
    as it stands. Nothing else makes or parses that text.

    >>> ScoredTruth("0a1b-public30").held_back
    '0a1b-final30'
    """

    __slots__ = ("_whole", "kind", "public_percent")

    _whole: str
    #: None: the whole truth.
    kind: Literal["public", "final"] | None
    #: Percentage of the events that is public; None for the whole truth.
    public_percent: int | None

    def __new__(cls, text: str) -> Self:
        """Parse a text; any that does not name a part is that of a whole truth."""
        truth = super().__new__(cls, text)
        match = _PART.fullmatch(text)
        truth._whole = text if match is None else match[1]
        truth.kind = None if match is None else "public" if match[2] == "public" else "final"
        truth.public_percent = None if match is None else int(match[3])
        return truth

    @property
    def whole(self) -> ScoredTruth:
        """The truth of which it is a part, or which it is."""
        return self if self.kind is None else ScoredTruth(self._whole)

    def part(self, kind: Literal["public", "final"], public_percent: int) -> ScoredTruth:
        """Return a part of this truth, or of the one of which it is a part."""
        return ScoredTruth(f"{self._whole}-{kind}{public_percent}")

    def like(self, other: ScoredTruth) -> ScoredTruth:
        """Return the part of this truth that ``other`` is of its own."""
        if other.kind is None or other.public_percent is None:
            return self.whole
        return self.part(other.kind, other.public_percent)

    @property
    def is_public(self) -> bool:
        """Whether it is a public part, by which no credits are earned."""
        return self.kind == "public"

    @property
    def public(self) -> ScoredTruth | None:
        """The public part, if it is either; None for a whole truth."""
        return None if self.public_percent is None else self.part("public", self.public_percent)

    @property
    def final(self) -> ScoredTruth | None:
        """The final part, if it is either; None for a whole truth."""
        return None if self.public_percent is None else self.part("final", self.public_percent)

    @property
    def held_back(self) -> ScoredTruth | None:
        """The final part while the public one counts; None for all others."""
        return self.final if self.is_public else None

    def groups(self, count: int) -> frozenset[int]:
        """Return the numbers of its groups among ``count``; each part has at least one if there are two."""
        if self.public_percent is None:
            return frozenset(range(count))
        drawn = sorted(range(count), key=_keys(self._whole, count).__getitem__)
        public = min(max(round(count * self.public_percent / 100), 1), count - 1)
        return frozenset(drawn[:public] if self.is_public else drawn[public:])

    def events_of(self, events: EventRange) -> list[EventRange]:
        """Return those of the whole truth's ``events`` that count, as sorted disjoint ranges."""
        if self.kind is None:
            return [events]
        groups = groups_of(events)
        ranges: list[EventRange] = []
        for number in sorted(self.groups(len(groups))):
            group = groups[number]
            if ranges and ranges[-1].stop == group.start:
                group = EventRange(ranges.pop().start, group.stop)
            ranges.append(group)
        return ranges


def _keys(truth: str, count: int) -> list[float]:
    """A random number for each group, reproducible and the same for both parts."""
    random = Random(int(truth, 16)).random  # noqa: S311 -- nothing is gained by knowing which events are public
    return [random() for _ in range(count)]
