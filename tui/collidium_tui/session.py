"""The console's one way to the server: every call goes through here, so here is known how the server is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from collidium.errors import CollidiumError, Unauthenticated, Unreachable

if TYPE_CHECKING:
    from collidium.client import AsyncClient

Result = TypeVar("Result")

#: What is to be asked: ``lambda client: client.admin_usage(limit=50)``.
Call = Callable[["AsyncClient"], Awaitable[Result]]
#: What an operator sets off, questions and all: a method, or a ``partial`` of one.
Deed = Callable[[], Awaitable[None]]


class Link(Enum):
    """How the console and the server stand to each other."""

    NEW = "connecting"
    SIGNED_OUT = "signed out"
    UP = "connected"
    AWAY = "backend away"


@dataclass(frozen=True, slots=True)
class Standing:
    """What the console knows of the server, whatever screen is shown."""

    backend: str
    link: Link = Link.NEW
    #: Of the last look, there and back.
    latency_ms: float | None = None
    frozen: bool | None = None
    unfinished: int | None = None
    #: The server's version.
    version: str | None = None
    #: What went wrong last; stays until something else does.
    last_error: str = ""


class Session:
    """Calls the server with the operators' secret, which lies in the client alone and is never shown."""

    def __init__(self, backend: str | None = None, admin_token: str | None = None) -> None:
        self.standing = Standing(backend or "")
        self.on_change: Callable[[Standing], None] = lambda standing: None
        self._backend = backend
        self._first_token = admin_token
        self._client: AsyncClient | None = None

    async def open(self) -> None:
        """Connect, with the secret that the environment names if there is one.

        Raises ConfigurationError for a backend that is no address.
        """
        # Importing takes as long as the first paint: the screen is there before.
        await asyncio.to_thread(import_module, "collidium.client")
        self._client = self._connect(self._first_token or "")
        self._set(backend=self._client.backend)
        if not self._first_token:
            self._set(link=Link.SIGNED_OUT)

    async def close(self) -> None:
        """Give back the connections."""
        if self._client is not None:
            await self._client.close()

    @property
    def signed_in(self) -> bool:
        """Whether calls have a secret to go with, as far as is known."""
        return self._client is not None and self.standing.link is not Link.SIGNED_OUT

    async def sign_in(self, admin_token: str) -> None:
        """Use another secret from now on; raises CollidiumError when the server does not take it."""
        old, self._client = self._client, self._connect(admin_token)
        if old is not None:
            await old.close()
        await self.look()

    async def ask(self, call: Call[Result]) -> Result:
        """What the server answers; raises CollidiumError, which is then told in ``standing``, too."""
        if self._client is None:
            raise Unreachable("not connected yet")
        try:
            return await call(self._client)
        except CollidiumError as error:
            self._note(error)
            raise

    async def look(self) -> None:
        """See how the server is; raises CollidiumError when it does not answer as it should."""
        started = monotonic()
        ready = await self.ask(lambda client: client.ready())
        latency_ms = (monotonic() - started) * 1000
        await self.ask(lambda client: client.admin_audit(limit=1))
        self._set(link=Link.UP, latency_ms=latency_ms, frozen=ready.submissions_frozen)

    def _connect(self, admin_token: str) -> AsyncClient:
        from collidium.client import AsyncClient

        # An empty token: nobody's account is signed up by an operator who looks.
        return AsyncClient(self._backend, token="", admin_token=admin_token)

    def _note(self, error: CollidiumError) -> None:
        links = {Unauthenticated: Link.SIGNED_OUT, Unreachable: Link.AWAY}
        self._set(link=links.get(type(error), self.standing.link), last_error=error.detail)

    def _set(self, **changes: object) -> None:
        changed = replace(self.standing, **changes)  # type: ignore[arg-type]  # by name, as Standing has them
        if changed != self.standing:
            self.standing = changed
            self.on_change(changed)
