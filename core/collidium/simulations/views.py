"""A simulation request as its owner, its readers and operators see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from pydantic_core import to_jsonable_python

from collidium.simulations.models import HistoryLine, SimulationRequest


@dataclass(frozen=True, slots=True)
class Moment:
    """A line of a request's timeline: the state it came to, or what is worth telling on the way."""

    at: datetime
    state: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class RequestView:
    """A simulation request; credits and node-hours to three places, times in UTC."""

    request_id: str
    hub_username: str
    channel: str
    events: int
    pileup: int
    seed: int
    pipeline_version: str
    private: bool
    state: str
    reason: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    credits_charged: Decimal
    credits_refunded: Decimal
    estimated_node_hours: Decimal
    node_hours: Decimal
    estimated_completion_seconds: int
    cancel_requested: bool
    output_hub_repo: str | None
    output_is_mock: bool
    runner: str
    timeline: Sequence[Moment] = ()


def view(row: SimulationRequest, history: Sequence[HistoryLine] = ()) -> RequestView:
    """What may be seen of a row; lists go without ``history``."""
    return RequestView(
        request_id=row.request_id,
        hub_username=row.hub_username,
        channel=row.channel,
        events=row.events,
        pileup=row.pileup,
        seed=row.seed,
        pipeline_version=row.pipeline_version,
        private=row.private,
        state=row.state,
        reason=row.reason,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        credits_charged=row.credits_charged,
        credits_refunded=row.credits_refunded,
        estimated_node_hours=row.estimated_node_hours,
        node_hours=row.node_hours,
        estimated_completion_seconds=max(1, round(row.node_seconds)),
        cancel_requested=row.cancel_requested_at is not None,
        output_hub_repo=row.output_hub_repo,
        output_is_mock=row.is_mock and row.output_hub_repo is not None,
        runner=row.runner,
        timeline=tuple(Moment(line.at, line.state, line.reason) for line in history),
    )


@dataclass(frozen=True, slots=True)
class OperatorView(RequestView):
    """What operators see of a request beside: its job at the runner, and what the follower does next."""

    runner_handle: str | None = None
    step: str = ""
    due_at: datetime | None = None
    #: Failures of the step in a row.
    attempts: int = 0


def operator_view(row: SimulationRequest, history: Sequence[HistoryLine]) -> OperatorView:
    """All that may be seen of a row."""
    seen = view(row, history)
    return OperatorView(
        **{name: getattr(seen, name) for name in RequestView.__slots__},
        runner_handle=row.handle,
        step=row.step,
        due_at=row.due_at,
        attempts=row.attempts,
    )


def as_json(request: RequestView) -> dict[str, Any]:
    """The same as JSON: what ``GET /v1/requests/{id}`` shows, and webhooks carry."""
    record: dict[str, Any] = to_jsonable_python(
        {name: getattr(request, name) for name in RequestView.__slots__}
    )
    for name in ("credits_charged", "credits_refunded", "estimated_node_hours", "node_hours"):
        record[name] = float(getattr(request, name))
    return record
