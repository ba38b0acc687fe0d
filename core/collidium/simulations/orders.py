"""The rules of orders: price, limits, and the credits that stay charged when a request ends."""

from __future__ import annotations

from collections.abc import Collection
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Final

from collidium import order as orders
from collidium.contracts.pipeline import Pipeline
from collidium.order import DEFAULT_SEED, VARIATIONS, Order, number_ranges
from collidium.records import Estimate, OrderLimits, Range
from collidium.simulations.models import SimulationRequest, State
from collidium.simulations.outcomes import Ended

if TYPE_CHECKING:
    from collidium.settings import Settings

SECONDS_PER_HOUR: Final = 3600
#: Maximum size of the output of an order without events; each event adds to it.
OUTPUT_BYTES: Final = 64 * 1024**2
#: Resolution of node-hours and credits, and the minimum price.
MINIMUM: Final = Decimal("0.001")
#: Maximum node-hours that a runner's report is believed.
MAXIMUM: Final = Decimal(10) ** 9


def estimate(
    order: Order, settings: Settings, pipeline: Pipeline | None = None, *, is_mock: bool = False
) -> Estimate:
    """Return the price of an order. Raises InvalidInput with all problems at once."""
    check(order, settings, pipeline)
    per_event = settings.channels[order.channel] * order.pileup_cost
    seconds = settings.channel_overheads.get(order.channel, 0.0) + per_event * order.events
    hours = (Decimal(seconds) / SECONDS_PER_HOUR).quantize(MINIMUM, ROUND_HALF_UP)
    price = max(hours, MINIMUM)
    return Estimate(order.channel, order.events, order.pileup, price, price, seconds, is_mock)


def max_output_bytes(order: Order, settings: Settings) -> int:
    """Return the maximum size of the output of an order, all files together."""
    per_event = settings.output_event_bytes * order.pileup_cost
    return OUTPUT_BYTES + int(per_event * order.events)


def limits(settings: Settings, pipeline: Pipeline | None = None, *, is_mock: bool = False) -> OrderLimits:
    """Return the limits that :func:`check` applies."""
    ranges = number_ranges(pipeline or _UNKNOWN, **_maxima(settings, pipeline))
    return OrderLimits(
        channels=tuple(sorted(_channels(settings, pipeline))),
        variations=tuple(VARIATIONS[name] for name in pipeline.variations) if pipeline else (),
        default_seed=DEFAULT_SEED,
        publishes=not is_mock,
        runner_is_mock=is_mock,
        **{name: Range(*ends) for name, ends in ranges.items()},
    )


def check(order: Order, settings: Settings, pipeline: Pipeline | None = None) -> None:
    """Validate an order against the operator's limits and, if known, those of the pipeline.

    Raises InvalidInput with all problems at once.
    """
    channels = _channels(settings, pipeline)
    orders.check(order, channels, pipeline or _UNKNOWN, **_maxima(settings, pipeline))


#: Stands for the pipeline of a command that names none.
_UNKNOWN: Final = Pipeline("of this server", "", "", ())


def _channels(settings: Settings, pipeline: Pipeline | None) -> Collection[str]:
    if pipeline is None:
        return settings.channels.keys()
    supported = settings.channels if pipeline.channels is None else pipeline.channels
    return (settings.channels.keys() & supported.keys()) - pipeline.refused.keys()


def _maxima(settings: Settings, pipeline: Pipeline | None) -> dict[str, int]:
    """Return the operator's limits of numbers, narrowed by those of the pipeline."""
    own = pipeline.max_pileup if pipeline else None
    pileup = settings.max_pileup if own is None else min(own, settings.max_pileup)
    return {"events": settings.max_events, "pileup": pileup}


def believable(node_hours: Decimal | None) -> Decimal | None:
    """Return reported node-hours as they are stored; None for values that no job can have used."""
    if node_hours is None or not node_hours.is_finite() or not 0 <= node_hours <= MAXIMUM:
        return None
    return node_hours.quantize(MINIMUM)


def node_hours_used(row: SimulationRequest, ending: Ended) -> Decimal:
    """Return the node-hours of a request; if unknown, the estimate if its job completed, else 0."""
    used = believable(ending.used) if ending.used is not None else row.node_hours_used
    if used is not None:
        return used
    completed = ending.state == State.COMPLETED or ending.caused_by_owner
    return row.estimated_node_hours if completed else Decimal(0)


def credits_kept(row: SimulationRequest, ending: Ended) -> Decimal:
    """Return the credits that stay charged; the rest is refunded.

    A request that completed, or that its owner cancelled or caused to fail, costs the node-hours that it
    used, at most what was charged. Any other costs nothing.
    """
    cancelled = ending.state == State.CANCELLED and row.cancel_requested_at is not None
    if ending.state == State.COMPLETED or cancelled or ending.caused_by_owner:
        return min(node_hours_used(row, ending), row.credits_charged)
    return Decimal(0)
