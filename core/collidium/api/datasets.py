"""``/v1/datasets``, ``/v1/models`` and ``/v1/cards``: datasets, their events, and models on the hub."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from quart import Blueprint, Response, request
from quart_schema import document_response, operation_id, validate_querystring

from collidium.api.answers import LARGEST_ID, answer, page_of
from collidium.api.context import caller_address, platform
from collidium.api.documented_errors import raises
from collidium.api.openapi import event_answer
from collidium.api.schemas import DatasetsQuery, EventQuery, ModelsQuery
from collidium.challenges import truth_in_use
from collidium.errors import (
    Conflict,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unavailable,
    UnknownCursor,
    UpstreamError,
)
from collidium.event_display import Wanted
from collidium.hub.models import ModelQuery
from collidium.records import DatasetEntry, HubModel, RepoCard

blueprint = Blueprint("datasets", __name__, url_prefix="/v1")
models = Blueprint("models", __name__, url_prefix="/v1")


@blueprint.get("/datasets")
@operation_id("datasets")
@validate_querystring(DatasetsQuery)
@document_response(list[DatasetEntry])
@raises(UpstreamError, Unavailable)
async def datasets(query_args: DatasetsQuery) -> Response:
    """Public datasets on the hub that carry the platform's tag, the latest first, after the built-in sample.

    Each config is an entry. While the hub is unavailable, the last list is sent: `Age` is its age in seconds,
    and `X-Warning` the reason.
    """
    listed = await platform().event_display.datasets(query_args.repo)
    found = listed.entries
    first = 0 if query_args.cursor is None else _place(found, query_args.cursor) + 1
    page = found[first : first + query_args.limit]
    cursor = _name(page[-1]) if first + len(page) < len(found) else None
    response = page_of(page, query_args, cursor).response()
    if listed.stale:
        response.headers.update({"Age": str(listed.age_seconds), "X-Warning": listed.warning})
    return response


@blueprint.get("/datasets/<config>/events/<event_id>")
@event_answer
@validate_querystring(EventQuery)
@raises(Conflict, TooLarge, UpstreamError, Unavailable)
async def event(config: str, event_id: str, query_args: EventQuery) -> Response:
    """One event, with tables of one row per hit, cell, particle, track or jet.

    Consecutive uncompressed Arrow IPC streams, one per table; the metadata of each schema has `table`,
    `repo`, `config`, `revision` and `event_id`. The truth of an event that a listed task is scored on is not
    sent; `withheld` then has the reason.
    """
    wanted = Wanted(
        config=config,
        event_id=_number(event_id),
        repo=query_args.repo,
        tables=_tables(query_args.tables),
        revision=query_args.revision,
        format=query_args.format,
    )
    found = await platform().event_display.event(wanted, partial(truth_in_use.is_evaluated, platform()))
    response = Response(found.content, content_type=found.media_type)
    response.set_etag(found.tag)
    response.headers["Cache-Control"] = "no-cache"
    if wanted.format == "phoenix":
        name = f"{config}-event-{wanted.event_id}.json"
        response.headers.set("Content-Disposition", "attachment", filename=name)
    return await response.make_conditional(request)


def _number(event_id: str) -> int:
    if not (
        event_id.isascii() and event_id.isdecimal() and len(event_id) < 20 and int(event_id) <= LARGEST_ID
    ):
        raise NotFound("an event is called by its number")
    return int(event_id)


def _tables(names: str | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name.strip() for name in names.split(",") if name.strip()) or None


def _name(config: DatasetEntry) -> str:
    return f"{config.repo}:{config.config}"


def _place(found: Sequence[DatasetEntry], cursor: str) -> int:
    names = [_name(config) for config in found]
    if cursor not in names:
        raise UnknownCursor
    return names.index(cursor)


@models.get("/models")
@operation_id("models")
@validate_querystring(ModelsQuery)
@document_response(list[HubModel])
@raises(UpstreamError, TooManyRequests, Unavailable)
async def listed(query_args: ModelsQuery) -> Response:
    """Models on the hub that carry the platform's tag, the latest first.

    The tag suffices to be listed; the tag `<platform's tag>-task:NAME`, or `NAME` alone, names the task of a
    model, which `task=NAME` finds by either. A page may
    be shorter than `limit` and still have a next one.
    """
    question = ModelQuery(
        search=query_args.search,
        tag=query_args.tag,
        task=query_args.task,
        limit=query_args.limit,
        cursor=query_args.cursor or "",
    )
    address = caller_address(platform().settings.trusted_proxies)
    found = await platform().model_zoo.models(question, address)
    return page_of(found.models, query_args, found.cursor).response()


@models.get("/cards/<kind>/<namespace>/<name>")
@operation_id("card")
@document_response(RepoCard)
@raises(UpstreamError, TooManyRequests, Unavailable)
async def card(kind: str, namespace: str, name: str) -> Response:
    """The card and the files of a public repository on the hub that carries the platform's tag.

    `kind` is datasets or models.
    """
    address = caller_address(platform().settings.trusted_proxies)
    return answer(await platform().repo_cards.read(kind, f"{namespace}/{name}", address))
