"""``/v1/models`` and ``/v1/cards``: models that their owners share on the hub, and cards of repositories."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import document_response, operation_id, validate_querystring

from collidium.api.answers import answer, page_of
from collidium.api.context import caller_address, platform
from collidium.api.schemas import ModelsQuery
from collidium.hub.models import ModelQuery
from collidium.records import HubModel, RepoCard

blueprint = Blueprint("models", __name__, url_prefix="/v1")


@blueprint.get("/models")
@operation_id("models")
@validate_querystring(ModelsQuery)
@document_response(list[HubModel])
async def listed(query_args: ModelsQuery) -> Response:
    """Models on the hub that carry the platform's tag, the latest first.

    The tag is all it takes to be listed; the tag `<platform's tag>-task:NAME` says what task a model is for.
    A page may be shorter than `limit` and still have a next one.
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


@blueprint.get("/cards/<kind>/<namespace>/<name>")
@operation_id("card")
@document_response(RepoCard)
async def card(kind: str, namespace: str, name: str) -> Response:
    """The card and the files of a public repository on the hub that carries the platform's tag.

    `kind` is datasets or models.
    """
    address = caller_address(platform().settings.trusted_proxies)
    return answer(await platform().repo_cards.read(kind, f"{namespace}/{name}", address))
