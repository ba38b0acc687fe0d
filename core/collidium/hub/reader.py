"""Reads documents and byte ranges of files from a hub over HTTP.

The token is sent to the hub alone: redirects to other hosts are followed without it, and of the link to the
next page of a list, only the cursor is used.
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from collidium import __version__
from collidium.errors import (
    CollidiumError,
    Forbidden,
    NotFound,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UpstreamError,
)
from collidium.hub.offline import NAME, is_offline
from collidium.hub.sources import sendable
from collidium.runtime.http_client import past_proxies
from collidium.runtime.public_addresses import refuse_redirect
from collidium.runtime.waiting import Backoff

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_CONNECT_SECONDS: Final = 10.0
#: Maximum number of consecutive failed attempts of a call.
ATTEMPTS: Final = 5
BACKOFF: Final = Backoff(first=timedelta(seconds=0.5), longest=timedelta(seconds=20))
#: Maximum Retry-After that is respected, in seconds.
_MAX_RETRY_AFTER: Final = 60
#: Maximum size of a document or page of a list, and number of pages of a list.
_MAX_PAGE_BYTES: Final = 64 * 1024**2
_MAX_PAGES: Final = 10_000
_CONTENT_RANGE: Final = re.compile(r"bytes (\d{1,18}-\d{1,18})/(\d{1,18}|\*)")


class NoRanges(UpstreamError):
    """The hub does not support range requests."""


class TransientError(Exception):
    """A failure that another attempt may avoid. ``reason`` is the error to raise after the last one."""

    def __init__(self, reason: CollidiumError, *, wait_seconds: float = 0, attempts: int = ATTEMPTS) -> None:
        super().__init__(reason.detail)
        self.reason = reason
        #: Minimum wait before the next attempt.
        self.wait_seconds = wait_seconds
        #: Maximum number of consecutive attempts that fail so.
        self.attempts = attempts


class HubReader:
    """A hub, read with a token or anonymously. Thread-safe; a context manager."""

    read_seconds: ClassVar[float] = 60.0
    #: Maximum number of consecutive failed attempts, and maximum wait in between, in seconds.
    attempts: ClassVar[int] = ATTEMPTS
    longest_wait: ClassVar[float] = 60.0

    def __init__(self, endpoint: str, token: str | None = None, *, connections: int = 8) -> None:
        """Raises ConfigurationError for a malformed token."""
        import httpx

        headers = {"User-Agent": f"collidium/{__version__}", "Accept-Encoding": "identity"}
        if token:
            headers["Authorization"] = f"Bearer {sendable(token, 'the hub token')}"
        self.endpoint = endpoint
        self._signed_in = bool(token)
        #: Set it to cancel all calls.
        self.stopped = threading.Event()
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(self.read_seconds, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            follow_redirects=True,
            event_hooks={"response": [refuse_redirect]},
            mounts=past_proxies(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def document(self, path: str, subject: str, **query: str) -> Any:
        """Return the JSON at ``path`` of the hub; messages call it ``subject``.

        Raises as :meth:`failure` returns, and Unreachable, Unavailable and UpstreamError.
        """
        return self._page(path, subject, query)[0]

    def pages(self, path: str, subject: str, **query: str) -> Iterator[Any]:
        """Yield the items of a paginated list. Raises as :meth:`document`."""
        cursor: str | None = None
        seen: set[str | None] = set()
        while cursor not in seen:
            seen.add(cursor)
            items, cursor = self._page(path, subject, query | ({"cursor": cursor} if cursor else {}))
            if not isinstance(items, list):
                raise UpstreamError(f"{self.endpoint} sent no list for {subject}")
            yield from items
            if len(seen) >= _MAX_PAGES:
                break
        if cursor is not None:
            raise UpstreamError(f"{self.endpoint} sent an endless list for {subject}")

    def _page(self, path: str, subject: str, query: Mapping[str, str]) -> tuple[Any, str | None]:
        def ask() -> tuple[bytes, httpx.Response]:
            content = bytearray()
            with self.open(path, subject, query=query) as response:
                # Not decompressed: an unrequested compression could expand far beyond the limit.
                for chunk in response.iter_raw():
                    content += chunk
                    if len(content) > _MAX_PAGE_BYTES:
                        raise UpstreamError(f"{self.endpoint} sent a too long response for {subject}")
            return bytes(content), response

        content, response = self.with_retries(ask)
        try:
            return json.loads(content), _cursor(response.links.get("next", {}).get("url"))
        except (ValueError, RecursionError) as error:
            raise UpstreamError(f"{self.endpoint} sent no JSON for {subject}") from error

    def read_range(self, path: str, name: str, start: int, stop: int) -> tuple[bytes, int | None]:
        """Return bytes ``start`` to ``stop``, exclusive, and the size of the file if the hub reports it.

        ``name`` is the file's name, for messages. Raises as :meth:`document`, and NoRanges.
        """
        wanted = f"{start}-{stop - 1}"

        def ask() -> tuple[bytes, int | None]:
            content = bytearray()
            with self.open(path, name, byte_range=wanted) as response:
                found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
                if found is None or found[1] != wanted:
                    raise NoRanges(f"{self.endpoint} does not support range requests for {name}")
                for chunk in response.iter_raw():
                    content += chunk
                    if len(content) > stop - start:
                        break
            if len(content) != stop - start:
                raise UpstreamError(f"{self.endpoint} sent another range of {name} than requested")
            return bytes(content), None if found[2] == "*" else int(found[2])

        return self.with_retries(ask)

    def with_retries(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns. Repeats it on TransientError, and raises its reason in the end."""
        attempts = 0
        while True:
            try:
                return call()
            except TransientError as error:
                attempts += 1
                self.pause(error, attempts)

    @contextmanager
    def open(
        self, path: str, subject: str, *, query: Mapping[str, str] | None = None, byte_range: str = ""
    ) -> Iterator[httpx.Response]:
        """Open a response with status 200 or 206, whose body is to be read inside the context.

        Raises TransientError, also from within the context, and otherwise what :meth:`failure` returns.
        """
        import httpx

        if is_offline():
            raise Unreachable(f"{NAME} forbids calls of the hub {self.endpoint}, and {subject} is not cached")
        headers = {"Range": f"bytes={byte_range}"} if byte_range else {}
        try:
            with self._client.stream(
                "GET", self.endpoint + path, params=dict(query or {}), headers=headers
            ) as response:
                if response.status_code not in {200, 206}:
                    raise self.failure(response, subject)
                yield response
        except (httpx.TransportError, httpx.TooManyRedirects) as error:
            reason = str(error) or type(error).__name__
            if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                # Mostly a wrong address, for which more attempts would fail, too.
                detail = (
                    f"cannot reach the hub {self.endpoint}: {reason}; try again later, or check its address"
                )
                raise TransientError(Unreachable(detail), attempts=2) from error
            detail = f"the connection to the hub {self.endpoint} broke: {reason}"
            raise TransientError(Unreachable(detail)) from error
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            # The latter two for a redirect to an invalid URL.
            raise UpstreamError(
                f"{self.endpoint} sent an invalid response for {subject} ({type(error).__name__})"
            ) from error

    def pause(self, error: TransientError, attempts: int) -> None:
        """Wait before the next attempt; raises the error's reason after the last one or when stopped."""
        wait = max(BACKOFF.pause(attempts).total_seconds(), error.wait_seconds)
        is_last = attempts >= min(error.attempts, self.attempts) or wait > self.longest_wait
        if is_last or self.stopped.wait(wait):
            raise error.reason from error

    def failure(self, response: httpx.Response, subject: str) -> Exception:
        """Return the error to raise for a response with another status than 200 or 206."""
        status, code = response.status_code, response.headers.get("X-Error-Code", "")
        if status in {408, 429} or status >= 500:
            busy = Unavailable(f"the hub {self.endpoint} answered {status} for {subject}")
            return TransientError(busy, wait_seconds=_seconds(response.headers.get("Retry-After", "")))
        if code == "GatedRepo":
            return self._gated(subject)
        if code == "RevisionNotFound":
            return NotFound(f"{subject} has no such revision at {self.endpoint}")
        if code == "EntryNotFound":
            return NotFound(f"{subject} does not exist at {self.endpoint}")
        if code == "RepoNotFound" or (status == 401 and not self._signed_in):
            return self._absent(subject)
        if status == 401:
            return Unauthenticated(f"the hub {self.endpoint} does not accept the token")
        if status == 403:
            return Forbidden(
                f"the hub {self.endpoint} does not permit the owner of the token to read {subject}"
            )
        if status == 404:
            return NotFound(
                f"there is no hub at {self.endpoint}, or it has no {subject}: "
                "is the address right (HF_ENDPOINT, PLATFORM_HUB_URL)?"
            )
        return UpstreamError(f"the hub {self.endpoint} answered {status} for {subject}")

    def _gated(self, subject: str) -> CollidiumError:
        advice = f"ask its owners on {self.endpoint}/datasets"
        if self._signed_in:
            return Forbidden(f"{subject} is gated and the owner of the token has no access: {advice}")
        return Unauthenticated(f"{subject} is gated: {advice}, then log in or set HF_TOKEN")

    def _absent(self, subject: str) -> CollidiumError:
        if self._signed_in:
            return NotFound(
                f"there is no {subject} at {self.endpoint}, or the owner of the token may not see it"
            )
        return NotFound(
            f"there is no {subject} at {self.endpoint} without a token; "
            "if it is private, log in with `collidium login` or set HF_TOKEN"
        )


class RemoteFile(io.RawIOBase):
    """A file on a hub. Each read requests a range of bytes."""

    def __init__(self, hub: HubReader, path: str) -> None:
        """``path`` is the file's path on the hub. Raises as :meth:`HubReader.read_range`."""
        self._hub = hub
        self._path = path
        self._name = unquote(PurePosixPath(path).name)
        self._position = 0
        size = hub.read_range(path, self._name, 0, 1)[1]
        if size is None:
            raise NoRanges(f"{hub.endpoint} does not report the size of {self._name}")
        self._size = size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = (
            offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        )
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        length = min(len(view), self._size - self._position)
        if length <= 0:
            return 0
        view[:length] = self._hub.read_range(self._path, self._name, self._position, self._position + length)[
            0
        ]
        self._position += length
        return length


def _cursor(link: str | None) -> str | None:
    """The cursor in the link to the next page; the rest of the link is not trusted."""
    if link is None:
        return None
    query = parse_qs(urlsplit(link).query)
    return query["cursor"][0] if "cursor" in query else None


def _seconds(retry_after: str) -> float:
    # float, as int raises for thousands of digits
    return (
        min(float(retry_after), _MAX_RETRY_AFTER) if retry_after.isascii() and retry_after.isdecimal() else 0
    )
