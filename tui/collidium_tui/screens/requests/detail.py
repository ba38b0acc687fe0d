"""One simulation request: its order, state, timeline, job and output, and its cancellation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.table import Table as Grid
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from collidium.client import NO_EVENTS, OperatedRequest, OutputFile, Page, order_text
from collidium.presentation.consequences import cancel_request
from collidium.presentation.requests import TIMELINE, short_state
from collidium_tui.screen import ListData, ListsScreen, OpenedScreen
from collidium_tui.widgets.form import Question
from collidium_tui.widgets.table import Column, Table
from collidium_tui.widgets.text import Times, cell, counted, formatted

if TYPE_CHECKING:
    from collidium.client import AsyncClient, SimulationRequest
    from collidium_tui.screen import ConsoleScreen


class RequestScreen(OpenedScreen[ListData[OperatedRequest]], ListsScreen[OperatedRequest]):
    """A request with its timeline and output."""

    label = "Requests"
    about = (
        "One simulation request: its timeline, its job at the runner, the next step, and the "
        "output files that the server stores."
    )
    CSS = """
    RequestScreen .record { height: auto; max-height: 60%; padding: 0 1; }
    RequestScreen TabbedContent { height: 1fr; }
    """
    AUTO_FOCUS = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "cancel", "Cancel it"),
        Binding("i", "copy_id", "Copy its id"),
    ]

    def __init__(self, request_id: str) -> None:
        super().__init__()
        self.request_id = request_id

    def content(self) -> ComposeResult:
        with VerticalScroll(classes="record", can_focus=False):
            yield Static(id="record")
        yield from self.lists()

    def tables(self) -> Iterable[Table[Any]]:
        files: list[Column[OutputFile]] = [
            Column("events", lambda file: file.rows, right=True),
            Column("bytes", lambda file: file.size_bytes, right=True),
            Column("file", lambda file: file.path),
            Column("sha256", lambda file: file.sha256),
        ]
        yield Table(
            TIMELINE,
            lambda moment: f"{moment.at.isoformat()} {moment.state}",
            of="timeline entries",
            id="timeline",
        )
        yield Table(files, lambda file: file.path, of="output files", id="files")

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[OperatedRequest, Page[Any]]:
        request = await client.admin_request(self.request_id)
        if table.id == "timeline":
            return request, Page(request.timeline)
        return request, await client.admin_output(self.request_id)

    def show_head(self, head: OperatedRequest) -> None:
        self.query_one("#record", Static).update(record(head, self.times))

    def action_cancel(self) -> None:
        if self.data is not None:
            self.act(partial(cancel, self, self.data.head))

    def action_copy_id(self) -> None:
        self.app.copy_to_clipboard(self.request_id)
        self.notify(f"Copied {self.request_id}")


async def cancel(screen: ConsoleScreen[Any], request: SimulationRequest) -> None:
    """Cancel a request after confirmation. Call it within ``screen.act``."""
    if request.has_ended:
        screen.notify(f"The request has {_ended(request)} already: there is nothing to cancel.")
    elif request.cancel_requested:
        screen.notify("It is already being cancelled.")
    elif await screen.confirm(_question(request)):
        await screen.perform(
            lambda client, key: client.admin_cancel(request.request_id, idempotency_key=key), _outcome
        )


def _outcome(request: SimulationRequest) -> str:
    outcome = "is cancelled" if request.has_ended else "is being cancelled: its job is being stopped"
    return f"Request {request.request_id} {outcome}."


def _question(request: SimulationRequest) -> Question:
    return Question(
        f"Cancel request {request.request_id}",
        f"{order_text(request)}; ordered by {request.hub_username}, {short_state(request)}.\n\n"
        f"{cancel_request(request, request.hub_username)} "
        "The timeline and the audit log record that an operator cancelled it.",
        "Cancel the request",
    )


def _ended(request: SimulationRequest) -> str:
    return "been cancelled" if request.state == "cancelled" else request.state


#: Texts for the next step of a request.
_STEPS: Final = {
    "submit": "hand it to the runner",
    "follow": "poll the runner",
    "store": "store the parts that have finished",
    "collect": "fetch its output from the runner",
    "publish": "publish its dataset on the hub",
}


def record(request: OperatedRequest, times: Times) -> Grid:
    """Return a grid of names and values; missing values are left out."""
    lines = {
        "request": request.request_id,
        "account": request.hub_username,
        "order": order_text(request) + (", private" if request.private else ""),
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
    ordered = f"{short_state(request)}, ordered {times.show(request.created_at)}"
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
    return request.output_hub_repo + (f" ({NO_EVENTS})" if request.output_is_mock else "")


def _files(request: OperatedRequest) -> str:
    """Return the endpoint of the output files, if there may be some."""
    collected = request.step == "publish" or (request.state == "completed" and not request.output_is_mock)
    return f"GET /admin/requests/{request.request_id}/output" if collected else ""
