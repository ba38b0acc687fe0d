"""The client for ordinary code."""

from __future__ import annotations

import time
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Self

from collidium.client.calls import Calls, benchmarks
from collidium.client.calls.call import Blocking
from collidium.client.connection import Connection
from collidium.client.transports import BlockingTransport
from collidium.client.uploads import Progress, predictions_file
from collidium.client.waiting import PASSING, OnChange, Waiting
from collidium.records import Checked, Receipt, SimulationRequest

if TYPE_CHECKING:
    from collidium.client.uploads import Predictions


class Client(Calls, Blocking):
    """Calls a Collidium server. Keep one: it holds its connections open; safe to share by threads.

    Every method raises :class:`~collidium.errors.CollidiumError`: the error of the server's status, or
    :class:`~collidium.errors.Unreachable` when there was no response.

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
        self._transport = BlockingTransport(self._connection)

    def acting_as(self, token: str) -> Client:
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
        self, request_id: str, *, timeout: float | None = None, on_change: OnChange | None = None
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
        waiting = Waiting(timeout, on_change)
        while True:
            try:
                request = self.request(request_id)
            except PASSING as trouble:
                pause = waiting.pause_after(trouble)
            else:
                if waiting.has_ended(request):
                    return request
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
        """Send predictions, as for ``submit``, to be checked only; InvalidInput lists all problems."""
        with predictions_file(path) as file:
            return self._transport.send(benchmarks.check(task, file), progress)
