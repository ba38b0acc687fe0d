"""The demo's orders of events: one that is computed, one that it answers, and one that is cancelled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from collidium.client import Client, SimulationRequest
from collidium.errors import CollidiumError, ConfigurationError
from collidium.order import PRESETS
from collidium.pipelines import choice
from collidium.pipelines.choice import BUILT_IN, NONE
from collidium.plugins import Plugins

#: Larger, so that there is something to give back.
CANCELLED_PRESET: Final = "ttbar-dev"


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order, who made it, and the request that came of it; another account's where that answered it."""

    by: str
    preset: str
    request: SimulationRequest


def order_events(
    url: str, tokens: Mapping[str, str], report: Callable[[str], None], computing: Computing
) -> tuple[Ordered, ...]:
    """Order events and wait for them. Raises CollidiumError where one ends otherwise."""
    with Client(url, tokens["alice"]) as alice, Client(url, tokens["collidium"]) as other:
        report(f"Ordering events as alice: preset {PRESET}, {computing.description}")
        first = _ended("completed", alice, alice.simulate(preset=PRESET), report, computing)
        report("Ordering the same as collidium, to whom it is answered at once")
        again = other.simulate(preset=PRESET)
        if not again.cached or again.request_id != first.request_id:
            raise CollidiumError("the second order was not answered by the first")
        report(f"Ordering preset {CANCELLED_PRESET} as alice, and cancelling it")
        third = alice.cancel(alice.simulate(preset=CANCELLED_PRESET).request_id)
        third = _ended("cancelled", alice, third, report, computing)
    return (
        Ordered("alice", PRESET, first),
        Ordered("collidium", PRESET, again),
        Ordered("alice", CANCELLED_PRESET, third),
    )


def _ended(
    expected: str,
    client: Client,
    request: SimulationRequest,
    report: Callable[[str], None],
    computing: Computing,
) -> SimulationRequest:
    """Wait for a request to end, showing its states as they come."""
    seen_states = []

    def show(seen: SimulationRequest) -> None:
        if seen.state not in seen_states:
            seen_states.append(seen.state)
            report(f"Request {seen.request_id} is {seen.state}")

    show(request)
    ended = client.wait(request.request_id, timeout=computing.patience_seconds, on_change=show)
    if ended.state != expected:
        raise CollidiumError(f"request {ended.request_id} is {ended.state}, not {expected}: {ended.reason}")
    return ended


#: What is computed.
PRESET: Final = "ttbar-quick"


@dataclass(frozen=True, slots=True)
class Computing:
    """A runner, as the demo uses it."""

    runner: str
    #: Of the server.
    settings: Mapping[str, str]
    #: Where orders go, in a sentence.
    description: str
    #: How long one may take.
    patience_seconds: float


#: Many times what it takes for a job.
MOCK: Final = Computing("mock", {}, "from the mock runner", 60.0)
#: The user waits, so its jobs get full priority.
LOCAL: Final = Computing(
    "local",
    {"PLATFORM_RUN_MODE": "real", "PLATFORM_RUNNER": "local", "PLATFORM_LOCAL_NICENESS": "0"},
    f"computed on this machine by the pipeline {BUILT_IN}",
    600.0,
)


def choose(runner: Literal["auto", "local", "mock"], loaded: Plugins) -> Computing:
    """The runner that was asked for; ``auto``: the local one if it can run here.

    Raises CollidiumError where the local one was asked for and cannot.
    """
    if runner == "mock":
        return MOCK
    try:
        _require_pipeline(loaded)
    except CollidiumError:
        if runner == "local":
            raise
        return MOCK
    return LOCAL


def _require_pipeline(loaded: Plugins) -> None:
    if sys.platform != "linux":
        raise ConfigurationError("the runner local needs Linux")
    choice.choose(BUILT_IN, NONE, PRESETS[PRESET], loaded.pipelines().get, lambda _: None)
