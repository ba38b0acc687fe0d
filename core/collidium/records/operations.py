"""Operator actions, usage reports, and the state of the platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, field

from collidium.records.base import Credits, Record, Time


class Granted(Record, frozen=True):
    """The result of a grant."""

    hub_username: str
    new_balance: Credits
    transaction_id: int
    signed_in: Annotated[bool, Meta(description="Whether the account has ever signed in.")] = True


class Banned(Record, frozen=True):
    """Whether the account is banned."""

    hub_username: str
    banned: bool


class Frozen(Record, frozen=True):
    """Whether simulation requests are frozen."""

    submissions_frozen: bool


class Operator(Record, frozen=True):
    """An operator; an organiser has its scope only for one ``challenge``."""

    name: str
    scopes: tuple[str, ...]
    created_at: Time
    challenge: str | None = None
    withdrawn_at: Time | None = None
    token: Annotated[str | None, Meta(description="Only in the response that created it.")] = None

    def __repr__(self) -> str:
        return f"Operator(name={self.name!r}, scopes={self.scopes!r}, challenge={self.challenge!r})"


class AuditEntry(Record, frozen=True):
    """An entry of the audit log."""

    id: int
    at: Time
    actor: str
    action: str
    target: str
    details: Mapping[str, Any] = field(default_factory=dict)
    http_request_id: str = ""


class UserUsage(Record, frozen=True):
    """Usage of one account this month; ``node_hours`` are estimated for jobs that have not ended."""

    hub_username: str
    node_hours: Credits
    requests: int


class Usage(Record, frozen=True):
    """Usage of this month (UTC), and the accounts with most node-hours, most first."""

    month: str
    total_node_hours: Credits
    total_requests: int
    users: tuple[UserUsage, ...]


class ChannelUsage(Record, frozen=True):
    """Usage of one channel in a month."""

    channel: str
    requests: int
    node_hours: Credits


class DayUsage(Record, frozen=True):
    """Usage of one day (UTC, ``YYYY-MM-DD``)."""

    date: str
    node_hours: Credits
    requests: int


class Failures(Record, frozen=True):
    """Outcomes of the requests that ended in a month; ``failure_rate`` in percent, 0 without any."""

    month: str
    failure_rate: float
    failed: int
    finished: int


class Refund(Record, frozen=True):
    """A refund for one request; ``credits_refunded`` were refunded before."""

    request_id: str
    hub_username: str
    channel: str
    failed_at: Time
    credits_charged: Credits
    credits_refunded: Credits
    refund: Credits
    reason: str | None = None


class Refunds(Record, frozen=True):
    """Refunds that were made (``applied``) or would be, oldest failure first; ``digest`` identifies them."""

    applied: bool
    digest: str
    total: Credits
    requests: tuple[Refund, ...]


class Follower(Record, frozen=True):
    """A process that follows requests, and when it last polled."""

    process: str
    looked_at: Time


class SilentTask(Record, frozen=True):
    """A listed task that accepts no submissions, and why."""

    name: str
    reason: str


class Overview(Record, frozen=True):
    """Summary of the platform in UTC; ``failure_rate`` in percent of the requests that ended this month."""

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
    monthly_node_hours: Annotated[Credits, Meta(description="Monthly limit of all requests.")]
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
            description="The latest first; a killed process is listed for a day. Empty: no process follows "
            "requests."
        ),
    ] = ()
    webhooks_pending: int = 0
    models_waiting: Annotated[int, Meta(description="Models that wait for a process that runs them.")] = 0
    oldest_model_at: Annotated[
        Time | None, Meta(description="Since when the model waits that waits for longest.")
    ] = None
    models_not_run: Annotated[
        str | None, Meta(description="Why no process runs models, so that none is accepted.")
    ] = None
    files_waiting: Annotated[
        int,
        Meta(description="Files that rescorings and ends of challenges wait for, as they cannot be scored."),
    ] = 0
    files_not_retried: Annotated[
        int, Meta(description="Those of them that are no longer tried again: an operator decides.")
    ] = 0
    plugins_failed: tuple[str, ...] = ()
    tasks_silent: tuple[SilentTask, ...] = ()


class Health(Record, frozen=True):
    """Liveness of the process; ``stopping``: it finishes its last requests."""

    status: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "stopping"]})]
    version: str
    commit: Annotated[str, Meta(description="The commit it was built from; empty: unknown.")] = ""


class Readiness(Record, frozen=True):
    """Readiness of the process and its components."""

    status: Annotated[str, Meta(extra_json_schema={"enum": ["ready", "not ready", "stopping"]})]
    database: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "away"]})]
    #: Storage backend and executor; None: not reported by an older server.
    storage: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "away"]})] | None = None
    scoring: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "away"]})] | None = None
    #: Whether a process runs models; without one the server is ready all the same. None: as above.
    models: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "away"]})] | None = None
    submissions_frozen: bool | None = None
    plugins_failed: tuple[str, ...] = ()
