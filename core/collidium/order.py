"""Orders of events: channel, events, pileup and seed. The same for a server and for this machine."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from collidium.errors import InvalidInput

MAX_EVENTS: Final = 100_000
MAX_PILEUP: Final = 200
DEFAULT_SEED: Final = 42
LARGEST_SEED: Final = 2**31 - 1
#: Pileup at which an event costs twice what it costs without.
_DOUBLING_PILEUP: Final = 50


@dataclass(frozen=True, slots=True)
class Order:
    """Events to be simulated: a physics process, how many of them, and the pileup overlaid on each."""

    channel: str
    events: int
    pileup: int
    seed: int = DEFAULT_SEED

    @property
    def pileup_cost(self) -> float:
        """What an event costs relative to one without pileup."""
        return 1 + self.pileup / _DOUBLING_PILEUP

    @property
    def config(self) -> str:
        """The dataset config of the events, ``<channel>_pu<pileup>``."""
        return f"{self.channel}_pu{self.pileup}"

    def config_hash(self, pipeline_version: str) -> str:
        """Return the sha256 of order and pipeline: equal for orders that give the same events."""
        identity = asdict(self) | {"pipeline_version": pipeline_version}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


class UnknownOrder(InvalidInput):
    """There are no such events to simulate; all problems are in ``errors``."""

    exit_code = 2


def number_ranges(max_events: int, max_pileup: int) -> dict[str, tuple[int, int]]:
    """Return the minimum and the maximum of each number of an order."""
    return {"events": (1, max_events), "pileup": (0, max_pileup), "seed": (0, LARGEST_SEED)}


def check(
    order: Order,
    channels: Collection[str] | None,
    *,
    max_events: int = MAX_EVENTS,
    max_pileup: int = MAX_PILEUP,
) -> None:
    """Raise InvalidInput with all problems of an order; ``channels`` None accepts any channel."""
    problems = []
    if channels is not None and order.channel not in channels:
        known = ", ".join(sorted(channels))
        problems.append(("channel", f"there is no channel {order.channel[:100]!r}; there are: {known}"))
    for field, (minimum, maximum) in number_ranges(max_events, max_pileup).items():
        if not minimum <= getattr(order, field) <= maximum:
            problems.append((field, f"a number from {minimum} to {maximum}"))
    if problems:
        raise InvalidInput(
            "; ".join(f"{field}: {detail}" for field, detail in problems),
            errors=[{"field": field, "detail": detail} for field, detail in problems],
        )


def _presets() -> Mapping[str, Order]:
    bundles = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))
    return MappingProxyType({name: Order(**parameters) for name, parameters in bundles.items()})


#: Named bundles of channel, events and pileup.
PRESETS: Final = _presets()


def order_of(
    preset: str | None, channel: str | None, events: int | None, pileup: int | None, seed: int = DEFAULT_SEED
) -> Order:
    """Resolve a preset, or channel, events and pileup, to an order.

    Raises UnknownOrder for both, for neither, and for an unknown preset.
    """
    if preset is None:
        if channel is None or events is None or pileup is None:
            raise UnknownOrder("give channel, events and pileup, or a preset")
        return Order(channel, events, pileup, seed)
    if (channel, events, pileup) != (None, None, None):
        raise UnknownOrder("a preset stands for channel, events and pileup: give one or the other")
    if preset not in PRESETS:
        detail = f"there is no preset {preset[:100]!r}; there are: {', '.join(PRESETS)}"
        raise UnknownOrder(detail, errors=[{"field": "preset", "detail": detail}])
    return replace(PRESETS[preset], seed=seed)
