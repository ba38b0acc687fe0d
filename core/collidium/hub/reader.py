"""Reads a hub over HTTP: documents, and files by ranges of bytes.

The token goes to the hub alone: redirects to another host are followed without it, and the next page of a
list is requested from the hub whatever address the last one gave.
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
from collidium.hub.sources import sendable
from collidium.runtime.addresses import refuse_redirect
from collidium.runtime.http_client import past_proxies
from collidium.runtime.waiting import Backoff

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

#: Seconds to connect.
_CONNECT_SECONDS: Final = 10.0
#: Attempts in a row that bring nothing before a call is given up.
ATTEMPTS: Final = 5
BACKOFF: Final = Backoff(first=timedelta(seconds=0.5), longest=timedelta(seconds=20))
#: The hub may ask for a longer wait than ours, up to this many seconds.
_LONGEST_WAIT: Final = 60
#: Bytes of one document or page of a list, and pages of a list: far more than any hub has.
_LONGEST_PAGE_BYTES: Final = 64 * 1024**2
_MAX_PAGES: Final = 10_000
_CONTENT_RANGE: Final = re.compile(r"bytes (\d{1,18}-\d{1,18})/(\d{1,18}|\*)")


class NoRanges(UpstreamError):
    """The hub does not give files by ranges of bytes."""


class Passing(Exception):
    """The hub did not answer for now; ``reason`` is raised when the last attempt failed, too."""

    def __init__(self, reason: CollidiumError, *, wait_seconds: float = 0, attempts: int = ATTEMPTS) -> None:
        super().__init__(reason.detail)
        self.reason = reason
        #: How long the hub wants to be left alone.
        self.wait_seconds = wait_seconds
        #: How many such in a row are enough.
        self.attempts = attempts


class HubReader:
    """A hub as the owner of a token, or an anonymous user, sees it. Thread-safe; a context manager."""

    #: Seconds to wait for the next bytes.
    read_seconds: ClassVar[float] = 60.0
    #: Attempts in a row before any call is given up, and the longest wait in between, in seconds.
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
        #: When set, all calls end.
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
        """The JSON at ``path`` of the hub; ``subject`` names what it is about, for messages.

        Raises what :meth:`failure` returns, Unreachable, Unavailable and UpstreamError.
        """
        return self._page(path, subject, query)[0]

    def pages(self, path: str, subject: str, **query: str) -> Iterator[Any]:
        """The items of a list that has several pages. Raises as :meth:`document`."""
        cursor: str | None = None
        seen: set[str | None] = set()
        while cursor not in seen:
            seen.add(cursor)
            items, cursor = self._page(path, subject, query | ({"cursor": cursor} if cursor else {}))
            if not isinstance(items, list):
                raise UpstreamError(f"{self.endpoint} answered with no list about {subject}")
            yield from items
            if len(seen) >= _MAX_PAGES:
                break
        if cursor is not None:
            raise UpstreamError(f"{self.endpoint} gave a list without an end about {subject}")

    def _page(self, path: str, subject: str, query: Mapping[str, str]) -> tuple[Any, str | None]:
        def ask() -> tuple[bytes, httpx.Response]:
            content = bytearray()
            with self.open(path, subject, query=query) as response:
                # As it was sent: what is not asked for may be compressed to far more.
                for chunk in response.iter_raw():
                    content += chunk
                    if len(content) > _LONGEST_PAGE_BYTES:
                        raise UpstreamError(f"{self.endpoint} answered without an end about {subject}")
            return bytes(content), response

        content, response = self.patiently(ask)
        try:
            return json.loads(content), _cursor(response.links.get("next", {}).get("url"))
        except (ValueError, RecursionError) as error:
            raise UpstreamError(f"{self.endpoint} answered with no JSON about {subject}") from error

    def read_range(self, path: str, name: str, start: int, stop: int) -> tuple[bytes, int | None]:
        """Bytes ``start`` to ``stop``, exclusive, of the file ``name``, and its size if the hub gives it.

        Raises as :meth:`document`, and NoRanges.
        """
        wanted = f"{start}-{stop - 1}"

        def ask() -> tuple[bytes, int | None]:
            content = bytearray()
            with self.open(path, name, byte_range=wanted) as response:
                found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
                if found is None or found[1] != wanted:
                    raise NoRanges(f"{self.endpoint} does not give {name} by ranges of bytes")
                for chunk in response.iter_raw():
                    content += chunk
                    if len(content) > stop - start:
                        break
            if len(content) != stop - start:
                raise UpstreamError(f"{self.endpoint} gave another range of {name} than was asked for")
            return bytes(content), None if found[2] == "*" else int(found[2])

        return self.patiently(ask)

    def patiently(self, call: Callable[[], T]) -> T:
        """What ``call`` returns; it is repeated when it raises Passing, whose reason is raised in the end."""
        attempts = 0
        while True:
            try:
                return call()
            except Passing as passing:
                attempts += 1
                self.pause(passing, attempts)

    @contextmanager
    def open(
        self, path: str, subject: str, *, query: Mapping[str, str] | None = None, byte_range: str = ""
    ) -> Iterator[httpx.Response]:
        """A response with status 200 or 206 whose body is still to be read, inside the context.

        Raises Passing where another attempt may bring more, also within the context, and otherwise what
        :meth:`failure` returns.
        """
        import httpx

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
                # Mostly a wrong address: further attempts would fail, too.
                detail = (
                    f"cannot reach the hub {self.endpoint}: {reason}; try again later, or check its address"
                )
                failure = Unreachable(detail)
                raise Passing(failure, attempts=2) from error
            raise Passing(
                Unreachable(f"the connection to the hub {self.endpoint} broke: {reason}")
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            # The latter two where it redirects to what is no address.
            raise UpstreamError(
                f"{self.endpoint} gave an invalid response about {subject} ({type(error).__name__})"
            ) from error

    def pause(self, passing: Passing, attempts: int) -> None:
        """Wait before the next attempt, or raise the reason after the last one or when stopped."""
        wait = max(BACKOFF.pause(attempts).total_seconds(), passing.wait_seconds)
        enough = attempts >= min(passing.attempts, self.attempts) or wait > self.longest_wait
        if enough or self.stopped.wait(wait):
            raise passing.reason from passing

    def failure(self, response: httpx.Response, subject: str) -> Exception:
        """The error to raise for a response with another status than 200 or 206."""
        status, code = response.status_code, response.headers.get("X-Error-Code", "")
        if status in {408, 429} or status >= 500:
            busy = Unavailable(f"the hub {self.endpoint} answered {status} about {subject}")
            return Passing(busy, wait_seconds=_seconds(response.headers.get("Retry-After", "")))
        if code == "GatedRepo":
            return self._gated(subject)
        if code == "RevisionNotFound":
            return NotFound(f"{subject} has no such revision at {self.endpoint}")
        if code == "EntryNotFound":
            return NotFound(f"{subject} is not there at {self.endpoint}")
        if code == "RepoNotFound" or (status == 401 and not self._signed_in):
            return self._absent(subject)
        if status == 401:
            return Unauthenticated(f"the hub {self.endpoint} does not accept the token")
        if status == 403:
            return Forbidden(f"the hub {self.endpoint} does not let the token's owner read {subject}")
        if status == 404:
            return NotFound(
                f"there is no hub at {self.endpoint}, or it has no {subject}: "
                "is the address right (HF_ENDPOINT, PLATFORM_HUB_URL)?"
            )
        return UpstreamError(f"the hub {self.endpoint} answered {status} about {subject}")

    def _gated(self, subject: str) -> CollidiumError:
        how = f"ask its owners on {self.endpoint}/datasets"
        if self._signed_in:
            return Forbidden(f"{subject} is gated and the token's owner has no access: {how}")
        return Unauthenticated(f"{subject} is gated: {how}, then log in or set HF_TOKEN")

    def _absent(self, subject: str) -> CollidiumError:
        if self._signed_in:
            return NotFound(f"there is no {subject} at {self.endpoint}, or the token's owner may not see it")
        return NotFound(
            f"there is no {subject} at {self.endpoint} without a token; "
            "if it is private, log in with `collidium login` or set HF_TOKEN"
        )


class RemoteFile(io.RawIOBase):
    """A file on a hub, read in place: each read requests a range of bytes."""

    def __init__(self, hub: HubReader, path: str) -> None:
        """``path`` is its address below the hub's. Raises what :meth:`HubReader.read_range` raises."""
        self._hub = hub
        self._path = path
        self._name = unquote(PurePosixPath(path).name)
        self._at = 0
        size = hub.read_range(path, self._name, 0, 1)[1]
        if size is None:
            raise NoRanges(f"{hub.endpoint} does not give the size of {self._name}")
        self._size = size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        length = min(len(view), self._size - self._at)
        if length <= 0:
            return 0
        view[:length] = self._hub.read_range(self._path, self._name, self._at, self._at + length)[0]
        self._at += length
        return length


def _cursor(link: str | None) -> str | None:
    """The cursor in the address of the next page; the rest of the address is not trusted."""
    if link is None:
        return None
    query = parse_qs(urlsplit(link).query)
    return query["cursor"][0] if "cursor" in query else None


def _seconds(retry_after: str) -> float:
    # No int: that refuses thousands of digits.
    return min(float(retry_after), _LONGEST_WAIT) if retry_after.isascii() and retry_after.isdecimal() else 0
