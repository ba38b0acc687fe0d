"""Histories of leaderboards: the submissions that improved the best value of a metric.

They are queries over what counts now: ``benchmark_bests`` is for rewards, and lacks metrics where less is
better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

from cachetools import LRUCache
from tortoise.backends.sqlite.client import SqliteClient

from collidium.database import connection, in_chunks, loaded, rows_of
from collidium.errors import InvalidInput
from collidium.records import BestStep
from collidium.runtime.shared_calls import SharedCalls
from collidium.submissions import additions
from collidium.submissions.additions import BoardMark, Changes
from collidium.submissions.leaderboard import BoardVersion
from collidium.submissions.models import Submission
from collidium.submissions.reading import claim_of
from collidium.submissions.scores import published_errors

if TYPE_CHECKING:
    from collidium.contracts.task import Card, Metric
    from collidium.scoring.truth.parts import ScoredTruth

#: All metrics at once, at twice the cost of one. Ties in time are decided by id, as on the leaderboard.
_STEPS: Final = """
SELECT id, {improves} FROM (
    SELECT id, submitted_at, {compared} FROM (
        SELECT id, submitted_at, {worths}
        FROM submissions WHERE challenge = ? AND truth_version = ? AND rank_score IS NOT NULL
            AND (submitted_at, id) <= (?, ?)
    ) AS scored
    WINDOW earlier AS (ORDER BY submitted_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) AS compared WHERE {is_step} ORDER BY submitted_at, id
"""
_IMPROVES: Final = "(worth{0} IS NOT NULL AND (best{0} IS NULL OR worth{0} > best{0}))"
#: Number of versions whose histories are cached.
_KEPT: Final = 8


@dataclass(frozen=True, slots=True)
class _Steps:
    """For each metric the ids of the submissions that improved its best value, and that value."""

    mark: BoardMark | None
    ids: Mapping[str, Sequence[str]]
    #: Larger is better.
    worths: Mapping[str, float]

    def with_(self, changes: Changes, card: Card, truth_version: ScoredTruth | None) -> _Steps | None:
        """Add later submissions; None if a step has left, without which others may be steps."""
        if any(not changes.left.isdisjoint(some) for some in self.ids.values()):
            return None
        ids, worths = {name: list(some) for name, some in self.ids.items()}, dict(self.worths)
        for row in changes.rows:
            if row["truth_version"] != truth_version or row["rank_score"] is None:
                continue
            scores = loaded(Submission, "scores", row["scores"])
            for metric in card.metrics:
                if (worth := _worth(metric, scores)) is not None and not worths.get(
                    metric.name, -inf
                ) >= worth:
                    worths[metric.name] = worth
                    ids[metric.name].append(row["id"])
        return _Steps(changes.mark, ids, worths)


class Histories:
    """A cache of the histories of the latest versions; concurrent calls share the computation.

    After new submissions, and when others lost their rank that were no steps, only these are read.
    """

    def __init__(self) -> None:
        self._found: SharedCalls[BoardVersion, _Steps] = SharedCalls(LRUCache(_KEPT))
        self._latest: LRUCache[tuple[str, str | None], _Steps] = LRUCache(_KEPT)

    async def steps(
        self, version: BoardVersion, card: Card, metric_name: str | None, *, limit: int
    ) -> list[BestStep]:
        """The last ``limit`` improvements of a metric (None: the primary one), oldest first.

        Computed from the current scores of the submissions on the leaderboard; self-reported metrics need not
        be verified. Raises InvalidInput for an unknown metric.
        """
        metric = _metric(card, metric_name)
        improving = await self._found.run(version, lambda: self._improving(version, card))
        ids = improving.ids[metric.name][-limit:]
        kept = {row.id: row for some in in_chunks(ids) for row in await Submission.filter(id__in=some)}
        return [_step(kept[id_], metric.name) for id_ in ids if id_ in kept]

    async def _improving(self, version: BoardVersion, card: Card) -> _Steps:
        place = version.challenge, version.truth_version
        before, found = self._latest.get(place), None
        if before is not None and before.mark is not None:
            changes = await additions.since(version.challenge, before.mark)
            found = changes and before.with_(changes, card, version.truth_version)
        self._latest[place] = found = found or await _read(version, card)
        return found


async def _read(version: BoardVersion, card: Card) -> _Steps:
    """Read all submissions on the leaderboard."""
    mark = await additions.mark(version.challenge)
    names = [metric.name for metric in card.metrics]
    if mark is None:
        return _Steps(None, {name: [] for name in names}, {})
    values = version.challenge, version.truth_version, mark.submitted_at, mark.id
    rows = await rows_of(_query(card), *names, *values)
    ids = {name: [row["id"] for row in rows if row[f"step{place}"]] for place, name in enumerate(names)}
    worths = {
        name: row[f"worth{place}"] for row in rows for place, name in enumerate(names) if row[f"step{place}"]
    }
    return _Steps(mark, ids, worths)


def _query(card: Card) -> str:
    is_sqlite = isinstance(connection(), SqliteClient)
    score = """json_extract(scores, '$."' || ? || '"')""" if is_sqlite else "scores ->> CAST(? AS text)"
    signs = ["" if metric.higher_is_better else "-" for metric in card.metrics]
    improves = [_IMPROVES.format(place) for place in range(len(signs))]
    return _STEPS.format(
        improves=", ".join(
            f"{improved} AS step{place}, worth{place}" for place, improved in enumerate(improves)
        ),
        compared=", ".join(
            f"worth{place}, max(worth{place}) OVER earlier AS best{place}" for place in range(len(signs))
        ),
        worths=", ".join(
            f"{sign} CAST({score} AS double precision) AS worth{place}" for place, sign in enumerate(signs)
        ),
        is_step=" OR ".join(improves),
    )


def _worth(metric: Metric, scores: Mapping[str, Any]) -> float | None:
    score = scores.get(metric.name)
    return None if score is None else float(score) if metric.higher_is_better else -float(score)


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
