"""The platform at one look."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Follower:
    """A process that follows requests, and when it last looked for work."""

    process: str
    looked_at: datetime


@dataclass(frozen=True, slots=True)
class SilentTask:
    """A listed task that takes no submissions, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Overview:
    """What an operator sees at one look.

    ``at`` is the server's clock; days and months are of UTC; ``failure_rate`` is in percent of what ended
    this month. ``followers`` have the latest first, and one that was killed for a day: where none has looked
    lately, nobody follows requests.
    """

    version: str
    at: datetime
    run_mode: str
    runner: str
    submissions_frozen: bool
    queued: int
    running: int
    month: str
    node_hours_today: Decimal
    requests_today: int
    node_hours_month: Decimal
    requests_month: int
    #: What all requests of a month may take.
    monthly_node_hours: Decimal
    failed: int
    finished: int
    failure_rate: float
    frozen_at: datetime | None = None
    frozen_by: str | None = None
    frozen_note: str | None = None
    oldest_queued_at: datetime | None = None
    followers: tuple[Follower, ...] = ()
    webhooks_pending: int = 0
    plugins_failed: tuple[str, ...] = ()
    tasks_silent: tuple[SilentTask, ...] = ()
