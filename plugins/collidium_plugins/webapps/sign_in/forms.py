"""The session of a request, CSRF protection of forms, and the page to return to after a sign-in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from quart import Response, current_app, g, request
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RoutingException
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData

from collidium.api import browsers
from collidium.errors import CollidiumError, Forbidden
from collidium.sessions import Session
from collidium_plugins.webapps import context


class StaleForm(Forbidden):
    """A form of ours, without the CSRF secret of the session."""


F = TypeVar("F", bound=Callable[..., Any])

#: The form field for the CSRF secret; scripts send :data:`~collidium.api.browsers.CSRF_HEADER` instead.
FIELD: Final = "csrf_token"
FRONT: Final = "/"
LONGEST: Final = 4000
#: What is read of a form with a file whose session has ended.
_HEAD_BYTES: Final = 64 * 1024
_HEAD_PARTS: Final = 100

#: The cookie with the hash of the page that the last form of an ended session leads back to.
_TYPED: Final = "collidium_typed"
_TYPED_SECONDS: Final = 3600

_STATIC: Final = "/web/static/"
_STREAMS_FORM: Final = "_reads_its_form"
#: An absolute path. Browsers treat a backslash as a slash and two slashes as the start of a host.
#: Fields that are typed again rather than shown in an address, which proxies log.
_SECRET: Final = frozenset({FIELD, "code", "token", "webhook_url"})
_LOCAL: Final = re.compile(r"/(?!/)[!-\[\]-~]*")


# -- the session --------------------------------------------------------------------------------------


async def find_session() -> None:
    """Find the session of the request, if any. Raises Forbidden for a request from another site."""
    # Static files are the same for all users.
    if request.path.startswith(_STATIC):
        return
    key = browsers.read_cookie(context.web().settings, browsers.SESSION)
    session = await context.web().sessions.find(key) if key else None
    g.web_session, g.web_session_ended = session, bool(key) and session is None
    if session is not None and request.method not in browsers.SAFE:
        await _require_own(session)


async def _require_own(session: Session) -> None:
    """Raise Forbidden unless a page of this session sent the request."""
    browsers.require_own_origin(context.origin())
    if browsers.CSRF_HEADER in request.headers:
        secret = request.headers[browsers.CSRF_HEADER]
    elif _is_streamed():
        return
    else:
        secret = (await request.form).get(FIELD, "") if is_form() else ""
    try:
        browsers.require_secret(session.key, secret)
    except Forbidden as refusal:
        # Another tab may have signed in again since the page of the form was opened.
        raise StaleForm(refusal.detail) from None


def streams_form(handler: F) -> F:
    """Mark a handler that reads a form with a file as a stream, and checks the CSRF secret itself."""
    setattr(handler, _STREAMS_FORM, True)
    return handler


def _is_streamed() -> bool:
    handler = current_app.view_functions.get(request.endpoint or "")
    return request.mimetype == "multipart/form-data" and getattr(handler, _STREAMS_FORM, False)


def is_form() -> bool:
    """Whether the body is a form without files."""
    return request.mimetype == "application/x-www-form-urlencoded"


# -- the page to return to ----------------------------------------------------------------------------


def local(address: str) -> str:
    """Return the address if it is one of our pages, else the front page."""
    if len(address) > LONGEST or not _LOCAL.fullmatch(address) or address.startswith("/web/"):
        return FRONT
    return address


def this_page() -> str:
    """Return the path of the request, with its query."""
    return local(request.full_path.rstrip("?"))


async def page_to_return_to() -> str:
    """Return the page to show after a sign-in, with the values typed into its form.

    If they are too long for an address, the longest ones are left out; secrets are in no address.
    """
    if request.method in browsers.SAFE:
        return this_page()
    page = _page_of_form()
    fields = (await request.form).items(multi=True) if is_form() else ()
    if _is_streamed():
        fields = await _before_the_file()
    typed = _that_fit(fields, LONGEST - len(page) - 1)
    return local(f"{page}?{'&'.join(typed)}" if typed else page)


def remember(response: Response, page: str) -> None:
    """Let the form of the page to return to be filled in by its query, if a page of ours was sent."""
    if request.method in browsers.SAFE:
        return
    with suppress(Forbidden):
        browsers.require_own_origin(context.origin())
        browsers.set_cookie(context.web().settings, response, _TYPED, _digest(page), _TYPED_SECONDS)


async def typed() -> MultiDict[str, str]:
    """Return the fields of the sent form, or those of one that was sent when the session had ended.

    They are in the query of the page to return to. A query that no form of this browser has made fills in
    nothing, as any other site can link to it.
    """
    if request.method not in browsers.SAFE:
        return await request.form
    cookie = browsers.read_cookie(context.web().settings, _TYPED)
    return request.args if cookie == _digest(this_page()) else MultiDict()


def _digest(page: str) -> str:
    return sha256(page.encode()).hexdigest()


async def _before_the_file() -> list[tuple[str, str]]:
    """The fields of a form that precede its file, which is not read; none if the form is malformed."""
    found: list[tuple[str, str]] = []
    head = bytearray()
    request.max_content_length = None  # of all the body
    try:
        async for chunk in request.body:
            head += chunk
            if len(head) >= _HEAD_BYTES:
                break
        decoder = MultipartDecoder(request.mimetype_params["boundary"].encode(), max_parts=_HEAD_PARTS)
        decoder.receive_data(bytes(head[:_HEAD_BYTES]))
        while not isinstance(event := decoder.next_event(), (NeedData, File, Epilogue)):
            if isinstance(event, Field):
                found.append((event.name, ""))
            elif isinstance(event, Data):
                found[-1] = found[-1][0], found[-1][1] + event.data.decode()
    except (LookupError, ValueError, HTTPException, CollidiumError):
        return []
    return found


def _that_fit(typed: Iterable[tuple[str, str]], room: int) -> list[str]:
    """The fields of a query of at most ``room`` characters, in order; the shortest go first."""
    fields = [urlencode([item]) for item in typed if item[0] not in _SECRET]
    fit = set()
    for number in sorted(range(len(fields)), key=lambda number: len(fields[number])):
        room -= len(fields[number]) + 1
        if room < -1:
            break
        fit.add(number)
    return [field for number, field in enumerate(fields) if number in fit]


def _page_of_form() -> str:
    """The page whose form was sent: the address itself, or the one that the browser names."""
    try:
        current_app.url_map.bind(request.host).match(request.path, method="GET")
    except (HTTPException, RoutingException):
        came_from = urlsplit(request.headers.get("Referer", ""))
        return local(came_from.path) if came_from.netloc == request.host else FRONT
    return request.path
