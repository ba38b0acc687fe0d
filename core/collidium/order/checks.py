"""Validation of orders, with all problems at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from collidium.errors import InvalidInput
from collidium.order.declaration import ORDER_FIELDS, Order
from collidium.order.variation import Variation

if TYPE_CHECKING:
    from collidium.contracts.pipeline import Pipeline


class UnknownOrder(InvalidInput):
    """There are no such events to simulate; all problems are in ``errors``."""

    exit_code = 2


def number_ranges(pipeline: Pipeline | None = None, **maxima: int) -> dict[str, tuple[int, int]]:
    """Return the minimum and the maximum of each number of an order, as server and pipeline set them.

    ``maxima`` are those of a server, by field; ``pipeline`` None accepts any seed of 128 bits.
    """
    if pipeline is not None:
        maxima["seed"] = pipeline.largest_seed
    numbers = (field for field in ORDER_FIELDS if field.type is int)
    return {field.name: (field.minimum, maxima.get(field.name, field.maximum)) for field in numbers}


def check(
    order: Order, channels: Collection[str] | None, pipeline: Pipeline | None = None, **maxima: int
) -> None:
    """Raise InvalidInput with all problems of an order.

    ``channels`` None accepts any channel, ``pipeline`` None any variation; ``maxima`` are those of
    :func:`number_ranges`.
    """
    problems = []
    if pipeline is not None and order.channel in pipeline.refused:
        reason = pipeline.refused[order.channel]
        problems.append(("channel", f"pipeline {pipeline.name} cannot simulate {order.channel}: {reason}"))
    elif channels is not None and order.channel not in channels:
        known = ", ".join(sorted(channels))
        problems.append(("channel", f"there is no channel {order.channel[:100]!r}; there are: {known}"))
    parameters = order.parameters
    for name, (minimum, maximum) in number_ranges(pipeline, **maxima).items():
        if not minimum <= parameters[name] <= maximum:
            problems.append((name, f"a number from {minimum} to {maximum}"))
    problems += [("vary", detail) for detail in _variation_problems(order.vary, pipeline)]
    InvalidInput.raise_for([{"field": field, "detail": detail} for field, detail in problems])


def _variation_problems(vary: str, pipeline: Pipeline | None) -> list[str]:
    try:
        varied = Variation.parse(vary).varied if vary else {}
    except InvalidInput as error:
        return [str(problem["detail"]) for problem in error.errors]
    unknown = varied.keys() - set(pipeline.variations) if pipeline is not None else set()
    if pipeline is None or not unknown:
        return []
    known = ", ".join(pipeline.variations) or "nothing"
    return [f"pipeline {pipeline.name} does not vary {', '.join(sorted(unknown))}; it varies {known}"]
