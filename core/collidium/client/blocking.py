"""The client for ordinary code."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, Unpack

from collidium.client import calls
from collidium.client.blocking_operation import Operation
from collidium.client.connection import Connection
from collidium.client.events import EventData
from collidium.client.sending import predictions_file
from collidium.client.transports import BlockingTransport
from collidium.client.uploads import Progress
from collidium.client.waiting import PASSING, OnChange, Waiting
from collidium.records import (
    Account,
    BestStep,
    Checked,
    DatasetEntry,
    Estimate,
    Health,
    HubModel,
    Knobs,
    Page,
    Place,
    Preset,
    Readiness,
    Receipt,
    SimulationRequest,
    Submission,
    TaskCard,
    Transaction,
    Webhook,
    WebhookDelivery,
    WebhookRemoved,
)

if TYPE_CHECKING:
    from collidium.client.sending import Predictions


class Client(Operation):
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

    def me(self) -> Account:
        """The account behind the token; the first call signs it up."""
        return self._transport.send(calls.me())

    def transactions(self, *, limit: int | None = None, cursor: str | None = None) -> Page[Transaction]:
        """A page of the account's ledger, newest first."""
        return self._transport.send(calls.transactions(limit, cursor))

    # -- simulation requests --------------------------------------------------------------------------

    def simulate(
        self,
        channel: str | None = None,
        events: int | None = None,
        pileup: int | None = None,
        *,
        seed: int | None = None,
        preset: str | None = None,
        private: bool = False,
        webhook_url: str | None = None,
        idempotency_key: str | None = None,
    ) -> SimulationRequest:
        """Order events, by the three knobs or a preset; ``cached`` tells that it cost nothing.

        It is safe to be repeated under one ``idempotency_key``; without one the order gets a key of its own,
        under which a lost connection is tried again.
        """
        return self._transport.send(
            calls.simulate(channel, events, pileup, seed, preset, private, webhook_url, idempotency_key)
        )

    def request(self, request_id: str) -> SimulationRequest:
        """A simulation request with its timeline."""
        return self._transport.send(calls.request(request_id))

    def requests(
        self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[SimulationRequest]:
        """A page of the account's simulation requests, newest first."""
        return self._transport.send(calls.requests(state, limit, cursor))

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

    def cancel(self, request_id: str) -> SimulationRequest:
        """Have a request cancelled, which may take a while; Conflict when there is nothing left to stop."""
        return self._transport.send(calls.cancel(request_id))

    def estimate(self, channel: str, events: int, pileup: int) -> Estimate:
        """What an order would cost."""
        return self._transport.send(calls.estimate(channel, events, pileup))

    def knobs(self) -> Knobs:
        """What may be ordered: channels, and how many events, how much pileup and which seeds."""
        return self._transport.send(calls.knobs())

    def presets(self) -> Page[Preset]:
        """Orders that have a name."""
        return self._transport.send(calls.presets())

    # -- webhooks -------------------------------------------------------------------------------------

    def set_webhook(self, url: str | None = None, *, rotate_secret: bool = False) -> Webhook:
        """Be told at an HTTPS address when a request ends; the answer that makes the secret shows it.

        Without ``url`` the address stays as it is, none at first: that makes only the secret.
        """
        return self._transport.send(calls.set_webhook(url, rotate_secret))

    def webhook(self) -> Webhook:
        """Where the account is told."""
        return self._transport.send(calls.webhook())

    def remove_webhook(self) -> WebhookRemoved:
        """Be told nothing more; the secret is forgotten."""
        return self._transport.send(calls.remove_webhook())

    def webhook_deliveries(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[WebhookDelivery]:
        """A page of what was told, or was not and why, newest first."""
        return self._transport.send(calls.webhook_deliveries(limit, cursor))

    # -- benchmarks -----------------------------------------------------------------------------------

    def tasks(self) -> Page[TaskCard]:
        """The tasks that the server lists."""
        return self._transport.send(calls.tasks())

    def task(self, name: str) -> TaskCard:
        """What one task asks for."""
        return self._transport.send(calls.task(name))

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

    def leaderboard(
        self,
        task: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        pareto: bool = False,
        user: str | None = None,
        model_repo: str | None = None,
    ) -> Page[Place]:
        """A page of the task's leaderboard, best first; with ``pareto`` only the places on its front.

        With ``user`` or ``model_repo`` only theirs, with the ranks that they have among all.
        """
        call = calls.leaderboard(task, limit, cursor, pareto=pareto, user=user, model_repo=model_repo)
        return self._transport.send(call)

    def leaderboard_history(
        self, task: str, metric: str | None = None, *, limit: int | None = None
    ) -> Page[BestStep]:
        """The submissions that were the best in a metric when they came, oldest first.

        The primary metric where none is named; by the scores that count now, with self-reported values that
        nobody has verified. At most the last ``limit``, or 1,000.
        """
        return self._transport.send(calls.leaderboard_history(task, metric, limit))

    def submissions(
        self, *, task: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[Submission]:
        """A page of the account's submissions, newest first, without their earlier scores."""
        return self._transport.send(calls.submissions(task, limit, cursor))

    def submission(self, submission_id: str) -> Submission:
        """A submission as it is kept."""
        return self._transport.send(calls.submission(submission_id))

    def set_links(self, submission_id: str, **links: Unpack[calls.Links]) -> Submission:
        """Set links of a submission of the account, or remove them by None; what is not named stays.

        ``model_repo`` is ``namespace/name`` on the hub, ``code_url`` and ``paper_url`` are HTTPS addresses.
        A model that is named is checked with the token: ``model_claim``. InvalidInput lists all problems.
        """
        return self._transport.send(calls.set_links(submission_id, links))

    # -- datasets -------------------------------------------------------------------------------------

    def datasets(
        self, *, repo: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[DatasetEntry]:
        """A page of the public datasets that may be looked at, the latest first, by their configs."""
        return self._transport.send(calls.datasets(repo, limit, cursor))

    def event(
        self,
        config: str,
        event_id: int,
        *,
        repo: str | None = None,
        tables: Sequence[str] | None = None,
        revision: str | None = None,
        file_format: Literal["arrow", "phoenix"] = "arrow",
    ) -> EventData:
        """One event of a dataset; ``.tables()`` gives its tables.

        ``repo`` may be left out where only one dataset has that config, ``tables`` for all. What made the
        hits of an event that a task is scored on is not sent.
        """
        return self._transport.send(calls.event(config, event_id, repo, tables, revision, file_format))

    # -- models on the hub ----------------------------------------------------------------------------

    def models(
        self,
        *,
        search: str = "",
        tag: str = "",
        task: str = "",
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[HubModel]:
        """A page of the models on the hub that carry the platform's tag, the latest first.

        ``search`` is part of their name, ``tag`` a tag that they have, ``task`` one that they say they are
        for. A page may be shorter than ``limit`` and still have a next one.
        """
        return self._transport.send(calls.models(search, tag, task, limit, cursor))

    # -- the server -----------------------------------------------------------------------------------

    def health(self) -> Health:
        """Whether the server runs."""
        return self._transport.send(calls.health())

    def ready(self) -> Readiness:
        """Whether the server can do its work, and what is missing."""
        return self._transport.send(calls.ready())
