"""How the best value of a metric came about: the submissions that were the best when they came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tortoise.backends.sqlite.client import SqliteClient

from collidium.benchmarks.models import Submission
from collidium.benchmarks.submissions.reading import claim_of
from collidium.database import connection, rows_of
from collidium.errors import InvalidInput
from collidium.records import BestStep

if TYPE_CHECKING:
    from collidium.benchmarks.leaderboard.ranks import Edition
    from collidium.contracts.task import Card, Metric

#: Of what was submitted at one moment, ids decide, as on the leaderboard.
_STEPS: Final = """
SELECT id FROM (
    SELECT id, submitted_at, worth, max(worth) OVER (
        ORDER BY submitted_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS best
    FROM (
        SELECT id, submitted_at, {sign} CAST(
            (SELECT value FROM {json_each}(scores) WHERE key = ?) AS double precision
        ) AS worth
        FROM submissions WHERE task = ? AND truth_version = ? AND rank_score IS NOT NULL
    ) AS scored WHERE worth IS NOT NULL
) AS compared WHERE best IS NULL OR worth > best
ORDER BY submitted_at DESC, id DESC LIMIT ?
"""


async def steps(edition: Edition, card: Card, metric_name: str | None, *, limit: int) -> list[BestStep]:
    """The last ``limit`` steps of the best value of a metric (the primary one where None), oldest first.

    Of the submissions on the leaderboard, by the scores that count now: what a new scorer or new truth made
    of them, and what was self-reported, whether or not it is verified, as the leaderboard has it. Raises
    InvalidInput for a metric that the task does not have.
    """
    metric = _metric(card, metric_name)
    json_each = "json_each" if isinstance(connection(), SqliteClient) else "jsonb_each_text"
    query = _STEPS.format(sign="" if metric.higher_is_better else "-", json_each=json_each)
    rows = await rows_of(query, metric.name, edition.task, edition.truth_version, limit)
    ids = [row["id"] for row in reversed(rows)]
    kept = {row.id: row for row in await Submission.filter(id__in=ids)}
    return [_step(kept[id_], metric.name) for id_ in ids if id_ in kept]


def _step(row: Submission, metric: str) -> BestStep:
    return BestStep.of(
        row,
        submission_id=row.id,
        value=row.scores[metric],
        uncertainty=(row.uncertainties or {}).get(metric),
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
