"""Simulation requests, their output, and the limits and prices of orders."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from collidium.order import Order
from collidium.order import VariationLimits as VariationLimits
from collidium.records.base import Credits, Record, Time

#: States of a request, in order.
REQUEST_STATES: Final = ("queued", "running", "completed", "failed", "cancelled")
#: States in which a request has ended.
TERMINAL_STATES: Final = frozenset({"completed", "failed", "cancelled"})
#: What a user reads before ordering from a runner that is a mock, and with the order.
NO_EVENTS: Final = "mock: no events are made"

State = Annotated[str, Meta(extra_json_schema={"enum": list(REQUEST_STATES)})]


#: Whether the runner is a mock.
RunnerIsMock = Annotated[
    bool, Meta(description="Whether the runner is a mock: orders are charged, and no events are made.")
]


class Moment(Record, frozen=True):
    """An entry of a request's timeline: a new state or another event."""

    at: Time
    state: State
    reason: str | None = None


class JobProgress(Record, frozen=True):
    """Progress of a running job; ``fraction`` (0 to 1) and ``seconds_left`` are those of its stage."""

    stage: int
    stages: int
    title: str
    fraction: float
    seconds_left: float | None = None


class SimulationRequest(Record, Order, frozen=True, kw_only=True):
    """An order of events and its outcome.

    ``node_hours`` are estimated until the request has ended; ``reason`` explains its state.
    """

    request_id: str
    hub_username: str
    state: State
    created_at: Time
    credits_charged: Credits
    credits_refunded: Credits
    estimated_node_hours: Credits
    node_hours: Credits
    reason: str | None = None
    started_at: Time | None = None
    finished_at: Time | None = None
    estimated_completion_seconds: int | None = None
    cancel_requested: bool = False
    output_hub_repo: str | None = None
    output_is_mock: bool = False
    runner_is_mock: RunnerIsMock = False
    private: bool = False
    runner: str | None = None
    pipeline_version: str | None = None
    progress: Annotated[JobProgress | None, Meta(description="Reported by the runner; null in lists.")] = None
    timeline: Annotated[tuple[Moment, ...], Meta(description="The oldest first; empty in lists.")] = ()
    cached: Annotated[
        bool,
        Meta(
            description="In the response to an order: whether it is a recently completed request, at no cost."
        ),
    ] = False

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state in TERMINAL_STATES


class OperatedRequest(SimulationRequest, frozen=True, kw_only=True):
    """A simulation request with details for operators.

    ``runner_handle`` identifies the job at the runner. ``step`` is the next step (submit, follow, store,
    collect, publish, or empty once it has ended), ``due_at`` its time, and ``attempts`` its consecutive
    failures.
    """

    runner_handle: str | None = None
    step: Annotated[
        str, Meta(extra_json_schema={"enum": ["submit", "follow", "store", "collect", "publish", ""]})
    ] = ""
    due_at: Time | None = None
    attempts: int = 0


class OutputFile(Record, frozen=True):
    """A stored parquet file of a request's output; ``rows`` are events."""

    path: str
    sha256: str
    size_bytes: int
    rows: int


class Estimate(Record, frozen=True):
    """Price of an order; 1 credit is 1 node-hour, ``node_seconds`` are those of one node."""

    channel: str
    events: int
    pileup: int
    credits: Credits
    node_hours: Credits
    node_seconds: float
    runner_is_mock: RunnerIsMock = False


class Range(Record, frozen=True):
    """Allowed integers of a parameter, both ends included."""

    minimum: int
    maximum: int


class OrderLimits(Record, frozen=True):
    """Limits of orders by the server and its pipeline; channels by name."""

    channels: tuple[str, ...]
    events: Range
    pileup: Range
    seed: Range
    default_seed: int
    publishes: Annotated[
        bool, Meta(description="Whether events are published as a repository with the caller's token.")
    ] = True
    runner_is_mock: RunnerIsMock = False
    variations: Annotated[tuple[VariationLimits, ...], Meta(description="Possible contents of `vary`.")] = ()


class Preset(Record, frozen=True):
    """A named order, and its price."""

    name: str
    channel: str
    events: int
    pileup: int
    credits: Credits
