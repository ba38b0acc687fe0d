"""Answers beside pages: on to another one, or the form's own with what the backend refused."""

from __future__ import annotations

from urllib.parse import urlencode

from quart import Response

from collidium.errors import CollidiumError

_MINUTE = 60
_HOUR = 60 * _MINUTE


def see_other(address: str) -> Response:
    """On to another page, which is asked for by GET whatever came before (RFC 9110, section 15.4.4)."""
    return Response("", status=303, headers={"Location": address, "Cache-Control": "no-store"})


def refused(page: Response, refusal: CollidiumError) -> Response:
    """The page with the status of the refusal, and when to come back if that was told."""
    page.status_code = refusal.status
    if "Retry-After" in refusal.headers:
        page.headers["Retry-After"] = refusal.headers["Retry-After"]
    return page


def when_to_come_back(refusal: CollidiumError | None) -> str:
    """How long to wait, for people; empty where nothing was told."""
    told = refusal.headers.get("Retry-After", "") if refusal else ""
    if not (told.isascii() and told.isdecimal()):
        return ""
    seconds = int(told[:9])
    if seconds < 2 * _MINUTE:
        return f"{seconds} seconds"
    return f"{-(-seconds // _MINUTE)} minutes" if seconds < 2 * _HOUR else f"{-(-seconds // _HOUR)} hours"


def with_query(path: str, **asked: object) -> str:
    """The path with what is asked behind it; what is empty or None is left out."""
    query = urlencode({name: value for name, value in asked.items() if value not in ("", None)})
    return f"{path}?{query}" if query else path
