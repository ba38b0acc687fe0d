"""The addresses of signing in and out, and the balance in the account's menu."""

from __future__ import annotations

from typing import Final

from quart import Response, g, jsonify, request

from collidium import sessions
from collidium.api import browsers
from collidium.api.context import caller_address
from collidium.errors import BadRequest
from collidium_plugins.webapps import context
from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.rendering import see_other
from collidium_plugins.webapps.sign_in import flow, forms

CALLBACK: Final = "/web/callback"


async def _count_attempt(kind: str) -> None:
    settings = context.web().settings
    address = caller_address(settings.trusted_proxies)
    await sessions.count_attempt(kind, address, settings.sign_ins_per_minute)


async def sign_in() -> Response:
    """``GET /web/sign-in?next=&for=``: on to the hub, and from there back to the page ``next``.

    The hub is asked for what the action ``for`` needs, and for what the session has already.
    """
    await _count_attempt("sign-in")
    web, viewer = context.web(), context.viewer()
    scopes = {*web.settings.oauth_scopes, *context.scopes_for(request.args.get("for", ""))}
    pending = await sessions.begin(
        context.origin() + CALLBACK,
        forms.local(request.args.get("next", "")),
        sorted(scopes | viewer.scopes if viewer else scopes),
    )
    response = see_other(context.address_for_browsers(await web.sign_in.authorization_url(pending)))
    browsers.set_cookie(web.settings, response, browsers.SIGN_IN, pending.key, sessions.PENDING_SECONDS)
    return response


async def callback() -> Response:
    """``GET /web/callback?code=&state=``: back from the hub; a session begins, under a new key."""
    await _count_attempt("callback")
    web = context.web()
    key = browsers.read_cookie(web.settings, browsers.SIGN_IN)
    pending = await sessions.finish(key, request.args.get("state", ""))
    if pending is None:
        raise BadRequest("this sign-in did not begin in this browser, or took too long; sign in again")
    if "error" in request.args:
        raise flow.denial(request.args["error"], request.args.get("error_description", ""))
    code = request.args.get("code")
    if not code:
        raise BadRequest("the hub sent no code; sign in again")
    grant = await web.sign_in.redeem(pending, code)
    # As any first call does, it signs the account up; and it raises for a banned one.
    account = await context.backend().acting_as(grant.token).me()
    await context.end_session()
    session = await web.sessions.begin(account.hub_username, grant.token, grant.expires_in, grant.scopes)
    g.web_session = session
    response = see_other(pending.return_to)
    browsers.delete_cookie(web.settings, response, browsers.SIGN_IN)
    seconds = web.sessions.seconds_left(session)
    browsers.set_cookie(web.settings, response, browsers.SESSION, session.key, seconds)
    return response


async def sign_out() -> Response:
    """``POST /web/sign-out``: the session ends, on the server too."""
    await context.end_session()
    response = see_other(forms.FRONT)
    # Here alone: a late response to the session before would delete the cookie of the next.
    browsers.delete_cookie(context.web().settings, response, browsers.SESSION)
    return response


async def balance() -> Response:
    """``GET /web/balance``: the credits of the account, for the script of its menu."""
    account = await context.backend_as_user().me()
    return jsonify(credits=float(account.credits))


ROUTES: Final[list[Route]] = [
    ("GET", "/sign-in", sign_in),
    ("GET", "/callback", callback),
    ("POST", "/sign-out", sign_out),
    ("GET", "/balance", balance),
]
