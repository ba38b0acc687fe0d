"""Cookies of browsers, and protection against cross-site request forgery (CSRF).

Browsers send cookies with requests from any site. So requests that change something must have our own Origin
and carry the CSRF token of the session, which other sites cannot read.
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

#: Cookies of a session, and of a sign-in in progress at the hub.
SESSION: Final = "collidium_session"
SIGN_IN: Final = "collidium_sign_in"

CSRF_HEADER: Final = "X-CSRF-Token"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

ENDED: Final = "your session has ended; sign in again"
_CROSS_SITE: Final = "this was not sent from a page of ours, so nothing was done; go back and try again"


def origin(settings: Settings) -> str:
    """Return the public origin of the server: scheme and host without a trailing slash."""
    return settings.public_url or f"{caller_scheme(settings.trusted_proxies)}://{request.host}"


def wants_page() -> bool:
    """Whether the request prefers HTML, as browsers do, to JSON."""
    kinds = ("application/problem+json", "application/json", "text/html")
    return request.accept_mimetypes.best_match(kinds) == kinds[-1]


# -- cookies ------------------------------------------------------------------------------------------


def read_cookie(settings: Settings, cookie: str) -> str:
    """Return the value of a cookie, or an empty string."""
    return request.cookies.get(_name(settings, cookie), "")


def set_cookie(settings: Settings, response: Response, cookie: str, value: str, seconds: float) -> None:
    """Set a cookie that scripts and cross-site posts cannot use.

    SameSite is Lax rather than Strict because the redirect from the hub must include it.
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
    """Delete a cookie."""
    response.delete_cookie(
        _name(settings, cookie), path="/", httponly=True, samesite="Lax", secure=_is_secure(settings)
    )


def _name(settings: Settings, cookie: str) -> str:
    # Browsers accept this prefix only from this host over TLS, so that siblings cannot set the cookie.
    return f"__Host-{cookie}" if _is_secure(settings) else cookie


def _is_secure(settings: Settings) -> bool:
    return origin(settings).startswith("https://")


def is_from_another_site() -> bool:
    """Whether the browser reports that another site, including a sibling, caused the request."""
    return request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}


# -- CSRF protection ----------------------------------------------------------------------------------


def require_own_origin(settings: Settings) -> None:
    """Raise Forbidden unless the browser reports that one of our pages sent the request."""
    # Compare hosts only: a proxy may have terminated TLS.
    sent, own = (
        address.partition("://")[2].lower()
        for address in (request.headers.get("Origin", ""), origin(settings))
    )
    if sent != own or request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise Forbidden(_CROSS_SITE)


def require_secret(key: str, secret: str) -> None:
    """Raise Forbidden unless ``secret`` is the CSRF token of the session with that key."""
    if not hmac.compare_digest(derived(key, "csrf").encode(), secret.encode()):
        raise Forbidden(_CROSS_SITE)
