"""``/v1/me/webhook``: where an account is notified that its requests have ended."""

from __future__ import annotations

from quart import Blueprint, Response
from quart_schema import (
    document_response,
    operation_id,
    validate_querystring,
    validate_request,
)

from collidium import outbox
from collidium.api.answers import Page, answer, cut, id_cursor, page_of
from collidium.api.authentication import caller, signed_in
from collidium.api.context import platform
from collidium.api.order_schemas import WebhookBody
from collidium.records import Webhook, WebhookDelivery, WebhookRemoved

blueprint = Blueprint("webhooks", __name__, url_prefix="/v1/me/webhook")


@blueprint.put("")
@signed_in
@validate_request(WebhookBody)
@document_response(Webhook)
async def set_webhook(data: WebhookBody) -> Response:
    """Set the address that is notified of your requests, and make a signing secret the first time.

    The secret is in the answer that makes it and in no other: keep it where the receiver can read it.
    """
    account = await caller()
    url = data.url
    if url is not None:
        url = outbox.canonical_url(url, field="url")
        await outbox.require_reachable(url, platform().settings, account_id=account.id, field="url")
    webhook = await outbox.register(
        account.id,
        platform().secrets,
        url=url,
        keep_url="url" not in data.model_fields_set,
        rotate_secret=data.rotate_secret,
    )
    response = answer(webhook)
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("")
@signed_in
@document_response(Webhook)
async def webhook() -> Response:
    """Your webhook."""
    return answer(await outbox.find((await caller()).id))


@blueprint.delete("")
@signed_in
@document_response(WebhookRemoved)
async def remove_webhook() -> Response:
    """Forget your webhook, its secret too; what is still to be delivered is given up."""
    removed = await outbox.remove((await caller()).id)
    return answer(WebhookRemoved(removed=removed))


@blueprint.get("/deliveries")
@operation_id("webhook_deliveries")
@signed_in
@validate_querystring(Page)
@document_response(list[WebhookDelivery])
async def deliveries(query_args: Page) -> Response:
    """What was delivered to you, or was not, newest first."""
    account = await caller()
    log = await outbox.log_of(account.id, limit=query_args.limit + 1, before=id_cursor(query_args))
    page, last = cut(log, query_args.limit)
    return page_of(page, query_args, last.id if last else None).response()
