"""What operators do, what was ordered, and the platform as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, field

from collidium.records.base import Credits, Record, Time


class Granted(Record, frozen=True):
    """What a grant did."""

    hub_username: str
    new_balance: Credits
    transaction_id: int


class Banned(Record, frozen=True):
    """Whether the account is banned now."""

    hub_username: str
    banned: bool


class Frozen(Record, frozen=True):
    """Whether submissions of simulation requests are frozen now."""

    submissions_frozen: bool


class Operator(Record, frozen=True):
    """An operator; an organiser has its scope for one ``challenge`` alone."""

    name: str
    scopes: tuple[str, ...]
    created_at: Time
    challenge: str | None = None
    withdrawn_at: Time | None = None
    token: Annotated[str | None, Meta(description="In the answer that made it and never again.")] = None

    def __repr__(self) -> str:
        return f"Operator(name={self.name!r}, scopes={self.scopes!r}, challenge={self.challenge!r})"


class AuditEntry(Record, frozen=True):
    """A line of the audit log: who did what, to whom."""

    id: int
    at: Time
    actor: str
    action: str
    target: str
    details: Mapping[str, Any] = field(default_factory=dict)
    http_request_id: str = ""


class UserUsage(Record, frozen=True):
    """What one account ordered this month; ``node_hours`` used, or estimated where a job has not ended."""

    hub_username: str
    node_hours: Credits
    requests: int


class Usage(Record, frozen=True):
    """This month (UTC) as a whole, and the accounts with most node-hours, most first."""

    month: str
    total_node_hours: Credits
    total_requests: int
    users: tuple[UserUsage, ...]


class ChannelUsage(Record, frozen=True):
    """What was ordered of one channel in a month."""

    channel: str
    requests: int
    node_hours: Credits


class DayUsage(Record, frozen=True):
    """What was ordered on one day (UTC, ``YYYY-MM-DD``)."""

    date: str
    node_hours: Credits
    requests: int


class Failures(Record, frozen=True):
    """How the requests ended that ended in a month; ``failure_rate`` in percent, 0 when none did."""

    month: str
    failure_rate: float
    failed: int
    finished: int


class Refund(Record, frozen=True):
    """What is given back of one request, or would be; ``credits_refunded`` is what was before."""

    request_id: str
    hub_username: str
    channel: str
    failed_at: Time
    credits_charged: Credits
    credits_refunded: Credits
    refund: Credits
    reason: str | None = None


class Refunds(Record, frozen=True):
    """What would be given back, or was (``applied``), oldest failure first; ``digest`` is of these alone."""

    applied: bool
    digest: str
    total: Credits
    requests: tuple[Refund, ...]


class Follower(Record, frozen=True):
    """A process that follows requests, and when it last looked for work."""

    process: str
    looked_at: Time


class SilentTask(Record, frozen=True):
    """A listed task that accepts no submissions, and why."""

    name: str
    reason: str


class Overview(Record, frozen=True):
    """The platform at one look; days and months of UTC; ``failure_rate`` in percent of this month's ends."""

    version: str
    at: Annotated[Time, Meta(description="The server's clock.")]
    run_mode: Annotated[str, Meta(extra_json_schema={"enum": ["mock", "real"]})]
    runner: str
    submissions_frozen: bool
    queued: int
    running: int
    month: str
    node_hours_today: Credits
    requests_today: int
    node_hours_month: Credits
    requests_month: int
    monthly_node_hours: Annotated[Credits, Meta(description="What all requests of a month may take.")]
    failed: int
    finished: int
    failure_rate: float
    frozen_at: Time | None = None
    frozen_by: str | None = None
    frozen_note: str | None = None
    oldest_queued_at: Time | None = None
    followers: Annotated[
        tuple[Follower, ...],
        Meta(
            description="The latest first; one that was killed is named for a day. Empty: no process follows "
            "requests."
        ),
    ] = ()
    webhooks_pending: int = 0
    plugins_failed: tuple[str, ...] = ()
    tasks_silent: tuple[SilentTask, ...] = ()


class Health(Record, frozen=True):
    """The process runs; ``stopping``: it takes the last requests before it stops."""

    status: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "stopping"]})]
    version: str


class Readiness(Record, frozen=True):
    """Whether the process can do its work, and what an operator should know."""

    status: Annotated[str, Meta(extra_json_schema={"enum": ["ready", "not ready", "stopping"]})]
    database: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "away"]})]
    #: The storage backend, and what runs the scoring; None: a server that does not ask them.
    storage: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "away"]})] | None = None
    scoring: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "away"]})] | None = None
    submissions_frozen: bool | None = None
    plugins_failed: tuple[str, ...] = ()
