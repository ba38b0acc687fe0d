"""The base of all screens: polling, the age of the data, errors, actions; and lists in tabs."""

from __future__ import annotations

from collections.abc import Iterable
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

#: Minimum seconds between two fetches of a screen.
MIN_INTERVAL_SECONDS: Final = 1.0

Data = TypeVar("Data")
Result = TypeVar("Result")

Head = TypeVar("Head")


class ConsoleScreen(Screen[None], Generic[Data]):
    """A screen: its label, what it fetches from the server, and how that is shown.

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

    While it is on top, :meth:`fetch` is called every ``refresh_seconds`` in a worker, never twice at once,
    and :meth:`show` with its result. Leaving cancels; coming back fetches again. Errors of the
    server, and of the screen itself, are shown below the content; the old data stay, marked stale.

    For actions there are :meth:`act`, :meth:`confirm`, :meth:`fill_in` and :meth:`perform`.
    """

    #: Its title.
    label: ClassVar[str] = ""
    #: At least ``MIN_INTERVAL_SECONDS``; a screen that makes several calls asks less often.
    refresh_seconds: ClassVar[float] = 5.0
    #: What it is for, in a sentence or two for the help.
    about: ClassVar[str] = ""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "refresh", "Refresh", show=False)]

    def __init__(self) -> None:
        super().__init__()
        self.data: Data | None = None
        #: When ``data`` came.
        self.data_at: datetime | None = None
        #: Why the data are not newer, if something is wrong.
        self.trouble = ""
        self._timer: Timer | None = None
        self._fetching: Worker[None] | None = None
        self._fetched_at = -MIN_INTERVAL_SECONDS
        #: Runs until a refresh by key is due.
        self._wanted: Timer | None = None

    # -- to be defined by a screen -----------------------------------------------------------------

    def content(self) -> ComposeResult:
        """Its widgets."""
        raise NotImplementedError

    async def fetch(self, client: AsyncClient) -> Data:
        """Fetch its data from the server; CollidiumError is handled by the caller."""
        raise NotImplementedError

    def show(self, data: Data) -> None:
        """Show the data; also called when the time zone is changed."""
        raise NotImplementedError

    # -- for actions ----------------------------------------------------------------------------------

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
        """Run ``handler`` in a worker; errors in it are shown and do not end the console."""
        self.console.act(handler)

    async def confirm(self, question: Question) -> bool:
        """Ask first; within :meth:`act`."""
        return await self.app.push_screen_wait(Ask(question))

    async def fill_in(self, form: Form) -> dict[str, str] | None:
        """Have a form filled in; None when it was given up. Within :meth:`act`."""
        return await self.app.push_screen_wait(form)

    async def perform(self, action: Action[Result], done: str = "") -> Result | None:
        """Perform an action, show its outcome and refresh. Within :meth:`act`.

        Without an answer the operator may send it again under the same key. Returns None when the server
        rejected it or did not answer; the operator has then seen why.
        """
        return await self.console.perform(action, done)

    def refresh_now(self) -> None:
        """Fetch now; a fetch in progress is cancelled."""
        if self.is_current:
            self._fetched_at = monotonic()
            self._fetching = self.run_worker(self._read, group="fetching", exclusive=True)
            self._update_freshness()

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
        # A key that is held down asks no more than once a second.
        if self._wanted is None:
            since = monotonic() - self._fetched_at
            self._wanted = self.set_timer(max(MIN_INTERVAL_SECONDS - since, 0.01), self._refresh_wanted)

    # -- private --------------------------------------------------------------------------------------

    @property
    def is_fetching(self) -> bool:
        """Whether an answer is on its way."""
        return self._fetching is not None and not self._fetching.is_finished

    def _content(self) -> ComposeResult:
        try:
            yield from self.content()
        except Exception as error:
            yield Static(plain(f"This screen cannot be shown: {self.console.report(error)}"))

    def _refresh_wanted(self) -> None:
        self._wanted = None
        self.refresh_now()

    def _tick(self) -> None:
        # While the backend is unreachable only the session polls it.
        lately = monotonic() - self._fetched_at < MIN_INTERVAL_SECONDS
        if self.session.status.link is Link.UP and not self.is_fetching and not lately:
            self.refresh_now()

    def _on_status(self, status: ServerStatus) -> None:
        back = status.link is Link.UP and self.console.link_before is not Link.UP
        if back:
            self.refresh_now()
        self._update_freshness()

    async def _read(self) -> None:
        if self.session.status.link not in (Link.UP, Link.AWAY):
            return  # the session first detects whether the server answers
        try:
            self.data = await self.session.call(self.fetch)
            self.data_at, self.trouble = self.times.now(), ""
        except CollidiumError as error:
            self.trouble = error.detail
        except Exception as error:
            # A screen, perhaps of a plugin, must not end the console.
            self.trouble = self.console.report(error)
        self._show_again()

    def _show_again(self) -> None:
        if self.data is not None and self.is_mounted:
            try:
                self.show(self.data)
            except Exception as error:
                self.trouble = self.console.report(error)
        self._update_freshness()

    def _update_freshness(self) -> None:
        # When the console ends, its widgets are removed before the screen.
        for line in self.query(Freshness):
            line.refresh_text(self.data_at, self.trouble)


@dataclass(frozen=True, slots=True)
class ListData(Generic[Head]):
    """The result of a fetch: the data above the lists, and a page of the active list."""

    head: Head
    table: Table[Any]
    page: Page[Any]


class ListsScreen(ConsoleScreen[ListData[Head]], Generic[Head]):
    """A subclass defines its :meth:`tables`, :meth:`fetch_list` and how the head is shown."""

    CSS = "TabbedContent { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("l", "next_list", "Next list")]

    def tables(self) -> Iterable[Table[Any]]:
        """The lists; ``of`` of each is the title of its tab."""
        raise NotImplementedError

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[Head, Page[Any]]:
        """The data above the lists, and the page at ``table.cursor``."""
        raise NotImplementedError

    def show_head(self, head: Head) -> None:
        """Show the data above the lists."""

    def lists(self) -> ComposeResult:
        """The tabs, for ``content``."""
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
