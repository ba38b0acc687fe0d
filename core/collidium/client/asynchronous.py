"""The client for code on an event loop; the same calls as :class:`collidium.client.Client`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from collidium.client import calls
from collidium.client.connection import Connection
from collidium.client.methods import sends_async
from collidium.client.sending import predictions_file
from collidium.client.transports import AsyncTransport
from collidium.client.uploads import Progress
from collidium.client.waiting import PASSING, OnChange, Waiting
from collidium.records import (
    Checked,
    Receipt,
    SimulationRequest,
)

if TYPE_CHECKING:
    import httpx

    from collidium.client.sending import Predictions


class AsyncClient:
    """Calls a Collidium server from asyncio; arguments, defaults and errors are those of ``Client``.

    Methods have the names and arguments they have there. ``progress`` is called on the event loop.
    """

    def __init__(
        self,
        backend: str | None = None,
        token: str | None = None,
        admin_token: str | None = None,
        timeout: float = 30.0,
        *,
        way: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """``way`` replaces the network: ``httpx.ASGITransport(app)`` calls a server in this very process.

        Uploads go by the network all the same.
        """
        self._connection = Connection.choose(backend, token, admin_token, timeout)
        self._transport = AsyncTransport.open(self._connection, way)

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

    # -- the caller's account -------------------------------------------------------------------------

    me = sends_async(calls.me)
    transactions = sends_async(calls.transactions)

    # -- simulation requests --------------------------------------------------------------------------

    simulate = sends_async(calls.simulate)
    request = sends_async(calls.request)
    requests = sends_async(calls.requests)

    async def wait(
        self,
        request_id: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 -- as Client has it
        on_change: OnChange | None = None,
    ) -> SimulationRequest:
        """Wait until a request is completed, failed or cancelled, and return it.

        ``on_change`` is called with it at first and whenever something has changed. A server that is away
        for less than five minutes is waited for. Raises TimeoutError after ``timeout`` seconds.
        """
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

    cancel = sends_async(calls.cancel)
    estimate = sends_async(calls.estimate)
    limits = sends_async(calls.limits)
    presets = sends_async(calls.presets)

    # -- webhooks -------------------------------------------------------------------------------------

    set_webhook = sends_async(calls.set_webhook)
    webhook = sends_async(calls.webhook)
    remove_webhook = sends_async(calls.remove_webhook)
    webhook_deliveries = sends_async(calls.webhook_deliveries)

    # -- benchmarks -----------------------------------------------------------------------------------

    tasks = sends_async(calls.tasks)
    task = sends_async(calls.task)

    async def submit(
        self,
        task: str,
        path: Predictions,
        model_repo: str | None = None,
        progress: Progress | None = None,
    ) -> Receipt:
        """Send predictions to be scored and kept; returns when they are scored.

        ``path`` is a parquet file, or predictions in memory as ``write_predictions`` takes them.
        ``model_repo`` (``namespace/name``) names the model on the hub; Conflict where the same file was sent
        with another one. InvalidInput lists all problems.
        """
        async with _beside_the_loop(predictions_file(path)) as file:
            return await self._transport.send(calls.submit(task, file, model_repo), progress)

    async def check(self, task: str, path: Predictions, progress: Progress | None = None) -> Checked:
        """Send predictions, as for ``submit``, to be checked only; InvalidInput lists all problems."""
        async with _beside_the_loop(predictions_file(path)) as file:
            return await self._transport.send(calls.check(task, file), progress)

    leaderboard = sends_async(calls.leaderboard)
    leaderboard_history = sends_async(calls.leaderboard_history)
    submissions = sends_async(calls.submissions)
    submission = sends_async(calls.submission)
    set_links = sends_async(calls.set_links)

    # -- datasets -------------------------------------------------------------------------------------

    datasets = sends_async(calls.datasets)
    event = sends_async(calls.event)

    # -- models on the hub ----------------------------------------------------------------------------

    models = sends_async(calls.models)

    # -- the server -----------------------------------------------------------------------------------

    health = sends_async(calls.health)
    ready = sends_async(calls.ready)
    openapi = sends_async(calls.openapi)

    # -- what operators ask, with the admin token -------------------------------------------------------

    # Each action is done once for its `idempotency_key`. Without one it gets a key of its own, and is sent
    # again where the connection breaks.
    admin_grant = sends_async(calls.admin_grant)
    admin_overview = sends_async(calls.admin_overview)
    admin_ban = sends_async(calls.admin_ban)
    admin_freeze = sends_async(calls.admin_freeze)
    admin_audit = sends_async(calls.admin_audit)
    admin_account = sends_async(calls.admin_account)
    admin_accounts = sends_async(calls.admin_accounts)
    admin_transactions = sends_async(calls.admin_transactions)
    admin_requests = sends_async(calls.admin_requests)
    admin_request = sends_async(calls.admin_request)
    admin_output = sends_async(calls.admin_output)
    admin_cancel = sends_async(calls.admin_cancel)
    admin_refunds = sends_async(calls.admin_refunds)
    admin_tasks = sends_async(calls.admin_tasks)
    admin_submissions = sends_async(calls.admin_submissions)
    admin_verify = sends_async(calls.admin_verify)
    admin_close_phase = sends_async(calls.admin_close_phase)
    admin_usage = sends_async(calls.admin_usage)
    admin_channels = sends_async(calls.admin_channels)
    admin_daily = sends_async(calls.admin_daily)
    admin_failures = sends_async(calls.admin_failures)


@asynccontextmanager
async def _beside_the_loop(context: AbstractContextManager[Path]) -> AsyncIterator[Path]:
    """The context, entered in a thread: it may write a large file."""
    path = await asyncio.to_thread(context.__enter__)
    try:
        yield path
    finally:
        context.__exit__(None, None, None)
