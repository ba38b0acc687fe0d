"""How scores are shown: with their errors, what is said about them, and whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidium.presentation.quantities import written
from collidium.records import Place, Submission

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collidium.contracts import card
    from collidium.records import LocalScores, Metric, Receipt


def score_text(value: float | None, error: float | None, metric: Metric | card.Metric | None = None) -> str:
    """Format a score as :func:`written`; one whose error is unknown says so.

    A single event has no error, and a few that all score alike do not scatter. Self-reported metrics need
    none.
    """
    text = written(value, error)
    if value is None or error or metric is None or metric.self_reported:
        return text
    return f"{text} (error unknown)"


def submitted_score(
    scored: Place | Submission | Receipt | LocalScores,
    name: str,
    metrics: Iterable[Metric | card.Metric],
) -> str:
    """Format a score of a submission by the metrics of its task, which also decide what is said about it.

    Says that an error is unknown, and where a self-reported score of a submission comes from.
    """
    metric = next((metric for metric in metrics if metric.name == name), None)
    text = score_text(scored.scores.get(name), scored.uncertainties.get(name), metric)
    if metric is None or not metric.self_reported or name not in scored.scores:
        return text
    return f"{text} ({origin_of(scored)})" if isinstance(scored, Place | Submission) else text


def rank_text(place: Place) -> str:
    """The rank of a place; a dash for baselines, which take none."""
    return "\N{EM DASH}" if place.baseline else f"{place.rank:,}"


def origin_of(scored: Place | Submission) -> str:
    """Where its measurements come from: ``measured`` by the platform, ``verified``, or ``self-reported``."""
    return "measured" if scored.model else "verified" if scored.verified_at else "self-reported"


def team_word(name: str) -> str:
    """Return ``team`` and a space as a prefix for a team's name, unless the name begins with it."""
    return "" if name.casefold().startswith("team") else "team "
