"""What operators do, how the server is, and what was ordered of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Granted:
    """The answer to a grant."""

    hub_username: str
    new_balance: Decimal
    transaction_id: int | str


@dataclass(frozen=True, slots=True)
class Banned:
    """The answer to a ban or its end."""

    hub_username: str
    banned: bool


@dataclass(frozen=True, slots=True)
class Frozen:
    """The answer to a freeze or its end."""

    submissions_frozen: bool


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Something an operator did: who, what, to whom."""

    id: int | str
    at: datetime
    actor: str
    action: str
    target: str
    details: Mapping[str, Any] = field(default_factory=dict)
    http_request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """The server runs."""

    status: str
    version: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the server can do its work (``status`` is ``ready`` or ``not ready``), and what is amiss."""

    status: str
    database: str
    submissions_frozen: bool | None = None
    plugins_failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UserUsage:
    """What one account ordered this month; ``node_hours`` used, or estimated where a job has not ended."""

    hub_username: str
    node_hours: Decimal
    requests: int


@dataclass(frozen=True, slots=True)
class Usage:
    """This month (UTC) as a whole, and the accounts that used most of it, most first."""

    month: str
    total_node_hours: Decimal
    total_requests: int
    users: tuple[UserUsage, ...]


@dataclass(frozen=True, slots=True)
class ChannelUsage:
    """What was ordered of one channel in a month."""

    channel: str
    requests: int
    node_hours: Decimal


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What was ordered on one day (UTC, ``YYYY-MM-DD``)."""

    date: str
    node_hours: Decimal
    requests: int


@dataclass(frozen=True, slots=True)
class Failures:
    """How requests ended this month; ``failure_rate`` in percent of those that ended."""

    month: str
    failure_rate: float
    failed: int
    finished: int


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """A task that is installed, or listed, or both; ``reason`` is why it takes no submissions."""

    name: str
    title: str
    installed: bool
    listed: bool
    distribution: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    #: Part of the events that counts now: ``public`` or ``final``; None: all.
    phase: str | None = None
    public_percent: int | None = None
    reason: str | None = None
