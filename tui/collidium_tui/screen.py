"""The base classes of screens: fetching, errors and actions; lists in tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Static, TabbedContent, TabPane
from textual.widgets import Tabs as TextualTabs
from textual.worker import Worker

from collidium.errors import CollidiumError
from collidium_tui.frame import Freshness, StatusBar, Tabs
from collidium_tui.session import Action, Handler, Link, ServerStatus, Session, console_of
from collidium_tui.widgets.form import Ask, Form, Question
from collidium_tui.widgets.table import Table
from collidium_tui.widgets.text import Times, plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Page
    from collidium_tui.app import Console

#: Minimum interval between two fetches of a screen.
MIN_INTERVAL_SECONDS: Final = 1.0

Data = TypeVar("Data")
Result = TypeVar("Result")

Head = TypeVar("Head")


class ConsoleScreen(Screen[None], Generic[Data]):
    """A screen that fetches data from the server and shows them.

    ::

        class Runners(ConsoleScreen[Readiness]):
            label = "Runners"
            refresh_seconds = 10

            def content(self):
                yield Static(id="status")

            async def fetch(self, client):
                return await client.ready()

            def show(self, data):
                self.query_one("#status", Static).update(plain(data.status))

    While the screen is shown, :meth:`fetch` is called every ``refresh_seconds`` in a worker, one call at a
    time, and :meth:`show` with its result. Leaving the screen cancels the call. After an error of the server
    or the screen, the old data stay visible, with the error below.

    For actions there are :meth:`act`, :meth:`confirm`, :meth:`fill_in` and :meth:`perform`.
    """

    #: The title.
    label: ClassVar[str] = ""
    #: At least ``MIN_INTERVAL_SECONDS``; more for a screen that makes several calls.
    refresh_seconds: ClassVar[float] = 5.0
    #: The purpose, in one or two sentences for the help.
    about: ClassVar[str] = ""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "refresh", "Refresh", show=False)]

    def __init__(self) -> None:
        super().__init__()
        self.data: Data | None = None
        #: When ``data`` was fetched.
        self.data_at: datetime | None = None
        #: The error of the last fetch, if it failed.
        self.trouble = ""
        self._timer: Timer | None = None
        self._fetching: Worker[None] | None = None
        self._fetched_at = -MIN_INTERVAL_SECONDS
        #: Runs until a refresh by key can start.
        self._wanted: Timer | None = None

    # -- defined by subclasses ----------------------------------------------------------------------

    def content(self) -> ComposeResult:
        """Yield the widgets."""
        raise NotImplementedError

    async def fetch(self, client: AsyncClient) -> Data:
        """Fetch the data from the server. The caller handles CollidiumError."""
        raise NotImplementedError

    def show(self, data: Data) -> None:
        """Show the data. Also called when the time zone changes."""
        raise NotImplementedError

    # -- used by subclasses ---------------------------------------------------------------------------

    @property
    def console(self) -> Console:
        """The application."""
        return console_of(self)

    @property
    def session(self) -> Session:
        """The connection to the server."""
        return self.console.session

    @property
    def times(self) -> Times:
        """How times are shown."""
        return self.console.times

    def act(self, handler: Handler) -> None:
        """Run ``handler`` in a worker and show its errors."""
        self.console.act(handler)

    async def confirm(self, question: Question) -> bool:
        """Ask for confirmation. Call it within :meth:`act`."""
        return await self.app.push_screen_wait(Ask(question))

    async def fill_in(self, form: Form) -> dict[str, str] | None:
        """Show a form and return its values; None if it was cancelled. Call it within :meth:`act`."""
        return await self.app.push_screen_wait(form)

    async def perform(
        self, action: Action[Result], done: str | Callable[[Result], str] = ""
    ) -> Result | None:
        """Perform an action, show its outcome and refresh. Call it within :meth:`act`.

        ``done`` is shown when it succeeded: a text, or a function of the result. Without a response, the
        operator can repeat the action with the same idempotency key. Returns None if it failed; the error has
        then been shown.
        """
        return await self.console.perform(action, done)

    def refresh_now(self) -> None:
        """Fetch now, and cancel a fetch in progress."""
        if self.is_current:
            self._fetched_at = monotonic()
            self._fetching = self.run_worker(self._read, group="fetching", exclusive=True)
            self._update_freshness()

    def show_line(self, selector: str, text: str) -> None:
        """Show a line of untrusted text in a ``Static``."""
        self.query_one(selector, Static).update(plain(text, single_line=True))

    # -- life -----------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield StatusBar()
        yield Tabs()
        with Container(id="content"):
            yield from self._content()
        yield Freshness()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._timer = self.set_interval(max(self.refresh_seconds, MIN_INTERVAL_SECONDS), self._tick)
        self.console.status_changed.subscribe(self, self._on_status)
        self.console.zone_changed.subscribe(self, lambda _: self._show_again())

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        if self._timer is not None:
            self._timer.reset()
            self._timer.resume()
        self.refresh_now()

    def on_screen_suspend(self, event: events.ScreenSuspend) -> None:
        if self._timer is not None:
            self._timer.pause()
        self.workers.cancel_group(self, "fetching")

    def on_table_page_changed(self, event: Table.PageChanged) -> None:
        self.refresh_now()

    def action_refresh(self) -> None:
        # A key that is held down fetches only once per interval.
        if self._wanted is None:
            since = monotonic() - self._fetched_at
            self._wanted = self.set_timer(max(MIN_INTERVAL_SECONDS - since, 0.01), self._refresh_wanted)

    # -- private --------------------------------------------------------------------------------------

    @property
    def is_fetching(self) -> bool:
        """Whether a fetch is in progress."""
        return self._fetching is not None and not self._fetching.is_finished

    def _content(self) -> ComposeResult:
        try:
            yield from self.content()
        except Exception as error:  # a fault of one screen must not end the console
            yield Static(plain(f"This screen cannot be shown: {self.console.report(error)}"))

    def _refresh_wanted(self) -> None:
        self._wanted = None
        self.refresh_now()

    def _tick(self) -> None:
        # While the backend is unreachable only the session polls it.
        recent = monotonic() - self._fetched_at < MIN_INTERVAL_SECONDS
        if self.session.status.link is Link.UP and not self.is_fetching and not recent:
            self.refresh_now()

    def _on_status(self, status: ServerStatus) -> None:
        back = status.link is Link.UP and self.console.link_before is not Link.UP
        if back:
            self.refresh_now()
        self._update_freshness()

    async def _read(self) -> None:
        if self.session.status.link not in (Link.UP, Link.AWAY):
            return  # the session detects first whether the server responds
        try:
            self.data = await self.session.call(self.fetch)
            self.data_at, self.trouble = self.times.now(), ""
        except CollidiumError as error:
            self.trouble = error.detail
        except Exception as error:
            # An error of a screen, perhaps of a plugin, must not end the console.
            self.trouble = self.console.report(error)
        self._show_again()

    def _show_again(self) -> None:
        if self.data is not None and self.is_mounted:
            try:
                self.show(self.data)
            except Exception as error:  # a fault of one screen must not end the console
                self.trouble = self.console.report(error)
        self._update_freshness()

    def _update_freshness(self) -> None:
        # When the console ends, the widgets are removed before the screen.
        for line in self.query(Freshness):
            line.refresh_text(self.data_at, self.trouble)


class OpenedScreen(ConsoleScreen[Data], Generic[Data]):
    """A screen on top of another one; escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back")]

    def action_back(self) -> None:
        self.app.pop_screen()


@dataclass(frozen=True, slots=True)
class ListData(Generic[Head]):
    """The data above the lists of a screen, and a page of the active list."""

    head: Head
    table: Table[Any]
    page: Page[Any]


class ListsScreen(ConsoleScreen[ListData[Head]], Generic[Head]):
    """A screen with lists in tabs. Subclasses define ``tables``, ``fetch_list`` and ``show_head``."""

    CSS = "TabbedContent { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("l", "next_list", "Next list")]

    def tables(self) -> Iterable[Table[Any]]:
        """Yield the lists; ``of`` of each is the title of its tab."""
        raise NotImplementedError

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[Head, Page[Any]]:
        """Fetch the data above the lists, and the page at ``table.cursor``."""
        raise NotImplementedError

    def show_head(self, head: Head) -> None:
        """Show the data above the lists."""

    def lists(self) -> ComposeResult:
        """Yield the tabs, for :meth:`content`."""
        with TabbedContent():
            for table in self.tables():
                with TabPane(table.of.capitalize()):
                    yield table

    @property
    def active_table(self) -> Table[Any]:
        """The list of the active tab."""
        pane = self.query_one(TabbedContent).active_pane
        return (pane or self).query(Table).first()

    async def fetch(self, client: AsyncClient) -> ListData[Head]:
        table = self.active_table
        head, page = await self.fetch_list(client, table)
        return ListData(head, table, page)

    def show(self, data: ListData[Head]) -> None:
        self.show_head(data.head)
        data.table.show_page(data.page)

    def on_tabbed_content_tab_activated(self) -> None:
        self.active_table.focus()
        self.refresh_now()

    def action_next_list(self) -> None:
        self.query_one(TabbedContent).query_one(TextualTabs).action_next_tab()
