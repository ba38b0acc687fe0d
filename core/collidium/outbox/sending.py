"""Sends one attempt: signed, over TLS, to an address that was checked, and says what became of it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Final

import httpx
from standardwebhooks import Webhook

from collidium import __version__
from collidium.outbox.resolving import Refused, Resolve, addresses_of, look_up
from collidium.outbox.urls import HTTPS_PORT, host_of

if TYPE_CHECKING:
    from collidium.settings import Settings

#: So many addresses of a host are tried, each for its part of the time.
MOST_ADDRESSES: Final = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a receiver answered, or why there is no answer; ``error`` is None where it took the event."""

    status: int | None
    error: str | None

    @property
    def gone(self) -> bool:
        """Whether the receiver wants to hear nothing more."""
        return self.status == HTTPStatus.GONE


class Sender:
    """Sends events; one long-lived instance per process. :meth:`open` makes one."""

    def __init__(self, client: httpx.AsyncClient, seconds: float) -> None:
        self._client = client
        self._seconds = seconds

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, resolve: Resolve = look_up) -> AsyncIterator[Sender]:
        """A sender that trusts the authorities of ``SSL_CERT_FILE``, else those that httpx brings."""
        # In a thread: reading all authorities takes 50 ms.
        context = await asyncio.to_thread(httpx.create_ssl_context)
        async with httpx.AsyncClient(
            transport=CheckedTransport(settings, resolve, context),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # none
            trust_env=False,
            follow_redirects=False,
        ) as client:
            yield cls(client, settings.webhook_timeout_seconds)

    async def send(self, url: str, *, event_id: str, body: str, secret: str, moment: datetime) -> Outcome:
        """Send an event, signed at ``moment``; what a receiver does wrong is told, not raised."""
        moment = moment.astimezone(UTC)  # the signature takes it for that
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"collidium/{__version__}",
            "webhook-id": event_id,
            "webhook-timestamp": str(int(moment.timestamp())),
            "webhook-signature": Webhook(secret).sign(event_id, moment, body),
        }
        try:
            async with asyncio.timeout(self._seconds):
                return _outcome(await self._post(url, headers, body))
        except (TimeoutError, httpx.TimeoutException):
            return Outcome(None, f"no answer within {self._seconds:g} s")
        except Refused as refused:
            return Outcome(None, str(refused))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as failure:
            return Outcome(None, _told(failure))

    async def _post(self, url: str, headers: dict[str, str], body: str) -> int:
        """The answer's status; the rest of the answer is not read, as nothing depends on it."""
        async with self._client.stream("POST", url, content=body.encode(), headers=headers) as response:
            return response.status_code


class CheckedTransport(httpx.AsyncBaseTransport):
    """Connects to an address that was checked a moment before: a second look-up could lead elsewhere.

    The certificate is still that of the host name.
    """

    def __init__(self, settings: Settings, resolve: Resolve, context: ssl.SSLContext) -> None:
        self._private = settings.webhook_private_addresses
        self._seconds = settings.webhook_timeout_seconds
        self._resolve = resolve
        # A connection that was made for one host must never carry what is meant for another at its address.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host, port = host_of(request.url), request.url.port or HTTPS_PORT
        addresses = await addresses_of(
            host, port, private=self._private, resolve=self._resolve, seconds=self._seconds
        )
        *others, last = addresses[:MOST_ADDRESSES]
        for address in others:
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await self._connect(request, host, address)
        return await self._connect(request, host, last)

    async def _connect(self, request: httpx.Request, host: str, address: str) -> httpx.Response:
        timeout = httpx.Timeout(self._seconds, connect=self._seconds / MOST_ADDRESSES)
        pinned = httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,  # Host among them, by name
            stream=request.stream,
            extensions={"sni_hostname": host, "timeout": timeout.as_dict()},
        )
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _outcome(status: int) -> Outcome:
    if status // 100 == 2:
        return Outcome(status, None)
    if status // 100 == 3:
        return Outcome(status, f"answered {status}; redirects are not followed")
    return Outcome(status, f"answered {status}")


def _told(failure: Exception) -> str:
    """What went wrong, for the log that the receiver's owner reads."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate cannot be trusted: {cause.verify_message}"[:500]
        cause = cause.__cause__ or cause.__context__
    if isinstance(failure, httpx.ConnectError):
        return "it cannot be connected"
    if isinstance(failure, httpx.RemoteProtocolError):
        return "the connection broke, or what it answered is not HTTP"
    return "the connection broke"
