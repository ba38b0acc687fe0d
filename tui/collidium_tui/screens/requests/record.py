"""A request in lines: all that is known of it, except its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collidium_tui.screens.requests import words
from collidium_tui.widgets.text import printable, told
from collidium_tui.widgets.times import Times

if TYPE_CHECKING:
    from collidium.client import OperatedRequest

#: What the follower does, in words.
_STEPS: Final = {
    "submit": "hand it to the runner",
    "follow": "ask the runner how it is",
    "collect": "fetch its output from the runner",
    "publish": "publish its dataset on the hub",
}


def record(request: OperatedRequest, times: Times) -> str:
    """Names and values, a line each; what there is not has no line."""
    lines = {
        "request": request.request_id,
        "account": request.hub_username,
        "order": words.order(request) + (", private" if request.private else ""),
        "state": _state(request, times),
        "reason": request.reason,
        "credits": f"{told(request.credits_charged, times)} charged, "
        f"{told(request.credits_refunded, times)} refunded",
        "node-hours": _node_hours(request, times),
        "job": _job(request),
        "next": _next(request, times),
        "output": _output(request),
    }
    size = max(map(len, lines))
    return "\n".join(
        f"{name:<{size}}  {printable(value, one_line=True)}" for name, value in lines.items() if value
    )


def _state(request: OperatedRequest, times: Times) -> str:
    since = request.finished_at or request.started_at or request.created_at
    return f"{words.state(request)}, ordered {times.show(request.created_at)}" + (
        f", since {times.show(since)}" if since != request.created_at else ""
    )


def _node_hours(request: OperatedRequest, times: Times) -> str:
    estimated = told(request.estimated_node_hours, times)
    return (
        f"{told(request.node_hours, times)} used, {estimated} estimated"
        if request.has_ended
        else (f"{estimated} estimated")
    )


def _job(request: OperatedRequest) -> str:
    handle = request.runner_handle or "none yet"
    return f"{handle} at runner {request.runner} (pipeline {request.pipeline_version})"


def _next(request: OperatedRequest, times: Times) -> str:
    if not request.step:
        return ""
    due = f", due {times.show(request.due_at)}" if request.due_at is not None else ""
    failed = f"; it failed {request.attempts} times in a row" if request.attempts else ""
    return _STEPS.get(request.step, request.step) + due + failed


def _output(request: OperatedRequest) -> str:
    if request.output_hub_repo is None:
        return ""
    return request.output_hub_repo + (" (a mock: there is nothing)" if request.output_is_mock else "")
