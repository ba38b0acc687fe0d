"""All simulation requests, newest first, filtered by state, account and channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label, Select, Static

from collidium.client import Page, SimulationRequest
from collidium.errors import NotFound
from collidium.presentation import requests
from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.requests.detail import RequestScreen, cancel
from collidium_tui.widgets.table import PAGE, Table
from collidium_tui.widgets.text import TYPED, plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient


#: The server's limits.
_MAX_ACCOUNT_LENGTH: Final = 96
_MAX_CHANNEL_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """The filter of the list. None matches all."""

    state: str | None = None
    user: str | None = None
    channel: str | None = None

    def __str__(self) -> str:
        parts = [self.state, self.user and f"by {self.user}", self.channel and f"of {self.channel}"]
        return ", ".join(part for part in parts if part) or "all"


class Filters(Horizontal):
    """The filter's fields. Posts :class:`Changed` when a state is selected, and on Enter in a field."""

    DEFAULT_CSS = """
    Filters { height: 1; }
    Filters Select { width: 18; }
    Filters Input { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back to the list")]

    class Changed(Message):
        """The filter has changed."""

    class Left(Message):
        """The list should get the focus."""

    def __init__(self) -> None:
        super().__init__()
        self.current = RequestFilter()

    def compose(self) -> ComposeResult:
        yield Label("state ")
        states = [(state, state) for state in requests.STATES]
        yield Select(states, prompt="any", compact=True, id="state")
        yield Label(" account ")
        yield Input(
            placeholder="any", max_length=_MAX_ACCOUNT_LENGTH, restrict=TYPED, compact=True, id="user"
        )
        yield Label(" channel ")
        yield Input(
            placeholder="any", max_length=_MAX_CHANNEL_LENGTH, restrict=TYPED, compact=True, id="channel"
        )

    def pick(self, wanted: RequestFilter) -> None:
        """Set the filter."""
        with self.prevent(Select.Changed):
            self._select.value = wanted.state if wanted.state is not None else Select.NULL
        self._field("user").value = wanted.user or ""
        self._field("channel").value = wanted.channel or ""
        self._apply()

    def on_select_changed(self, event: Select.Changed) -> None:
        event.stop()
        self._apply()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._apply()
        self.post_message(self.Left())

    def action_leave(self) -> None:
        self._field("user").value = self.current.user or ""
        self._field("channel").value = self.current.channel or ""
        self.post_message(self.Left())

    def _apply(self) -> None:
        state = self._select.value
        wanted = RequestFilter(
            state if isinstance(state, str) else None,
            self._field("user").value.strip() or None,
            self._field("channel").value.strip() or None,
        )
        if wanted != self.current:
            self.current = wanted
            self.post_message(self.Changed())

    @property
    def _select(self) -> Select[str]:
        return self.query_one("#state", Select)

    def _field(self, name: str) -> Input:
        return self.query_one(f"#{name}", Input)


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of requests, and why it is empty."""

    page: Page[SimulationRequest]
    note: str = ""


class RequestsScreen(ConsoleScreen[Listed]):
    """All simulation requests."""

    label = "Requests"
    about = (
        "All simulation requests, newest first, filtered by state, account and channel. "
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
        columns = requests.in_console(lambda at: self.times.brief(at))
        yield Table(columns, lambda request: request.request_id, of="requests")

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
        except NotFound as error:  # no such account
            return Listed(Page(()), error.detail)
        return Listed(page, "" if page.items or wanted == RequestFilter() else f"no requests {wanted}")

    def show(self, data: Listed) -> None:
        note = self.query_one("#note", Static)
        note.update(plain(data.note, single_line=True))
        note.display = bool(data.note)
        self.query_one(Table).show_page(data.page)

    def pick(self, wanted: RequestFilter) -> None:
        """Set the filter. For other screens that open this one."""
        self.query_one(Filters).pick(wanted)

    # -- keys -----------------------------------------------------------------------------------------

    def on_filters_changed(self) -> None:
        table = self.query_one(Table)
        table.restart()
        # Do not show the rows of the previous filter until the new ones are fetched.
        table.show_rows(())
        self.refresh_now()

    def on_filters_left(self) -> None:
        self.query_one(Table).focus()

    def on_table_chosen(self, event: Table.Chosen) -> None:
        self.app.push_screen(RequestScreen(event.row.request_id))

    def action_pick(self) -> None:
        self.query_one("#user", Input).focus()

    def action_all(self) -> None:
        self.pick(RequestFilter())

    def action_cancel(self) -> None:
        request = self.query_one(Table).current
        if request is not None:
            self.act(partial(cancel, self, request))
