"""The client for ordinary code."""

from __future__ import annotations

from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Self

from collidium.client import calls
from collidium.client.connection import Connection
from collidium.client.records import (
    Account,
    AuditEntry,
    Banned,
    Checked,
    Frozen,
    Granted,
    Health,
    Page,
    Place,
    Readiness,
    Receipt,
    Submission,
    TaskCard,
    Transaction,
)
from collidium.client.sending import predictions_file
from collidium.client.transports import BlockingTransport
from collidium.client.uploads import Progress

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
        ``model_repo`` (``namespace/name``) names the model on the hub. InvalidInput lists all problems.
        """
        with predictions_file(path) as file:
            return self._transport.send(calls.submit(task, file, model_repo), progress)

    def check(self, task: str, path: Predictions, progress: Progress | None = None) -> Checked:
        """Send predictions, as for ``submit``, to be checked only; InvalidInput lists all problems."""
        with predictions_file(path) as file:
            return self._transport.send(calls.check(task, file), progress)

    def leaderboard(self, task: str, *, limit: int | None = None, cursor: str | None = None) -> Page[Place]:
        """A page of the task's leaderboard, best first."""
        return self._transport.send(calls.leaderboard(task, limit, cursor))

    def submission(self, submission_id: str) -> Submission:
        """A submission as it is kept."""
        return self._transport.send(calls.submission(submission_id))

    # -- operation ------------------------------------------------------------------------------------

    def admin_grant(self, hub_username: str, delta: Decimal, reason: str) -> Granted:
        """Give credits to an account, or take them when ``delta`` is negative."""
        return self._transport.send(calls.admin_grant(hub_username, delta, reason))

    def admin_ban(self, hub_username: str, banned: bool = True) -> Banned:
        """Ban an account, or end its ban."""
        return self._transport.send(calls.admin_ban(hub_username, banned))

    def admin_freeze(self, frozen: bool = True) -> Frozen:
        """Refuse new simulation submissions, or take them again."""
        return self._transport.send(calls.admin_freeze(frozen))

    def admin_audit(self, *, limit: int | None = None, cursor: str | None = None) -> Page[AuditEntry]:
        """A page of what operators did, newest first."""
        return self._transport.send(calls.admin_audit(limit, cursor))

    def admin_account(self, hub_username: str) -> Account:
        """Any account."""
        return self._transport.send(calls.admin_account(hub_username))

    def health(self) -> Health:
        """Whether the server runs."""
        return self._transport.send(calls.health())

    def ready(self) -> Readiness:
        """Whether the server can do its work, and what is missing."""
        return self._transport.send(calls.ready())
