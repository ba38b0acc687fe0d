"""``/v1/me/notifications``: what an account is notified of by e-mail; and the page of links in e-mail."""

from __future__ import annotations

from html import escape
from typing import Final

from quart import Blueprint, Response, request
from quart_schema import document_response, hide, operation_id, validate_request

from collidium.api.answers import answer
from collidium.api.authentication import caller, signed_in
from collidium.api.context import platform
from collidium.api.order_schemas import NotificationsBody
from collidium.errors import RefusedError
from collidium.outbox import LINK_PATH, recipients
from collidium.outbox.recipients import Link
from collidium.records import Notifications

blueprint = Blueprint("notifications", __name__)

_PATH: Final = "/v1/me/notifications"
#: Question, button, and what is said when it was done.
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


@blueprint.get(_PATH)
@signed_in
@document_response(Notifications)
async def notifications() -> Response:
    """What you are notified of, and your e-mail address."""
    return answer(await recipients.find((await caller()).id))


@blueprint.patch(_PATH)
@operation_id("set_notifications")
@signed_in
@validate_request(NotificationsBody)
@document_response(Notifications)
async def set_notifications(data: NotificationsBody) -> Response:
    """Switch kinds of events on and off; set the e-mail address, which is sent a link to confirm it first."""
    changed = await recipients.change(
        (await caller()).id,
        platform().settings,
        kinds=data.kinds,
        email=data.email,
        keep_email="email" not in data.model_fields_set,
    )
    return answer(changed)


@blueprint.get(LINK_PATH)
@hide
async def ask() -> Response:
    """Show what a link is for. Nothing changes: programs that look for harm in e-mail open links, too."""
    return await _page(done=False)


@blueprint.post(LINK_PATH)
@hide
async def act() -> Response:
    """Do what a link is for: sent by the page's button, and by mail programs (RFC 8058)."""
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
