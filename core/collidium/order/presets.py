"""Named orders, and the resolution of a name or of parameters to an order."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Unpack

from msgspec import structs

from collidium.order.checks import UnknownOrder
from collidium.order.declaration import Order, OrderOptions


def _presets() -> Mapping[str, Order]:
    bundles = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))
    return MappingProxyType({name: Order(**parameters) for name, parameters in bundles.items()})


#: Named bundles of channel, events and pileup.
PRESETS: Final = _presets()


def order_of(
    preset: str | None,
    channel: str | None = None,
    events: int | None = None,
    pileup: int | None = None,
    **options: Unpack[OrderOptions],
) -> Order:
    """Resolve a preset, or channel, events and pileup, to an order.

    Options that are None have their defaults. Raises UnknownOrder for both, for neither, and for an unknown
    preset.
    """
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if preset is None:
        if channel is None or events is None or pileup is None:
            raise UnknownOrder("give channel, events and pileup, or a preset")
        return Order(channel, events, pileup, **given)
    if (channel, events, pileup) != (None, None, None):
        raise UnknownOrder("a preset sets channel, events and pileup: give one or the other")
    if preset not in PRESETS:
        detail = f"there is no preset {preset[:100]!r}; there are: {', '.join(PRESETS)}"
        raise UnknownOrder(detail, errors=[{"field": "preset", "detail": detail}])
    return structs.replace(PRESETS[preset], **given)
