"""Both clients: for ordinary code, and for code on an event loop."""

from __future__ import annotations

import asyncio
import time
from collections import abc
from collections.abc import Callable
from copy import copy
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from collidium.client.calls import Calls, benchmarks
from collidium.client.calls.call import Awaitable, Blocking
from collidium.client.connection import Connection
from collidium.client.transports import PASSING, AsyncTransport, BlockingTransport, Ending, OnChange, Waiting
from collidium.client.uploads import Progress, predictions_file
from collidium.records import Checked, Evaluation, Receipt, Rescoring, SimulationRequest
from collidium.runtime.waiting import entered_in_thread

if TYPE_CHECKING:
    import httpx

    from collidium.client.uploads import Predictions


class _Client(Calls):
    """A connection to a server, and what sends calls over it."""

    _connection: Connection
    _transport: Any

    def acting_as(self, token: str) -> Self:
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


class Client(_Client, Blocking):
    """Calls a Collidium server. Keep one: it holds its connections open; safe to share by threads.

    Every method raises :class:`~collidium.errors.CollidiumError`: the error of the server's status, or
    :class:`~collidium.errors.Unreachable` when there was no response.

    Methods that list return a :class:`~collidium.records.Page` of at most ``limit`` records; ``cursor`` is
    ``next_cursor`` of the page before. An action that is repeated with the same ``idempotency_key`` is done
    once. Methods that begin with ``admin_`` need the admin token, or that of an operator.

    Parameters
    ----------
    backend : str, optional
        The server's address; by default ``PLATFORM_BACKEND``, then http://127.0.0.1:8000.
    token : str, optional
        By default ``HF_TOKEN``, then the login saved for that backend.
    admin_token : str, optional
        By default ``ADMIN_TOKEN``.
    timeout : float
        Seconds for each step of a call; scoring may take longer.
    """

    def __init__(
        self,
        backend: str | None = None,
        token: str | None = None,
        admin_token: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._connection = Connection.choose(backend, token, admin_token, timeout)
        self._transport: BlockingTransport = BlockingTransport(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections."""
        self._transport.close()

    def wait(
        self,
        request_id: str,
        *,
        timeout: float | None = None,
        on_change: OnChange[SimulationRequest] | None = None,
    ) -> SimulationRequest:
        """Wait until a request is completed, failed or cancelled.

        A server that does not answer for less than five minutes is asked again.

        Parameters
        ----------
        request_id : str
        timeout : float, optional
            Seconds; without a limit by default.
        on_change : callable, optional
            Called with the request at first and whenever something has changed.

        Returns
        -------
        SimulationRequest

        Raises
        ------
        TimeoutError
            If the request has not ended by then.
        """
        return self._wait(partial(self.request, request_id), Waiting(timeout, on_change))

    def wait_for_model(
        self,
        evaluation_id: str,
        *,
        timeout: float | None = None,
        on_change: OnChange[Evaluation] | None = None,
    ) -> Evaluation:
        """Wait until a submitted model is scored, has failed or is cancelled, as :meth:`wait` does.

        Parameters
        ----------
        evaluation_id : str
        timeout : float, optional
            Seconds; without a limit by default.
        on_change : callable, optional
            Called with the evaluation at first and whenever something has changed.

        Returns
        -------
        Evaluation

        Raises
        ------
        TimeoutError
            If the evaluation has not ended by then.
        """
        return self._wait(partial(self.evaluation, evaluation_id), Waiting(timeout, on_change))

    def wait_for_rescoring(
        self,
        challenge: str,
        *,
        timeout: float | None = None,
        on_change: OnChange[Rescoring] | None = None,
    ) -> Rescoring:
        """Wait until the submissions to a challenge are scored again, as :meth:`wait` does.

        It needs the admin token.

        Parameters
        ----------
        challenge : str
        timeout : float, optional
            Seconds; without a limit by default.
        on_change : callable, optional
            Called with the rescoring at first and whenever something has changed.

        Returns
        -------
        Rescoring

        Raises
        ------
        TimeoutError
            If they are not all scored by then.
        """
        return self._wait(partial(self.admin_rescoring, challenge), Waiting(timeout, on_change))

    @staticmethod
    def _wait(look: Callable[[], Ending], waiting: Waiting[Ending]) -> Ending:
        while True:
            try:
                seen = look()
            except PASSING as trouble:
                pause = waiting.pause_after(trouble)
            else:
                if waiting.has_ended(seen):
                    return seen
                pause = waiting.pause()
            time.sleep(pause)

    def submit(
        self,
        task: str,
        path: Predictions,
        model_repo: str | None = None,
        progress: Progress | None = None,
    ) -> Receipt:
        """Send predictions to be scored and kept; returns when they are scored.

        Parameters
        ----------
        task : str
        path
            A parquet file, or predictions in memory as ``write_predictions`` takes them.
        model_repo : str, optional
            The model on the hub, ``namespace/name``.
        progress : callable, optional
            Called with the bytes sent and all bytes.

        Returns
        -------
        Receipt

        Raises
        ------
        InvalidInput
            With all problems of the file.
        Conflict
            If the same file was sent with another model.
        """
        with predictions_file(path) as file:
            return self._transport.send(benchmarks.submit(task, file, model_repo), progress)

    def check(self, task: str, path: Predictions, progress: Progress | None = None) -> Checked:
        """Send predictions to be validated only; nothing is scored or kept.

        Parameters
        ----------
        task : str
        path
            As for :meth:`submit`.
        progress : callable, optional
            Called with the bytes sent and all bytes.

        Returns
        -------
        Checked

        Raises
        ------
        InvalidInput
            With all problems of the file.
        """
        with predictions_file(path) as file:
            return self._transport.send(benchmarks.check(task, file), progress)


class AsyncClient(_Client, Awaitable):
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
        self._transport: AsyncTransport = AsyncTransport.open(self._connection, transport)

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
        on_change: OnChange[SimulationRequest] | None = None,
    ) -> SimulationRequest:
        """As :meth:`collidium.client.Client.wait`."""
        return await self._wait(partial(self.request, request_id), Waiting(timeout, on_change))

    async def wait_for_model(
        self,
        evaluation_id: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 -- as Client has it
        on_change: OnChange[Evaluation] | None = None,
    ) -> Evaluation:
        """As :meth:`collidium.client.Client.wait_for_model`."""
        return await self._wait(partial(self.evaluation, evaluation_id), Waiting(timeout, on_change))

    async def wait_for_rescoring(
        self,
        challenge: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 -- as Client has it
        on_change: OnChange[Rescoring] | None = None,
    ) -> Rescoring:
        """As :meth:`collidium.client.Client.wait_for_rescoring`."""
        return await self._wait(partial(self.admin_rescoring, challenge), Waiting(timeout, on_change))

    @staticmethod
    async def _wait(look: Callable[[], abc.Awaitable[Ending]], waiting: Waiting[Ending]) -> Ending:
        while True:
            try:
                seen = await look()
            except PASSING as trouble:
                pause = waiting.pause_after(trouble)
            else:
                if waiting.has_ended(seen):
                    return seen
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
        async with entered_in_thread(predictions_file(path)) as file:
            return await self._transport.send(benchmarks.submit(task, file, model_repo), progress)

    async def check(self, task: str, path: Predictions, progress: Progress | None = None) -> Checked:
        """As :meth:`collidium.client.Client.check`."""
        async with entered_in_thread(predictions_file(path)) as file:
            return await self._transport.send(benchmarks.check(task, file), progress)
