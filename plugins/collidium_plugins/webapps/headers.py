"""Security headers of every page."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from quart import Response

from collidium.errors import Unavailable
from collidium_plugins.webapps import context

_FIXED: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


async def protect(response: Response) -> Response:
    """Add the security headers. No cache keeps pages of a signed-in user."""
    response.headers["Content-Security-Policy"] = content_security_policy()
    response.headers.update(_FIXED)
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "private, no-store" if context.viewer() else "no-cache"
    return response


def content_security_policy() -> str:
    """Scripts, styles and pictures of our own alone; calls to the backend, forms to the hub that signs in."""
    try:
        backend, hub = context.web().api_base, _origin(context.hub_url())
    except Unavailable:  # the page says already that the pages did not start
        backend, hub = "", ""
    rules = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "connect-src": f"'self' {backend}",
        "form-action": f"'self' {hub}",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value.strip()}" for name, value in rules.items())


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
