"""How an order is shown: one text, one title, one table, for commands, console, pages and cards."""

from __future__ import annotations

from collidium.declaration import facts
from collidium.order.declaration import ORDER_FIELDS, Order


def order_text(order: Order, *, is_priced: bool = False) -> str:
    """Describe an order, or what its price depends on; options that are empty are left out.

    Examples
    --------
    >>> order_text(Order("ttbar", 1000, 40, vary="field=0.99"))
    '1,000 events of ttbar at pileup 40, seed 42, varied: field=0.99'
    """
    parameters = order.parameters
    options = (
        field.phrase.format(parameters[field.name])
        for field in ORDER_FIELDS
        if field.phrase and parameters[field.name] != "" and (field.is_priced or not is_priced)
    )
    events = "1 event" if order.events == 1 else f"{order.events:,} events"
    return ", ".join((f"{events} of {order.channel} at pileup {order.pileup}", *options))


def order_title(order: Order) -> str:
    """Return the title of a dataset."""
    events = "one event" if order.events == 1 else f"{order.events:,} events"
    return f"{order.channel}: {events} at pileup {order.pileup}"


def order_facts(order: Order) -> dict[str, object]:
    """Return all fields of an order with their labels, for the card of a dataset."""
    return facts(ORDER_FIELDS, order.parameters)
