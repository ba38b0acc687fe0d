"""Participants of challenges, and the columns that have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from collidium.database import ValueField

_KINDS: Final = ("account", "team", "baseline")


@dataclass(frozen=True, order=True, slots=True)
class Participant:
    """Who has one rank in a challenge, and one quota a day: an account, a team, or a single baseline.

    Each file of a baseline is a participant of its own, so that all are on the leaderboard.
    """

    kind: Literal["account", "team", "baseline"]
    #: The id of the account or the team, or that with which the file of a baseline arrived.
    id: int | str

    @classmethod
    def account(cls, account_id: int) -> Participant:
        """Return the participant that an account without a team is."""
        return cls("account", account_id)

    @classmethod
    def team(cls, team_id: int) -> Participant:
        """Return the participant that a team is."""
        return cls("team", team_id)

    @classmethod
    def baseline(cls, arrival: str) -> Participant:
        """Return the participant that one file of a baseline is."""
        return cls("baseline", arrival)

    @property
    def team_id(self) -> int | None:
        """The id of the team; None for others."""
        return int(self.id) if self.kind == "team" else None

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"

    @classmethod
    def parse(cls, text: str) -> Participant:
        """Return the participant of a database's text; raises ValueError for any other.

        >>> Participant.parse("team:3")
        Participant(kind='team', id=3)
        """
        name, _, key = text.partition(":")
        for kind in _KINDS:
            if kind == name:
                return cls(kind, key if kind == "baseline" else int(key))
        raise ValueError(f"{text!r} is no participant")


class ParticipantField(ValueField[Participant]):
    """A column with a participant. Leaderboards are partitioned by it."""

    max_length = 48

    def parse(self, text: str) -> Participant:
        """Return the participant of a text."""
        return Participant.parse(text)
