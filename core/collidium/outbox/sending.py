"""Sends one attempt: signed, over TLS, to an address that was checked, and returns the outcome."""

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
from collidium.outbox.urls import HTTPS_PORT, Refused, addresses_of, host_of
from collidium.runtime.look_ups import LookUps, Resolve

if TYPE_CHECKING:
    from collidium.settings import Settings

#: So many addresses of a host are tried, each for its part of the time.
MAX_ADDRESSES: Final = 3
#: Deliveries under way at once to one address, of all receivers that have not answered before: names cost
#: nothing, and any number of them may lead to one address that asked for nothing.
MAX_PER_ADDRESS: Final = 8
#: Bytes of an answer up to the end of its head, informational answers included; several times what servers
#: let a head be.
LONGEST_HEAD: Final = 32 * 1024
#: Bytes that are parsed without a turn of the event loop between: many receivers may answer at once.
MAX_READ_BYTES: Final = 1024
#: The error of whatever goes wrong before an HTTP response: more would reveal which ports are open.
NO_ANSWER: Final = "no HTTPS answer"
#: What httpcore raises, and what it lets through.
_FAILURES: Final = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpx.InvalidURL,
    OSError,  # TimeoutError among them
    ValueError,  # of names that the encoding of names, or TLS, does not take
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a receiver answered, or why there is no answer; ``error`` is None where it took the event."""

    status: int | None
    #: For the log that the receiver's owner reads.
    error: str | None
    #: What went wrong, for the platform's own log; nothing of the URL.
    cause: str = ""
    #: Whether the receiver was not even tried, as this process had no room for it.
    ours: bool = False
    #: Whether trying again is in vain.
    final: bool = False


class Sender:
    """Sends events; one long-lived instance per process.

    It connects to an address that was checked a moment before, as a second look-up could lead elsewhere; the
    certificate is still that of the host name, by the authorities of ``SSL_CERT_FILE``, else httpx's.
    """

    def __init__(self, settings: Settings, resolve: Resolve | None = None) -> None:
        self._private = settings.webhook_private_addresses
        self._seconds = settings.webhook_timeout_seconds
        # Look-ups of its own: hosts that deliveries wait for block no registration. Others again
        # for who answered before: names that lead nowhere do not keep them waiting.
        self._resolve = resolve or LookUps().look_up
        self._resolve_answering = resolve or LookUps().look_up
        self._context: ssl.SSLContext | None = None
        self._network = BoundedNetwork()
        # Held by those who use them, so there are never more than attempts under way.
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
    ) -> Outcome:
        """Send an account's event, signed at ``moment``; failures of receivers are returned, not raised.

        Receivers that are not known to be ``answering`` share :data:`MAX_PER_ADDRESS` places at an address.
        """
        moment = moment.astimezone(UTC)  # the signature takes it for that
        headers = {
            "Accept": "*/*",  # some firewalls want it
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
            return Outcome(None, str(refused))
        except (TooManyRequests, Unavailable) as error:
            return Outcome(None, "could not be tried now", error.detail, ours=True)
        except _FAILURES as failure:
            return Outcome(None, NO_ANSWER, _kinds(failure))

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
        """A place at an address; who answers needs none. Raises Unavailable."""
        if answering:
            yield
            return
        place = self._places.setdefault(address, asyncio.Semaphore(MAX_PER_ADDRESS))
        try:
            # That leaves the time of one connection.
            async with asyncio.timeout(self._seconds * (1 - 1 / MAX_ADDRESSES)):
                await place.acquire()
        except TimeoutError:
            raise Unavailable("too many deliveries to its address are under way") from None
        try:
            yield
        finally:
            place.release()

    async def _post_to(self, address: httpcore.URL, host: str, headers: dict[str, str], body: bytes) -> int:
        """The answer's status; the rest of the answer is not read, as nothing depends on it."""
        if self._context is None:  # in a thread, by the first delivery: reading all authorities takes 50 ms
            self._context = await asyncio.to_thread(httpx.create_ssl_context)
        timeout = {"connect": self._seconds / MAX_ADDRESSES, "read": self._seconds, "write": self._seconds}
        extensions = {"sni_hostname": host, "timeout": timeout}
        # No pool: one leaks connections whose request is cancelled (encode/httpcore#1093), and a connection
        # that was made for one host must never carry what is meant for another at its address.
        async with (
            httpcore.AsyncHTTPConnection(
                address.origin, ssl_context=self._context, network_backend=self._network
            ) as connection,
            connection.stream(
                "POST", address, headers=[*headers.items()], content=body, extensions=extensions
            ) as response,
        ):
            return response.status


def _outcome(status: int) -> Outcome:
    if status // 100 == 2:
        return Outcome(status, None)
    if status // 100 == 3:
        return Outcome(status, f"answered {status}; redirects are not followed")
    return Outcome(status, f"answered {status}", final=status == HTTPStatus.GONE)


def _kinds(failure: BaseException) -> str:
    """The kinds of error that led to another; not their messages, which hold names and what was answered."""
    kinds = []
    cause: BaseException | None = failure
    while cause is not None:
        kinds.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    return " from ".join(kinds)


class HeadTooLong(httpcore.ReadError):
    """The answer's head does not end in time."""


class BoundedNetwork(httpcore.AsyncNetworkBackend):
    """Connections that end after :data:`LONGEST_HEAD` bytes: for who reads no body.

    HTTP libraries read informational answers (``103 Early Hints``) for as long as they come, and a whole
    buffer of them between two turns of the event loop: one receiver could hold up everything else.
    """

    def __init__(self) -> None:
        # To pyright it may be the stand-in for environments without anyio, which httpx needs.
        self._inner: httpcore.AsyncNetworkBackend = httpcore.AnyIOBackend()  # pyright: ignore[reportAttributeAccessIssue]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- its interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection; raises ConnectError and ConnectTimeout."""
        try:
            stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        except ExceptionGroup as errors:
            # So anyio hands on what is no OSError: for a port that there is not an OverflowError.
            raise httpcore.ConnectError from errors
        return _BoundedStream(stream)


class _BoundedStream(httpcore.AsyncNetworkStream):
    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._left = LONGEST_HEAD

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 -- as above
        if not self._left:
            raise HeadTooLong
        # What has arrived already is read without one.
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
            # httpcore closes it after other failures only; no other code knows of it.
            await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
