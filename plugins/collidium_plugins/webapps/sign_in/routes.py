"""Routes to sign in and out, and the balance in the account menu."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

from quart import Response, g, jsonify, request

from collidium import sessions
from collidium.api import browsers
from collidium.api.context import caller_address
from collidium.errors import BadRequest
from collidium_plugins.webapps import context
from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.rendering import render, see_other
from collidium_plugins.webapps.sign_in import flow, forms

CALLBACK: Final = "/web/callback"


async def _count_attempt(kind: str) -> None:
    settings = context.web().settings
    address = caller_address(settings.trusted_proxies)
    await sessions.count_attempt(kind, address, settings.sign_ins_per_minute)


async def sign_in() -> Response:
    """``GET /web/sign-in?next=&for=&with=``: redirects to the hub, and from there to the page ``next``

    Requests the scopes of the action ``for`` and those that the session has. If there is another provider,
    users choose one first, except with ``with=hub``.
    """
    web, viewer = context.web(), context.viewer()
    if web.single_sign_on and viewer is None and request.args.get("with") != "hub":
        ways = {"next": request.args.get("next", ""), "for": request.args.get("for", "")}
        return await render("sign-in.html", ways=ways, issuer=urlsplit(web.settings.oidc_issuer).netloc)
    scopes = {*web.settings.oauth_scopes, *context.scopes_for(request.args.get("for", ""))}
    return await start(web.sign_in, CALLBACK, sorted(scopes | viewer.scopes if viewer else scopes))


async def start(client: flow.OAuthClient, callback: str, scopes: Sequence[str]) -> Response:
    """Redirect to a provider, which redirects to our path ``callback``; each provider has its own."""
    await _count_attempt("sign-in")
    pending = await sessions.begin(
        context.origin() + callback, forms.local(request.args.get("next", "")), scopes
    )
    response = see_other(context.address_for_browsers(await client.authorization_url(pending)))
    _remember(response, pending)
    return response


def _remember(response: Response, pending: sessions.BegunSignIn) -> None:
    """Set a cookie of this sign-in alone, so that sign-ins in several tabs do not disturb each other."""
    settings = context.web().settings
    for oldest in [*browsers.read_sign_ins(settings)][: 1 - browsers.SIGN_INS]:
        browsers.delete_cookie(settings, response, oldest)
    cookie = f"{browsers.SIGN_IN}_{time.time_ns()}_{pending.state[:8]}"
    browsers.set_cookie(settings, response, cookie, pending.key, sessions.PENDING_SECONDS)


async def callback() -> Response:
    """``GET /web/callback?code=&state=``: redirect from the hub; begins a session with a new key"""
    pending, grant = await finish(context.web().sign_in, CALLBACK)
    return await begin_session(pending, grant.token, grant.expires_in, grant.scopes)


async def finish(client: flow.OAuthClient, callback: str) -> tuple[sessions.BegunSignIn, flow.Grant]:
    """Return the pending sign-in of a callback, and the provider's grant.

    Raises BadRequest, Forbidden, TooManyRequests, UpstreamError and Unavailable.
    """
    await _count_attempt("callback")
    keys = browsers.read_sign_ins(context.web().settings).values()
    pending = await sessions.finish(keys, request.args.get("state", ""))
    if pending is None or pending.redirect_uri != context.origin() + callback:
        raise BadRequest("this sign-in did not begin in this browser, or took too long; sign in again")
    if "error" in request.args:
        raise flow.denial(request.args["error"], request.args.get("error_description", ""))
    code = request.args.get("code")
    if not code:
        raise BadRequest("the identity provider sent no code; sign in again")
    return pending, await client.redeem(pending, code)


async def begin_session(
    pending: sessions.BegunSignIn, token: str, expires_in: float | None, scopes: Iterable[str]
) -> Response:
    """Begin a session with a token, and redirect to the page where the sign-in began."""
    web = context.web()
    # Creates the account on first use; raises for a banned one.
    account = await context.backend().acting_as(token).me()
    await context.end_session()
    session = await web.sessions.begin(account.hub_username, token, expires_in, scopes)
    g.web_session = session
    response = see_other(pending.return_to)
    for cookie, key in browsers.read_sign_ins(web.settings).items():
        if key == pending.key:
            browsers.delete_cookie(web.settings, response, cookie)
    seconds = web.sessions.seconds_left(session)
    browsers.set_cookie(web.settings, response, browsers.SESSION, session.key, seconds)
    return response


async def sign_out() -> Response:
    """``POST /web/sign-out``: ends the session"""
    # A form of another site comes without the cookie, and the response would delete it.
    browsers.require_own_origin(context.origin())
    await context.end_session()
    response = see_other(forms.FRONT)
    # Only here: elsewhere, a late response of the old session could delete the cookie of the next.
    browsers.delete_cookie(context.web().settings, response, browsers.SESSION)
    return response


async def balance() -> Response:
    """``GET /web/balance``: the account's credits, for the script of the account menu"""
    account = await context.backend_as_user().me()
    return jsonify(credits=float(account.credits))


ROUTES: Final[list[Route]] = [
    ("GET", "/sign-in", sign_in),
    ("GET", "/callback", callback),
    ("POST", "/sign-out", sign_out),
    ("GET", "/balance", balance),
]
