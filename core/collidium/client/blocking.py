"""The client for ordinary code."""

from __future__ import annotations

import time
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Self

from collidium.client import calls
from collidium.client.connection import Connection
from collidium.client.methods import sends
from collidium.client.sending import predictions_file
from collidium.client.transports import BlockingTransport
from collidium.client.uploads import Progress
from collidium.client.waiting import PASSING, OnChange, Waiting
from collidium.records import (
    Checked,
    Receipt,
    SimulationRequest,
)

if TYPE_CHECKING:
    from collidium.client.sending import Predictions


class Client:
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

    # -- the caller's account -------------------------------------------------------------------------

    me = sends(calls.me)
    transactions = sends(calls.transactions)

    # -- simulation requests --------------------------------------------------------------------------

    simulate = sends(calls.simulate)
    request = sends(calls.request)
    requests = sends(calls.requests)

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

    cancel = sends(calls.cancel)
    estimate = sends(calls.estimate)
    limits = sends(calls.limits)
    presets = sends(calls.presets)

    # -- webhooks -------------------------------------------------------------------------------------

    set_webhook = sends(calls.set_webhook)
    webhook = sends(calls.webhook)
    remove_webhook = sends(calls.remove_webhook)
    webhook_deliveries = sends(calls.webhook_deliveries)

    # -- benchmarks -----------------------------------------------------------------------------------

    tasks = sends(calls.tasks)
    task = sends(calls.task)

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
            return self._transport.send(calls.submit(task, file, model_repo), progress)

    def check(self, task: str, path: Predictions, progress: Progress | None = None) -> Checked:
        """Send predictions, as for ``submit``, to be checked only; InvalidInput lists all problems."""
        with predictions_file(path) as file:
            return self._transport.send(calls.check(task, file), progress)

    leaderboard = sends(calls.leaderboard)
    leaderboard_history = sends(calls.leaderboard_history)
    submissions = sends(calls.submissions)
    submission = sends(calls.submission)
    set_links = sends(calls.set_links)

    # -- datasets -------------------------------------------------------------------------------------

    datasets = sends(calls.datasets)
    event = sends(calls.event)

    # -- models on the hub ----------------------------------------------------------------------------

    models = sends(calls.models)

    # -- the server -----------------------------------------------------------------------------------

    health = sends(calls.health)
    ready = sends(calls.ready)
    openapi = sends(calls.openapi)

    # -- what operators ask, with the admin token -------------------------------------------------------

    # Each action is done once for its `idempotency_key`. Without one it gets a key of its own, and is sent
    # again where the connection breaks.
    admin_grant = sends(calls.admin_grant)
    admin_overview = sends(calls.admin_overview)
    admin_ban = sends(calls.admin_ban)
    admin_freeze = sends(calls.admin_freeze)
    admin_audit = sends(calls.admin_audit)
    admin_account = sends(calls.admin_account)
    admin_accounts = sends(calls.admin_accounts)
    admin_transactions = sends(calls.admin_transactions)
    admin_requests = sends(calls.admin_requests)
    admin_request = sends(calls.admin_request)
    admin_output = sends(calls.admin_output)
    admin_cancel = sends(calls.admin_cancel)
    admin_refunds = sends(calls.admin_refunds)
    admin_tasks = sends(calls.admin_tasks)
    admin_submissions = sends(calls.admin_submissions)
    admin_verify = sends(calls.admin_verify)
    admin_close_phase = sends(calls.admin_close_phase)
    admin_usage = sends(calls.admin_usage)
    admin_channels = sends(calls.admin_channels)
    admin_daily = sends(calls.admin_daily)
    admin_failures = sends(calls.admin_failures)
