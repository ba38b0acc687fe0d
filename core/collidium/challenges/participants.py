"""Participants of challenges, and the columns that have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from tortoise import fields
from tortoise.models import Model

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


class ParticipantField(fields.Field[Participant]):
    """A column with a participant, whose text is made and parsed here alone.

    It is one column, as leaderboards are partitioned by it, and indexes and uniqueness compare it.
    """

    SQL_TYPE = "VARCHAR(48)"

    def to_db_value(self, value: Participant, instance: type[Model] | Model) -> str:
        """Return the text of a participant."""
        return str(value)

    def to_python_value(self, value: Any) -> Any:
        """Return the participant of a text."""
        return Participant.parse(value) if isinstance(value, str) else value

    def describe(self, serializable: bool) -> dict[str, Any]:
        """Return the description by which migrations compare it: for them it is a column of text."""
        text = fields.CharField(max_length=48).describe(serializable)
        same = ("field_type", "constraints", "db_field_types")
        return super().describe(serializable) | {name: text[name] for name in same}
