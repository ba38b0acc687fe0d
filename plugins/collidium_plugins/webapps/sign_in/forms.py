"""Forms of ours alone: what another site has a browser send is refused (CSRF)."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from quart import current_app, request

from collidium.errors import Forbidden
from collidium_plugins.webapps import context
from collidium_plugins.webapps.session import Session

F = TypeVar("F", bound=Callable[..., Any])

FIELD: Final = "csrf_token"
HEADER: Final = "X-CSRF-Token"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_READS_ITS_FORM: Final = "_reads_its_form"
_FOREIGN: Final = "this was not sent from a page of ours, so nothing was done; go back and try again"


async def refuse_foreign(session: Session) -> None:
    """Raise Forbidden for what changes something and was not sent by a page of this session.

    The proof is the session's secret, in the header or in the form's field; and the browser must not say that
    the page was another's. Of a handler that :func:`reads_its_form` the browser's word has to be there, and
    the field is the handler's to look at.
    """
    own = sent_by_us()
    if own is False:
        raise Forbidden(_FOREIGN)
    if HEADER in request.headers:
        secret = request.headers[HEADER]
    elif own and _is_read_by_its_handler():
        return
    else:
        secret = (await request.form).get(FIELD, "") if is_form() else ""
    require_own(session, secret)


def reads_its_form(handler: F) -> F:
    """Say that a handler reads a form with a file as it comes, and asks :func:`require_own` itself."""
    setattr(handler, _READS_ITS_FORM, True)
    return handler


def _is_read_by_its_handler() -> bool:
    handler = current_app.view_functions.get(request.endpoint or "")
    return request.mimetype == "multipart/form-data" and getattr(handler, _READS_ITS_FORM, False)


def require_own(session: Session, secret: str) -> None:
    """Raise Forbidden for a secret that is not what the forms of this session hold."""
    if not hmac.compare_digest(session.csrf.encode(), secret.encode()):
        raise Forbidden(_FOREIGN)


def is_form() -> bool:
    """Whether the body is a form without files, which is small."""
    return request.mimetype == "application/x-www-form-urlencoded"


def sent_by_us() -> bool | None:
    """Whether a page of ours sent the request, by what the browser says; None where it says nothing."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None and site != "same-origin":
        return False
    origin = request.headers.get("Origin")
    if origin is None:
        return None if site is None else True
    # Hosts alone: a proxy in front may have taken the TLS off.
    return urlsplit(origin).netloc.lower() == urlsplit(context.origin()).netloc.lower()
