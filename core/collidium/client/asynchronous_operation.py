"""What operators ask, for code on an event loop."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from collidium.client import calls
from collidium.client.transports import AsyncTransport
from collidium.records import (
    Account,
    AuditEntry,
    Banned,
    ChannelUsage,
    Closed,
    DayUsage,
    Failures,
    Frozen,
    Granted,
    OperatedRequest,
    OutputFile,
    Overview,
    Page,
    Refunds,
    SimulationRequest,
    Submission,
    TaskStatus,
    Transaction,
    Usage,
)


class AsyncOperation:
    """The calls of ``AsyncClient`` that carry the admin token.

    Each action is done once for its ``idempotency_key``. Without one it gets a key of its own, and is sent
    again where the connection breaks.
    """

    _transport: AsyncTransport

    async def admin_grant(
        self, hub_username: str, delta: Decimal, reason: str, *, idempotency_key: str | None = None
    ) -> Granted:
        """Give credits to an account, or take them when ``delta`` is negative."""
        return await self._transport.send(calls.admin_grant(hub_username, delta, reason, idempotency_key))

    async def admin_overview(self) -> Overview:
        """The platform at one look. Raises UpstreamError where the server is too old to tell."""
        return await self._transport.send(calls.admin_overview())

    async def admin_ban(
        self,
        hub_username: str,
        banned: bool = True,
        *,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Banned:
        """Ban an account, or end its ban; the audit log keeps ``note``."""
        return await self._transport.send(calls.admin_ban(hub_username, banned, note, idempotency_key))

    async def admin_freeze(
        self, frozen: bool = True, *, note: str | None = None, idempotency_key: str | None = None
    ) -> Frozen:
        """Refuse new simulation submissions, or take them again; ``note`` says what for."""
        return await self._transport.send(calls.admin_freeze(frozen, note, idempotency_key))

    async def admin_audit(self, *, limit: int | None = None, cursor: str | None = None) -> Page[AuditEntry]:
        """A page of what operators did, newest first."""
        return await self._transport.send(calls.admin_audit(limit, cursor))

    async def admin_account(self, hub_username: str) -> Account:
        """Any account."""
        return await self._transport.send(calls.admin_account(hub_username))

    async def admin_accounts(
        self,
        *,
        search: str = "",
        banned: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Account]:
        """A page of accounts whose name contains ``search``; ``sort``: newest (default), name or credits."""
        return await self._transport.send(calls.admin_accounts(search, banned, sort, limit, cursor))

    async def admin_transactions(
        self, hub_username: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[Transaction]:
        """A page of any account's ledger, newest first."""
        return await self._transport.send(calls.admin_transactions(hub_username, limit, cursor))

    async def admin_requests(
        self,
        *,
        state: str | None = None,
        user: str | None = None,
        channel: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[SimulationRequest]:
        """A page of everybody's simulation requests, newest first."""
        return await self._transport.send(calls.admin_requests(state, user, channel, limit, cursor))

    async def admin_request(self, request_id: str) -> OperatedRequest:
        """Anybody's simulation request, with its job at the runner and what is done next for it."""
        return await self._transport.send(calls.admin_request(request_id))

    async def admin_output(self, request_id: str) -> Page[OutputFile]:
        """The files of a request's output that the server keeps: none before its job has completed."""
        return await self._transport.send(calls.admin_output(request_id))

    async def admin_cancel(self, request_id: str, *, idempotency_key: str | None = None) -> SimulationRequest:
        """Have anybody's simulation request cancelled."""
        return await self._transport.send(calls.admin_cancel(request_id, idempotency_key))

    async def admin_refunds(
        self,
        begin: datetime,
        end: datetime,
        *,
        apply: bool = False,
        digest: str | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Refunds:
        """What is still charged for requests that failed from ``begin`` until before ``end``.

        A preview, unless ``apply``: then it is given back, if it still is what the preview with that
        ``digest`` showed; Conflict if not.
        """
        return await self._transport.send(
            calls.admin_refunds(begin, end, apply, digest, note, idempotency_key)
        )

    async def admin_tasks(self) -> Page[TaskStatus]:
        """The tasks that are installed or listed, and why one takes no submissions."""
        return await self._transport.send(calls.admin_tasks())

    async def admin_submissions(
        self,
        *,
        task: str | None = None,
        user: str | None = None,
        unverified: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Submission]:
        """A page of everybody's submissions, newest first; ``unverified``: self-reported and not verified."""
        return await self._transport.send(calls.admin_submissions(task, user, unverified, limit, cursor))

    async def admin_verify(self, submission_id: str, *, idempotency_key: str | None = None) -> Submission:
        """Believe what a submission reports of itself: from then on it earns what it is worth."""
        return await self._transport.send(calls.admin_verify(submission_id, idempotency_key))

    async def admin_close_phase(self, task: str, *, idempotency_key: str | None = None) -> Closed:
        """End a task's public phase: scores on the events that were held back count, and are paid."""
        return await self._transport.send(calls.admin_close_phase(task, idempotency_key))

    async def admin_usage(self, *, limit: int | None = None) -> Usage:
        """This month, and the accounts that used most of it."""
        return await self._transport.send(calls.admin_usage(limit))

    async def admin_channels(self, *, month: str | None = None) -> Page[ChannelUsage]:
        """What was ordered of each channel in a month (``YYYY-MM``), this one by default."""
        return await self._transport.send(calls.admin_channels(month))

    async def admin_daily(self, *, days: int | None = None) -> Page[DayUsage]:
        """What was ordered on each of the last days, oldest first."""
        return await self._transport.send(calls.admin_daily(days))

    async def admin_failures(self, *, month: str | None = None) -> Failures:
        """How the requests ended that ended in a month (``YYYY-MM``), this one by default."""
        return await self._transport.send(calls.admin_failures(month))
