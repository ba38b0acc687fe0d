"""Links with which people sign in for the first time, and after a reset."""

from __future__ import annotations

from quart import Response, request

from collidium import accounts
from collidium.api import browsers
from collidium.api.context import platform
from collidium.benchmarks import challenges
from collidium_plugins.local_hub import roster
from collidium_plugins.local_hub.accounts import Account
from collidium_plugins.local_hub.failures import HubError
from collidium_plugins.local_hub.openid.grants import ACCESS_SECONDS
from collidium_plugins.local_hub.web.consent import for_people
from collidium_plugins.local_hub.web.context import (
    hub,
    page,
    pages_url,
    reading,
    sent_form,
    writing,
)

#: Below the hub's address at the server's port.
PATH = "/join"


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
    await accounts.recognise(account.name, signup_grant=settings.signup_grant)
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
