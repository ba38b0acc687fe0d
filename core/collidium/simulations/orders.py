"""What an order costs, whether it may be given here, and what of its price stays charged at its end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Final

from collidium.contracts.pipeline import Pipeline
from collidium.order import DEFAULT_SEED, VARIATIONS, Order, number_ranges
from collidium.order import check as refuse
from collidium.records import Estimate, OrderLimits, Range
from collidium.simulations.models import SimulationRequest, State

if TYPE_CHECKING:
    from collidium.settings import Settings

SECONDS_PER_HOUR: Final = 3600
#: Output of any order may have this many bytes, and more for its events.
OUTPUT_BYTES: Final = 64 * 1024**2
#: Node-hours and credits are kept to three places, and nothing is free.
MINIMUM: Final = Decimal("0.001")


def estimate(order: Order, settings: Settings, pipeline: Pipeline | None = None) -> Estimate:
    """The price of an order. Raises InvalidInput with everything that is wrong with it."""
    check(order, settings, pipeline)
    per_event = settings.channels[order.channel] * order.pileup_cost
    seconds = settings.channel_overheads.get(order.channel, 0.0) + per_event * order.events
    hours = (Decimal(seconds) / SECONDS_PER_HOUR).quantize(MINIMUM, ROUND_HALF_UP)
    price = max(hours, MINIMUM)
    return Estimate(order.channel, order.events, order.pileup, price, price, seconds)


def max_output_bytes(order: Order, settings: Settings) -> int:
    """Return how large the output of an order may be, all files together."""
    per_event = settings.output_event_bytes * order.pileup_cost
    return OUTPUT_BYTES + int(per_event * order.events)


def limits(settings: Settings, pipeline: Pipeline | None = None) -> OrderLimits:
    """Return what :func:`check` accepts."""
    ranges = number_ranges(settings.max_events, _max_pileup(settings, pipeline), pipeline or _UNKNOWN)
    return OrderLimits(
        channels=tuple(sorted(_channels(settings, pipeline))),
        variations=tuple(VARIATIONS[name] for name in pipeline.variations) if pipeline else (),
        default_seed=DEFAULT_SEED,
        publishes=settings.run_mode != "mock",
        **{name: Range(*ends) for name, ends in ranges.items()},
    )


def check(order: Order, settings: Settings, pipeline: Pipeline | None = None) -> None:
    """Raise InvalidInput with everything that is wrong with an order.

    By the operator's limits and those of ``pipeline``, which simulates it; None where that is not known.
    """
    maximum = _max_pileup(settings, pipeline)
    channels = _channels(settings, pipeline)
    refuse(order, channels, pipeline or _UNKNOWN, max_events=settings.max_events, max_pileup=maximum)


#: Of a command that names no pipeline only the operator's limits are known.
_UNKNOWN: Final = Pipeline("of this server", "", "", ())


def _channels(settings: Settings, pipeline: Pipeline | None) -> Collection[str]:
    if pipeline is None:
        return settings.channels.keys()
    made = settings.channels if pipeline.channels is None else pipeline.channels
    return (settings.channels.keys() & made.keys()) - pipeline.refused.keys()


def _max_pileup(settings: Settings, pipeline: Pipeline | None) -> int:
    own = pipeline.max_pileup if pipeline else None
    return settings.max_pileup if own is None else min(own, settings.max_pileup)


#: No job uses more node-hours.
MAXIMUM: Final = Decimal(10) ** 9


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request comes to its end."""

    state: State
    reason: str | None = None
    #: Node-hours that the runner accounts for, None where it does not know.
    used: Decimal | None = None
    output_hub_repo: str | None = None
    #: Whether its owner brought a failure about.
    caused_by_owner: bool = False


def believable(node_hours: Decimal | None) -> Decimal | None:
    """Node-hours as they are kept; None for what no job can have used, as batch systems may report."""
    if node_hours is None or not node_hours.is_finite() or not 0 <= node_hours <= MAXIMUM:
        return None
    return node_hours.quantize(MINIMUM)


def node_hours_used(row: SimulationRequest, ending: Ending) -> Decimal:
    """The node-hours that a request took; where unknown, the estimate of a job that has completed."""
    used = believable(ending.used) if ending.used is not None else row.node_hours_used
    if used is not None:
        return used
    return (
        row.estimated_node_hours if ending.state == State.COMPLETED or ending.caused_by_owner else Decimal(0)
    )


def credits_kept(row: SimulationRequest, ending: Ending) -> Decimal:
    """The credits that stay charged; the others are refunded.

    A completed request costs what it used, at most what was charged, and so does one that its owner cancelled
    or made fail. Any other costs nothing.
    """
    cancelled = ending.state == State.CANCELLED and row.cancel_requested_at is not None
    if ending.state == State.COMPLETED or cancelled or ending.caused_by_owner:
        return min(node_hours_used(row, ending), row.credits_charged)
    return Decimal(0)
