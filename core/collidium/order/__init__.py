"""Orders of events, the same for a server and for this machine.

:mod:`~collidium.order.declaration` has the fields of an order, each once; what takes, keeps, hashes or shows
an order is made from it.
"""

from collidium.order.checks import UnknownOrder, check, number_ranges
from collidium.order.declaration import (
    DEFAULT_SEED,
    LARGEST_SEED,
    ORDER_FIELDS,
    Order,
    OrderField,
    OrderOptions,
)
from collidium.order.description import order_facts, order_text, order_title
from collidium.order.presets import PRESETS, order_of
from collidium.order.variation import NOMINAL, VARIATIONS, Variation, VariationLimits

__all__ = [
    "DEFAULT_SEED",
    "LARGEST_SEED",
    "NOMINAL",
    "ORDER_FIELDS",
    "PRESETS",
    "VARIATIONS",
    "Order",
    "OrderField",
    "OrderOptions",
    "UnknownOrder",
    "Variation",
    "VariationLimits",
    "check",
    "number_ranges",
    "order_facts",
    "order_of",
    "order_text",
    "order_title",
]
