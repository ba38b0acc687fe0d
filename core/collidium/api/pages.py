"""Lists come in pages: ``limit``, ``cursor``, and the next page's address in the Link header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel, Field
from quart import Response, jsonify, request

from collidium.errors import InvalidInput

T = TypeVar("T")

#: Ids are signed 64-bit numbers in the database.
LARGEST_ID = 2**63 - 1


class Page(BaseModel):
    """Query of a list."""

    limit: int = Field(100, ge=1, le=1000, description="Most items returned.")
    cursor: str | None = Field(None, max_length=512, description="Where to go on: from the Link header.")


def id_cursor(page: Page) -> int | None:
    """The id before which the page starts; raises InvalidInput for a cursor that is none."""
    if page.cursor is None:
        return None
    if not (page.cursor.isascii() and page.cursor.isdecimal() and int(page.cursor) <= LARGEST_ID):
        raise InvalidInput(
            "cursor: not one that this server gave out; begin without it",
            errors=[{"field": "cursor", "detail": "not a cursor of this list"}],
        )
    return int(page.cursor)


def respond(items: Sequence[Any], page: Page, next_cursor: str | int | None) -> Response:
    """The items as JSON, with the Link to the next page if there is one."""
    response: Response = jsonify(items)
    if next_cursor is not None:
        query = urlencode({"limit": page.limit, "cursor": next_cursor})
        response.headers["Link"] = f'<{request.base_url}?{query}>; rel="next"'
    return response


def cut(items: Sequence[T], limit: int) -> tuple[Sequence[T], T | None]:
    """The page from ``limit + 1`` items asked for, and its last item when there is more."""
    return items[:limit], items[limit - 1] if len(items) > limit else None
