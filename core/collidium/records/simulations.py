"""Simulation requests: what was ordered, what it takes, what became of it."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from collidium.records.base import Credits, Record, Time

#: The states that a request never leaves.
TERMINAL_STATES: Final = frozenset({"completed", "failed", "cancelled"})

State = Annotated[
    str, Meta(extra_json_schema={"enum": ["queued", "running", "completed", "failed", "cancelled"]})
]


class Moment(Record, frozen=True):
    """A line of a request's timeline: a state it came to, or another event on the way."""

    at: Time
    state: State
    reason: str | None = None


class JobProgress(Record, frozen=True):
    """How far a running job is; ``fraction`` (0 to 1) and ``seconds_left`` are those of its stage."""

    stage: int
    stages: int
    title: str
    fraction: float
    seconds_left: float | None = None


class SimulationRequest(Record, frozen=True):
    """An order of events and what became of it.

    ``node_hours`` are estimated until the request has ended; ``reason`` is why it is as it is.
    """

    request_id: str
    hub_username: str
    channel: str
    events: int
    pileup: int
    seed: int
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
    private: bool = False
    runner: str | None = None
    pipeline_version: str | None = None
    vary: Annotated[str, Meta(description="Systematic variation of the detector; empty: none.")] = ""
    progress: Annotated[JobProgress | None, Meta(description="As the runner reports it; null in lists.")] = (
        None
    )
    timeline: Annotated[tuple[Moment, ...], Meta(description="The oldest first; empty in lists.")] = ()
    cached: Annotated[
        bool,
        Meta(
            description="In the answer to an order: whether a request that completed lately answered it for "
            "nothing."
        ),
    ] = False

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state in TERMINAL_STATES


class OperatedRequest(SimulationRequest, frozen=True):
    """A simulation request as operators see it.

    ``runner_handle`` names the job at the runner. ``step`` is what is done next (submit, follow, store,
    collect, publish, or nothing once it has ended), ``due_at`` when, and ``attempts`` how often in a row it
    failed.
    """

    runner_handle: str | None = None
    step: Annotated[
        str, Meta(extra_json_schema={"enum": ["submit", "follow", "store", "collect", "publish", ""]})
    ] = ""
    due_at: Time | None = None
    attempts: int = 0


class OutputFile(Record, frozen=True):
    """A parquet file of a request's output, as it is kept; ``rows`` are events."""

    path: str
    sha256: str
    size_bytes: int
    rows: int


class Estimate(Record, frozen=True):
    """What an order takes; 1 credit is 1 node-hour, ``node_seconds`` are on one node."""

    channel: str
    events: int
    pileup: int
    credits: Credits
    node_hours: Credits
    node_seconds: float


class Range(Record, frozen=True):
    """The integers that a parameter of an order may have, both ends included."""

    minimum: int
    maximum: int


class VariationLimits(Record, frozen=True):
    """What can be varied in the detector, both ends included."""

    name: str
    minimum: float
    maximum: float
    nominal: float
    description: str


class OrderLimits(Record, frozen=True):
    """What can be ordered from this server, by its limits and those of its pipeline; channels by name."""

    channels: tuple[str, ...]
    events: Range
    pileup: Range
    seed: Range
    default_seed: int
    publishes: Annotated[
        bool, Meta(description="Whether the events become a repository, made with the caller's token.")
    ] = True
    variations: Annotated[
        tuple[VariationLimits, ...], Meta(description="What `vary` of an order may contain.")
    ] = ()


class Preset(Record, frozen=True):
    """A named bundle of channel, events and pileup, and what it costs."""

    name: str
    channel: str
    events: int
    pileup: int
    credits: Credits
