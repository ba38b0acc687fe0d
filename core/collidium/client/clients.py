"""The blocking and the asyncio client."""

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
from collidium.client.transports import (
    TRANSIENT,
    AsyncTransport,
    BlockingTransport,
    OnChange,
    Waiting,
    Watched,
)
from collidium.client.uploads import predictions_file
from collidium.records import Checked, Evaluation, Receipt, Rescoring, SimulationRequest
from collidium.runtime.progress import Progress
from collidium.runtime.waiting import entered_in_thread

if TYPE_CHECKING:
    import httpx

    from collidium.client.uploads import Predictions


class _Client(Calls):
    """What both clients share."""

    _connection: Connection
    _transport: Any

    def acting_as(self, token: str) -> Self:
        """Return a client for another account that shares the connections: closing one closes both."""
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
    """Client of a Collidium server. Create one and keep it: it pools connections and is thread-safe.

    Every method raises :class:`~collidium.errors.CollidiumError`: the exception with the status of the
    response, or :class:`~collidium.errors.Unreachable` without a response.

    Methods that list return a :class:`~collidium.records.Page` of at most ``limit`` records, 100 by default;
    ``cursor`` is ``next_cursor`` of the previous page. Operator actions take an ``idempotency_key``: repeats
    with the same key have no further effect and return the first result. Methods that begin with ``admin_``
    need the token of an operator: they raise ``Unauthenticated`` without one, and ``Forbidden`` if its scopes
    do not suffice.

    Parameters
    ----------
    backend : str, optional
        The server's address; by default ``PLATFORM_BACKEND``, then http://127.0.0.1:8000.
    token : str, optional
        By default ``HF_TOKEN``, then the saved login of that backend.
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
        """Close the connections."""
        self._transport.close()

    def wait(
        self,
        request_id: str,
        *,
        timeout: float | None = None,
        on_change: OnChange[SimulationRequest] | None = None,
    ) -> SimulationRequest:
        """Wait until a request is completed, failed or cancelled.

        Outages of the server of up to five minutes are tolerated.

        Parameters
        ----------
        request_id : str
        timeout : float, optional
            Seconds; unlimited by default.
        on_change : callable, optional
            Called with the request at first and after each change.

        Returns
        -------
        SimulationRequest

        Raises
        ------
        TimeoutError
            If the request has not ended in time.
        NotFound
            If the account has no such request.
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
            Seconds; unlimited by default.
        on_change : callable, optional
            Called with the evaluation at first and after each change.

        Returns
        -------
        Evaluation

        Raises
        ------
        TimeoutError
            If the evaluation has not ended in time.
        NotFound
            If the account has no such evaluation.
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

        It needs the token of an operator.

        Parameters
        ----------
        challenge : str
        timeout : float, optional
            Seconds; unlimited by default.
        on_change : callable, optional
            Called with the rescoring at first and after each change.

        Returns
        -------
        Rescoring

        Raises
        ------
        TimeoutError
            If the rescoring has not ended in time.
        NotFound
            If the challenge was never scored again.
        """
        return self._wait(partial(self.admin_rescoring, challenge), Waiting(timeout, on_change))

    @staticmethod
    def _wait(look: Callable[[], Watched], waiting: Waiting[Watched]) -> Watched:
        while True:
            try:
                seen = look()
            except TRANSIENT as trouble:
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
        """Submit predictions and return their scores.

        Parameters
        ----------
        task : str
        path
            A parquet file, or predictions in memory as ``write_predictions`` accepts them.
        model_repo : str, optional
            The model on the hub, ``namespace/name``.
        progress : callable, optional
            Called with the bytes sent and the total.

        Returns
        -------
        Receipt

        Raises
        ------
        InvalidInput
            With all problems of the file in ``errors``.
        NotFound
            If there is no such task or challenge.
        Forbidden
            If the challenge is for members, and the account is none.
        Conflict
            If the challenge is not open, or the same file was submitted with another model.
        TooManyRequests
            If a quota is exhausted.
        """
        with predictions_file(path) as file:
            return self._transport.send(benchmarks.submit(task, file, model_repo), progress)

    def check(self, task: str, path: Predictions, progress: Progress | None = None) -> Checked:
        """Validate predictions on the server, without scoring or storing them.

        Parameters
        ----------
        task : str
        path
            As for :meth:`submit`.
        progress : callable, optional
            Called with the bytes sent and the total.

        Returns
        -------
        Checked

        Raises
        ------
        InvalidInput
            With all problems of the file in ``errors``.
        NotFound
            If there is no such task or challenge.
        """
        with predictions_file(path) as file:
            return self._transport.send(benchmarks.check(task, file), progress)


class AsyncClient(_Client, Awaitable):
    """The asyncio client: methods, parameters and exceptions are those of ``Client``.

    ``progress`` is called on the event loop.

    Parameters
    ----------
    transport : httpx.AsyncBaseTransport, optional
        Replaces the network: ``httpx.ASGITransport(app)`` calls a server in this process. Uploads always use
        the network.
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
        """Close the connections."""
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
    async def _wait(look: Callable[[], abc.Awaitable[Watched]], waiting: Waiting[Watched]) -> Watched:
        while True:
            try:
                seen = await look()
            except TRANSIENT as trouble:
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
