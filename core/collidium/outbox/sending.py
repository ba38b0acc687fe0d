"""Send an event to a webhook: signed, over TLS, to an address that was checked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import httpcore
import httpx
from standardwebhooks import Webhook

from collidium import __version__
from collidium.errors import TooManyRequests, Unavailable
from collidium.outbox.webhooks import HTTPS_PORT, Refused, addresses_of, host_of
from collidium.runtime.look_ups import LookUps, Resolve

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Maximum number of addresses of a host that are tried, in equal shares of the time.
MAX_ADDRESSES: Final = 3
#: Maximum number of concurrent deliveries to one address by receivers without a recent success: any number of
#: host names may resolve to the address of a victim.
MAX_PER_ADDRESS: Final = 8
#: Maximum size of the head of a response, including informational responses.
LONGEST_HEAD: Final = 32 * 1024
#: Maximum number of bytes that are parsed before other tasks run.
MAX_READ_BYTES: Final = 1024
#: The error for any failure before an HTTP response: more would reveal which ports are open.
NO_ANSWER: Final = "no HTTPS answer"
#: The errors of httpcore, and those that it does not wrap.
_FAILURES: Final = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpx.InvalidURL,
    OSError,  # TimeoutError among them
    ValueError,  # a host name that IDNA or TLS does not accept
)


@dataclass(frozen=True, slots=True)
class SendingOutcome:
    """The outcome of an attempt; ``error`` is None if the receiver took the event."""

    status: int | None
    #: For the receiver's owner.
    error: str | None
    #: Details for the platform's log, without the URL.
    cause: str = ""
    #: Whether the platform failed, and not the receiver.
    ours: bool = False
    #: Whether a retry is useless.
    final: bool = False


class Sender:
    """Sends events; one instance per process.

    It connects to the addresses that were checked, as a second look-up could return others. The certificate
    must be valid for the host name, by the authorities of ``SSL_CERT_FILE``, else those of httpx.
    """

    def __init__(self, settings: Settings, resolve: Resolve | None = None) -> None:
        self._private = settings.webhook_private_addresses
        self._seconds = settings.webhook_timeout_seconds
        # Separate from the look-ups of registrations, so that slow hosts do not block these; and separate for
        # receivers with a recent success, so that hosts that cannot be found do not delay them.
        self._resolve = resolve or LookUps().look_up
        self._resolve_answering = resolve or LookUps().look_up
        self._context: ssl.SSLContext | None = None
        self._network = BoundedNetwork()
        # Kept by the running attempts that use them.
        self._places: WeakValueDictionary[bytes, asyncio.Semaphore] = WeakValueDictionary()

    async def send(
        self,
        url: str,
        account_id: int,
        *,
        event_id: str,
        body: str,
        secret: str,
        moment: datetime,
        answering: bool = False,
    ) -> SendingOutcome:
        """Send an event, signed at ``moment``. Failures are returned, not raised.

        Receivers that are not ``answering`` share :data:`MAX_PER_ADDRESS` deliveries to one address.
        """
        moment = moment.astimezone(UTC)  # required by the signature
        headers = {
            "Accept": "*/*",  # some firewalls require it
            "Content-Type": "application/json",
            "User-Agent": f"collidium/{__version__}",
            "webhook-id": event_id,
            "webhook-timestamp": str(int(moment.timestamp())),
            "webhook-signature": Webhook(secret).sign(event_id, moment, body),
        }
        try:
            async with asyncio.timeout(self._seconds):
                return _outcome(
                    await self._post(httpx.URL(url), account_id, headers, body.encode(), answering=answering)
                )
        except Refused as refused:
            return SendingOutcome(None, str(refused))
        except (TooManyRequests, Unavailable) as error:
            return SendingOutcome(None, "could not be tried now", error.detail, ours=True)
        except _FAILURES as failure:
            return SendingOutcome(None, NO_ANSWER, _kinds(failure))

    async def _post(
        self, url: httpx.URL, account_id: int, headers: dict[str, str], body: bytes, *, answering: bool
    ) -> int:
        host, port = host_of(url), url.port or HTTPS_PORT
        resolve = self._resolve_answering if answering else self._resolve
        addresses = await addresses_of(
            host, port, account_id, private=self._private, resolve=resolve, seconds=self._seconds
        )
        headers = {"Host": url.netloc.decode("ascii"), **headers}
        *others, last = (
            httpcore.URL(scheme=b"https", host=address.encode("ascii"), port=port, target=url.raw_path)
            for address in addresses[:MAX_ADDRESSES]
        )
        for address in others:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                async with self._place(address.host, answering=answering):
                    return await self._post_to(address, host, headers, body)
        async with self._place(last.host, answering=answering):
            return await self._post_to(last, host, headers, body)

    @asynccontextmanager
    async def _place(self, address: bytes, *, answering: bool) -> AsyncIterator[None]:
        """Wait for a free place at an address, unless ``answering``. Raises Unavailable."""
        if answering:
            yield
            return
        place = self._places.setdefault(address, asyncio.Semaphore(MAX_PER_ADDRESS))
        try:
            # This leaves enough time for one connection.
            async with asyncio.timeout(self._seconds * (1 - 1 / MAX_ADDRESSES)):
                await place.acquire()
        except TimeoutError:
            raise Unavailable("too many deliveries to its address are running") from None
        try:
            yield
        finally:
            place.release()

    async def _post_to(self, address: httpcore.URL, host: str, headers: dict[str, str], body: bytes) -> int:
        """Return the status of the response; its body is not read."""
        if self._context is None:  # in a thread, as loading the certificates takes 50 ms
            self._context = await asyncio.to_thread(httpx.create_ssl_context)
        timeout = {"connect": self._seconds / MAX_ADDRESSES, "read": self._seconds, "write": self._seconds}
        extensions = {"sni_hostname": host, "timeout": timeout}
        # No pool: it leaks the connections of cancelled requests (encode/httpcore#1093), and must never reuse
        # a connection for another host at the same address.
        async with (
            httpcore.AsyncHTTPConnection(
                address.origin, ssl_context=self._context, network_backend=self._network
            ) as connection,
            connection.stream(
                "POST", address, headers=[*headers.items()], content=body, extensions=extensions
            ) as response,
        ):
            return response.status


def _outcome(status: int) -> SendingOutcome:
    if status // 100 == 2:
        return SendingOutcome(status, None)
    if status // 100 == 3:
        return SendingOutcome(status, f"answered {status}; redirects are not followed")
    return SendingOutcome(status, f"answered {status}", final=status == HTTPStatus.GONE)


def _kinds(failure: BaseException) -> str:
    """Return the types of a chain of errors, without their messages, which contain names and responses."""
    kinds = []
    cause: BaseException | None = failure
    while cause is not None:
        kinds.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    return " from ".join(kinds)


class HeadTooLong(httpcore.ReadError):
    """The head of the response is longer than :data:`LONGEST_HEAD`."""


class BoundedNetwork(httpcore.AsyncNetworkBackend):
    """Opens connections from which at most :data:`LONGEST_HEAD` bytes are read.

    HTTP libraries read any number of informational responses (``103 Early Hints``), whole buffers at once: a
    receiver could block the event loop.
    """

    def __init__(self) -> None:
        # Pyright takes it for the stub without anyio, which httpx requires.
        self._inner: httpcore.AsyncNetworkBackend = httpcore.AnyIOBackend()  # pyright: ignore[reportAttributeAccessIssue]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- its interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Open a connection. Raises ConnectError and ConnectTimeout."""
        try:
            stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        except ExceptionGroup as errors:
            # anyio raises this for other errors than OSError, such as OverflowError for an invalid port.
            raise httpcore.ConnectError from errors
        return _BoundedStream(stream)


class _BoundedStream(httpcore.AsyncNetworkStream):
    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._left = LONGEST_HEAD

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 -- as above
        if not self._left:
            raise HeadTooLong
        # Reading data that has arrived does not yield to other tasks.
        await asyncio.sleep(0)
        part = await self._inner.read(min(max_bytes, self._left, MAX_READ_BYTES), timeout)
        self._left -= len(part)
        return part

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- as above
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- as above
    ) -> httpcore.AsyncNetworkStream:
        try:
            return _BoundedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))
        except asyncio.CancelledError:
            # httpcore closes the connection after other failures only.
            await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
