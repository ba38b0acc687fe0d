"""Pages for users who have not signed in, kept as long as everything that they show stays the same."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from cachetools import LRUCache
from quart import Response, current_app, g, request

from collidium.settings import MEBIBYTE
from collidium_plugins.webapps import context

#: Memory of the pages that a process keeps: of addresses, and of addresses with a query, of which a caller
#: can make any number, so that they take no room from the others.
KEPT_BYTES: Final = 12 * MEBIBYTE
KEPT_QUERY_BYTES: Final = 4 * MEBIBYTE
_EXTENSION: Final = "collidium.webapps.kept_pages"

#: The path of a call of the backend, and its query.
Source = tuple[str, Mapping[str, str | int | bool]]


async def kept(
    sources: Sequence[Source], make: Callable[[], Awaitable[Response]], *others: object
) -> Response:
    """Return a page as it was made before, if all that it depends on is the same, else that of ``make``.

    Parameters
    ----------
    sources
        Calls of the backend. The page is made again when one of their responses or validators changes.
    others
        What else it depends on, except the request's address and the origins of server and hub.
    """
    if context.viewer() is not None or g.get("web_session_ended"):
        return await make()
    answers = await asyncio.gather(*(context.backend().unread(path, query) for path, query in sources))
    digest = hashlib.blake2b(digest_size=16)
    for part in (*answers, request.full_path, context.origin(), context.hub_url(), *others):
        encoded = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    by_path, by_query = current_app.extensions.setdefault(
        _EXTENSION, (LRUCache(KEPT_BYTES, len), LRUCache(KEPT_QUERY_BYTES, len))
    )
    pages: LRUCache[bytes, bytes] = by_query if request.query_string else by_path
    body = pages.get(digest.digest())
    if body is not None:
        return Response(body, content_type="text/html; charset=utf-8")
    page = await make()
    made = await page.get_data()
    if page.status_code == HTTPStatus.OK and isinstance(made, bytes) and len(made) <= pages.maxsize:
        pages[digest.digest()] = made
    return page
