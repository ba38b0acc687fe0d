"""Pages of the hub for its people: consent to an application, and links with which they sign in.

On the consent page a user allows an application to act for them or denies it. Links are for the first time,
and for after a reset.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Final

from quart import Response, request
from werkzeug.exceptions import HTTPException

from collidium.accounts import recognise
from collidium.api import browsers
from collidium.api.context import platform
from collidium.benchmarks import challenges
from collidium.errors import CollidiumError
from collidium_plugins.local_hub import accounts, roster
from collidium_plugins.local_hub.accounts import SCOPES, Account
from collidium_plugins.local_hub.failures import HubError
from collidium_plugins.local_hub.openid import grants
from collidium_plugins.local_hub.openid.clients import origin_of
from collidium_plugins.local_hub.openid.grants import ACCESS_SECONDS
from collidium_plugins.local_hub.openid.requests import (
    AuthorizationRequest,
    InvalidRedirectURI,
    Refusal,
    check_redirect_uri,
    read_request,
    seal,
    unseal,
    with_query,
)
from collidium_plugins.local_hub.web.context import (
    hub,
    page,
    pages_url,
    reading,
    sent_form,
    writing,
)

logger = logging.getLogger(__name__)

Handler = Callable[[], Awaitable[Response]]

#: What can be a token at all; the rest is not looked for.
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,500}")

#: Below the hub's address at the server's port.
PATH = "/join"


def for_people(handler: Handler) -> Handler:
    """A handler whose errors are shown as pages, or sent to the application where that is safe."""

    @wraps(handler)
    async def answer() -> Response:
        try:
            return await handler()
        except Refusal as refusal:
            return _send_to(refusal.address)
        except InvalidRedirectURI as error:
            return await page("refused.html", 400, message=error.message)
        except HubError as error:
            return await page("refused.html", error.status, message=error.message)
        except CollidiumError as error:
            return await page("refused.html", error.status, message=error.detail)
        except HTTPException as error:
            return await page("refused.html", error.code or 500, message=error.description or error.name)
        except sqlite3.OperationalError as error:
            logger.error("the hub's database: %s", error)
            return await page("refused.html", 503, message="The hub is busy. Try again in a moment.")

    return answer


@for_people
async def ask() -> Response:
    """``GET /oauth/authorize``"""
    sent = {name: request.args.getlist(name) for name in request.args}
    return await _consent(read_request(sent, hub().client, pages_url()))


@for_people
async def answer() -> Response:
    """``POST /oauth/authorize``: the form of the page"""
    form = await sent_form()
    wanted = unseal(hub().store.ticket_key, form.get("ticket", ""))
    # Settings may have changed, and the ticket may have been given under another name of this machine.
    check_redirect_uri(wanted.client_id, wanted.redirect_uri, hub().client, pages_url())
    if form.get("decision") != "allow":
        description = "The user did not allow it"
        raise Refusal("access_denied", description, wanted.redirect_uri, wanted.state)
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
    return _send_to(with_query(wanted.redirect_uri, {"code": code, "state": wanted.state}))


def _code(db: sqlite3.Connection, wanted: AuthorizationRequest, token: str) -> str | None:
    caller = accounts.owner_of(db, token)
    # A token with scopes must not be turned into one with more.
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
        permissions=[words for scope, words in SCOPES.items() if scope in wanted.scopes],
        problem=problem,
    )
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="hub"'
    return response


def _send_to(address: str) -> Response:
    """303: the browser does not send the form again (RFC 9700, section 4.12)."""
    response = Response("", 303)
    response.headers.update(
        {"Location": address, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    )
    return response


@for_people
async def show() -> Response:
    """``GET /join?link=``: asks whether to sign in. Programs that look at links use none up."""
    link = request.args.get("link", "")
    account = await _account(link)
    return await _no_link() if account is None else await page("join.html", account=account, link=link)


@for_people
async def join() -> Response:
    """``POST /join``: the form of the page; signs in, and shows the token of the account."""
    settings, link = platform().settings, (await sent_form()).get("link", "")
    if browsers.is_from_another_site():
        raise HubError(403, "This was not sent from a page of this server, so nothing was done.")
    account = await _account(link)
    if account is None:
        return await _no_link()
    # As any first call does, it signs the account up; and it raises for a banned one.
    await recognise(account.name, signup_grant=settings.signup_grant)
    scopes = frozenset(("openid", *settings.oauth_scopes))
    used = await writing(lambda db: roster.use_link(db, link, hub().client.id, scopes))
    if used is None:
        return await _no_link()
    (token, for_pages), sessions = used, platform().sessions
    if earlier := browsers.read_cookie(settings, browsers.SESSION):
        await sessions.end(earlier)
    session = await sessions.begin(account.name, for_pages, ACCESS_SECONDS, scopes)
    listed = await challenges.list_challenges(platform())
    current = [one for one in listed if one.state == "open" and one.name != one.task]
    response = await page("joined.html", account=account, token=token, challenges=current)
    browsers.set_cookie(settings, response, browsers.SESSION, session.key, sessions.seconds_left(session))
    return response


async def _account(link: str) -> Account | None:
    """The account that a link signs in; None for one that was used, has expired or never was."""
    settings = platform().settings
    # Another hub's accounts of the same names are other people's; and sessions are of the server's own port.
    if settings.hub_url or settings.identity != "hub" or not pages_url():
        raise HubError(404, "The accounts of this hub do not sign in here.")
    return await reading(lambda db: roster.whose_link(db, link))


async def _no_link() -> Response:
    return await page("no-link.html", 404, days=roster.LINK_DAYS)
