"""``/v1/me``: the caller's account, ledger, webhook and notification settings."""

from __future__ import annotations

from html import escape
from typing import Final

from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import (
    document_response,
    hide,
    operation_id,
    validate_querystring,
    validate_request,
)

from collidium import accounts, outbox
from collidium.api.answers import PageQuery, answer, answer_page, id_cursor
from collidium.api.authentication import Caller, signed_in
from collidium.api.context import platform
from collidium.api.documented_errors import raises
from collidium.api.schemas import Body, example, written_as
from collidium.errors import Conflict, NotFound, RefusedError, Unavailable
from collidium.outbox import HTTPS, LINK_PATH, LONGEST_URL, Kind, recipients
from collidium.outbox.recipients import Link
from collidium.records import Account, Notifications, Transaction, Webhook, WebhookDelivery, WebhookRemoved

blueprint = Blueprint("accounts", __name__)

webhooks = Blueprint("webhooks", __name__, url_prefix="/v1/me/webhook")

notifications_blueprint = Blueprint("notifications", __name__)

_PATH: Final = "/v1/me/notifications"
#: Question, button and confirmation.
_ASKS: Final = {
    "confirm": ("Send notifications to {}?", "Confirm", "Notifications are sent to {} from now on."),
    "unsubscribe": ("Send no more notifications to {}?", "Unsubscribe", "Nothing more is sent to {}."),
}
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "Referrer-Policy": "no-referrer",
}


class WebhookBody(Body):
    """Settings of an account's webhook."""

    model_config = example({"url": "https://hooks.example.org/collidium"}, strict=True)

    url: str | None = Field(
        None,
        max_length=LONGEST_URL,
        json_schema_extra=written_as(HTTPS),
        description="HTTPS address notified of every request; null: none. If omitted, it does not change.",
    )
    rotate_secret: bool = Field(
        False, description="Create a new signing secret; the old one expires at once."
    )


class NotificationsBody(Body):
    """Notification settings of an account."""

    model_config = example({"email": "alice@example.org", "kinds": {"deadline": False}}, strict=True)

    email: str | None = Field(
        None,
        max_length=recipients.LONGEST_ADDRESS,
        description="E-mail address; null: none. If omitted, it does not change.",
        json_schema_extra=written_as(recipients.ADDRESS),
    )
    kinds: dict[Kind, bool] = Field({}, description="Kinds of events to switch on or off.")


@blueprint.get("/v1/me")
@signed_in
@document_response(Account)
async def me(caller: Caller) -> Response:
    """Your account and its balance."""
    return answer(Account.of(caller.account))


@blueprint.get("/v1/me/transactions")
@signed_in
@validate_querystring(PageQuery)
@document_response(list[Transaction])
async def transactions(caller: Caller, query_args: PageQuery) -> Response:
    """Your ledger entries, newest first."""
    return await ledger_page(caller.account.id, query_args)


async def ledger_page(account_id: int, query: PageQuery) -> Response:
    """A page of an account's ledger; also for operators."""
    entries = await accounts.entries(account_id, limit=query.limit + 1, before=id_cursor(query))
    return answer_page(entries, query, lambda last: last.id)


@webhooks.put("")
@signed_in
@validate_request(WebhookBody)
@document_response(Webhook)
@raises(Conflict, Unavailable)
async def set_webhook(caller: Caller, data: WebhookBody) -> Response:
    """Set the address that is notified of your requests; the first call creates a signing secret.

    Only the response that creates a secret contains it: store it where the receiver can read it.
    """
    url = data.url
    if url is not None:
        url = outbox.canonical_url(url, field="url")
        await outbox.require_reachable(url, platform().settings, account_id=caller.account.id, field="url")
    webhook = await outbox.register(
        caller.account.id,
        platform().secrets,
        url=url,
        keep_url="url" not in data.model_fields_set,
        rotate_secret=data.rotate_secret,
    )
    response = answer(webhook)
    response.headers["Cache-Control"] = "no-store"
    return response


@webhooks.get("")
@signed_in
@document_response(Webhook)
@raises(NotFound)
async def webhook(caller: Caller) -> Response:
    """Your webhook."""
    return answer(await outbox.find(caller.account.id))


@webhooks.delete("")
@signed_in
@document_response(WebhookRemoved)
async def remove_webhook(caller: Caller) -> Response:
    """Remove your webhook and its secret; pending deliveries are given up."""
    removed = await outbox.remove(caller.account.id)
    return answer(WebhookRemoved(removed=removed))


@webhooks.get("/deliveries")
@operation_id("webhook_deliveries")
@signed_in
@validate_querystring(PageQuery)
@document_response(list[WebhookDelivery])
async def deliveries(caller: Caller, query_args: PageQuery) -> Response:
    """Deliveries to you and their outcome, newest first."""
    log = await outbox.log_of(caller.account.id, limit=query_args.limit + 1, before=id_cursor(query_args))
    return answer_page(log, query_args, lambda last: last.id)


@notifications_blueprint.get(_PATH)
@signed_in
@document_response(Notifications)
async def notifications(caller: Caller) -> Response:
    """Your notification settings and e-mail address."""
    return answer(await recipients.find(caller.account.id))


@notifications_blueprint.patch(_PATH)
@operation_id("set_notifications")
@signed_in
@validate_request(NotificationsBody)
@document_response(Notifications)
@raises(Conflict)
async def set_notifications(caller: Caller, data: NotificationsBody) -> Response:
    """Switch kinds of notifications on and off; set the e-mail address, which must be confirmed by a link."""
    changed = await recipients.change(
        caller.account.id,
        platform().settings,
        kinds=data.kinds,
        email=data.email,
        keep_email="email" not in data.model_fields_set,
    )
    return answer(changed)


@notifications_blueprint.get(LINK_PATH)
@hide
async def ask() -> Response:
    """Show the purpose of a link without following it: mail scanners open links, too."""
    return await _page(done=False)


@notifications_blueprint.post(LINK_PATH)
@hide
async def act() -> Response:
    """Follow a link: sent by the page's button, and by mail programs (RFC 8058)."""
    return await _page(done=True)


async def _page(*, done: bool) -> Response:
    try:
        link: Link = recipients.link_of(request.args.get("token", ""), platform().secrets)
        if done:
            await recipients.follow(link)
    except RefusedError as error:
        return _html(f"<p>{escape(error.detail)}</p>", error.status)
    question, button, result = _ASKS[link.action]
    address = f"<strong>{escape(link.address)}</strong>"
    if done:
        return _html(f"<p>{result.format(address)}</p>")
    form = f'<form method="post"><button>{button}</button></form>'
    return _html(f"<p>{question.format(address)}</p>{form}")


def _html(content: str, status: int = 200) -> Response:
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Notifications - Collidium</title>'
        f"<h1>Notifications</h1>{content}</html>"
    )
    return Response(page, status, _HEADERS, content_type="text/html; charset=utf-8")
