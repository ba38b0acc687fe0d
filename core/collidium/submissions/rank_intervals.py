"""Confidence intervals of ranks, from the paired bootstrap replicates that are stored with each score.

Submissions of one seed have the same draws of events, so the ranks within a draw are those for one possible
set of events; a submission with other draws has no interval.

Unlike errors, intervals are not rounded: 100 submissions have at most 100 · 101 / 2 of them, 12 bits, in
which all submissions take part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from cachetools import LRUCache

from collidium.runtime.shared_calls import SharedCalls
from collidium.runtime.waiting import in_thread
from collidium.submissions.models import Scoring, Submission
from collidium.truth import draw_seeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collidium.submissions.leaderboard import BoardVersion

#: Fraction of the draws within an interval.
COVERAGE: Final = 0.95
#: A difference to the next better below this many standard errors may be chance.
SIGNIFICANCE: Final = 2.0
#: Maximum number of submissions of a leaderboard with intervals.
MAX_SUBMISSIONS: Final = 20_000
#: Seconds that a page waits for intervals; a page without them is not cached.
PATIENCE: Final = 0.3
_KEPT: Final = 8


#: Submissions whose draws are read in one query.
_CHUNK: Final = 500


class RankInterval(NamedTuple):
    """The interval of a rank, and whether the submission may equal the next better one."""

    rank_low: int
    rank_high: int
    may_be_equal: bool


Intervals = Mapping[str, RankInterval]


class RankIntervals:
    """A cache of the intervals of the latest versions, computed in threads."""

    def __init__(self) -> None:
        self._found: SharedCalls[BoardVersion, Intervals] = SharedCalls(LRUCache(_KEPT), finish=True)

    async def of(self, version: BoardVersion, patience: float | None = PATIENCE) -> Intervals | None:
        """The intervals of a version's participants; None if they take longer than ``patience``."""
        try:
            async with asyncio.timeout(patience):
                return await self._found.run(version, lambda: _find(version))
        except TimeoutError:
            return None


async def _find(version: BoardVersion) -> Intervals:
    best = (
        await Submission.filter(
            challenge=version.challenge,
            truth_version=version.truth_version,
            represents=True,
            rank_score__isnull=False,
        )
        .order_by("-rank_score", "submitted_at", "id")
        .limit(MAX_SUBMISSIONS)
        .values("id", "baseline", "rank_score", "scorer_version")
    )
    draws = await _draws(version, [row["id"] for row in best])
    scored = ((row, draws.get((row["id"], row["scorer_version"]))) for row in best)
    rows = [row | {"draws": drawn} for row, drawn in scored if drawn]
    longest = max((len(row["draws"]) for row in rows), default=0)
    kept = [row for row in rows if len(row["draws"]) == longest]
    if not kept:
        return {}
    values = np.frombuffer(b"".join(row["draws"] for row in kept), np.float32).reshape(len(kept), -1)
    competes = np.array([not row["baseline"] for row in kept])
    scores = np.array([row["rank_score"] for row in kept])
    found = await in_thread(lambda: rank_intervals(scores, values, competes), "ranks")
    ids = [str(row["id"]) for row in kept]
    return dict(zip(ids, found, strict=True))


async def _draws(version: BoardVersion, ids: Sequence[str]) -> Mapping[tuple[str, str], bytes]:
    """The draws of submissions, by their ids and scorers; only theirs are read, as they are large."""
    found: dict[tuple[str, str], bytes] = {}
    seed = await draw_seeds.find(version.task, version.truth_version)
    for begin in range(0, len(ids), _CHUNK):
        rows = Scoring.filter(
            submission_id__in=ids[begin : begin + _CHUNK],
            truth_version=version.truth_version,
            primary_draws__isnull=False,
            seed=seed,
        )
        columns = "submission_id", "scorer_version", "primary_draws"
        found |= {(id_, scorer): drawn for id_, scorer, drawn in await rows.values_list(*columns)}
    return found


def rank_intervals(
    scores: NDArray[np.float64], draws: NDArray[np.float32], competes: NDArray[np.bool_]
) -> list[RankInterval]:
    """The intervals of ranks, best first.

    Parameters
    ----------
    scores : array of shape (n,)
        Larger is better, in descending order.
    draws : array of shape (n, draws)
        Scores on resampled events; each column has the same events.
    competes : array of shape (n,)
        Whether a submission occupies a rank; others get the rank that they would have.
    """
    ranks: NDArray[np.int32] = np.empty(draws.shape, np.int32)
    for draw in range(draws.shape[1]):
        values = draws[:, draw]
        order = np.argsort(values)  # searching for sorted values is several times faster
        ascending = values[order]
        rivals = ascending[competes[order]]
        ranks[order, draw] = len(rivals) - np.searchsorted(rivals, ascending, side="right") + 1
    ranks.sort(axis=1)
    tail = (1 - COVERAGE) / 2
    low, high = (ranks[:, round(share * (ranks.shape[1] - 1))] for share in (tail, 1 - tail))
    scatter = np.std(np.diff(draws, axis=0), axis=1)
    equal = np.concatenate([[False], -np.diff(scores) <= SIGNIFICANCE * scatter])
    return [RankInterval(int(a), int(b), bool(c)) for a, b, c in zip(low, high, equal, strict=True)]
