"""``/v1/leaderboard``: leaderboards of tasks and their history; results of a challenge in one file."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import AsyncIterator, Iterable, Sequence
from io import StringIO
from typing import Final

from cachetools import LRUCache
from quart import Blueprint, Response, current_app, request
from quart.blueprints import BlueprintSetupState
from quart_schema import document_response, operation_id, validate_querystring

from collidium.api.answers import JSON, PageQuery, WrittenPage, answer_page, page_of
from collidium.api.context import platform
from collidium.api.schemas import HistoryQuery, LeaderboardQuery, ResultsQuery
from collidium.errors import InvalidInput
from collidium.presentation import places
from collidium.records import BestStep, Place, Result, Submission, as_json, encode
from collidium.runtime.metrics import CACHE
from collidium.settings import MEBIBYTE
from collidium.submissions import fronts, histories, rank_intervals, reading, results, teams
from collidium.submissions import leaderboard as boards

blueprint = Blueprint("leaderboards", __name__, url_prefix="/v1/leaderboard")

#: Memory of the cache of encoded pages of leaderboards, and of each page in addition to its text.
PAGES_BYTES = 16 * MEBIBYTE
PAGE_OVERHEAD = 2048

_PAGES = "collidium.leaderboard_pages"
_FRONTS = "collidium.leaderboard_fronts"
_HISTORIES = "collidium.leaderboard_histories"
INTERVALS = "collidium.rank_intervals"

Pages = LRUCache[tuple[boards.BoardVersion, LeaderboardQuery | HistoryQuery], WrittenPage]

#: Memory of the cache of encoded results; 10,000 places take 6 MB. Larger results are not cached.
RESULTS_BYTES: Final = 32 * MEBIBYTE
RESULTS: Final = "collidium.results"

Found = AsyncIterator[Sequence[Result]]


@blueprint.record
def _prepare(state: BlueprintSetupState) -> None:
    """Create the caches of an app."""
    state.app.extensions[_FRONTS] = fronts.Fronts()
    state.app.extensions[_HISTORIES] = histories.Histories()
    state.app.extensions[INTERVALS] = rank_intervals.RankIntervals()
    state.app.extensions[_PAGES] = Pages(PAGES_BYTES, lambda page: PAGE_OVERHEAD + len(page.body))


@blueprint.get("/<task>")
@validate_querystring(LeaderboardQuery)
@document_response(list[Place])
async def leaderboard(task: str, query_args: LeaderboardQuery) -> Response:
    """The leaderboard of a task: the best submission of each participant, best primary metric first.

    Equal scores share a rank, earlier submissions first. Baselines are listed at their scores and have no
    rank. With `all=true` every submission; with `pareto=true` those of all that no other beats in one of the
    task's two `pareto` metrics without being worse in the other; with `hub_username` (including those of the
    account's team) or `model_repo` only these submissions, with their ranks among all. The response has an
    ETag: a request with If-None-Match is cheap while nothing changes.
    """
    return await leaderboard_response(task, query_args)


async def leaderboard_response(challenge: str, query_args: LeaderboardQuery) -> Response:
    """Return a page of a challenge's leaderboard."""
    version = await boards.current_version(challenge)
    pages: Pages = current_app.extensions[_PAGES]
    page = pages.get((version, query_args))
    CACHE.labels("leaderboards", "miss" if page is None else "hit").inc()
    if page is not None:
        return await _conditional(version, page)
    intervals = None
    if not (query_args.all or query_args.pareto):
        finder: rank_intervals.RankIntervals = current_app.extensions[INTERVALS]
        intervals = await finder.of(version)
    is_complete = intervals is not None or query_args.all or query_args.pareto
    found, cursor = await _places(version, query_args, intervals)
    page = page_of(found, query_args, cursor)
    if found and is_complete:  # not the unlimited number of cursors past the end
        pages[version, query_args] = page
    # An empty page may change within a version: who joins a team gets its places.
    mark = ("" if is_complete else "-without-intervals") + ("" if found else "-empty")
    return await _conditional(version, page, mark)


@blueprint.get("/<task>/history")
@operation_id("leaderboard_history")
@validate_querystring(HistoryQuery)
@document_response(list[BestStep])
async def history(task: str, query_args: HistoryQuery) -> Response:
    """History of a metric's best value: submissions that were the best when they arrived, oldest first.

    Of the submissions on the leaderboard, by their current scores. It includes self-reported values that are
    not verified, as the leaderboard does; their `verified_at` is null.
    """
    return await history_response(task, query_args)


@blueprint.get("/<task>/self-reported")
@operation_id("self_reported")
@validate_querystring(PageQuery)
@document_response(list[Submission])
async def self_reported(task: str, query_args: PageQuery) -> Response:
    """Submissions to a task or challenge listed separately, without ranks and rewards, newest first.

    Where the card has `ranks_measured` the platform measures size and speed of the models that it runs;
    values that submitters report themselves are listed here.
    """
    found = await reading.list_self_reported(
        platform(), task, limit=query_args.limit + 1, after=query_args.cursor
    )
    return answer_page(found, query_args, lambda last: last.submission_id)


async def history_response(challenge: str, query_args: HistoryQuery) -> Response:
    """Return the history of a metric's best value."""
    version = await boards.current_version(challenge)
    card = platform().tasks.find(version.task).card
    pages: Pages = current_app.extensions[_PAGES]
    page = pages.get((version, query_args))
    if page is None:
        kept: histories.Histories = current_app.extensions[_HISTORIES]
        found = await kept.steps(version, card, query_args.metric, limit=query_args.limit)
        page = WrittenPage(encode(found))
        pages[version, query_args] = page
    return await _conditional(version, page)


async def validator(challenge: str) -> str:
    """Return the ETag of a challenge's leaderboard, for pages of this process; raises NotFound."""
    return _tag(await boards.current_version(challenge))


def _tag(version: boards.BoardVersion) -> str:
    return f"{version.truth_version}-{version.revision}"


async def _conditional(version: boards.BoardVersion, page: WrittenPage, mark: str = "") -> Response:
    """Return the page, or 304 if the caller has this version already."""
    response = page.response()
    response.set_etag(_tag(version) + mark)
    return await response.make_conditional(request)


async def _places(
    version: boards.BoardVersion, query: LeaderboardQuery, intervals: rank_intervals.Intervals | None
) -> tuple[list[Place], str | None]:
    kept: fronts.Fronts = current_app.extensions[_FRONTS]
    task = platform().tasks.things.get(version.task)
    front = await kept.of(version, task.card if task else None)
    name = query.hub_username
    team = None if name is None else await teams.participant_with(name, version.challenge)
    selection = boards.BoardSelection(name, query.model_repo, team, all=query.all or query.pareto)
    if not query.pareto:
        return await boards.places(
            version,
            limit=query.limit,
            cursor=query.cursor,
            front=front,
            intervals=intervals,
            selection=selection,
        )
    if front is None:
        detail = f"pareto: task {version.task!r} does not trade two metrics; ask for the whole leaderboard"
        raise InvalidInput(detail, errors=[{"field": "pareto", "detail": "not for this task"}])
    return await boards.places_on_front(front, limit=query.limit, cursor=query.cursor, selection=selection)


class Results(LRUCache[tuple[boards.BoardVersion, ResultsQuery], bytes]):
    """Encoded results of the latest versions."""

    def __init__(self) -> None:
        super().__init__(RESULTS_BYTES, len)


async def results_response(name: str, query: ResultsQuery) -> Response:
    """Return all places, encoded and sent a few at a time; raises NotFound."""
    version = await boards.current_version(name)
    kept: Results = current_app.extensions[RESULTS]
    body = kept.get((version, query))
    CACHE.labels("results", "miss" if body is None else "hit").inc()
    content_type = "text/csv; charset=utf-8" if query.format == "csv" else JSON
    response = Response(
        body or _cached(kept, (version, query), await _encoded(version, query)), content_type=content_type
    )
    response.headers.set("Content-Disposition", "attachment", filename=f"{name}-results.{query.format}")
    response.set_etag(_tag(version))
    return await response.make_conditional(request)


async def _encoded(version: boards.BoardVersion, query: ResultsQuery) -> AsyncIterator[bytes]:
    metrics = [metric.name for metric in platform().tasks.find(version.task).card.metrics]
    intervals = None
    if query.status is not None:
        found = results.without_rank(version, query.status)
    else:
        if not query.all:
            finder: rank_intervals.RankIntervals = current_app.extensions[INTERVALS]
            intervals = await finder.of(version, patience=None)
        found = results.everything(version, intervals=intervals, every=query.all)
    return _as_csv(found, metrics) if query.format == "csv" else _as_json(found)


async def _cached(
    kept: Results, key: tuple[boards.BoardVersion, ResultsQuery], chunks: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Yield the chunks, and cache them together once they are complete, if they are small enough."""
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
    yield _csv_text([places.file_header(metrics)])
    async for some in found:
        yield await asyncio.to_thread(_csv_rows, some, metrics)


def _csv_rows(some: Sequence[Result], metrics: Sequence[str]) -> bytes:
    return _csv_text(places.file_row(result, metrics) for result in map(as_json, some))


def _csv_text(rows: Iterable[Iterable[object]]) -> bytes:
    text = StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
