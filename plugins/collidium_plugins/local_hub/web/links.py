"""Sign-in links, with which users sign in for the first time or after a reset."""

from __future__ import annotations

from typing import Final

from quart import Response, request

from collidium.accounts import recognise
from collidium.api import browsers
from collidium.api.context import platform
from collidium.benchmarks import challenges
from collidium_plugins.local_hub import roster
from collidium_plugins.local_hub.accounts import Account
from collidium_plugins.local_hub.failures import HubError
from collidium_plugins.local_hub.openid.grants import ACCESS_SECONDS
from collidium_plugins.local_hub.web.context import hub, pages_url, reading, sent_form, writing
from collidium_plugins.local_hub.web.pages import page

PATH: Final = "/join"


async def show() -> Response:
    """``GET /join?link=``: asks whether to sign in, so that link previews do not use the link up."""
    link = request.args.get("link", "")
    account = await _account(link)
    return await _no_link() if account is None else await page("join.html", account=account, link=link)


async def join() -> Response:
    """``POST /join``: signs in and shows the account's token."""
    settings, link = platform().settings, (await sent_form()).get("link", "")
    if browsers.is_from_another_site():
        raise HubError(403, "The form was not sent from a page of this server.")
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
    listed = await challenges.list_challenges(platform())
    current = [each for each in listed if each.state == "open" and each.name != each.task]
    response = await page("joined.html", account=account, token=token, challenges=current)
    browsers.set_cookie(settings, response, browsers.SESSION, session.key, sessions.seconds_left(session))
    return response


async def _account(link: str) -> Account | None:
    """The account that a link signs in; None for an invalid, used or expired one."""
    settings = platform().settings
    # With another hub, equal names may belong to other people. Sessions are for the server's own port.
    if settings.hub_url or settings.identity != "hub" or not pages_url():
        raise HubError(404, "Accounts of this hub cannot sign in here.")
    return await reading(lambda db: roster.link_account(db, link))


async def _no_link() -> Response:
    return await page("no-link.html", 404, days=roster.LINK_DAYS)
