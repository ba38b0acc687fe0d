"""The two cookies: of a session, and of a sign-in that is on its way through the hub."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
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


#: 256 bits, as 43 characters that may stand in cookies and addresses.
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def new_key() -> str:
    """A key that nobody can guess."""
    return secrets.token_urlsafe(32)


def is_key(text: str) -> bool:
    """Whether it could be a key of ours."""
    return _KEY.fullmatch(text) is not None


def digest(key: str) -> str:
    """What is kept of a key: enough to recognise it, not enough to be taken for its holder."""
    return hashlib.sha256(key.encode()).hexdigest()


def derived(key: str, purpose: str) -> str:
    """Another key for one purpose, which tells nothing of this one (HMAC-SHA256).

    43 characters of base64url, which is also what RFC 7636 asks of a code verifier.
    """
    mac = hmac.digest(key.encode(), purpose.encode(), "sha256")
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode("ascii")
