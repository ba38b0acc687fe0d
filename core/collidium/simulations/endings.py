"""How a request ends, and what it costs then. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from collidium.simulations.models import SimulationRequest
from collidium.simulations.orders import LEAST
from collidium.simulations.states import State

#: No job uses more node-hours.
MOST: Final = Decimal(10) ** 9


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request comes to its end."""

    state: State
    reason: str | None = None
    #: Node-hours that the runner accounts for, None where it cannot tell.
    used: Decimal | None = None
    output_hub_repo: str | None = None
    #: Whether its owner brought a failure about.
    owners_doing: bool = False


def believable(node_hours: Decimal | None) -> Decimal | None:
    """Node-hours as they are kept; None for what no job can have used, as batch systems may say."""
    if node_hours is None or not node_hours.is_finite() or not 0 <= node_hours <= MOST:
        return None
    return node_hours.quantize(LEAST)


def node_hours_used(row: SimulationRequest, ending: Ending) -> Decimal:
    """The node-hours that a request took; where nobody knows, the estimate of a job that has completed."""
    told = believable(ending.used) if ending.used is not None else row.node_hours_used
    if told is not None:
        return told
    return row.estimated_node_hours if ending.state == State.COMPLETED or ending.owners_doing else Decimal(0)


def credits_kept(row: SimulationRequest, ending: Ending) -> Decimal:
    """The credits that stay charged; the others are refunded.

    A completed request costs what was charged, a failed one nothing, and a cancelled one nothing if the
    runner cancelled it. If its owner cancelled it, or brought its failure about, it costs what it used.
    """
    if ending.state == State.COMPLETED:
        return row.credits_charged
    cancelled = ending.state == State.CANCELLED and row.cancel_requested_at is not None
    if cancelled or ending.owners_doing:
        return min(node_hours_used(row, ending), row.credits_charged)
    return Decimal(0)
