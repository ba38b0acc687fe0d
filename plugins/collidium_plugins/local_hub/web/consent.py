"""The consent page, on which a user allows an application to act for them, or denies it."""

from __future__ import annotations

import re
import sqlite3
from typing import Final

from quart import Response, request

from collidium_plugins.local_hub import accounts
from collidium_plugins.local_hub.accounts import SCOPES
from collidium_plugins.local_hub.openid import grants
from collidium_plugins.local_hub.openid.clients import origin_of
from collidium_plugins.local_hub.openid.requests import (
    AuthorizationError,
    AuthorizationRequest,
    check_redirect_uri,
    read_request,
    seal,
    unseal,
    with_query,
)
from collidium_plugins.local_hub.web.context import hub, pages_url, sent_form, writing
from collidium_plugins.local_hub.web.pages import page

PATH: Final = "/oauth/authorize"

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,500}")


async def ask() -> Response:
    """``GET /oauth/authorize``"""
    sent = {name: request.args.getlist(name) for name in request.args}
    return await _consent(read_request(sent, hub().client, pages_url()))


async def answer() -> Response:
    """``POST /oauth/authorize``: the consent form"""
    form = await sent_form()
    wanted = unseal(hub().store.ticket_key, form.get("ticket", ""))
    # The settings may have changed, or the ticket was issued under another name of this machine.
    check_redirect_uri(wanted.client_id, wanted.redirect_uri, hub().client, pages_url())
    if form.get("decision") != "allow":
        raise AuthorizationError(
            "access_denied", "The user did not allow it", wanted.redirect_uri, wanted.state
        )
    return await _allow(wanted, form.get("token", "").strip())


async def _allow(wanted: AuthorizationRequest, token: str) -> Response:
    source = request.remote_addr or ""
    if hub().attempts.are_too_many(source):
        problem = "Too many tokens that are not valid. Wait a minute, then try again."
        response = await _consent(wanted, 429, problem)
        response.headers["Retry-After"] = str(accounts.WINDOW_SECONDS)
        return response
    code = await writing(lambda db: _code(db, wanted, token)) if _TOKEN.fullmatch(token) else None
    if code is None:
        hub().attempts.count(source)
        problem = "This is not a token of an account here. Paste the whole token, or make a new one."
        return await _consent(wanted, 401, problem)
    return redirect_to(with_query(wanted.redirect_uri, {"code": code, "state": wanted.state}))


def _code(db: sqlite3.Connection, wanted: AuthorizationRequest, token: str) -> str | None:
    caller = accounts.owner_of(db, token)
    # An application's token must not be exchanged for one with more scopes.
    if caller is None or caller.scopes is not None:
        return None
    return grants.allow(db, caller, wanted)


async def _consent(wanted: AuthorizationRequest, status: int = 200, problem: str = "") -> Response:
    origin = origin_of(wanted.redirect_uri)
    response = await page(
        "consent.html",
        status,
        leads_to=origin,
        ticket=seal(hub().store.ticket_key, wanted),
        application=wanted.client_id,
        origin=origin,
        permissions=[text for scope, text in SCOPES.items() if scope in wanted.scopes],
        problem=problem,
    )
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="hub"'
    return response


def redirect_to(address: str) -> Response:
    """Redirect by 303, so that the browser does not send the form again (RFC 9700, section 4.12)."""
    response = Response("", 303)
    response.headers.update(
        {"Location": address, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    )
    return response
