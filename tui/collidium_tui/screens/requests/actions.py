"""Operator actions on a request: cancel it, after a question that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collidium_tui.screens.requests import record
from collidium_tui.widgets.ask import Question

if TYPE_CHECKING:
    from collidium.client import SimulationRequest
    from collidium_tui.screen import ConsoleScreen


async def cancel(screen: ConsoleScreen[Any], request: SimulationRequest) -> None:
    """Ask, cancel it, and show the outcome. Within ``screen.act``."""
    if request.has_ended:
        screen.notify(f"The request has {_ended(request)} already: there is nothing to cancel.", markup=False)
        return
    if request.cancel_requested:
        screen.notify("It is already being cancelled.")
        return
    if not await screen.confirm(_question(request)):
        return
    cancelled = await screen.perform(
        lambda client, key: client.admin_cancel(request.request_id, idempotency_key=key)
    )
    if cancelled is not None:
        outcome = "is cancelled" if cancelled.has_ended else "is being cancelled: its job is being stopped"
        screen.notify(f"Request {request.request_id} {outcome}.", markup=False)


def _question(request: SimulationRequest) -> Question:
    return Question(
        f"Cancel request {request.request_id}",
        f"{record.order(request)}; ordered by {request.hub_username}, {record.state(request)}.\n\n"
        f"Its job is stopped and makes no dataset. What the job did not use of the "
        f"{request.credits_charged:,} credits is given back to {request.hub_username}. "
        "The timeline says that an operator cancelled it, and the audit log keeps it.",
        "Cancel the request",
    )


def _ended(request: SimulationRequest) -> str:
    return "been cancelled" if request.state == "cancelled" else request.state
