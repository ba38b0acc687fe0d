"""Rendering of the hub's pages, with their style sheet and security headers."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from quart import Response, render_template, request

from collidium.api.mounting import hub_path
from collidium_plugins.local_hub.web.context import pages_url

_STYLE: Final = Path(__file__).with_name("static") / "pages.css"


async def page(template: str, status: int = 200, *, leads_to: str = "", **values: object) -> Response:
    """Render a page; ``leads_to`` is another origin to which its form may redirect.

    Browsers apply ``form-action`` to redirects as well.
    """
    # Without scheme and host: behind a proxy, the browser's differ from this server's.
    address = f"{request.root_path}{hub_path()}"
    text = await render_template(
        f"local_hub/{template}", hub=address, style=_style()[1], front=pages_url(), **values
    )
    response = Response(text, status, content_type="text/html; charset=utf-8")
    response.headers.update(
        {
            "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; "
            f"form-action 'self' {leads_to}".rstrip()
            + "; frame-ancestors 'none'; base-uri 'none'",
            "Cache-Control": "no-store",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
    )
    return response


async def style() -> Response:
    """``GET /oauth/pages.css``"""
    response = Response(_style()[0], content_type="text/css; charset=utf-8")
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def _style() -> tuple[bytes, str]:
    """The style sheet, and a version for its URL."""
    content = _STYLE.read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]
