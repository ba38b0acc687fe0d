"""The fields of an order, each once: type, default, limits, wording, and what depends on it.

A field added here is taken by the API, the client, the commands and the page, stored with a request, handed
to pipelines and runners, and shown with the order. It needs a default, which leaves earlier hashes as they
were.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypedDict

import msgspec
from msgspec import Meta, structs

from collidium.declaration import DeclaredField, declare, fields_of, values_of
from collidium.errors import InvalidInput
from collidium.order.variation import LONGEST_VARIATION, Variation

DEFAULT_SEED: Final = 42
#: Long enough that a random one cannot be found by trying.
LARGEST_SEED: Final = 2**128 - 1
#: Pileup at which an event costs twice what it costs without.
_DOUBLING_PILEUP: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderField(DeclaredField):
    """A field of an order, as its users see it."""

    is_limited_by_schema: bool = False
    #: Its value in the text of an order.
    phrase: str = ""
    #: Whether the price depends on it.
    is_priced: bool = True
    #: Whether it counts for the hash of an order at its default, as the fields of 0.4.0 do.
    is_always_hashed: bool = False


def _field(label: str, description: str, **more: Any) -> Meta:
    return declare(OrderField(label=label, help=description, **more))


class Order(msgspec.Struct, frozen=True):
    """Events to be simulated: a physics process, how many of them, and the pileup overlaid on each."""

    channel: Annotated[str, _field("Channel", "Physics process.", is_always_hashed=True)]
    events: Annotated[
        int,
        _field(
            "Events",
            "Number of hard-scatter events.",
            minimum=1,
            maximum=100_000,
            is_limited_by_server=True,
            is_always_hashed=True,
        ),
    ]
    pileup: Annotated[
        int,
        _field(
            "Pileup",
            "Average number of soft interactions overlaid per event; 200 is that of the High-Luminosity LHC.",
            maximum=200,
            is_limited_by_server=True,
            is_always_hashed=True,
        ),
    ]
    seed: Annotated[
        int,
        _field(
            "Seed",
            "Seed of the random numbers: the same order with the same seed gives the same events.",
            maximum=LARGEST_SEED,
            phrase="seed {}",
            is_priced=False,
            is_always_hashed=True,
        ),
    ] = DEFAULT_SEED
    # Equal variations are the same text; invalid ones stay as they are.
    vary: Annotated[
        str,
        _field(
            "Systematic variation",
            "Systematic variation of the detector, such as field=0.99,material=1.1, of those that the limits "
            "list; empty: none.",
            longest=LONGEST_VARIATION,
            placeholder="field=0.99,material=1.1",
            phrase="varied: {}",
            is_always_hashed=True,
        ),
    ] = ""

    def __post_init__(self) -> None:
        if self.vary:
            with suppress(InvalidInput):  # check() reports it
                structs.force_setattr(self, "vary", str(Variation.parse(self.vary)))

    @property
    def parameters(self) -> dict[str, Any]:
        """Its fields by name, without those of a record that extends it."""
        return values_of(self, ORDER_FIELDS)

    @property
    def identity(self) -> dict[str, Any]:
        """Its fields by name, without those that 0.4.0 did not have and that are at their default.

        It is hashed, so the hashes of earlier orders stay when a field is added.
        """
        return {
            field.name: value
            for field, value in zip(ORDER_FIELDS, self.parameters.values(), strict=True)
            if field.is_always_hashed or value != field.default
        }

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
        text = _SORTED.encode(self.identity | {"pipeline_version": pipeline_version})
        return hashlib.sha256(text.encode()).hexdigest()


class OrderOptions(TypedDict, total=False):
    """The fields of an order that have a default, as keyword arguments."""

    seed: int
    vary: str


_SORTED: Final = json.JSONEncoder(sort_keys=True)
#: The fields of an order, required ones first.
ORDER_FIELDS: Final = fields_of(Order, OrderField)
