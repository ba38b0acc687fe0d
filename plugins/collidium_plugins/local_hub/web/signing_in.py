"""The hub's pages for signing in: consent, and sign-in links.

On the consent page a user allows an application to act for them, or denies it. With a sign-in link users
sign in for the first time or after a reset.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Final

from quart import Response, request

from collidium.accounts import recognise
from collidium.api import browsers
from collidium.api.context import caller_address, platform
from collidium.challenges import tasklist
from collidium_plugins.local_hub import accounts, roster
from collidium_plugins.local_hub.accounts import SCOPES, HubAccount
from collidium_plugins.local_hub.failures import HubFailure
from collidium_plugins.local_hub.openid import grants
from collidium_plugins.local_hub.openid.grants import ACCESS_SECONDS
from collidium_plugins.local_hub.openid.requests import (
    AuthorizationError,
    AuthorizationRequest,
    check_redirect_uri,
    origin_of,
    read_request,
    seal,
    unseal,
    with_query,
)
from collidium_plugins.local_hub.web.context import (
    hub,
    own_origin,
    page,
    pages_url,
    reading,
    sent_form,
    writing,
)

CONSENT: Final = "/oauth/authorize"
LINK: Final = "/join"

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,500}")


async def ask_consent() -> Response:
    """``GET /oauth/authorize``"""
    sent = {name: request.args.getlist(name) for name in request.args}
    return await _consent(read_request(sent, hub().client, pages_url()))


async def answer_consent() -> Response:
    """``POST /oauth/authorize``: the consent form"""
    browsers.require_own_origin(own_origin())
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
    source = caller_address(hub().proxies)
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


async def show_link() -> Response:
    """``GET /join?link=``: asks whether to sign in, so that link previews do not use the link up."""
    link = request.args.get("link", "")
    account = await _account(link)
    return await _no_link() if account is None else await page("join.html", account=account, link=link)


async def use_link() -> Response:
    """``POST /join``: signs in and shows the account's token."""
    browsers.require_own_origin(own_origin())
    settings, link = platform().settings, (await sent_form()).get("link", "")
    account = await _account(link)
    if account is None:
        return await _no_link()
    # Creates the platform's account on first use; raises for a banned one.
    await recognise(account.name, signup_grant=settings.signup_grant)
    scopes = frozenset(("openid", *settings.oauth_scopes))
    used = await writing(lambda db: roster.use_link(db, link, hub().client.id, scopes))
    if used is None:
        return await _no_link()
    (token, for_pages), sessions = used, platform().sessions
    if earlier := browsers.read_cookie(settings, browsers.SESSION):
        await sessions.end(earlier)
    session = await sessions.begin(account.name, for_pages, ACCESS_SECONDS, scopes)
    listed = await tasklist.list_challenges(platform())
    current = [each for each in listed if each.state == "open" and each.name != each.task]
    response = await page("joined.html", account=account, token=token, challenges=current)
    browsers.set_cookie(settings, response, browsers.SESSION, session.key, sessions.seconds_left(session))
    return response


async def _account(link: str) -> HubAccount | None:
    """The account that a link signs in; None for an invalid, used or expired one."""
    settings = platform().settings
    # With another hub, equal names may belong to other people. Sessions are for the server's own port.
    if settings.hub_url or settings.identity != "hub" or not pages_url():
        raise HubFailure(404, "Accounts of this hub cannot sign in here.")
    return await reading(lambda db: roster.link_account(db, link))


async def _no_link() -> Response:
    return await page("no-link.html", 404, days=roster.LINK_DAYS)
