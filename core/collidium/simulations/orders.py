"""What is ordered: the config of a simulation request, its identity and its price. Pure functions."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Final

from collidium.errors import InvalidInput

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Pileup at which an event costs twice what it costs without.
DOUBLING_PILEUP: Final = 50
SECONDS_PER_HOUR: Final = 3600
#: Node-hours and credits are kept to three places, and nothing is free.
LEAST: Final = Decimal("0.001")

DEFAULT_SEED: Final = 42
LARGEST_SEED: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Order:
    """Events to be simulated: a physics process, how many of them, and the pileup overlaid on each."""

    channel: str
    events: int
    pileup: int
    seed: int = DEFAULT_SEED

    @property
    def config(self) -> str:
        """The dataset config that the events make, ``<channel>_pu<pileup>``."""
        return f"{self.channel}_pu{self.pileup}"

    def config_hash(self, pipeline_version: str) -> str:
        """What two orders share that give the same events: the sha256 of the order and the pipeline."""
        identity = asdict(self) | {"pipeline_version": pipeline_version}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an order takes: ``node_seconds`` on one node; ``node_hours``, which are also its credits."""

    node_seconds: float
    node_hours: Decimal


def estimate(order: Order, settings: Settings) -> Estimate:
    """The price of an order. Raises InvalidInput with everything that is wrong with it."""
    check(order, settings)
    per_event = settings.channels[order.channel] * (1 + order.pileup / DOUBLING_PILEUP)
    seconds = settings.channel_overheads.get(order.channel, 0.0) + per_event * order.events
    hours = (Decimal(seconds) / SECONDS_PER_HOUR).quantize(LEAST, ROUND_HALF_UP)
    return Estimate(seconds, max(hours, LEAST))


def check(order: Order, settings: Settings) -> None:
    """Raise InvalidInput with everything that is wrong with an order."""
    problems = []
    if order.channel not in settings.channels:
        known = ", ".join(sorted(settings.channels))
        problems.append(("channel", f"there is no channel {order.channel[:100]!r}; there are: {known}"))
    for field, value, least, most in (
        ("events", order.events, 1, settings.max_events),
        ("pileup", order.pileup, 0, settings.max_pileup),
        ("seed", order.seed, 0, LARGEST_SEED),
    ):
        if not least <= value <= most:
            problems.append((field, f"a number from {least} to {most}"))
    if problems:
        raise InvalidInput(
            "; ".join(f"{field}: {told}" for field, told in problems),
            errors=[{"field": field, "detail": told} for field, told in problems],
        )
