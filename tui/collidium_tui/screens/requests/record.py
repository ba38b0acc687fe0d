"""A request in lines: all that is known of it, except its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table as Grid

from collidium_tui.widgets.text import cell, counted, formatted
from collidium_tui.widgets.times import Times

if TYPE_CHECKING:
    from collidium.client import OperatedRequest, SimulationRequest

#: The next step of the follower, in words.
_STEPS: Final = {
    "submit": "hand it to the runner",
    "follow": "poll the runner",
    "collect": "fetch its output from the runner",
    "publish": "publish its dataset on the hub",
}


def record(request: OperatedRequest, times: Times) -> Grid:
    """Names and values, one or more lines each; missing values have none."""
    lines = {
        "request": request.request_id,
        "account": request.hub_username,
        "order": order(request) + (", private" if request.private else ""),
        "state": _state(request, times),
        "reason": request.reason,
        "credits": _credits(request, times),
        "node-hours": _node_hours(request, times),
        "job": _job(request),
        "next": _next(request, times),
        "output": _output(request),
        "files": _files(request),
    }
    grid = Grid.grid("name", "value", padding=(0, 2, 0, 0))
    for name, value in lines.items():
        if value:
            text = cell(value, times)
            text.no_wrap, text.overflow = False, "fold"
            grid.add_row(name, text)
    return grid


def _state(request: OperatedRequest, times: Times) -> str:
    since = request.finished_at or request.started_at
    ordered = f"{state(request)}, ordered {times.show(request.created_at)}"
    return f"{ordered}, since {times.show(since)}" if since is not None else ordered


def _credits(request: OperatedRequest, times: Times) -> str:
    charged, refunded = request.credits_charged, request.credits_refunded
    return f"{formatted(charged, times)} charged, {formatted(refunded, times)} refunded"


def _node_hours(request: OperatedRequest, times: Times) -> str:
    estimated = f"{formatted(request.estimated_node_hours, times)} estimated"
    return f"{formatted(request.node_hours, times)} used, {estimated}" if request.has_ended else estimated


def _job(request: OperatedRequest) -> str:
    handle = request.runner_handle or "none yet"
    return f"{handle} at runner {request.runner} (pipeline {request.pipeline_version})"


def _next(request: OperatedRequest, times: Times) -> str:
    if not request.step:
        return ""
    due = f" at {times.brief(request.due_at)}" if request.due_at is not None else ""
    failed = f"; failed {counted(request.attempts, 'times')}" if request.attempts else ""
    return _STEPS.get(request.step, request.step) + due + failed


def _output(request: OperatedRequest) -> str:
    if request.output_hub_repo is None:
        return ""
    return request.output_hub_repo + (" (mock: no events)" if request.output_is_mock else "")


def _files(request: OperatedRequest) -> str:
    """The endpoint of its files, once there may be some."""
    collected = request.step == "publish" or (request.state == "completed" and not request.output_is_mock)
    return f"GET /admin/requests/{request.request_id}/output" if collected else ""


STATES: Final = ("queued", "running", "completed", "failed", "cancelled")


def state(request: SimulationRequest) -> str:
    """Its state, or that it is being cancelled."""
    return "cancelling" if request.cancel_requested and not request.has_ended else request.state


def order(request: SimulationRequest) -> str:
    """What was ordered."""
    events = counted(request.events, "events")
    return f"{events} of {request.channel} at pileup {request.pileup}, seed {request.seed}"
