"""The client for code on an event loop; the same calls as :class:`collidium.client.Client`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from collidium.client.calls import Calls, benchmarks
from collidium.client.calls.call import Awaitable
from collidium.client.connection import Connection
from collidium.client.transports import AsyncTransport
from collidium.client.uploads import Progress, predictions_file
from collidium.client.waiting import PASSING, OnChange, Waiting
from collidium.records import Checked, Receipt, SimulationRequest

if TYPE_CHECKING:
    import httpx

    from collidium.client.uploads import Predictions


class AsyncClient(Calls, Awaitable):
    """Calls a Collidium server from asyncio; parameters and errors are those of ``Client``.

    So are the methods; ``progress`` is called on the event loop.

    Parameters
    ----------
    transport : httpx.AsyncBaseTransport, optional
        Replaces the network: ``httpx.ASGITransport(app)`` calls a server in this process. Uploads use the
        network all the same.
    """

    def __init__(
        self,
        backend: str | None = None,
        token: str | None = None,
        admin_token: str | None = None,
        timeout: float = 30.0,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = Connection.choose(backend, token, admin_token, timeout)
        self._transport = AsyncTransport.open(self._connection, transport)

    def acting_as(self, token: str) -> AsyncClient:
        """A client for another account, over the same connections: closing one closes both."""
        connection = self._connection.acting_as(token)
        other = copy(self)
        vars(other).update(_connection=connection, _transport=self._transport.acting_as(connection))
        return other

    @property
    def backend(self) -> str:
        """The server's address."""
        return self._connection.backend

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backend!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give back the connections."""
        await self._transport.close()

    async def wait(
        self,
        request_id: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 -- as Client has it
        on_change: OnChange | None = None,
    ) -> SimulationRequest:
        """As :meth:`collidium.client.Client.wait`."""
        waiting = Waiting(timeout, on_change)
        while True:
            try:
                request = await self.request(request_id)
            except PASSING as trouble:
                pause = waiting.pause_after(trouble)
            else:
                if waiting.has_ended(request):
                    return request
                pause = waiting.pause()
            await asyncio.sleep(pause)

    async def submit(
        self,
        task: str,
        path: Predictions,
        model_repo: str | None = None,
        progress: Progress | None = None,
    ) -> Receipt:
        """As :meth:`collidium.client.Client.submit`."""
        async with _entered_in_thread(predictions_file(path)) as file:
            return await self._transport.send(benchmarks.submit(task, file, model_repo), progress)

    async def check(self, task: str, path: Predictions, progress: Progress | None = None) -> Checked:
        """As :meth:`collidium.client.Client.check`."""
        async with _entered_in_thread(predictions_file(path)) as file:
            return await self._transport.send(benchmarks.check(task, file), progress)


@asynccontextmanager
async def _entered_in_thread(context: AbstractContextManager[Path]) -> AsyncIterator[Path]:
    """The context, entered in a thread: it may write a large file."""
    path = await asyncio.to_thread(context.__enter__)
    try:
        yield path
    finally:
        context.__exit__(None, None, None)
