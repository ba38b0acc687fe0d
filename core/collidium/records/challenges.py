"""Challenges, and who takes part in them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from collidium.records.base import Record, Time
from collidium.records.benchmarks import Baseline
from collidium.records.tasks import Phase, PublicPercent, TaskCard

State = Annotated[
    Annotated[str, Meta(extra_json_schema={"enum": ["upcoming", "open", "closed", "practice"]})],
    Meta(
        description="`upcoming`: card and data are visible; `open`: submissions are scored and ranked; "
        "`closed`: none is taken; `practice`: closed, but submissions are scored, and never ranked."
    ),
]


class Announcement(Record, frozen=True):
    """What the organisers announced of a challenge."""

    at: Time
    text: Annotated[str, Meta(description="Markdown.")]
    edited_at: Annotated[Time | None, Meta(description="When its text was corrected; null: never.")] = None


class Challenge(Record, frozen=True):
    """A task with its truth and leaderboard; each task has one of its own name, which has no dates."""

    name: str
    title: str
    task: str
    state: State
    submissions_per_day: int
    final_submissions: Annotated[
        int, Meta(description="How many submissions of a participant the final results are chosen from.")
    ]
    practice: bool
    rewarded: bool
    access: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": ["open", "members"]})],
        Meta(description="Who may submit: everybody, or members and those in the organisation."),
    ] = "open"
    organisation: Annotated[
        str | None,
        Meta(description="An organisation, or a domain of e-mail addresses as `@cern.ch`, that may submit."),
    ] = None
    team_size: Annotated[int, Meta(description="How many people a team may have; below 2: no teams.")] = 0
    teams_frozen_at: Annotated[
        Time | None, Meta(description="From when on teams stay as they are; null: from closing on.")
    ] = None
    opens_at: Annotated[Time | None, Meta(description="null: it is open from the beginning.")] = None
    closes_at: Annotated[Time | None, Meta(description="null: until an organiser closes it.")] = None
    results_at: Annotated[Time | None, Meta(description="When final results came; null: not yet.")] = None
    results_wait_for: Annotated[
        tuple[str, ...],
        Meta(description="Challenges that hold back the same events and close later; empty in lists."),
    ] = ()
    truth_version: str | None = None
    phase: Phase = None
    public_percent: PublicPercent = None
    rules: Annotated[str, Meta(description="Markdown.")] = ""
    announcements: tuple[Announcement, ...] = ()
    card: Annotated[TaskCard | None, Meta(description="Of its task; null in lists.")] = None

    @property
    def shown_state(self) -> str:
        """The state for people: a task's own is open before it has truth, and accepts no submissions."""
        return self.state if self.truth_version else "no truth yet"


class Team(Record, frozen=True):
    """People who compete in a challenge as one participant."""

    challenge: str
    name: str
    captain: str | None
    members: Annotated[tuple[str, ...], Meta(description="Accounts, in the order in which they joined.")]
    created_at: Time


class Participation(Record, frozen=True):
    """How an account takes part in a challenge."""

    challenge: str
    admitted: Annotated[bool, Meta(description="Whether it may submit, where only members may.")]
    team: Annotated[Team | None, Meta(description="null: it is in none.")] = None
    team_stays: Annotated[
        bool, Meta(description="Whether members cannot leave it: it has submitted, or teams are fixed.")
    ] = False
    team_admits: Annotated[
        bool,
        Meta(description="Whether someone may join that team: it is not full, and teams are not fixed."),
    ] = False
    invited_to: Annotated[
        Team | None, Meta(description="The team of the `invitation` asked about; null: of none, or ended.")
    ] = None


class Invitation(Record, frozen=True):
    """A code that admits to a team, or to the members of a challenge."""

    challenge: str
    code: Annotated[str, Meta(description="Shown only here.")]
    uses: Annotated[int, Meta(description="How many accounts it admits.")]
    expires_at: Time


class Member(Record, frozen=True):
    """An account that may submit to a challenge for members only."""

    hub_username: str
    added_at: Time


class MembersAdded(Record, frozen=True):
    """How many accounts were added to the members of a challenge."""

    challenge: str
    added: int
    members: Annotated[int, Meta(description="How many there are now.")]


class Quota(Record, frozen=True):
    """What the caller may still submit to a challenge."""

    submissions_per_day: int
    submissions_left: Annotated[int, Meta(description="Of this day, in UTC; 0 where none is taken now.")]
    resets_at: Annotated[Time, Meta(description="When the next day begins.")]
    state: State = "open"
    opens_at: Annotated[Time | None, Meta(description="null: it is open from the beginning.")] = None
    closes_at: Annotated[Time | None, Meta(description="null: until an organiser closes it.")] = None


class RosterEntry(Record, frozen=True):
    """An account that takes part in a challenge: it submitted, is in a team, or on the list of members."""

    hub_username: str
    submissions: int
    submissions_left: Annotated[
        int, Meta(description="Of this day, in UTC, of its team if it is in one; 0 where none is taken now.")
    ]
    joined_at: Annotated[Time | None, Meta(description="Its first submission; null: none yet.")] = None
    last_submitted_at: Time | None = None
    team: str | None = None
    captain: Annotated[bool, Meta(description="Whether it is the captain of that team.")] = False
    member: Annotated[bool, Meta(description="Whether it is on the list of members.")] = False
    baseline: Baseline = False
