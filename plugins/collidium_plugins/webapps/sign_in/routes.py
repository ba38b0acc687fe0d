"""The addresses of signing in and out."""

from __future__ import annotations

from typing import Final

from quart import Response, g, request

from collidium.api.callers import caller_address
from collidium.errors import BadRequest
from collidium_plugins.webapps import context
from collidium_plugins.webapps.answers import see_other
from collidium_plugins.webapps.routes import Route
from collidium_plugins.webapps.sign_in import cookies, departures, flow, returning

CALLBACK: Final = "/web/callback"


def _address() -> str:
    return caller_address(context.web().settings.trusted_proxies)


async def sign_in() -> Response:
    """``GET /web/sign-in?next=``: on to the hub, and from there back to the page ``next``."""
    service = context.web().sign_in
    await service.limits.count("sign-in", _address())
    departure = await service.departures.begin(
        context.origin() + CALLBACK, returning.local(request.args.get("next", ""))
    )
    response = see_other(context.as_browsers_do(await service.client.way_to_the_hub(departure)))
    cookies.give(response, cookies.DEPARTURE, departure.key, departures.SECONDS)
    return response


async def callback() -> Response:
    """``GET /web/callback?code=&state=``: back from the hub; a session begins, under a new key."""
    service = context.web().sign_in
    await service.limits.count("callback", _address())
    departure = await service.departures.end(cookies.read(cookies.DEPARTURE), request.args.get("state", ""))
    if departure is None:
        raise BadRequest("this sign-in did not begin in this browser, or took too long; sign in again")
    if "error" in request.args:
        raise flow.denial(request.args["error"], request.args.get("error_description", ""))
    code = request.args.get("code")
    if not code:
        raise BadRequest("the hub sent no code; sign in again")
    grant = await service.client.redeem(departure, code)
    # As any first call does, it signs the account up; and it tells of a ban.
    account = await context.backend().acting_as(grant.token).me()
    await context.end_session()
    session = await service.sessions.begin(account.hub_username, grant.token, grant.expires_in)
    g.web_session = session
    response = see_other(departure.return_to)
    cookies.forget(response, cookies.DEPARTURE)
    cookies.give(response, cookies.SESSION, session.key, service.sessions.seconds_left(session))
    return response


async def sign_out() -> Response:
    """``POST /web/sign-out``: the session ends, on the server too."""
    await context.end_session()
    return see_other(returning.FRONT)


ROUTES: Final[list[Route]] = [
    ("GET", "/sign-in", sign_in),
    ("GET", "/callback", callback),
    ("POST", "/sign-out", sign_out),
]
