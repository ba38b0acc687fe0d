"""The columns of the lists of a challenge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from collidium.presentation.scores import origin_of, submitted_score
from collidium_tui.widgets.table import Column

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collidium.client import Metric, Place, RosterEntry, Submission, TaskCard, Team

#: Width of a name in lists, including the mark of a baseline.
LONGEST_NAME: Final = 24
#: Width of a reason. The dialog that reinstates a submission shows it in full.
LONGEST_REASON: Final = 40


def places(card: TaskCard) -> list[Column[Place]]:
    """Return the columns of the leaderboard."""
    found: list[Column[Place]] = [
        Column("rank", lambda place: "" if place.baseline else place.rank, right=True),
        Column(
            "account",
            lambda place: f"{place.hub_username}{' (baseline)' * place.baseline}",
            longest=LONGEST_NAME,
        ),
        *(_score(metric, card) for metric in card.metrics),
    ]
    if card.pareto is not None:
        found.append(Column("Pareto front", lambda place: "on it" if place.pareto else ""))
    if any(metric.self_reported for metric in card.metrics):
        found.append(Column("verified", lambda place: place.verified_at, _verified))
    return [
        *found,
        Column("earned", lambda place: place.credits_earned, right=True),
        Column("when", lambda place: place.submitted_at),
        Column("model", model),
        Column("submission", lambda place: place.submission_id),
    ]


def _score(metric: Metric, card: TaskCard) -> Column[Place]:
    is_reported = metric.self_reported and not card.ranks_measured

    metrics = () if is_reported else card.metrics  # the heading says so

    def shown(place: Place) -> Text:
        return Text(score(place, metric.name, metrics), justify="right", no_wrap=True)

    return Column(
        f"{metric.name} (self-reported)" if is_reported else metric.name,
        lambda place: place.scores.get(metric.name),
        shown,
        right=True,
    )


def score(place: Place | Submission, metric: str, metrics: Iterable[Metric]) -> str:
    """Format a score by the metrics of its task."""
    return submitted_score(place, metric, metrics) if metric in place.scores else "none"


def submissions(card: TaskCard | None) -> list[Column[Submission]]:
    """Return the columns of the list of submissions."""
    return [
        Column("account", lambda sent: sent.hub_username, longest=LONGEST_NAME),
        Column("no rank because", lambda sent: sent.unranked or "", longest=LONGEST_REASON),
        Column("when", lambda sent: sent.submitted_at),
        Column("scores", lambda sent: scores(sent, card)),
        Column("earned", lambda sent: sent.credits_earned, right=True),
        Column("chosen", lambda sent: sent.chosen_at),
        Column("verified", lambda sent: sent.verified_at),
        Column("model", model),
        Column("submission", lambda sent: sent.submission_id),
    ]


def model(linked: Place | Submission) -> str:
    """Return the model of a submission, and whether the account's claim to it is verified."""
    return f"{linked.model_repo} ({linked.model_claim})" if linked.model_repo else ""


def scores(sent: Submission, card: TaskCard | None) -> str:
    """Format all scores of a submission by the card of its task."""
    metrics = card.metrics if card else ()
    return ", ".join(f"{name} {score(sent, name, metrics)}" for name in sent.scores)


def role(entry: RosterEntry) -> str:
    """Return the role of an account in a challenge."""
    roles = {"baseline": entry.baseline, "captain": entry.captain, "member": entry.member}
    return next((name for name, has_it in roles.items() if has_it), "")


def _verified(place: Place) -> Text:
    return Text({"measured": "measured", "verified": "yes"}.get(origin_of(place), "NOT YET"))


def about(card: TaskCard) -> list[str]:
    """Return what currently counts, for the line above the lists."""
    phase = {"public": f"public phase: {card.public_percent}% of the events count", "final": "final phase"}
    return [
        "accepts submissions" if card.accepts_submissions else f"accepts NO submissions: {card.reason}",
        *([phase.get(card.phase, card.phase)] if card.phase else []),
        f"scorer {card.scorer_version}",
        f"truth {card.truth_version or 'none'}",
    ]


TEAM: Column[Any] = Column("team", lambda row: row.team or "", longest=LONGEST_NAME)
ROSTER: list[Column[RosterEntry]] = [
    Column("account", lambda entry: entry.hub_username, longest=LONGEST_NAME),
    Column("sent", lambda entry: entry.submissions, right=True),
    Column("left today", lambda entry: entry.submissions_left, right=True),
    Column("", role),
    Column("last", lambda entry: entry.last_submitted_at),
    Column("first", lambda entry: entry.joined_at),
]
TEAMS: list[Column[Team]] = [
    Column("team", lambda team: team.name, longest=LONGEST_NAME),
    Column("captain", lambda team: team.captain or "", longest=LONGEST_NAME),
    Column("members", lambda team: ", ".join(team.members)),
    Column("since", lambda team: team.created_at),
]
