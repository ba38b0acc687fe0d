"""Before a page is made: which session the browser has, and whether what it sends comes from our forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from quart import current_app, g, request

from collidium.api import browsers
from collidium.sessions import Session
from collidium_plugins.webapps import context

F = TypeVar("F", bound=Callable[..., Any])

#: Of a form, what the header :data:`~collidium.api.browsers.CSRF_HEADER` is of a script.
FIELD: Final = "csrf_token"
FRONT: Final = "/"
LONGEST: Final = 2000

_STATIC: Final = "/web/static/"
_READS_ITS_FORM: Final = "_reads_its_form"
#: A path from the root. To browsers a backslash is a slash, two slashes begin a host, and breaks are nothing.
_LOCAL: Final = re.compile(r"/(?!/)[!-\[\]-~]*")


# -- the session --------------------------------------------------------------------------------------


async def find_session() -> None:
    """Find the session of the request, if there is one. Raises Forbidden for another site's request."""
    # A page has many of these, which are the same for all users.
    if request.path.startswith(_STATIC):
        return
    key = browsers.read_cookie(context.web().settings, browsers.SESSION)
    session = await context.web().sessions.find(key) if key else None
    g.web_session, g.web_session_ended = session, bool(key) and session is None
    if session is not None and request.method not in browsers.SAFE:
        await _require_own(session)


async def _require_own(session: Session) -> None:
    """Raise Forbidden for what was not sent by a page of this session."""
    browsers.require_own_origin(context.web().settings)
    if browsers.CSRF_HEADER in request.headers:
        secret = request.headers[browsers.CSRF_HEADER]
    elif _is_read_by_its_handler():
        return
    else:
        secret = (await request.form).get(FIELD, "") if is_form() else ""
    browsers.require_secret(session.key, secret)


def reads_its_form(handler: F) -> F:
    """Mark a handler that reads a form with a file as it comes, and checks the field of the secret itself."""
    setattr(handler, _READS_ITS_FORM, True)
    return handler


def _is_read_by_its_handler() -> bool:
    handler = current_app.view_functions.get(request.endpoint or "")
    return request.mimetype == "multipart/form-data" and getattr(handler, _READS_ITS_FORM, False)


def is_form() -> bool:
    """Whether the body is a form without files, which is small."""
    return request.mimetype == "application/x-www-form-urlencoded"


# -- where a sign-in leads back to --------------------------------------------------------------------


def local(address: str) -> str:
    """The address if it is a page of ours, else the front page."""
    if len(address) > LONGEST or not _LOCAL.fullmatch(address) or address.startswith("/web/"):
        return FRONT
    return address


def this_page() -> str:
    """The address that is asked for, with its query."""
    return local(request.full_path.rstrip("?"))


async def page_to_return_to() -> str:
    """The page to show after a sign-in, with what the user typed into its form."""
    if request.method in {"GET", "HEAD"}:
        return this_page()
    came_from = urlsplit(request.headers.get("Referer", ""))
    page = came_from.path if came_from.netloc == request.host else FRONT
    typed = [item for item in (await request.form).items(multi=True) if item[0] != FIELD] if is_form() else []
    with_typed = local(f"{page}?{urlencode(typed)}" if typed else page)
    return local(page) if with_typed == FRONT else with_typed
