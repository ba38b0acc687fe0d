"""Pages for users who have not signed in, kept as long as everything that they show stays the same."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from time import monotonic
from typing import Final

from cachetools import LRUCache
from quart import Response, current_app, g, request

from collidium.settings import MEBIBYTE
from collidium_plugins.webapps import context

#: Memory of the pages that a process keeps: of addresses, and of addresses with a query, of which a caller
#: can make any number, so that they take no room from the others.
KEPT_BYTES: Final = 12 * MEBIBYTE
KEPT_QUERY_BYTES: Final = 4 * MEBIBYTE
#: How long a page is not compared again while its version is the same.
SURE_SECONDS: Final = 1.0
_EXTENSION: Final = "collidium.webapps.kept_pages"

#: The path of a call of the backend, and its query.
Source = tuple[str, Mapping[str, str | int | bool]]


@dataclass(frozen=True, slots=True)
class _Page:
    body: bytes
    tag: str
    #: Of everything that it shows.
    digest: bytes
    #: The version when that was compared, and the time.
    version: bytes
    compared_at: float

    def response(self) -> Response:
        response = Response(self.body, content_type="text/html; charset=utf-8")
        response.set_etag(self.tag)
        return response


async def kept(
    version: Source, sources: Sequence[Source], make: Callable[[], Awaitable[Response]], *others: object
) -> Response:
    """Return a page as it was made before, if all that it depends on is the same, else that of ``make``.

    Parameters
    ----------
    version
        A cheap call of the backend, whose response changes with most of what the page shows. Within
        :data:`SURE_SECONDS` of the last comparison no other is made while this is the same: what it does not
        change with may be seen so much later.
    sources
        Calls of the backend. The page is made again when one of their responses or validators changes.
    others
        What else it depends on, except the request's address and the origins of server and hub.
    """
    if context.viewer() is not None or g.get("web_session_ended"):
        return await make()
    pages = _pages()
    place = request.full_path, context.origin(), context.hub_url(), *map(str, others)
    unread, page, moment = context.backend().unread, pages.get(place), monotonic()
    current = await unread(*version)
    if page and page.version == current and moment < page.compared_at + SURE_SECONDS:
        return page.response()
    answers = await asyncio.gather(*(unread(path, query) for path, query in sources))
    digest = _digest(answers)
    if page is not None and page.digest == digest:
        pages[place] = page = replace(page, version=current, compared_at=moment)
        return page.response()
    response = await make()
    body = await response.get_data()
    if response.status_code == HTTPStatus.OK and isinstance(body, bytes) and len(body) <= pages.maxsize:
        await response.add_etag()  # unless it has one
        pages[place] = _Page(body, str(response.get_etag()[0]), digest, current, moment)
    return response


def _pages() -> LRUCache[object, _Page]:
    """The pages with or without a query, as the request."""
    by_path, by_query = current_app.extensions.setdefault(
        _EXTENSION, (LRUCache(KEPT_BYTES, _size), LRUCache(KEPT_QUERY_BYTES, _size))
    )
    pages: LRUCache[object, _Page] = by_query if request.query_string else by_path
    return pages


def _size(page: _Page) -> int:
    return len(page.body)


def _digest(parts: Iterable[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()
