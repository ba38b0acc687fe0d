"""Histories of leaderboards: the submissions that improved the best value of a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache
from tortoise.backends.sqlite.client import SqliteClient

from collidium.benchmarks.leaderboard import BoardVersion
from collidium.benchmarks.models import Submission
from collidium.benchmarks.submissions.reading import claim_of
from collidium.benchmarks.submissions.scorings import published_errors
from collidium.database import connection, in_chunks, rows_of
from collidium.errors import InvalidInput
from collidium.records import BestStep
from collidium.runtime.shared_calls import SharedCalls

if TYPE_CHECKING:
    from collidium.contracts.task import Card, Metric

#: All metrics at once, at twice the cost of one. Ties in time are decided by id, as on the leaderboard.
_STEPS: Final = """
SELECT id, {improves} FROM (
    SELECT id, submitted_at, {compared} FROM (
        SELECT id, submitted_at, {worths}
        FROM submissions WHERE challenge = ? AND truth_version = ? AND rank_score IS NOT NULL
    ) AS scored
    WINDOW earlier AS (ORDER BY submitted_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) AS compared WHERE {is_step} ORDER BY submitted_at, id
"""
_IMPROVES: Final = "(worth{0} IS NOT NULL AND (best{0} IS NULL OR worth{0} > best{0}))"
#: Number of versions whose histories are cached.
_KEPT: Final = 8


class Histories:
    """A cache of the histories of the latest versions; concurrent calls share the computation."""

    def __init__(self) -> None:
        self._found: SharedCalls[BoardVersion, Mapping[str, Sequence[str]]] = SharedCalls(LRUCache(_KEPT))

    async def steps(
        self, version: BoardVersion, card: Card, metric_name: str | None, *, limit: int
    ) -> list[BestStep]:
        """The last ``limit`` improvements of a metric (None: the primary one), oldest first.

        Computed from the current scores of the submissions on the leaderboard; self-reported metrics need not
        be verified. Raises InvalidInput for an unknown metric.
        """
        metric = _metric(card, metric_name)
        improving = await self._found.run(version, lambda: _improving(version, card))
        ids = improving[metric.name][-limit:]
        kept = {row.id: row for some in in_chunks(ids) for row in await Submission.filter(id__in=some)}
        return [_step(kept[id_], metric.name) for id_ in ids if id_ in kept]


async def _improving(version: BoardVersion, card: Card) -> Mapping[str, Sequence[str]]:
    """For each metric the ids of the submissions that improved its best value."""
    is_sqlite = isinstance(connection(), SqliteClient)
    score = """json_extract(scores, '$."' || ? || '"')""" if is_sqlite else "scores ->> CAST(? AS text)"
    signs = ["" if metric.higher_is_better else "-" for metric in card.metrics]
    improves = [_IMPROVES.format(place) for place in range(len(signs))]
    query = _STEPS.format(
        improves=", ".join(f"{improved} AS step{place}" for place, improved in enumerate(improves)),
        compared=", ".join(
            f"worth{place}, max(worth{place}) OVER earlier AS best{place}" for place in range(len(signs))
        ),
        worths=", ".join(
            f"{sign} CAST({score} AS double precision) AS worth{place}" for place, sign in enumerate(signs)
        ),
        is_step=" OR ".join(improves),
    )
    names = [metric.name for metric in card.metrics]
    rows = await rows_of(query, *names, version.challenge, version.truth_version)
    return {name: [row["id"] for row in rows if row[f"step{place}"]] for place, name in enumerate(names)}


def _step(row: Submission, metric: str) -> BestStep:
    return BestStep.of(
        row,
        submission_id=row.id,
        value=row.scores[metric],
        uncertainty=published_errors(row.uncertainties).get(metric),
        model_claim=claim_of(row),
    )


def _metric(card: Card, name: str | None) -> Metric:
    if name is None:
        return card.primary_metric
    for metric in card.metrics:
        if metric.name == name:
            return metric
    known = ", ".join(metric.name for metric in card.metrics)
    detail = f"task {card.name!r} has no metric {name[:100]!r}; it has {known}"
    raise InvalidInput(f"metric: {detail}", errors=[{"field": "metric", "detail": detail}])
