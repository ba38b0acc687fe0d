"""One request: what was ordered, what became of it and why, its timeline, its job and its output."""

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
from collidium_tui.screens.requests.actions import cancel
from collidium_tui.screens.requests.record import record
from collidium_tui.widgets.table import Column, Table

if TYPE_CHECKING:
    from collidium.client import AsyncClient


class RequestScreen(OpenedScreen[ListData[OperatedRequest]], ListsScreen[OperatedRequest]):
    """A request as operators see it, renewed while it is looked at."""

    label = "Requests"
    about = (
        "One simulation request: its timeline, its job at the runner, what is done next for it, and the "
        "files of its output that the server keeps."
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
        self.query_one("#record", Static).update(record(head, self.times))

    def action_cancel(self) -> None:
        if self.data is not None:
            self.act(partial(cancel, self, self.data.head))

    def action_copy_id(self) -> None:
        self.app.copy_to_clipboard(self.request_id)
        self.notify(f"Copied {self.request_id}", markup=False)
