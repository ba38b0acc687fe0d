"""The columns of lists of submissions, and how a submission is described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collidium.presentation.columns import LONGEST_NAME, ListColumn
from collidium.presentation.scores import submitted_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from collidium.records import BestStep, Metric, Place, Receipt, Submission, TaskCard

_Column = ListColumn["Submission"]
_OfBoth = ListColumn["Place | Submission"]

#: Width of a reason in the console. The dialog that reinstates a submission shows it in full.
LONGEST_REASON: Final = 40


def model_text(linked: Place | Submission | BestStep | Receipt) -> str | None:
    """Return the model, and whether the account's claim to it is verified; None without a model."""
    return linked.model_repo and f"{linked.model_repo} ({linked.model_claim})"


def scores_text(sent: Submission, metrics: Iterable[Metric]) -> str:
    """Format all scores of a submission by the metrics of its task."""
    known = tuple(metrics)
    return ", ".join(f"{name} {submitted_score(sent, name, known)}" for name in sent.scores)


def chosen_at(sent: Submission) -> datetime | None:
    """Return when a submission was chosen for the final results; None for an unranked one."""
    return sent.chosen_at if sent.unranked is None else None


def challenge_apart(sent: Submission) -> str | None:
    """Return the challenge, unless it is the task's own."""
    return None if sent.challenge == sent.task else sent.challenge


SUBMISSION: Final[_OfBoth] = ListColumn("submission", lambda sent: sent.submission_id)
ACCOUNT: Final[_Column] = ListColumn("account", lambda sent: sent.hub_username, longest=LONGEST_NAME)
TEAM: Final[_OfBoth] = ListColumn("team", lambda sent: sent.team, longest=LONGEST_NAME)
SUBMITTED: Final[_OfBoth] = ListColumn("submitted", lambda sent: sent.submitted_at, name="submitted")
CREDITS: Final[_OfBoth] = ListColumn("credits", lambda sent: sent.credits_earned, right=True)
MODEL: Final[_OfBoth] = ListColumn("model", model_text, name="model")
VERIFIED: Final[_Column] = ListColumn("verified", lambda sent: sent.verified_at)
UNRANKED: Final[_Column] = ListColumn("no rank because", lambda sent: sent.unranked)
TASK: Final[_Column] = ListColumn("task", lambda sent: sent.task)
CHALLENGE: Final[_Column] = ListColumn("challenge", challenge_apart)
#: For users, whose choice of an unranked submission does not count.
CHOSEN: Final[_Column] = ListColumn("chosen", chosen_at)
#: For organisers.
EVER_CHOSEN: Final[_Column] = ListColumn("chosen", lambda sent: sent.chosen_at)


def scores(cards: Mapping[str, TaskCard]) -> _Column:
    """Return the column of all scores, by the cards of tasks that are listed."""

    def text(sent: Submission) -> str:
        return scores_text(sent, cards[sent.task].metrics if sent.task in cards else ())

    return ListColumn("scores", text)


def primary_score(card: TaskCard) -> _Column:
    """Return the column of the primary metric."""
    name = card.primary_metric

    def text(sent: Submission) -> str | None:
        return submitted_score(sent, name, card.metrics) if name in sent.scores else None

    return ListColumn(name, lambda sent: sent.scores.get(name), text, right=True)


def own(cards: Mapping[str, TaskCard], listed: Sequence[Submission]) -> list[_Column]:
    """Return the columns of an account's own submissions, without those that are empty."""
    challenge = [CHALLENGE] if any(map(challenge_apart, listed)) else []
    chosen = [CHOSEN] if any(map(chosen_at, listed)) else []
    return [SUBMISSION, TASK, *challenge, scores(cards), UNRANKED, *chosen, CREDITS, MODEL, SUBMITTED]


def of_team(cards: Mapping[str, TaskCard]) -> list[_Column]:
    """Return the columns of a team's submissions."""
    return [SUBMITTED, ACCOUNT, scores(cards), CHOSEN, UNRANKED, SUBMISSION]


def self_reported(cards: Mapping[str, TaskCard]) -> list[_Column]:
    """Return the columns of submissions that have no rank because they report what others measure."""
    return [ACCOUNT, scores(cards), UNRANKED, SUBMITTED, SUBMISSION]


def of_challenge(card: TaskCard) -> list[_Column]:
    """Return the columns of all submissions to a challenge, for organisers at a command."""
    return [SUBMISSION, ACCOUNT, TEAM, SUBMITTED, primary_score(card), EVER_CHOSEN, UNRANKED, CREDITS]


_WHEN: Final = SUBMITTED.titled("when")
_EARNED: Final = CREDITS.titled("earned")


def in_console(cards: Mapping[str, TaskCard], *, teams: bool) -> list[_Column]:
    """Return the columns of all submissions to a challenge, for organisers in the console."""
    unranked = ListColumn(UNRANKED.title, UNRANKED.value, longest=LONGEST_REASON)
    shown: list[_Column] = [
        _WHEN,
        scores(cards),
        _EARNED,
        EVER_CHOSEN,
        VERIFIED,
        MODEL,
        SUBMISSION,
    ]
    return [ACCOUNT, unranked, *([TEAM] if teams else []), *shown]


def to_verify(cards: Mapping[str, TaskCard]) -> list[_Column]:
    """Return the columns of submissions whose scores an operator has to verify."""
    account = ListColumn(ACCOUNT.title, ACCOUNT.value)
    return [TASK, account, _WHEN, SUBMISSION, scores(cards), UNRANKED]


#: Of one account, for operators.
OF_ACCOUNT: Final[tuple[_Column, ...]] = (*(TASK, _WHEN, _EARNED, VERIFIED, MODEL, SUBMISSION, UNRANKED),)
