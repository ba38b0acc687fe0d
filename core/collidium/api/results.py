"""The results of a challenge in one file, written while they are read."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Iterable, Sequence
from io import StringIO
from typing import Final

from cachetools import LRUCache
from quart import Response, current_app, request

from collidium.api.answers import JSON
from collidium.api.context import platform
from collidium.api.leaderboards import INTERVALS
from collidium.api.schemas import ResultsQuery
from collidium.benchmarks import leaderboard as boards
from collidium.benchmarks.leaderboard import BoardVersion, Selection
from collidium.benchmarks.rank_intervals import RankIntervals
from collidium.records import Result, as_json, encode
from collidium.runtime.metrics import CACHE
from collidium.settings import MEBIBYTE

#: Memory for results as they were written out; 10,000 places take 6 MB. Larger ones are written each time.
RESULTS_BYTES: Final = 32 * MEBIBYTE
RESULTS: Final = "collidium.results"

#: Columns before those of the metrics, and what they have.
_COLUMNS: Final = {
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

Found = AsyncIterator[Sequence[Result]]


class Results(LRUCache[tuple[BoardVersion, ResultsQuery], bytes]):
    """Whole results of the latest versions."""

    def __init__(self) -> None:
        super().__init__(RESULTS_BYTES, len)


async def written(name: str, query: ResultsQuery) -> Response:
    """Answer with all places; what is written is some of them at a time. Raises NotFound."""
    version = await boards.current_version(name)
    kept: Results = current_app.extensions[RESULTS]
    body = kept.get((version, query))
    CACHE.labels("results", "miss" if body is None else "hit").inc()
    content_type = "text/csv; charset=utf-8" if query.format == "csv" else JSON
    response = Response(
        body or _keep(kept, (version, query), await _write(version, query)), content_type=content_type
    )
    response.headers.set("Content-Disposition", "attachment", filename=f"{name}-results.{query.format}")
    response.set_etag(f"{version.truth_version}-{version.revision}")
    return await response.make_conditional(request)


async def _write(version: BoardVersion, query: ResultsQuery) -> AsyncIterator[bytes]:
    metrics = [metric.name for metric in platform().tasks.find(version.task).card.metrics]
    intervals = None
    if query.status is not None:
        found = boards.removed_results(version, [query.status])
    else:
        if not query.all:
            finder: RankIntervals = current_app.extensions[INTERVALS]
            intervals = await finder.of(version, patience=None)
        found = boards.all_results(version, intervals=intervals, selection=Selection(all=query.all))
    return _as_csv(found, metrics) if query.format == "csv" else _as_json(found)


async def _keep(
    kept: Results, key: tuple[BoardVersion, ResultsQuery], chunks: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Pass the chunks on, and keep them together once they are complete, where there is room."""
    whole: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size <= RESULTS_BYTES:
            whole.append(chunk)
        else:
            whole.clear()
        yield chunk
    if size <= RESULTS_BYTES:
        kept[key] = b"".join(whole)


async def _as_json(found: Found) -> AsyncIterator[bytes]:
    before = b"["
    async for some in found:
        if some:
            yield before + encode(some)[1:-1]
            before = b","
    yield b"]" if before == b"," else b"[]"


async def _as_csv(found: Found, metrics: Sequence[str]) -> AsyncIterator[bytes]:
    yield _rows([[*_COLUMNS, *(column for metric in metrics for column in (metric, f"{metric}_error"))]])
    async for some in found:
        yield _rows(
            [
                *(result[field] for field in _COLUMNS.values()),
                *(result[of].get(metric) for metric in metrics for of in ("scores", "uncertainties")),
            ]
            for result in map(as_json, some)
        )


def _rows(rows: Iterable[Sequence[object]]) -> bytes:
    text = StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
