"""Pages and parts of pages, kept as long as everything that they show stays the same.

Pages are kept for users who have not signed in; for those who have, what is the same for all.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import Any, Final, Protocol, TypeVar, cast

from cachetools import LRUCache
from quart import Response, current_app, g, request

from collidium.runtime.shared_calls import SharedCalls
from collidium.settings import MEBIBYTE
from collidium_plugins.webapps import context

#: Memory of what a process keeps: of addresses, and of addresses with a query, of which a caller can make any
#: number, so that they take no room from the others.
KEPT_BYTES: Final = 24 * MEBIBYTE
KEPT_QUERY_BYTES: Final = 8 * MEBIBYTE
#: How long nothing is compared again while the version is the same.
SURE_SECONDS: Final = 1.0
_EXTENSION: Final = "collidium.webapps.kept_pages"

#: The path of a call of the backend, and its query.
Source = tuple[str, Mapping[str, str | int | bool]]


class Sized(Protocol):
    """What can be kept, and its approximate size in bytes; 0: not to be kept."""

    @property
    def size(self) -> int: ...


V = TypeVar("V", bound=Sized)


@dataclass(frozen=True, slots=True)
class _Kept:
    value: Sized
    #: Of everything that it shows.
    digest: bytes
    #: The version when that was compared, and the time.
    version: object
    compared_at: float


@dataclass(frozen=True, slots=True)
class _Page:
    body: bytes
    tag: str
    status: int

    @property
    def size(self) -> int:
        return len(self.body) if self.status == HTTPStatus.OK else 0

    def response(self) -> Response:
        response = Response(self.body, self.status, content_type="text/html; charset=utf-8")
        response.set_etag(self.tag)
        return response


async def kept_page(
    challenge: str, sources: Sequence[Source], make: Callable[[], Awaitable[Response]], *others: object
) -> Response:
    """Return the page of a challenge, that of :func:`kept` unless the user has signed in."""
    if context.viewer() is not None or g.get("web_session_ended"):
        return await make()

    async def made() -> _Page:
        response = await make()
        await response.add_etag()  # unless it has one
        return _Page(
            cast(bytes, await response.get_data()), str(response.get_etag()[0]), response.status_code
        )

    return (await kept("page", challenge, sources, made, *others)).response()


async def kept(
    kind: str, challenge: str, sources: Sequence[Source], make: Callable[[], Awaitable[V]], *others: object
) -> V:
    """Return what was made before, if all that it depends on is the same, else the value of ``make``.

    Parameters
    ----------
    kind
        What it is; of each kind one value is kept for an address.
    challenge
        The version of its leaderboard changes with most of what the page shows. Within :data:`SURE_SECONDS`
        of the last comparison there is no other while it is the same: what it does not change with may be
        seen so much later.
    sources
        Calls of the backend. It is made again when one of their responses or validators changes.
    others
        What else it depends on, except the request's address and the origins of server and hub.
    """
    values, running = _kept()
    place = kind, request.full_path, context.origin(), context.hub_url(), *map(str, others)
    moment, version = monotonic(), await context.board_version(challenge)
    found = values.get(place)
    if found and found.version == version and moment < found.compared_at + SURE_SECONDS:
        return cast(V, found.value)

    async def compare() -> V:
        unread = context.backend().unread
        digest = _digest(await asyncio.gather(*(unread(path, query) for path, query in sources)))
        found = values.get(place)
        value = cast(V, found.value) if found and found.digest == digest else await make()
        if 0 < value.size <= values.maxsize:
            values[place] = _Kept(value, digest, version, moment)
        return value

    return cast(V, await running.run((place, version), compare))


def _kept() -> tuple[LRUCache[object, _Kept], SharedCalls[object, Any]]:
    """What is kept with or without a query, as the request, and the comparisons that run."""
    by_path, by_query, running = current_app.extensions.setdefault(
        _EXTENSION, (LRUCache(KEPT_BYTES, _size), LRUCache(KEPT_QUERY_BYTES, _size), SharedCalls())
    )
    return (by_query if request.query_string else by_path), running


def _size(kept: _Kept) -> int:
    return kept.value.size


def _digest(parts: Iterable[bytes]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()
