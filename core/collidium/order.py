"""An order of events: the three knobs, and the seed. The same for a server and for this machine."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from collidium.errors import InvalidInput

MAX_EVENTS: Final = 100_000
MAX_PILEUP: Final = 200
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


def limits(max_events: int, max_pileup: int) -> dict[str, tuple[int, int]]:
    """What the numbers of an order may be, both ends included."""
    return {"events": (1, max_events), "pileup": (0, max_pileup), "seed": (0, LARGEST_SEED)}


def check(
    order: Order,
    channels: Collection[str] | None,
    *,
    max_events: int = MAX_EVENTS,
    max_pileup: int = MAX_PILEUP,
) -> None:
    """Raise InvalidInput with everything that is wrong with an order; ``channels`` None: any may be there."""
    problems = []
    if channels is not None and order.channel not in channels:
        known = ", ".join(sorted(channels))
        problems.append(("channel", f"there is no channel {order.channel[:100]!r}; there are: {known}"))
    for field, (least, most) in limits(max_events, max_pileup).items():
        if not least <= getattr(order, field) <= most:
            problems.append((field, f"a number from {least} to {most}"))
    if problems:
        raise InvalidInput(
            "; ".join(f"{field}: {told}" for field, told in problems),
            errors=[{"field": field, "detail": told} for field, told in problems],
        )


def _presets() -> Mapping[str, Order]:
    bundles = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))
    return MappingProxyType({name: Order(**knobs) for name, knobs in bundles.items()})


#: Named bundles of the three knobs.
PRESETS: Final = _presets()
