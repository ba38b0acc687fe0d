"""Compression of responses by Accept-Encoding, with an ETag for each encoding.

Compressed are text and JSON that were made for the request. Downloads, ranges, event streams, Arrow and
parquet stay as they are, and so does what holds a secret: the size of a compressed page reveals what of it
the caller guessed (BREACH).
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

from cachetools import LRUCache
from quart import Quart, Response, g, request
from quart.wrappers.response import DataBody

from collidium.settings import MEBIBYTE

#: Shorter bodies are not compressed.
MIN_BYTES: Final = 1024
#: Longer bodies are compressed in a thread.
MAX_HERE: Final = 32 * 1024
#: Memory of the cache of compressed bodies, and the longest body in it.
KEPT_BYTES: Final = 16 * MEBIBYTE
LONGEST_KEPT: Final = MEBIBYTE
_LEVEL: Final = 4
_MEDIA_TYPES: Final = frozenset(
    {
        "application/geo+json",
        "application/json",
        "application/problem+json",
        "image/svg+xml",
        "text/csv",
        "text/css",
        "text/html",
        "text/javascript",
        "text/markdown",
        "text/plain",
    }
)
#: The encoding in an entity tag.
_MARKED: Final = re.compile(r'"([^"]*)-(gzip|zstd)"')


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, _LEVEL, mtime=0)


def _zstd(body: bytes) -> bytes:
    import pyarrow as pa  # only where a client accepts it

    compressed: bytes = pa.compress(body, "zstd", asbytes=True)
    return compressed


#: By encoding, the preferred one first.
_COMPRESS: Final[Mapping[str, Callable[[bytes], bytes]]] = {"zstd": _zstd, "gzip": _gzip}


def install(app: Quart) -> None:
    """Compress responses of an application; to be installed first, as it has to see what all others made."""
    kept: LRUCache[tuple[str, bytes], bytes] = LRUCache(KEPT_BYTES, len)

    @app.before_request
    async def accept_each_validator() -> None:
        """Let handlers see the tags of all encodings as the one that they know."""
        for name in ("If-None-Match", "If-Match"):
            value = request.headers.get(name)
            if value is not None and (marked := _MARKED.findall(value)):
                g.validators = {tag: f"{tag}-{encoding}" for tag, encoding in marked}
                request.headers[name] = _MARKED.sub(r'"\1"', value)

    @app.after_request
    async def compress(response: Response) -> Response:
        if response.status_code == 304:
            response.vary.add("Accept-Encoding")
            tag, is_weak = response.get_etag()
            if tag is not None:  # that of the body which the caller has
                response.set_etag(g.get("validators", {}).get(tag, tag), weak=bool(is_weak))
            return response
        if not _is_compressible(response) or _has_secret(response):
            return response
        body = await response.get_data()
        assert isinstance(body, bytes)  # noqa: S101 -- for the type checker
        if len(body) < MIN_BYTES:
            return response
        response.vary.add("Accept-Encoding")
        if encoding := _accepted():
            response.set_data(await _compressed(body, encoding, kept))
            response.content_encoding = encoding
            tag, is_weak = response.get_etag()
            if tag is not None:
                response.set_etag(f"{tag}-{encoding}", weak=bool(is_weak))
        return response


def _is_compressible(response: Response) -> bool:
    headers = response.headers
    return (
        isinstance(response.response, DataBody)
        and response.mimetype in _MEDIA_TYPES
        and "Range" not in request.headers
        and not any(
            name in headers
            for name in ("Accept-Ranges", "Content-Disposition", "Content-Encoding", "Content-Range")
        )
    )


def _has_secret(response: Response) -> bool:
    """Whether it may hold a secret; pages of users have the CSRF token.

    Another site can have a browser ask again and again, with its cookies, but not with a token of the API.
    """
    control = response.cache_control
    is_private = bool(control.private)
    return (
        "Set-Cookie" in response.headers
        or bool(control.no_store and not is_private)
        or (is_private and (response.mimetype == "text/html" or "Cookie" in request.headers))
    )


def _accepted() -> str | None:
    """The encoding that the caller prefers; None: as it is."""
    accepted = request.accept_encodings
    plain = max((quality for name, quality in accepted if name == "identity"), default=0)
    quality, encoding = max(
        ((accepted.quality(name), name) for name in _COMPRESS), key=lambda found: found[0]
    )
    return encoding if quality > 0 and quality >= plain else None


async def _compressed(body: bytes, encoding: str, kept: LRUCache[tuple[str, bytes], bytes]) -> bytes:
    compress = _COMPRESS[encoding]
    if len(body) > LONGEST_KEPT:
        return await asyncio.to_thread(compress, body)
    key = encoding, hashlib.blake2b(body, digest_size=16).digest()
    found = kept.get(key)
    if found is None:
        found = compress(body) if len(body) <= MAX_HERE else await asyncio.to_thread(compress, body)
        kept[key] = found
    return found
