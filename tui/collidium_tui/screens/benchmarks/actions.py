"""Operator actions on benchmarks: verify self-reported scores, close a phase."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.ask import Question

if TYPE_CHECKING:
    from collidium.client import Submission, TaskCard


async def verify(screen: ConsoleScreen[Any], submission_id: str) -> None:
    """Verify the self-reported scores of a submission, after showing them and what they earn."""
    sent = await screen.session.call(lambda client: client.submission(submission_id))
    card = await screen.session.call(lambda client: client.task(sent.task))
    reported = self_reported_scores(sent, card)
    if sent.verified_at is not None or not reported:
        why = "it is verified already" if reported else f"{sent.task} has no self-reported metric"
        screen.notify(f"{submission_id}: {why}", title="Nothing to verify", markup=False)
        return
    consequence = (
        f"To {sent.task}, sent {screen.times.show(sent.submitted_at)}. It reports:\n"
        + "\n".join(f"  {line}" for line in reported)
        + "\nIt counts as verified from now on, on the leaderboard and for credits. This cannot be undone."
    )
    question = Question(f"Verify {submission_id} of {sent.hub_username}", consequence, "Verify")
    if await screen.confirm(question):
        verified = await screen.perform(
            lambda client, key: client.admin_verify(submission_id, idempotency_key=key)
        )
        if verified is not None:
            earned = verified.credits_earned - sent.credits_earned
            screen.notify(f"Verified: {sent.hub_username} earned {earned:,} credits", markup=False)


def self_reported_scores(sent: Submission, card: TaskCard) -> list[str]:
    """The self-reported scores of a submission, and what each may earn."""
    lines = []
    for metric in card.metrics:
        value = sent.scores.get(metric.name)
        if metric.self_reported:
            pays = f"pays {metric.reward:,} credits if it is the best" if metric.reward else "pays nothing"
            lines.append(f"{metric.name}: {'none' if value is None else f'{value:.6g}'}; {pays}")
    return lines


def close_phase(screen: ConsoleScreen[Any], task: str, phase: str | None) -> None:
    """Close a task's public phase, if it is in one."""
    if phase == "public":
        screen.act(partial(_close_phase, screen, task))
    else:
        screen.notify(f"{task} has no public phase to be closed", markup=False)


async def _close_phase(screen: ConsoleScreen[Any], task: str) -> None:
    consequence = (
        "The withheld events count from now on: the leaderboard ranks by them, and credits are "
        "paid for the best scores on them. The public phase cannot be opened again."
    )
    if await screen.confirm(Question(f"Close the public phase of {task}", consequence, "Close for good")):
        closed = await screen.perform(lambda client, key: client.admin_close_phase(task, idempotency_key=key))
        if closed is not None:
            screen.notify(f"{task}: the {closed.phase} phase counts ({closed.truth_version})", markup=False)
