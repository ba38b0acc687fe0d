"""One request: what was ordered, its state, timeline, job and output, and its cancellation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from collidium.client import Moment, OperatedRequest, OutputFile, Page
from collidium_tui.screens.lists import ListData, ListsScreen
from collidium_tui.screens.overview import OpenedScreen
from collidium_tui.screens.requests import record
from collidium_tui.widgets.ask import Question
from collidium_tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from collidium.client import AsyncClient, SimulationRequest
    from collidium_tui.screen import ConsoleScreen


class RequestScreen(OpenedScreen[ListData[OperatedRequest]], ListsScreen[OperatedRequest]):
    """A request as operators see it, updated while it is shown."""

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
        timeline: list[Column[Moment]] = [
            Column("when", lambda moment: moment.at, width=19),
            Column("state", lambda moment: moment.state, width=10),
            Column("what happened", lambda moment: moment.reason),
        ]
        files: list[Column[OutputFile]] = [
            Column("events", lambda file: file.rows, right=True),
            Column("bytes", lambda file: file.size_bytes, right=True),
            Column("file", lambda file: file.path),
            Column("sha256", lambda file: file.sha256),
        ]
        yield Table(
            timeline,
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
        self.query_one("#record", Static).update(record.record(head, self.times))

    def action_cancel(self) -> None:
        if self.data is not None:
            self.act(partial(cancel, self, self.data.head))

    def action_copy_id(self) -> None:
        self.app.copy_to_clipboard(self.request_id)
        self.notify(f"Copied {self.request_id}", markup=False)


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
        f"Its job is stopped and makes no dataset. The unused part of the "
        f"{request.credits_charged:,} credits is refunded to {request.hub_username}. "
        "The timeline and the audit log record that an operator cancelled it.",
        "Cancel the request",
    )


def _ended(request: SimulationRequest) -> str:
    return "been cancelled" if request.state == "cancelled" else request.state
