"""The two cookies: of a session, and of a sign-in that is on its way through the hub."""

from __future__ import annotations

from typing import Final

from quart import Response, request

from collidium_plugins.webapps import context

SESSION: Final = "collidium_session"
DEPARTURE: Final = "collidium_sign_in"


def read(cookie: str) -> str:
    """What the browser holds; empty where it holds nothing."""
    return request.cookies.get(_name(cookie), "")


def give(response: Response, cookie: str, value: str, seconds: float) -> None:
    """Have the browser hold it, out of reach of scripts and of other sites' posts.

    Lax and not strict: the hub's redirect back has to bring it.
    """
    response.set_cookie(
        _name(cookie), value, max_age=int(seconds), path="/", httponly=True, samesite="Lax", secure=_secure()
    )


def forget(response: Response, cookie: str) -> None:
    """Have the browser drop it."""
    response.delete_cookie(_name(cookie), path="/", httponly=True, samesite="Lax", secure=_secure())


def _name(cookie: str) -> str:
    # Browsers take a cookie of such a name from this very host alone, over TLS: no sibling can plant one.
    return f"__Host-{cookie}" if _secure() else cookie


def _secure() -> bool:
    return context.origin().startswith("https://")
