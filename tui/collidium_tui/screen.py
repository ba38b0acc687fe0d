"""What all screens are made from: asking every few seconds, age of the data, errors, actions."""

from __future__ import annotations

from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Static
from textual.worker import Worker

from collidium.errors import CollidiumError
from collidium_tui.frame.freshness import Freshness
from collidium_tui.frame.status import StatusBar
from collidium_tui.frame.tabs import Tabs
from collidium_tui.services import Services, services
from collidium_tui.session import Action, Deed, Link, Session, Standing
from collidium_tui.widgets.ask import Ask, Question
from collidium_tui.widgets.form import Form
from collidium_tui.widgets.table import Table
from collidium_tui.widgets.text import plain
from collidium_tui.widgets.times import Times

if TYPE_CHECKING:
    from collidium.client import AsyncClient

#: Seconds between two times that a screen asks by itself or by its key.
LEAST_SECONDS: Final = 1.0

Data = TypeVar("Data")
Result = TypeVar("Result")


class ConsoleScreen(Screen[None], Generic[Data]):
    """A screen: it says what it is called, what it asks the server, and how that is shown.

    ::

        class Runners(ConsoleScreen[Readiness]):
            label = "Runners"
            refresh_seconds = 10

            def content(self):
                yield Static(id="told")

            async def fetch(self, client):
                return await client.ready()

            def show(self, data):
                self.query_one("#told", Static).update(plain(data.status))

    While it is on top, :meth:`fetch` is called every ``refresh_seconds`` in a worker, never twice at once,
    and :meth:`show` with its answer. Leaving cancels; coming back asks anew. An error of the server, or a
    mistake in the screen itself, is told below the content, and what was shown stays, marked stale.

    For what changes things there are :meth:`act`, :meth:`confirm`, :meth:`fill_in` and :meth:`perform`.
    """

    #: What it is called among the screens.
    label: ClassVar[str] = ""
    #: At least ``LEAST_SECONDS``; a screen that makes several calls asks less often.
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
        self._reading: Worker[None] | None = None
        self._asked_at = -LEAST_SECONDS
        #: Runs until the key to refresh has its way.
        self._wanted: Timer | None = None

    # -- what a screen says of itself -----------------------------------------------------------------

    def content(self) -> ComposeResult:
        """Its widgets."""
        raise NotImplementedError

    async def fetch(self, client: AsyncClient) -> Data:
        """What it shows, from the server; CollidiumError may go through."""
        raise NotImplementedError

    def show(self, data: Data) -> None:
        """Show it; called anew also when the zone of times is changed."""
        raise NotImplementedError

    # -- for actions ----------------------------------------------------------------------------------

    @property
    def console(self) -> Services:
        """The application."""
        return services(self)

    @property
    def session(self) -> Session:
        """The way to the server."""
        return self.console.session

    @property
    def times(self) -> Times:
        """How times are shown."""
        return self.console.times

    def act(self, deed: Deed) -> None:
        """Call ``deed`` and wait for it beside the screen; a mistake in it is told, and ends nothing."""
        self.console.act(deed)

    async def confirm(self, question: Question) -> bool:
        """Ask first; within :meth:`act`."""
        return await self.app.push_screen_wait(Ask(question))

    async def fill_in(self, form: Form) -> dict[str, str] | None:
        """Have a form filled in; None when it was given up. Within :meth:`act`."""
        return await self.app.push_screen_wait(form)

    async def perform(self, action: Action[Result], done: str = "") -> Result | None:
        """Perform an action, tell how it went, and show what is so now. Within :meth:`act`.

        Where no answer comes the operator may send it again, under the same key. Returns None when the server
        refused or did not answer, which was then told.
        """
        return await self.console.perform(action, done)

    def refresh_now(self) -> None:
        """Ask the server now, whatever is under way."""
        if self.is_current:
            self._asked_at = monotonic()
            self._reading = self.run_worker(self._read, group="reading", exclusive=True)
            self._tell_freshness()

    # -- life -----------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield StatusBar()
        yield Tabs()
        with Container(id="content"):
            yield from self._content()
        yield Freshness()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._timer = self.set_interval(max(self.refresh_seconds, LEAST_SECONDS), self._tick)
        self.console.standing_changed.subscribe(self, self._on_standing)
        self.console.zone_changed.subscribe(self, lambda _: self._show_again())

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        if self._timer is not None:
            self._timer.reset()
            self._timer.resume()
        self.refresh_now()

    def on_screen_suspend(self, event: events.ScreenSuspend) -> None:
        if self._timer is not None:
            self._timer.pause()
        self.workers.cancel_group(self, "reading")

    def on_table_turned(self, event: Table.Turned) -> None:
        self.refresh_now()

    def action_refresh(self) -> None:
        # A key that is held down asks no more than once a second.
        if self._wanted is None:
            since = monotonic() - self._asked_at
            self._wanted = self.set_timer(max(LEAST_SECONDS - since, 0.01), self._refresh_wanted)

    # -- inside ---------------------------------------------------------------------------------------

    @property
    def is_reading(self) -> bool:
        """Whether an answer is on its way."""
        return self._reading is not None and not self._reading.is_finished

    def _content(self) -> ComposeResult:
        try:
            yield from self.content()
        except Exception as error:
            yield Static(plain(f"This screen cannot be shown: {self.console.report(error)}"))

    def _refresh_wanted(self) -> None:
        self._wanted = None
        self.refresh_now()

    def _tick(self) -> None:
        # While the backend is away the session alone looks for it.
        lately = monotonic() - self._asked_at < LEAST_SECONDS
        if self.session.standing.link is Link.UP and not self.is_reading and not lately:
            self.refresh_now()

    def _on_standing(self, standing: Standing) -> None:
        back = standing.link is Link.UP and self.console.link_before is not Link.UP
        if back:
            self.refresh_now()
        self._tell_freshness()

    async def _read(self) -> None:
        if self.session.standing.link not in (Link.UP, Link.AWAY):
            return  # the session finds out first whether there is somebody to ask
        try:
            self.data = await self.session.ask(self.fetch)
            self.data_at, self.trouble = self.times.now(), ""
        except CollidiumError as error:
            self.trouble = error.detail
        except Exception as error:
            # A screen, perhaps a stranger's, must not take the console along.
            self.trouble = self.console.report(error)
        self._show_again()

    def _show_again(self) -> None:
        if self.data is not None and self.is_mounted:
            try:
                self.show(self.data)
            except Exception as error:
                self.trouble = self.console.report(error)
        self._tell_freshness()

    def _tell_freshness(self) -> None:
        # While the console ends, its lines go before the screen does.
        for line in self.query(Freshness):
            line.tell(self.data_at, self.trouble)
