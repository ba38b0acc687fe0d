"""The demo's orders of events: one that is computed, one that it answers, and one that is cancelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from collidium.client import Client, SimulationRequest
from collidium.demo.computing import PRESET, Computing
from collidium.errors import CollidiumError

#: Larger, so that there is something to give back.
CANCELLED_PRESET: Final = "ttbar-standard"


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order, who made it, and the request that came of it; another account's where that answered it."""

    by: str
    preset: str
    request: SimulationRequest


def order_events(
    url: str, tokens: Mapping[str, str], say: Callable[[str], None], computing: Computing
) -> tuple[Ordered, ...]:
    """Order events and wait for them. Raises CollidiumError where one ends otherwise."""
    with Client(url, tokens["alice"]) as alice, Client(url, tokens["collidium"]) as other:
        say(f"Ordering events as alice: preset {PRESET}, {computing.told}")
        first = _ended("completed", alice, alice.simulate(preset=PRESET), say, computing)
        say("Ordering the same as collidium, to whom it is answered at once")
        again = other.simulate(preset=PRESET)
        if not again.cached or again.request_id != first.request_id:
            raise CollidiumError("the second order was not answered by the first")
        say(f"Ordering preset {CANCELLED_PRESET} as alice, and cancelling it")
        third = alice.cancel(alice.simulate(preset=CANCELLED_PRESET).request_id)
        third = _ended("cancelled", alice, third, say, computing)
    return (
        Ordered("alice", PRESET, first),
        Ordered("collidium", PRESET, again),
        Ordered("alice", CANCELLED_PRESET, third),
    )


def _ended(
    expected: str,
    client: Client,
    request: SimulationRequest,
    say: Callable[[str], None],
    computing: Computing,
) -> SimulationRequest:
    """The request once it has ended, its states told as they come."""
    told = []

    def tell(seen: SimulationRequest) -> None:
        if seen.state not in told:
            told.append(seen.state)
            say(f"Request {seen.request_id} is {seen.state}")

    tell(request)
    ended = client.wait(request.request_id, timeout=computing.patience_seconds, on_change=tell)
    if ended.state != expected:
        raise CollidiumError(f"request {ended.request_id} is {ended.state}, not {expected}: {ended.reason}")
    return ended
