"""How ends of containers are reported."""

from __future__ import annotations

from decimal import Decimal

import pytest

from collidium.contracts.runner import JobState, RunnerUnavailable
from collidium.runtime.containers import _containers, _is_missing, container_of
from collidium_runners.container import run_of
from collidium_runners.spool.engine import Run, ending
from collidium_runners.spool.spool import CANCELLED, TOO_LONG

GIBIBYTE = 1024**3


def ended(
    code: int, *, stopped: str | None = None, tables: bool = True, out_of_memory: bool = False
) -> tuple[JobState, str | None]:
    _, container = container_of(
        {
            "Name": "c",
            "State": {
                "Status": "exited",
                "ExitCode": code,
                "OOMKilled": out_of_memory,
                "StartedAt": "2026-01-01T00:00:00Z",
                "FinishedAt": "2026-01-01T01:00:00Z",
            },
        }
    )
    run = run_of(container)
    status = ending(run, stopped, ["one", "two"], tables=tables, memory=2 * GIBIBYTE, seconds=90.0)
    assert status.node_hours == Decimal("1.000")
    return status.state, status.reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1, "its pipeline failed: exit code 1; last line of its log: two"),
        (127, "its pipeline cannot be started: exit code 127; last line of its log: two"),
        (139, "its pipeline failed: exit code 139 (SIGSEGV); last line of its log: two"),
        (
            137,
            "its pipeline was killed, most likely for lack of memory: it may use 2 GiB; "
            "last line of its log: two",
        ),
        (
            255,
            "its pipeline failed: exit code 255, or the machine was restarted; last line of its log: two",
        ),
    ],
)
def test_failures_by_exit_code(code: int, reason: str) -> None:
    assert ended(code) == (JobState.FAILED, reason)


def test_what_only_the_engine_knows() -> None:
    assert ended(0) == (JobState.COMPLETED, None)
    assert ended(0, tables=False)[0] == JobState.FAILED
    message = "its pipeline ran out of memory: it may use 2 GiB; last line of its log: two"
    assert ended(1, out_of_memory=True) == (JobState.FAILED, message)


def test_why_it_was_stopped_wins_over_its_exit_code() -> None:
    """A pipeline may end well when it is asked to stop; what it wrote is not whole."""
    assert ended(0, stopped=CANCELLED) == (JobState.CANCELLED, "cancelled: exit code 0")
    assert ended(0, stopped=TOO_LONG)[0] == JobState.FAILED


def test_an_end_before_its_beginning_costs_nothing() -> None:
    """Clocks are set back, and podman rounds the two differently."""
    run = Run(is_over=True, started=1000.0, finished=999.9)
    status = ending(run, None, [], tables=True, memory=GIBIBYTE, seconds=90.0)
    assert status.node_hours == Decimal("0.000")


@pytest.mark.parametrize("answer", ["<html>", "[1]", '[{"Name": "c"}]', '[{"Name": "c", "State": {}}]'])
def test_invalid_engine_output_is_rejected(answer: str) -> None:
    with pytest.raises(RunnerUnavailable, match="response is invalid"):
        _containers(answer)


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        ("Error: No such container: collidium-1", True),
        ('Error: inspecting object: no such object: "collidium-1"', True),
        ("time=... level=warning\nerror inspecting object: no such container collidium-1", True),
        ("Error: No such container: collidium-2", False),
        ("dial unix /run/docker.sock: connect: no such file or directory", False),
        ("Cannot connect to the Docker daemon", False),
        ("", False),
    ],
)
def test_a_container_is_missing_only_if_the_engine_says_so(message: str, missing: bool) -> None:
    assert _is_missing("collidium-1", message) is missing
