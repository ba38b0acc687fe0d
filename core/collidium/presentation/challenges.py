"""How challenges are shown: columns of lists, what is left of quotas, and what a split of the events does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collidium.presentation.columns import LONGEST_NAME, ListColumn
from collidium.presentation.quantities import minute_text, time_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from collidium.records import (
        Challenge,
        Quota,
        Rescoring,
        RosterEntry,
        SplitPreview,
        Team,
        WaitingFile,
    )

_Column = ListColumn["Challenge"]


def quota_text(quota: Quota) -> str:
    """Describe how many submissions are left, and until when."""
    if quota.state == "upcoming":
        opens = minute_text(quota.opens_at)
        return f"it opens on {opens}, with {quota.submissions_per_day} submissions a day then"
    if quota.state == "closed":
        return f"it closed on {minute_text(quota.closes_at)}"
    if quota.reason:
        return f"it accepts no submissions: {quota.reason}"
    text = f"{quota.submissions_left} of {quota.submissions_per_day} submissions are left today"
    if quota.state == "practice":
        return f"{text}, for practice: it closed on {minute_text(quota.closes_at)}"
    if quota.closes_at is None:
        return text
    return f"{text}; it closes on {minute_text(quota.closes_at)}, in {time_until(quota.closes_at)}"


def split_texts(found: Rescoring) -> list[str]:
    """Return what a rescoring with a new split changes, and a warning; empty without a split."""
    if found.public_percent is None:
        return []
    part = f"Scores are those on {found.public_percent} per cent of the events until the challenge closes"
    texts = [f"{part}, those on the others then. This cannot be undone."]
    if found.seen_whole:
        texts.append(
            f"Warning: participants have seen scores of {found.seen_whole:,} submissions on all events, "
            "those of the final part included."
        )
    return texts


def closing_text(preview: SplitPreview) -> str:
    """Describe which tasks and challenges a public part closes to submissions; empty if none."""
    if not preview.closes:
        return ""
    until = f"closes on {minute_text(preview.until)}" if preview.until else "is closed by command"
    closed = ", ".join(preview.closes)
    return (
        f"With {preview.public_percent} per cent public, {closed} will accept no submissions until "
        f"{preview.challenge} {until}: its scores would reveal the events that are held back."
    )


CHALLENGE: Final[_Column] = ListColumn("challenge", lambda one: one.name, longest=LONGEST_NAME)
TASK: Final[_Column] = ListColumn("task", lambda one: one.task)
STATE: Final[_Column] = ListColumn("state", lambda one: one.shown_state)
OPENS: Final[_Column] = ListColumn("opens", lambda one: one.opens_at)
CLOSES: Final[_Column] = ListColumn("closes", lambda one: one.closes_at)
RESULTS: Final[_Column] = ListColumn("results", lambda one: one.results_at)
PART: Final[_Column] = ListColumn("part", lambda one: one.phase)
IN_COMMANDS: Final = (CHALLENGE, TASK, STATE, OPENS, CLOSES, RESULTS, PART)


def in_console(minute: Callable[[datetime | None], str]) -> list[ListColumn[Challenge]]:
    """Return the columns in the console; ``minute`` formats dates."""

    def dated(column: ListColumn[Challenge]) -> ListColumn[Challenge]:
        return ListColumn(column.title, column.value, lambda one: minute(column.value(one)))

    counts: ListColumn[Challenge] = ListColumn("counts", lambda one: one.phase or "all")
    return [CHALLENGE, STATE, dated(OPENS), dated(CLOSES), dated(RESULTS), counts, TASK]


#: Participants, at a command.
ROSTER: Final[list[ListColumn[RosterEntry]]] = [
    ListColumn("account", lambda entry: entry.hub_username),
    ListColumn("team", lambda entry: f"{entry.team} (captain)" if entry.captain else entry.team),
    ListColumn("submissions", lambda entry: entry.submissions),
    ListColumn("left", lambda entry: entry.submissions_left),
    ListColumn("joined", lambda entry: entry.joined_at),
    ListColumn("last", lambda entry: entry.last_submitted_at),
    ListColumn("member", lambda entry: entry.member),
    ListColumn("baseline", lambda entry: entry.baseline),
]


def role(entry: RosterEntry) -> str:
    """Return the role of an account in a challenge."""
    roles = {"baseline": entry.baseline, "captain": entry.captain, "member": entry.member}
    return next((name for name, has_it in roles.items() if has_it), "")


def roster_in_console(*, teams: bool) -> list[ListColumn[RosterEntry]]:
    """Return the columns of participants in the console."""
    team: ListColumn[RosterEntry] = ListColumn("team", lambda entry: entry.team, longest=LONGEST_NAME)
    return [
        ListColumn("account", lambda entry: entry.hub_username, longest=LONGEST_NAME),
        *([team] if teams else []),
        ListColumn("sent", lambda entry: entry.submissions, right=True),
        ListColumn("left today", lambda entry: entry.submissions_left, right=True),
        ListColumn("", role),
        ListColumn("last", lambda entry: entry.last_submitted_at),
        ListColumn("first", lambda entry: entry.joined_at),
    ]


#: Teams; the console shows since when, too.
TEAMS: Final[list[ListColumn[Team]]] = [
    ListColumn("team", lambda team: team.name, longest=LONGEST_NAME),
    ListColumn("captain", lambda team: team.captain, longest=LONGEST_NAME),
    ListColumn("members", lambda team: ", ".join(team.members)),
]
TEAMS_IN_CONSOLE: Final[list[ListColumn[Team]]] = [
    *TEAMS,
    ListColumn("since", lambda team: team.created_at),
]
#: Files that a rescoring or the end of a challenge waits for.
WAITING: Final[list[ListColumn[WaitingFile]]] = [
    ListColumn("submission", lambda file: file.submission_id),
    ListColumn("account", lambda file: file.hub_username),
    ListColumn("since", lambda file: file.since),
    ListColumn("attempts", lambda file: file.attempts),
    ListColumn("next", lambda file: file.retry_at),
    ListColumn("left out", lambda file: file.left_out_at),
    ListColumn("reason", lambda file: file.reason),
]
