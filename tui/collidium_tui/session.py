"""The console's connection to the server. The outcome of every call updates the status."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar, cast

from collidium.errors import (
    CollidiumError,
    ConfigurationError,
    Forbidden,
    Unauthenticated,
    Unreachable,
    UpstreamError,
)

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from collidium.client import AsyncClient, Overview
    from collidium_tui.app import Console


Result = TypeVar("Result")

#: Maximum time of a response. A thousand refunds at once take a part of it.
TIMEOUT_SECONDS: Final = 60.0

#: Replaces the server's text, which names an HTTP header.
REJECTED: Final = "The server rejects this secret."

#: A call: ``lambda client: client.admin_usage(limit=50)``.
Call = Callable[["AsyncClient"], Awaitable[Result]]
#: A call that changes something, with its idempotency key:
#: ``lambda client, key: client.admin_verify(submission_id, idempotency_key=key)``.
Action = Callable[["AsyncClient", str], Awaitable[Result]]
#: What a key of the console runs, including its dialogs.
Handler = Callable[[], Awaitable[None]]


class Link(Enum):
    """The state of the connection to the server."""

    NEW = "connecting"
    SIGNED_OUT = "signed out"
    UP = "connected"
    #: It does not respond, or not as expected; it is polled further.
    AWAY = "BACKEND AWAY"
    #: It responds, but not as this version of the console expects.
    OTHER = "BACKEND OF ANOTHER VERSION"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status of the server, as far as it is known."""

    backend: str
    link: Link = Link.NEW
    #: Round-trip time of the last poll.
    latency_ms: float | None = None
    #: The result of the last successful poll.
    overview: Overview | None = None
    #: How its version differs from the console's.
    mismatch: str | None = None
    #: The last error, until an action of the operator succeeds.
    last_error: str = ""
    last_error_at: datetime | None = None

    @property
    def frozen(self) -> bool | None:
        """Whether new simulation requests are rejected; None if not known yet."""
        return None if self.overview is None else self.overview.submissions_frozen

    @property
    def unfinished(self) -> int | None:
        """The number of queued and running requests; None if not known yet."""
        return None if self.overview is None else self.overview.queued + self.overview.running


class Session:
    """Calls the server with the operators' token, which only the client holds."""

    def __init__(
        self,
        backend: str | None = None,
        admin_token: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.status = ServerStatus(backend or "")
        self.on_change: Callable[[ServerStatus], None] = lambda status: None
        self._backend = backend
        self._first_token = admin_token
        self._timeout_seconds = timeout_seconds
        self._client: AsyncClient | None = None

    async def open(self) -> None:
        """Create the client, with the token given to the constructor.

        Raises ConfigurationError if the backend is not an address.
        """
        # In a thread, so that the first screen is painted before the import ends.
        await asyncio.to_thread(import_module, "collidium.client")
        token, self._first_token = self._first_token, None
        self._client = self._connect(token or "")
        self._set(backend=self._client.backend, link=Link.NEW if token else Link.SIGNED_OUT)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    @property
    def signed_in(self) -> bool:
        """Whether there is a token that the server has not rejected."""
        return self._client is not None and self.status.link is not Link.SIGNED_OUT

    async def sign_in(self, admin_token: str) -> None:
        """Use another token; raises CollidiumError if the server does not accept it."""
        old, self._client = self._client, self._connect(admin_token)
        if old is not None:
            await old.close()
        await self.poll()
        self.clear_error()

    def clear_error(self) -> None:
        """Clear the last error."""
        self._set(last_error="", last_error_at=None)

    async def call(self, call: Call[Result]) -> Result:
        """Call the server. Raises CollidiumError, which is also recorded in ``status``."""
        if self._client is None:
            raise Unreachable("not connected yet")
        try:
            return await self._with_timeout(call(self._client))
        except CollidiumError as error:
            self._set(
                link=_LINKS.get(type(error), self.status.link),
                last_error=error.detail,
                last_error_at=datetime.now(UTC),
            )
            raise

    async def _with_timeout(self, response: Awaitable[Result]) -> Result:
        """Limit the time of the whole response; the client's timeout limits only that of each chunk."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await response
        except Unauthenticated as error:
            raise Unauthenticated(REJECTED) from error
        except TimeoutError:
            message = f"{self.status.backend} did not respond within {self._timeout_seconds:g} s"
            raise Unreachable(message) from None

    async def poll(self) -> None:
        """Update the status. Raises CollidiumError if the server does not respond as expected."""
        try:
            await self._poll()
        except (ConfigurationError, Unauthenticated):
            raise
        except CollidiumError:
            self._set(link=Link.AWAY)
            raise

    async def _poll(self) -> None:
        from collidium.client import version_mismatch

        async def fetch(client: AsyncClient) -> tuple[str, Overview | None]:
            try:
                overview = await client.admin_overview()
            except Forbidden:  # organisers of a challenge cannot read the overview
                return (await client.health()).version, None
            return overview.version, overview

        started = monotonic()
        try:
            version, overview = await self.call(fetch)
        except UpstreamError as error:
            health = await self.call(lambda client: client.health())
            self._set(link=Link.OTHER, mismatch=version_mismatch(health.version) or error.detail)
            return
        self._set(
            link=Link.UP,
            latency_ms=(monotonic() - started) * 1000,
            overview=overview,
            mismatch=version_mismatch(version),
        )

    def _connect(self, admin_token: str) -> AsyncClient:
        from collidium.client import AsyncClient

        # Without a user's token, so that no account is created for an operator.
        return AsyncClient(self._backend, token="", admin_token=admin_token)

    def _set(self, **changes: object) -> None:
        changed = replace(self.status, **changes)  # type: ignore[arg-type]  # by name, as ServerStatus has them
        if changed != self.status:
            self.status = changed
            self.on_change(changed)


#: The link after an error. Other errors do not change it.
_LINKS: Final[Mapping[type[CollidiumError], Link]] = {
    # A token that cannot be sent.
    ConfigurationError: Link.SIGNED_OUT,
    Unauthenticated: Link.SIGNED_OUT,
    Unreachable: Link.AWAY,
}


#: Seconds between two polls.
POLL_SECONDS: Final = 5.0
#: Seconds between polls while the server does not respond; the last one repeats.
RETRY_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 15.0)


class StatusPoller:
    """Polls the server to keep a session's status up to date."""

    def __init__(self, session: Session, on_internal_error: Callable[[Exception], None]) -> None:
        self._session = session
        self._on_internal_error = on_internal_error
        self._wanted = asyncio.Event()

    def poll_now(self) -> None:
        """Poll without waiting for the next interval."""
        self._wanted.set()

    async def run(self) -> None:
        """Poll until cancelled."""
        retries = iter(RETRY_SECONDS)
        while True:
            self._wanted.clear()
            if self._session.signed_in:
                await self._poll()
            if self._session.status.link is Link.AWAY:
                pause = next(retries, RETRY_SECONDS[-1])
            else:
                pause, retries = POLL_SECONDS, iter(RETRY_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause)

    async def _poll(self) -> None:
        try:
            await self._session.poll()
        except CollidiumError:
            pass  # shown by the session's status
        except Exception as error:
            # Polling continues: without it, the console would never notice that the server is back.
            self._on_internal_error(error)


def console_of(node: DOMNode) -> Console:
    """The console that shows a screen or widget."""
    return cast("Console", node.app)
