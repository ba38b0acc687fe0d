"""The columns of leaderboards: what commands, console, pages and files show of a place, each in its order.

A column that is in one of these lists is shown there; the pages of leaderboards and results give some of them
markup of their own, by name. Other pages have their columns in their templates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collidium.presentation.columns import LONGEST_NAME, ListColumn
from collidium.presentation.scores import origin_of, score_text, submitted_score, team_word
from collidium.presentation.submissions import CREDITS, MODEL, SUBMISSION, SUBMITTED, TEAM, model_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collidium.records import BestStep, Metric, Place, TaskCard


def name_text(place: Place) -> str:
    """Return the account, and whether it is a baseline."""
    return f"{place.hub_username} (baseline)" if place.baseline else place.hub_username


def participant_text(place: Place) -> str:
    """Return the account with its team, if any."""
    if place.baseline or not place.team:
        return name_text(place)
    return f"{place.hub_username}, {team_word(place.team)}{place.team}"


def _verified(unverified: str) -> ListColumn[Place]:
    texts = {"measured": "measured", "verified": "yes"}
    return ListColumn(
        "verified",
        lambda place: place.verified_at,
        lambda place: texts.get(origin_of(place), unverified),
        name="verified",
    )


def _on_front(text: str) -> ListColumn[Place]:
    return ListColumn("Pareto front", lambda place: text if place.pareto else None, name="front")


RANK: Final[ListColumn[Place]] = ListColumn(
    "rank", lambda place: None if place.baseline else place.rank, right=True, name="rank"
)
ACCOUNT: Final[ListColumn[Place]] = ListColumn("account", name_text, longest=LONGEST_NAME, name="account")
PARTICIPANT: Final[ListColumn[Place]] = ListColumn("account", participant_text, name="participant")
INTERVAL: Final[ListColumn[Place]] = ListColumn(
    "interval of 95 %", lambda place: place.rank_low, right=True, name="interval"
)


ABOUT_BASELINES: Final = "Baselines take no rank."


def has_reported(card: TaskCard) -> bool:
    """Whether submitters report some of the scores, which operators may verify."""
    return any(metric.self_reported for metric in card.metrics)


def score(metric: Metric, card: TaskCard, missing: str | None = None) -> ListColumn[Place]:
    """Return the column of a metric; ``missing`` is shown where a place has no score."""
    is_reported = metric.self_reported and not card.ranks_measured
    metrics = () if is_reported else card.metrics  # the heading says so

    def text(place: Place) -> str | None:
        return submitted_score(place, metric.name, metrics) if metric.name in place.scores else missing

    return ListColumn(
        f"{metric.name} (self-reported)" if is_reported else metric.name,
        lambda place: place.scores.get(metric.name),
        text,
        right=True,
    )


def in_commands(card: TaskCard, *, ids: bool = False) -> list[ListColumn[Place]]:
    """Return the columns at a command, with the ids of the submissions if ``ids``."""
    return [
        RANK,
        PARTICIPANT,
        *(score(metric, card) for metric in card.metrics),
        *([_on_front("yes")] if card.pareto else []),
        *([_verified("no")] if has_reported(card) else []),
        CREDITS,
        MODEL,
        SUBMITTED,
        *([SUBMISSION] if ids else []),
    ]


def in_console(card: TaskCard, *, teams: bool = False) -> list[ListColumn[Place]]:
    """Return the columns in the console, with teams in a challenge that has them."""
    return [
        RANK,
        ACCOUNT,
        *([TEAM] if teams else []),
        *(score(metric, card, "none") for metric in card.metrics),
        *([_on_front("on it")] if card.pareto else []),
        *([_verified("NOT YET")] if has_reported(card) else []),
        CREDITS.titled("earned"),
        SUBMITTED.titled("when"),
        MODEL,
        SUBMISSION,
    ]


#: Columns of pages before and after those of the metrics.
Around = tuple["Sequence[ListColumn[Place]]", "Sequence[ListColumn[Place]]"]


def on_page(card: TaskCard) -> Around:
    """Return the columns of a leaderboard's page."""
    return [RANK, ACCOUNT], [
        *([_on_front("yes")] if card.pareto else []),
        *([_verified("not yet")] if has_reported(card) and not card.ranks_measured else []),
        MODEL,
        SUBMITTED,
    ]


def on_print() -> Around:
    """Return the columns of the printable page."""
    return [RANK, INTERVAL, PARTICIPANT.titled("participant")], [SUBMITTED]


#: Columns of files, which are read by programs, before those of the metrics; and the fields of a result.
FILE: Final[Mapping[str, str]] = {
    "rank": "rank",
    "rank_low": "rank_low",
    "rank_high": "rank_high",
    "may_be_equal": "may_be_equal",
    "account": "hub_username",
    "team": "team",
    "submission": "submission_id",
    "submitted_at": "submitted_at",
    "baseline": "baseline",
    "model": "model_repo",
    "status": "status",
    "reason": "reason",
}


def file_header(metrics: Sequence[str]) -> list[str]:
    """Return the columns of a file."""
    return [*FILE, *(column for metric in metrics for column in (metric, f"{metric}_error"))]


def file_row(result: Mapping[str, Any], metrics: Sequence[str]) -> Iterator[Any]:
    """Yield the values of a result, which is given as the API encodes it."""
    yield from (result[field] for field in FILE.values())
    for metric in metrics:
        yield from (result[of].get(metric) for of in ("scores", "uncertainties"))


def history(metric: Metric) -> list[ListColumn[BestStep]]:
    """Return the columns of the successive best values of a metric."""
    title = f"{metric.name} (self-reported)" if metric.self_reported else metric.name
    columns: list[ListColumn[BestStep]] = [
        ListColumn("since", lambda step: step.submitted_at),
        ListColumn("account", lambda step: step.hub_username),
        ListColumn(
            title, lambda step: step.value, lambda step: score_text(step.value, step.uncertainty, metric)
        ),
    ]
    if metric.self_reported:
        columns.append(ListColumn("verified", lambda step: step.verified_at is not None))
    return [*columns, ListColumn("model", model_text)]
