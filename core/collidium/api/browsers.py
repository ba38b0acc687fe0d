"""Signed-in browsers: their cookies, and the proof that a request comes from a page of ours.

A browser sends its cookie whichever site made it send a request. So what changes something has to name our
own origin and carry the secret of its session, which no other site can read (CSRF).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from quart import Response, request

from collidium.api.context import caller_scheme
from collidium.errors import Forbidden
from collidium.sessions import derived

if TYPE_CHECKING:
    from collidium.settings import Settings

#: The cookies of a session, and of a sign-in that is under way at the hub.
SESSION: Final = "collidium_session"
SIGN_IN: Final = "collidium_sign_in"

CSRF_HEADER: Final = "X-CSRF-Token"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

ENDED: Final = "your session has ended; sign in again"
_FOREIGN: Final = "this was not sent from a page of ours, so nothing was done; go back and try again"


def origin(settings: Settings) -> str:
    """Where browsers reach the server: scheme and host, no slash at the end."""
    return settings.public_url or f"{caller_scheme(settings.trusted_proxies)}://{request.host}"


def wants_page() -> bool:
    """Whether the request asks for a page, as browsers do; programs accept anything, or JSON."""
    kinds = ("application/problem+json", "application/json", "text/html")
    return request.accept_mimetypes.best_match(kinds) == kinds[-1]


# -- cookies ------------------------------------------------------------------------------------------


def read_cookie(settings: Settings, cookie: str) -> str:
    """What the browser holds; empty where it holds nothing."""
    return request.cookies.get(_name(settings, cookie), "")


def set_cookie(settings: Settings, response: Response, cookie: str, value: str, seconds: float) -> None:
    """Have the browser hold it, out of reach of scripts and of other sites' posts.

    Lax and not strict: the hub's redirect back has to bring it.
    """
    response.set_cookie(
        _name(settings, cookie),
        value,
        max_age=int(seconds),
        path="/",
        httponly=True,
        samesite="Lax",
        secure=_is_secure(settings),
    )


def delete_cookie(settings: Settings, response: Response, cookie: str) -> None:
    """Have the browser drop it."""
    response.delete_cookie(
        _name(settings, cookie), path="/", httponly=True, samesite="Lax", secure=_is_secure(settings)
    )


def _name(settings: Settings, cookie: str) -> str:
    # Browsers take a cookie of such a name from this very host alone, over TLS: no sibling can plant one.
    return f"__Host-{cookie}" if _is_secure(settings) else cookie


def _is_secure(settings: Settings) -> bool:
    return origin(settings).startswith("https://")


def is_from_another_site() -> bool:
    """Whether the browser says that a page of another site, also of a sibling, makes it send the request."""
    return request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}


# -- the proof ----------------------------------------------------------------------------------------


def require_own_origin(settings: Settings) -> None:
    """Raise Forbidden unless the browser says that a page of ours sent the request."""
    # Hosts alone: a proxy in front may have taken the TLS off.
    sent, own = (
        address.partition("://")[2].lower()
        for address in (request.headers.get("Origin", ""), origin(settings))
    )
    if sent != own or request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise Forbidden(_FOREIGN)


def require_secret(key: str, secret: str) -> None:
    """Raise Forbidden unless ``secret`` is the one that pages of the session with that key carry."""
    if not hmac.compare_digest(derived(key, "csrf").encode(), secret.encode()):
        raise Forbidden(_FOREIGN)
