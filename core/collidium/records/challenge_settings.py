"""The settings of a challenge, each once: type, default, limits and wording.

A setting that is added here, and to the table of challenges under the same name, is taken by the API and the
commands, and shown with the challenge. Type checkers know it as an argument of the client when it is in
:class:`SettingOptions`, too. In help, the meaning of null follows ``null:``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, TypedDict

import msgspec
from msgspec import Meta

from collidium.contracts.identity import DOMAIN, USERNAME
from collidium.declaration import DeclaredField, declare, fields_of, values_of
from collidium.records.base import Time

_ORGANISATION: Final = f"^({USERNAME.pattern}|{DOMAIN.pattern})$"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeSetting(DeclaredField):
    """A setting of a challenge, as organisers and participants see it."""

    #: Of a text; invisible characters are rejected as well, unless it is a document.
    pattern: str = r"^[^\x00-\x1f\x7f]*$"
    #: Whether the headings of a challenge list it, on pages and in the console.
    is_in_heading: bool = False


def _setting(label: str, description: str, **more: Any) -> Meta:
    return declare(ChallengeSetting(label=label, help=description, **more))


#: Settings that each challenge has: only their defaults make them optional.
Title = Annotated[str, _setting("Title", "Display name.", longest=200)]
FinalSubmissions = Annotated[
    int,
    _setting(
        "Final submissions",
        "Number of a participant's submissions that the final results are chosen from.",
        option="--final",
        minimum=1,
        maximum=100,
    ),
]
Practice = Annotated[
    bool, _setting("Practice after closing", "Whether submissions after closing are scored, unranked.")
]
Rewarded = Annotated[
    bool, _setting("New bests earn credits", "Whether new bests earn credits.", option="--rewards")
]


class ChallengeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What organisers set of a challenge."""

    title: Title = ""
    opens_at: Annotated[
        Time | None,
        _setting(
            "Opens",
            "When it opens, such as 2027-06-01T08:00+02:00; null: open at once.",
            option="--opens",
            none="now",
            empty="from the start",
        ),
    ] = None
    closes_at: Annotated[
        Time | None,
        _setting(
            "Closes",
            "When it closes, with a time zone; null: by command.",
            option="--closes",
            empty="when it is closed",
        ),
    ] = None
    public_percent: Annotated[
        int | None,
        _setting(
            "Events",
            "Percentage of the events that count until it closes; then the others count.",
            option="--public",
            minimum=1,
            maximum=99,
            empty="all count",
        ),
    ] = None
    submissions_per_day: Annotated[
        int | None,
        _setting(
            "Submissions a day",
            "Submissions of a participant in a UTC day; null: the platform's setting.",
            option="--per-day",
            minimum=1,
            maximum=10_000,
        ),
    ] = None
    final_submissions: FinalSubmissions = 2
    practice: Practice = False
    rewarded: Rewarded = False
    access: Annotated[
        str,
        _setting(
            "Who may submit",
            "Who may submit: all accounts, or members and the organisation.",
            choices=("open", "members"),
        ),
    ] = "open"
    organisation: Annotated[
        str | None,
        _setting(
            "Organisation",
            "Admitted in addition to members: an organisation of the hub, a group of single sign-on "
            "(`lab.sso`), or an e-mail domain that it has verified (`@cern.ch`); null: none.",
            longest=96,
            pattern=_ORGANISATION,
            is_in_heading=True,
        ),
    ] = None
    team_size: Annotated[
        int,
        _setting("People in a team", "Maximum number of team members; below 2: no teams.", maximum=100),
    ] = 0
    teams_frozen_at: Annotated[
        Time | None,
        _setting(
            "Teams are fixed",
            "When teams become fixed, with a time zone; null: at closing.",
            option="--teams-until",
            empty="when it is closed",
        ),
    ] = None
    rules: Annotated[
        str,
        _setting(
            "Rules",
            "Rules in Markdown, shown on its page.",
            longest=50_000,
            pattern=r"^[^\x00]*$",
            is_document=True,
        ),
    ] = ""

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings by name, without the fields of a record that extends it."""
        return values_of(self, CHALLENGE_SETTINGS)


class SettingOptions(TypedDict, total=False):
    """The settings of a challenge as keyword arguments; dates have a time zone."""

    title: str
    opens_at: datetime | None
    closes_at: datetime | None
    public_percent: int | None
    submissions_per_day: int | None
    final_submissions: int
    practice: bool
    rewarded: bool
    access: str
    organisation: str | None
    team_size: int
    teams_frozen_at: datetime | None
    rules: str


#: The settings of a challenge.
CHALLENGE_SETTINGS: Final = fields_of(ChallengeSettings, ChallengeSetting)
PUBLIC_PERCENT: Final = next(field for field in CHALLENGE_SETTINGS if field.name == "public_percent")
