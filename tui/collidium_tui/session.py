"""The console's connection to the server: every call passes here, and its outcome updates the status."""

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

#: Longest wait for a whole answer; a thousand refunds at once take some of it.
TIMEOUT_SECONDS: Final = 60.0

#: Shown instead of the server's text, which is written for programs.
REJECTED: Final = "The server rejects this secret."

#: A call: ``lambda client: client.admin_usage(limit=50)``.
Call = Callable[["AsyncClient"], Awaitable[Result]]
#: A call that changes something, once for each key:
#: ``lambda client, key: client.admin_verify(submission_id, idempotency_key=key)``.
Action = Callable[["AsyncClient", str], Awaitable[Result]]
#: What a key runs, with its questions: a method, or a ``partial`` of one.
Handler = Callable[[], Awaitable[None]]


class Link(Enum):
    """The state of the connection to the server."""

    NEW = "connecting"
    SIGNED_OUT = "signed out"
    UP = "connected"
    #: It does not answer as it should; it is tried again.
    AWAY = "BACKEND AWAY"
    #: It answers, and not as this version of the console understands.
    OTHER = "BACKEND OF ANOTHER VERSION"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What the console knows of the server."""

    backend: str
    link: Link = Link.NEW
    #: Of the last look, there and back.
    latency_ms: float | None = None
    #: As the last look found it; stays while the server is away.
    overview: Overview | None = None
    #: How its version differs from the console's, if it does.
    mismatch: str | None = None
    #: What went wrong last, and when; stays until something else does, or an action of the operator succeeds.
    last_error: str = ""
    last_error_at: datetime | None = None

    @property
    def frozen(self) -> bool | None:
        """Whether new simulation requests are refused; None: not known yet."""
        return None if self.overview is None else self.overview.submissions_frozen

    @property
    def unfinished(self) -> int | None:
        """How many requests are queued or run; None: not known yet."""
        return None if self.overview is None else self.overview.queued + self.overview.running


class Session:
    """Calls the server with the operators' secret, which lies in the client alone and is never shown."""

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
        """Connect, with the secret that the environment names if there is one.

        Raises ConfigurationError for a backend that is no address.
        """
        # Importing takes as long as the first paint: the screen is there before.
        await asyncio.to_thread(import_module, "collidium.client")
        token, self._first_token = self._first_token, None
        self._client = self._connect(token or "")
        self._set(backend=self._client.backend, link=Link.NEW if token else Link.SIGNED_OUT)

    async def close(self) -> None:
        """Give back the connections."""
        if self._client is not None:
            await self._client.close()

    @property
    def signed_in(self) -> bool:
        """Whether calls have a secret to go with, as far as is known."""
        return self._client is not None and self.status.link is not Link.SIGNED_OUT

    async def sign_in(self, admin_token: str) -> None:
        """Use another secret from now on; raises CollidiumError when the server does not take it."""
        old, self._client = self._client, self._connect(admin_token)
        if old is not None:
            await old.close()
        await self.look()
        self.forget_error()

    def forget_error(self) -> None:
        """Show the last error no longer: an action of the operator has succeeded since."""
        self._set(last_error="", last_error_at=None)

    async def call(self, call: Call[Result]) -> Result:
        """Call the server and return its response; raises CollidiumError, also recorded in ``status``."""
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

    async def _with_timeout(self, answer: Awaitable[Result]) -> Result:
        """Bound the whole response: the client's timeout bounds each chunk alone.

        A rejected secret is reported in an operator's words.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await answer
        except Unauthenticated as error:
            # The server's text is for programs: it names a header.
            raise Unauthenticated(REJECTED) from error
        except TimeoutError:
            message = f"{self.status.backend} did not answer within {self._timeout_seconds:g} s"
            raise Unreachable(message) from None

    async def look(self) -> None:
        """Poll the server; raises CollidiumError when it does not answer as it should."""
        try:
            await self._look()
        except (ConfigurationError, Unauthenticated):
            raise
        except CollidiumError:
            self._set(link=Link.AWAY)
            raise

    async def _look(self) -> None:
        from collidium.client import version_mismatch

        async def seen(client: AsyncClient) -> tuple[str, Overview | None]:
            try:
                overview = await client.admin_overview()
            except Forbidden:  # of the organiser of a challenge, for whom the rest works
                return (await client.health()).version, None
            return overview.version, overview

        started = monotonic()
        try:
            version, overview = await self.call(seen)
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

        # An empty token, so that no account is created for an operator.
        return AsyncClient(self._backend, token="", admin_token=admin_token)

    def _set(self, **changes: object) -> None:
        changed = replace(self.status, **changes)  # type: ignore[arg-type]  # by name, as ServerStatus has them
        if changed != self.status:
            self.status = changed
            self.on_change(changed)


#: The link after an error; other errors do not change it.
_LINKS: Final[Mapping[type[CollidiumError], Link]] = {
    # A secret that cannot even be sent.
    ConfigurationError: Link.SIGNED_OUT,
    Unauthenticated: Link.SIGNED_OUT,
    Unreachable: Link.AWAY,
}


#: Seconds between two looks.
PAUSE: Final = 5.0
#: Seconds between attempts to find it again; the last one for good.
PAUSES_AWAY: Final = (1.0, 2.0, 4.0, 8.0, 15.0)


class Watch:
    """Keeps a session's status up to date."""

    def __init__(self, session: Session, on_mistake: Callable[[Exception], None]) -> None:
        """``on_mistake`` is called with errors of the console itself that a poll ran into."""
        self._session = session
        self._on_mistake = on_mistake
        self._wanted = asyncio.Event()

    def look_now(self) -> None:
        """Do not wait for the next look."""
        self._wanted.set()

    async def keep(self) -> None:
        """Look until cancelled."""
        pauses = iter(PAUSES_AWAY)
        while True:
            self._wanted.clear()
            if self._session.signed_in:
                await self._look()
            if self._session.status.link is Link.AWAY:
                pause = next(pauses, PAUSES_AWAY[-1])
            else:
                pause, pauses = PAUSE, iter(PAUSES_AWAY)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause)

    async def _look(self) -> None:
        try:
            await self._session.look()
        except CollidiumError:
            pass  # shown by the session's status
        except Exception as error:
            # Without polls the console would show old data for ever.
            self._on_mistake(error)


def console_of(node: DOMNode) -> Console:
    """The console that shows a screen or widget."""
    return cast("Console", node.app)
