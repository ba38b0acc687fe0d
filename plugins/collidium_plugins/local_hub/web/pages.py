"""The hub's few pages for users, and the headers of all of them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from quart import Response, render_template, request

from collidium.api.hub_port import hub_path
from collidium_plugins.local_hub.web.context import pages_url

_STYLE = Path(__file__).with_name("static") / "pages.css"


async def page(template: str, status: int = 200, *, leads_to: str = "", **values: object) -> Response:
    """A page; ``leads_to`` is another origin at which the answer to its form may end.

    Browsers ask form-action about every address on the way, redirects too.
    """
    # By path alone: behind a proxy the browser's scheme is another than this server's.
    hub = f"{request.root_path}{hub_path()}"
    text = await render_template(
        f"local_hub/{template}", hub=hub, style=_style()[1], front=pages_url(), **values
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
    """The style sheet, and what its address changes with."""
    content = _STYLE.read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]
