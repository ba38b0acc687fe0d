"""Challenges and their participants."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from collidium.records.base import Record, Time
from collidium.records.benchmarks import Baseline
from collidium.records.challenge_settings import (
    ChallengeSettings,
    FinalSubmissions,
    Practice,
    Rewarded,
    Title,
)
from collidium.records.tasks import Phase, TaskCard

State = Annotated[
    Annotated[str, Meta(extra_json_schema={"enum": ["upcoming", "open", "closed", "practice"]})],
    Meta(
        description="`upcoming`: card and data are visible; `open`: submissions are scored and ranked; "
        "`closed`: submissions are rejected; `practice`: closed; submissions are scored but not ranked."
    ),
]


class Announcement(Record, frozen=True):
    """An announcement of the organisers."""

    at: Time
    text: Annotated[str, Meta(description="Markdown.")]
    edited_at: Annotated[
        Time | None, Meta(description="When its text was corrected; null: not corrected.")
    ] = None


class Challenge(Record, ChallengeSettings, frozen=True, kw_only=True):
    """A task with its truth and leaderboard; each task has a challenge with its own name and no dates."""

    name: str
    task: str
    state: State
    # These are required here; a challenge without the first has the platform's setting.
    submissions_per_day: Annotated[int, Meta(description="Submissions of a participant in a UTC day.")]  # pyright: ignore[reportGeneralTypeIssues]
    title: Title  # pyright: ignore[reportGeneralTypeIssues]
    final_submissions: FinalSubmissions  # pyright: ignore[reportGeneralTypeIssues]
    practice: Practice  # pyright: ignore[reportGeneralTypeIssues]
    rewarded: Rewarded  # pyright: ignore[reportGeneralTypeIssues]
    results_at: Annotated[
        Time | None, Meta(description="When final results were published; null: not yet.")
    ] = None
    results_wait_for: Annotated[
        tuple[str, ...],
        Meta(description="Challenges with the same hidden events that close later; empty in lists."),
    ] = ()
    truth_version: str | None = None
    phase: Phase = None
    announcements: tuple[Announcement, ...] = ()
    reason: Annotated[
        str | None, Meta(description="Why it accepts no submissions now; null: it does, or it was changed.")
    ] = None
    card: Annotated[TaskCard | None, Meta(description="Card of its task; null in lists.")] = None

    @property
    def shown_state(self) -> str:
        """The state to display: an open challenge may accept no submissions."""
        if not self.truth_version:
            return "no truth yet"
        return "paused" if self.reason and self.state in {"open", "practice"} else self.state


class Team(Record, frozen=True):
    """A team, which is one participant of a challenge."""

    challenge: str
    name: str
    captain: str | None
    members: Annotated[tuple[str, ...], Meta(description="Accounts in the order of joining.")]
    created_at: Time


class Participation(Record, frozen=True):
    """The participation of an account in a challenge."""

    challenge: str
    admitted: Annotated[bool, Meta(description="Whether the account may submit.")]
    team: Annotated[Team | None, Meta(description="null: none.")] = None
    team_stays: Annotated[
        bool, Meta(description="Whether members cannot leave: it has submitted, or teams are fixed.")
    ] = False
    team_admits: Annotated[
        bool,
        Meta(description="Whether others may join: it is not full, and teams are not fixed."),
    ] = False
    invited_to: Annotated[
        Team | None, Meta(description="Team of the given `invitation`; null: none, or it has expired.")
    ] = None


class Invitation(Record, frozen=True):
    """A code that admits accounts to a team, or to the members of a challenge."""

    challenge: str
    code: Annotated[str, Meta(description="Shown only here.")]
    uses: Annotated[int, Meta(description="Number of accounts that it admits.")]
    expires_at: Time


class Member(Record, frozen=True):
    """An account that may submit to a challenge for members only."""

    hub_username: str
    added_at: Time


class MembersAdded(Record, frozen=True):
    """Number of accounts that were added to the members of a challenge."""

    challenge: str
    added: int
    members: Annotated[int, Meta(description="Number of members now.")]


class Quota(Record, frozen=True):
    """Remaining submissions of the caller to a challenge."""

    submissions_per_day: int
    submissions_left: Annotated[
        int, Meta(description="Of this day in UTC; 0 if submissions are rejected now.")
    ]
    resets_at: Annotated[Time, Meta(description="Start of the next day.")]
    state: State = "open"
    opens_at: Annotated[Time | None, Meta(description="null: open from the start.")] = None
    closes_at: Annotated[Time | None, Meta(description="null: until an organiser closes it.")] = None
    reason: Annotated[str | None, Meta(description="Why none is accepted now; null: they are.")] = None


class SplitPreview(Record, frozen=True):
    """What a public part of a challenge's events would close: nothing that would reveal the other events."""

    challenge: str
    public_percent: int
    closes: Annotated[
        tuple[str, ...],
        Meta(description="Tasks and challenges on the same truth that would accept no submissions."),
    ]
    until: Annotated[Time | None, Meta(description="When the challenge closes; null: by command.")] = None
    allowed: Annotated[bool, Meta(description="Whether the operator may split it.")] = True


class RosterEntry(Record, frozen=True):
    """A participant of a challenge: an account that submitted, is in a team, or is a member."""

    hub_username: str
    submissions: int
    submissions_left: Annotated[
        int,
        Meta(
            description="Of this day in UTC, for its team if it has one; 0 if submissions are rejected now."
        ),
    ]
    joined_at: Annotated[Time | None, Meta(description="Time of its first submission; null: none.")] = None
    last_submitted_at: Time | None = None
    team: str | None = None
    captain: Annotated[bool, Meta(description="Whether it is the team's captain.")] = False
    member: Annotated[bool, Meta(description="Whether it is a member.")] = False
    baseline: Baseline = False
