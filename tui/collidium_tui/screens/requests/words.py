"""What is told of a simulation request on more than one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collidium_tui.widgets.text import counted

if TYPE_CHECKING:
    from collidium.client import SimulationRequest

STATES: Final = ("queued", "running", "completed", "failed", "cancelled")


def state(request: SimulationRequest) -> str:
    """Its state, or that it is being cancelled."""
    return "cancelling" if request.cancel_requested and not request.has_ended else request.state


def order(request: SimulationRequest) -> str:
    """What was ordered."""
    events = counted(request.events, "events")
    return f"{events} of {request.channel} at pileup {request.pileup}, seed {request.seed}"
