"""All requests, newest first, by state, account and channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from collidium.client import Page, SimulationRequest
from collidium.errors import NotFound
from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.requests import record
from collidium_tui.screens.requests.detail import RequestScreen, cancel
from collidium_tui.screens.requests.filters import Filters, RequestFilter
from collidium_tui.widgets.table import PAGE, Column, Table
from collidium_tui.widgets.text import cell, plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of requests, and what is to be said of an empty one."""

    page: Page[SimulationRequest]
    note: str = ""


class RequestsScreen(ConsoleScreen[Listed]):
    """All simulation requests."""

    label = "Requests"
    about = (
        "All simulation requests, newest first. Pick by state, account and channel above the list; "
        "Enter shows one with its timeline, its job and its output."
    )
    CSS = """
    RequestsScreen #note { height: auto; padding: 0 1; text-style: bold; display: none; }
    """
    AUTO_FOCUS = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "pick", "Pick", key_display="/"),
        Binding("a", "all", "All"),
        Binding("x", "cancel", "Cancel it"),
    ]

    def content(self) -> ComposeResult:
        yield Filters()
        yield Static(id="note")
        yield Table(self._columns(), lambda request: request.request_id, of="requests")

    async def fetch(self, client: AsyncClient) -> Listed:
        wanted = self.query_one(Filters).current
        try:
            page = await client.admin_requests(
                state=wanted.state,
                user=wanted.user,
                channel=wanted.channel,
                limit=PAGE,
                cursor=self.query_one(Table).cursor,
            )
        except NotFound as error:  # the account: an answer, and no trouble
            return Listed(Page(()), error.detail)
        return Listed(page, "" if page.items or wanted == RequestFilter() else f"no requests {wanted}")

    def show(self, data: Listed) -> None:
        note = self.query_one("#note", Static)
        note.update(plain(data.note, single_line=True))
        note.display = bool(data.note)
        self.query_one(Table).show_page(data.page)

    def pick(self, wanted: RequestFilter) -> None:
        """List these only: for other screens, which lead here."""
        self.query_one(Filters).pick(wanted)

    # -- keys -----------------------------------------------------------------------------------------

    def on_filters_changed(self) -> None:
        table = self.query_one(Table)
        table.restart()
        # Rows of the previous filter must not be taken for those of the new one.
        table.show_rows(())
        self.refresh_now()

    def on_filters_left(self) -> None:
        self.query_one(Table).focus()

    def on_table_chosen(self, event: Table.Chosen) -> None:
        self.app.push_screen(RequestScreen(event.row.request_id))

    def action_pick(self) -> None:
        self.query_one(Filters).begin()

    def action_all(self) -> None:
        self.pick(RequestFilter())

    def action_cancel(self) -> None:
        request = self.query_one(Table).current
        if request is not None:
            self.act(partial(cancel, self, request))

    # -- inside ---------------------------------------------------------------------------------------

    def _columns(self) -> list[Column[SimulationRequest]]:
        """Those that matter fit into 80 columns; the others are there to the right."""
        return [
            Column("request", lambda request: request.request_id, self._short_id, width=8),
            Column("state", record.state, width=10),
            Column("account", lambda request: request.hub_username, width=13),
            Column("channel", lambda request: request.channel, width=12),
            Column("events", lambda request: request.events, right=True, width=7),
            Column("pu", lambda request: request.pileup, right=True, width=3),
            Column("ordered", lambda request: request.created_at, self._ordered, width=11),
            Column("credits", lambda request: request.credits_charged, right=True, width=9),
            Column("reason", lambda request: request.reason),
        ]

    def _short_id(self, request: SimulationRequest) -> Text:
        return cell(request.request_id[:8], self.times)

    def _ordered(self, request: SimulationRequest) -> Text:
        return cell(self.times.brief(request.created_at), self.times)
