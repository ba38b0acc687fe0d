"""Intervals, timeouts and tolerated errors of a waiting client, with a clock that tests set."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tests.clock import Clock

from collidium import errors
from collidium.client import SimulationRequest
from collidium.client.transports import LONGEST_PAUSE, PATIENCE_SECONDS, Waiting


def request(state: str, reason: str | None = None) -> SimulationRequest:
    return SimulationRequest(
        request_id="0" * 32,
        hub_username="alice",
        channel="ttbar",
        events=10,
        pileup=0,
        seed=42,
        state=state,
        created_at=datetime(2026, 11, 1, tzinfo=UTC),
        credits_charged=Decimal("0.333"),
        credits_refunded=Decimal(0),
        estimated_node_hours=Decimal("0.333"),
        node_hours=Decimal("0.333"),
        reason=reason,
    )


def test_pauses_grow_up_to_the_longest() -> None:
    waiting = Waiting(None, None)
    pauses = [waiting.pause() for _ in range(40)]
    assert pauses == sorted(pauses)
    assert pauses[0] <= 1
    assert pauses[-1] == LONGEST_PAUSE


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_stream_ends_with_its_request(state: str) -> None:
    waiting = Waiting(None, None)
    assert not waiting.has_ended(request("queued"))
    assert not waiting.has_ended(request("running"))
    assert waiting.has_ended(request(state))


def test_only_changes_are_reported() -> None:
    reports: list[tuple[str, str | None]] = []
    waiting = Waiting(None, lambda seen: reports.append((seen.state, seen.reason)))
    for seen in (
        request("queued"),
        request("queued"),
        request("queued", "the hub is away"),
        request("running"),
        request("running"),
    ):
        waiting.has_ended(seen)
    assert reports == [("queued", None), ("queued", "the hub is away"), ("running", None)]


def test_the_last_poll_is_at_the_deadline() -> None:
    clock = Clock(1000.0)
    waiting = Waiting(3, None, clock)
    waiting.has_ended(request("running"))
    clock.now += 2.75
    assert waiting.pause() == 0.25
    clock.now += 0.25
    with pytest.raises(TimeoutError, match="running"):
        waiting.pause()


@pytest.mark.parametrize("kind", [errors.Unreachable, errors.UpstreamError])
def test_repeated_errors_are_raised_after_a_while(kind: type[errors.CollidiumError]) -> None:
    clock = Clock(1000.0)
    waiting = Waiting(None, None, clock)
    trouble = kind("away")
    assert waiting.pause_after(trouble) > 0
    clock.now += PATIENCE_SECONDS
    assert waiting.pause_after(trouble) > 0
    # An answer in between: patience begins anew.
    waiting.has_ended(request("running"))
    clock.now += PATIENCE_SECONDS
    assert waiting.pause_after(trouble) > 0
    clock.now += PATIENCE_SECONDS + 1
    with pytest.raises(kind):
        waiting.pause_after(trouble)


def test_errors_are_tolerated_until_the_timeout_at_most() -> None:
    clock = Clock(1000.0)
    waiting = Waiting(10, None, clock)
    clock.now += 11
    with pytest.raises(TimeoutError, match="not seen"):
        waiting.pause_after(errors.Unreachable("away"))


@pytest.mark.parametrize(
    ("retry_after", "pause"), [("7", 7), ("100000", LONGEST_PAUSE), ("²", 0.5), ("Fri, 20 Nov 2026", 0.5)]
)
def test_the_server_may_say_when_to_come_again(retry_after: str, pause: float) -> None:
    trouble = errors.Unavailable("frozen")
    trouble.headers["Retry-After"] = retry_after
    assert Waiting(None, None).pause_after(trouble) == pause
