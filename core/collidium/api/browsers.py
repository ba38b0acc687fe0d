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

#: Cookies of a session, and of each sign-in in progress at the hub, whose names continue with its start.
SESSION: Final = "collidium_session"
SIGN_IN: Final = "collidium_sign_in"
#: Maximum number of sign-ins in progress in one browser; beyond that the oldest one is forgotten.
SIGN_INS: Final = 5

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


def read_sign_ins(settings: Settings) -> dict[str, str]:
    """Return the cookies of the sign-ins in progress by name, the oldest first."""
    prefix, start = _name(settings, ""), _name(settings, SIGN_IN)
    named = sorted(name for name in request.cookies if name.startswith(start))
    return {name.removeprefix(prefix): request.cookies[name] for name in named}


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


def require_own_origin(own: str) -> None:
    """Raise Forbidden unless the browser reports that a page of the origin ``own`` sent the request.

    Browsers send ``Origin`` with forms, and the old ones without it send ``Referer``. ``Sec-Fetch-Site`` does
    not suffice: they send it to trustworthy origins only, which ``http://laptop:8000`` is not.
    """
    # Compare hosts only: a proxy may have terminated TLS.
    sent = request.headers.get("Origin") or request.headers.get("Referer", "")
    is_own = bool(_host(own)) and _host(sent) == _host(own)
    if not is_own or request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise Forbidden(_CROSS_SITE)


def _host(address: str) -> str:
    return address.partition("://")[2].partition("/")[0].lower()


def require_secret(key: str, secret: str) -> None:
    """Raise Forbidden unless ``secret`` is the CSRF token of the session with that key."""
    if not hmac.compare_digest(derived(key, "csrf").encode(), secret.encode()):
        raise Forbidden(_CROSS_SITE)
