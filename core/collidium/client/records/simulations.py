"""Simulation requests: what was ordered, what it takes, what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

#: The states that a request never leaves.
TERMINAL_STATES: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Moment:
    """A line of a request's timeline: the state it came to, or what is worth telling on the way."""

    at: datetime
    state: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """An order of events and what became of it.

    ``state`` is queued, running, completed, failed or cancelled; ``reason`` is why, or what is amiss.
    ``node_hours`` are estimated until it has ended. The timeline is empty in lists. ``cached`` is set on the
    answer to an order that cost nothing, because the same events were made lately.
    """

    request_id: str
    hub_username: str
    channel: str
    events: int
    pileup: int
    seed: int
    state: str
    created_at: datetime
    credits_charged: Decimal
    credits_refunded: Decimal
    estimated_node_hours: Decimal
    node_hours: Decimal
    reason: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    estimated_completion_seconds: int | None = None
    cancel_requested: bool = False
    output_hub_repo: str | None = None
    output_is_mock: bool = False
    private: bool = False
    runner: str | None = None
    pipeline_version: str | None = None
    timeline: tuple[Moment, ...] = ()
    cached: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state in TERMINAL_STATES


@dataclass(frozen=True, slots=True)
class OperatedRequest(SimulationRequest):
    """A request as operators see it: with its job at the runner, and what is done next for it.

    ``step`` is submit, follow, collect or publish, done at ``due_at``, and empty once it has ended;
    ``attempts`` tells how often in a row it failed.
    """

    runner_handle: str | None = None
    step: str = ""
    due_at: datetime | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A parquet file of a request's output, as the server keeps it; ``rows`` are events."""

    path: str
    sha256: str
    size_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an order takes; ``node_seconds`` on one node."""

    channel: str
    events: int
    pileup: int
    credits: Decimal
    node_hours: Decimal
    node_seconds: float


@dataclass(frozen=True, slots=True)
class Knob:
    """The whole numbers that a knob of an order may be set to, both ends included."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Knobs:
    """What may be ordered from a server; channels by name."""

    channels: tuple[str, ...]
    events: Knob
    pileup: Knob
    seed: Knob
    default_seed: int


@dataclass(frozen=True, slots=True)
class Preset:
    """A named bundle of channel, events and pileup, and what it costs."""

    name: str
    channel: str
    events: int
    pileup: int
    credits: Decimal
