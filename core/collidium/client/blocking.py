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

    ``backend`` defaults to ``PLATFORM_BACKEND``, then http://127.0.0.1:8000; ``token`` to ``HF_TOKEN``, then
    the login saved for that backend; ``admin_token`` to ``ADMIN_TOKEN``. ``timeout`` in seconds holds for
    each step of a call; scoring may take longer.

    Every method raises :class:`~collidium.errors.CollidiumError`: what the server refused under the status it
    gave, :class:`~collidium.errors.Unreachable` when there was no answer.
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
        """Wait until a request is completed, failed or cancelled, and return it.

        ``on_change`` is called with it at first and whenever something has changed. A server that is away
        for less than five minutes is waited for. Raises TimeoutError after ``timeout`` seconds.
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

        ``path`` is a parquet file, or predictions in memory as ``write_predictions`` takes them.
        ``model_repo`` (``namespace/name``) names the model on the hub; Conflict where the same file was sent
        with another one. InvalidInput lists all problems.
        """
        with predictions_file(path) as file:
            return self._transport.send(benchmarks.submit(task, file, model_repo), progress)

    def check(self, task: str, path: Predictions, progress: Progress | None = None) -> Checked:
        """Send predictions, as for ``submit``, to be checked only; InvalidInput lists all problems."""
        with predictions_file(path) as file:
            return self._transport.send(benchmarks.check(task, file), progress)
