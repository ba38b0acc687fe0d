"""Operator actions on a challenge, each after a confirmation that shows the consequences.

Rescoring runs on the server: a preview, a confirmation, progress, and the changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import Worker

from collidium.errors import CollidiumError, NotFound
from collidium.presentation import consequences
from collidium.presentation.challenges import closing_text, split_texts
from collidium.presentation.scores import submitted_score
from collidium_tui.screen import ConsoleScreen
from collidium_tui.session import console_of
from collidium_tui.widgets.form import LONGEST_NOTE, Field, Form, Question, needed
from collidium_tui.widgets.text import counted, plain

if TYPE_CHECKING:
    from collidium.client import (
        AsyncClient,
        Challenge,
        Page,
        RankChange,
        Rescoring,
        RosterEntry,
        Submission,
        TaskCard,
        Team,
    )

#: Maximum number of rank changes in a dialog; the commands show all.
MAX_CHANGES: Final = 50

#: Seconds between two polls of the progress.
POLL_SECONDS: Final = 1.0
#: Maximum number of reasons in a dialog; the command shows all.
MAX_REASONS: Final = 5


async def verify(screen: ConsoleScreen[Any], submission_id: str) -> None:
    """Verify the self-reported scores of a submission."""
    sent = await screen.session.call(lambda client: client.submission(submission_id))
    card = await screen.session.call(lambda client: client.task(sent.task))
    reported = self_reported_scores(sent, card)
    if sent.verified_at is not None or not reported:
        why = "already verified" if reported else f"{sent.task} has no self-reported metric"
        screen.notify(f"{submission_id}: {why}", title="Nothing to verify")
        return
    consequence = (
        f"To {sent.task}, sent {screen.times.show(sent.submitted_at)}. It reports:\n"
        + "\n".join(f"  {line}" for line in reported)
        + f"\n{consequences.VERIFY}"
    )
    question = Question(f"Verify {submission_id} of {sent.hub_username}", consequence, "Verify")

    def outcome(verified: Submission) -> str:
        earned = verified.credits_earned - sent.credits_earned
        return f"Verified: {sent.hub_username} earned {earned:,} credits"

    if await screen.confirm(question):
        await screen.perform(
            lambda client, key: client.admin_verify(submission_id, idempotency_key=key), outcome
        )


def self_reported_scores(sent: Submission, card: TaskCard) -> list[str]:
    """Return the self-reported scores of a submission, with their possible rewards."""
    lines = []
    for metric in card.metrics:
        if metric.self_reported:
            pays = f"pays {metric.reward:,} credits if it is the best" if metric.reward else "pays nothing"
            value = submitted_score(sent, metric.name, ()) if metric.name in sent.scores else "none"
            lines.append(f"{metric.name}: {value}; {pays}")
    return lines


async def close_challenge(screen: ConsoleScreen[Any], name: str) -> None:
    """Close a challenge, or reopen a closed one."""
    challenge = await screen.session.call(lambda client: client.challenge(name))
    if challenge.state in {"closed", "practice"}:
        about = (
            "Submissions are accepted and ranked again, until it is closed with x or at the date set by "
            f"collidium challenge edit {name} --closes. Fails if final results on withheld events were shown."
        )
        if await screen.confirm(Question(f"Open {name} again", about, "Open")):
            await screen.perform(
                lambda client, key: client.admin_open_challenge(name, idempotency_key=key),
                f"{name} is open again",
            )
        return
    if await screen.confirm(Question(f"Close {name}", consequences.CLOSE, "Close")):
        await screen.perform(
            lambda client, key: client.admin_close_challenge(name, idempotency_key=key),
            lambda closed: (
                f"{name} is closed, final results "
                f"{'are shown' if closed.results_at else 'follow within minutes'}"
            ),
        )


async def remove_member(screen: ConsoleScreen[Any], challenge: Challenge, entry: RosterEntry) -> None:
    """Remove an account from the members."""
    name, user = challenge.name, entry.hub_username
    if not entry.member:
        screen.notify(f"{user} is not a member", title="Nothing to remove")
        return
    about = consequences.remove_member(challenge, entry)
    if await screen.confirm(Question(f"Remove {user} from the members of {name}", about, "Remove")):
        await screen.perform(
            lambda client, key: client.admin_remove_member(name, user, idempotency_key=key),
            f"Removed: {user}",
        )


async def remove_from_team(screen: ConsoleScreen[Any], team: Team) -> None:
    """Remove an account from a team, after showing the number of submissions of each member."""

    def is_member(typed: str) -> str | None:
        return None if typed.casefold() in map(str.casefold, team.members) else "is not in this team"

    about = f"{await _sent_by_each(screen, team)}\n{consequences.REMOVE_FROM_TEAM}"
    fields = [Field("user", "account to remove", is_member)]
    filled = await screen.fill_in(Form(f"Remove from the team {team.name}", fields, "Remove", about))
    if filled is not None:
        await screen.perform(
            lambda client, key: client.admin_remove_member_of_team(
                team.challenge, filled["user"], idempotency_key=key
            ),
            f"Removed from {team.name}: {filled['user']}",
        )


async def dissolve_team(screen: ConsoleScreen[Any], team: Team) -> None:
    """Dissolve a team."""
    about = f"{await _sent_by_each(screen, team)}\n{consequences.DISSOLVE_TEAM}"
    if await screen.confirm(Question(f"Dissolve the team {team.name}", about, "Dissolve")):
        await screen.perform(
            lambda client, key: client.admin_dissolve_team(team.challenge, team.name, idempotency_key=key),
            f"Dissolved: {team.name}",
        )


async def _sent_by_each(screen: ConsoleScreen[Any], team: Team) -> str:
    """Describe how many submissions each member of a team has sent."""

    async def fetch(client: AsyncClient) -> list[Page[Submission]]:
        return [await client.admin_challenge_submissions(team.challenge, user=user) for user in team.members]

    counts = []
    for user, sent in zip(team.members, await screen.session.call(fetch), strict=True):
        counts.append(f"{user} {len(sent)}{' or more' if sent.next_cursor else ''}")
    return f"Submissions: {', '.join(counts)}"


async def change_standing(screen: ConsoleScreen[Any], challenge: str, submission_id: str) -> None:
    """Disqualify a submission, or reinstate a disqualified one, after showing the changes of ranks."""
    sent = await screen.session.call(lambda client: client.submission(submission_id))
    ranking = await screen.session.call(
        lambda client: client.admin_preview_standing(challenge, submission_id)
    )
    who = f"{submission_id} of {sent.hub_username}"
    changes = rank_changes(ranking.changes)
    if (sent.unranked or "").startswith("disqualified"):
        about = f"{sent.unranked}\nIt will count again:\n{changes}"
        if await screen.confirm(Question(f"Reinstate {who}", about, "Reinstate")):
            await screen.perform(
                lambda client, key: client.admin_reinstate(challenge, submission_id, idempotency_key=key),
                f"Reinstated: {sent.hub_username}",
            )
        return
    fields = [
        Field("reason", "reason, which is public", needed, max_length=LONGEST_NOTE),
        Field("take_back", f"deduct the {sent.credits_earned:,} credits that it earned", yes_or_no, "no"),
    ]
    filled = await screen.fill_in(Form(f"Disqualify {who}", fields, "Disqualify", changes))
    if filled is not None:
        await screen.perform(
            lambda client, key: client.admin_disqualify(
                challenge,
                submission_id,
                filled["reason"],
                take_back=filled["take_back"] == "yes",
                idempotency_key=key,
            ),
            f"Disqualified: {sent.hub_username}",
        )


def yes_or_no(typed: str) -> str | None:
    """Check a field for yes or no."""
    return None if typed in {"yes", "no"} else "must be yes or no"


def rank_changes(changes: Sequence[RankChange]) -> str:
    """Format changes of ranks, a line each."""
    lines = [
        f"  {change.rank_before or 'no rank'} -> {change.rank or 'no rank'}  {change.hub_username}"
        + (f", earns {change.earns:,} credits" if change.earns else "")
        for change in changes[:MAX_CHANGES]
    ]
    if more := len(changes[MAX_CHANGES:]):
        lines.append(f"  and {more:,} more")
    return "\n".join(lines) or "  no rank changes"


class RescoringDialog(ModalScreen["Rescoring | None"]):
    """Shows the progress of a rescoring. Its result is the ended rescoring, or None if it was closed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Close")]

    def __init__(self, challenge: str) -> None:
        super().__init__()
        self._challenge = challenge

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(plain(f"Scoring the submissions to {self._challenge}"), classes="dialog-title")
            yield Static("waiting for the server", id="progress")
            yield Static("\nEscape closes this dialog. The server continues; o shows the progress again.")

    def on_mount(self) -> None:
        _: Worker[None] = self.run_worker(self._poll)

    async def _poll(self) -> None:
        while True:
            try:
                seen = await console_of(self).session.call(
                    lambda client: client.admin_rescoring(self._challenge)
                )
            except CollidiumError as error:
                shown = f"no response: {error}"
            else:
                if seen.has_ended:
                    self.dismiss(seen)
                    return
                of = f"{seen.done:,} of {seen.submissions:,}" if seen.submissions else "nothing scored yet"
                if seen.waiting:
                    reason = next(iter(seen.waiting.values()))
                    of += f"; waiting: {len(seen.waiting):,} files: {reason}"
                shown = f"{of}, since {console_of(self).times.show(seen.asked_at)}"
            self.query_one("#progress", Static).update(plain(shown))
            await asyncio.sleep(POLL_SECONDS)


async def rescore(screen: ConsoleScreen[Any], name: str) -> None:
    """Score all submissions again, or show the progress of a running rescoring."""

    async def last(client: AsyncClient) -> Rescoring | None:
        try:
            return await client.admin_rescoring(name)
        except NotFound:  # never rescored
            return None

    found = await screen.session.call(last)
    if found is not None and not found.has_ended:
        await _follow(screen, name)
    else:
        await _order(screen, name, None, apply=False)


async def split(screen: ConsoleScreen[Any], name: str) -> None:
    """Withhold a part of a challenge's events."""
    about = (
        "The public part counts until the challenge closes, then the other events. The submissions are "
        "scored again on the public part; a preview shows the changes first."
    )
    fields = [Field("percent", "public, per cent", _percent)]
    filled = await screen.fill_in(Form(f"Split the events of {name}", fields, "Preview", about))
    if filled is not None:
        await _order(screen, name, int(filled["percent"]), apply=False)


def _percent(typed: str) -> str | None:
    is_number = typed.isascii() and typed.isdecimal() and len(typed) < 3
    return None if is_number and int(typed) else "must be a number from 1 to 99"


async def _order(screen: ConsoleScreen[Any], name: str, percent: int | None, *, apply: bool) -> None:
    ordered = await screen.perform(
        lambda client, key: client.admin_rescore(
            name, public_percent=percent, apply=apply, idempotency_key=key
        )
    )
    if ordered is not None:
        await _follow(screen, name)


async def _follow(screen: ConsoleScreen[Any], name: str) -> None:
    """Show the progress and the result of a rescoring; ask whether to apply a preview."""
    found = await screen.app.push_screen_wait(RescoringDialog(name))
    if found is None:
        return
    if found.problem:
        screen.notify(found.problem, title="Nothing has changed", severity="error")
        return
    title = f"Rescore {name}" if found.public_percent is None else f"Split the events of {name}"
    if found.applies:
        scores = "" if found.public_percent is None else "scores are those on the public part, "
        message = f"Done: {scores}{counted(len(found.changes), 'ranks')} changed"
        screen.notify(message, title=title, timeout=10)
        screen.refresh_now()
    elif await screen.confirm(Question(title, await _closing(screen, found) + consequence(found), "Apply")):
        await _order(screen, name, found.public_percent, apply=True)


async def _closing(screen: ConsoleScreen[Any], found: Rescoring) -> str:
    """Describe which other challenges a split closes; empty if none."""
    if (percent := found.public_percent) is None:
        return ""
    preview = await screen.perform(lambda client, _: client.admin_preview_split(found.challenge, percent))
    text = closing_text(preview) if preview is not None else ""
    return f"{text}\n" if text else ""


def consequence(found: Rescoring) -> str:
    """Describe the consequences of applying a preview."""
    lines = [
        *split_texts(found),
        "Ranks after all submissions are scored again:",
        rank_changes(found.changes),
    ]
    if found.unscored:
        lines.append(
            f"{counted(len(found.unscored), 'submissions')} cannot be scored again and become unranked:"
        )
        lines += [f"  {one}: {why}" for one, why in list(found.unscored.items())[:MAX_REASONS]]
    return "\n".join(lines)
