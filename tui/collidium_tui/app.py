"""The application: screens by key, the freeze from everywhere, login, palette, themes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, TypeVar, cast

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.signal import Signal
from textual.worker import Worker

from collidium.errors import CollidiumError, ConfigurationError
from collidium_tui.frame.login import Login
from collidium_tui.screens import SCREENS
from collidium_tui.session import Call, Deed, Link, Session, Standing
from collidium_tui.widgets.ask import Ask, Question
from collidium_tui.widgets.times import Times

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

#: Seconds between two looks at the server.
LOOK_SECONDS = 5.0


class Console(App[None]):
    """The operator's console."""

    TITLE = "Collidium"
    CSS_PATH = "console.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        # Before every widget, so that it works while something is being typed, too.
        Binding("ctrl+f", "freeze", "Freeze", priority=True),
        Binding("u", "zone", "UTC", show=False),
        Binding("t", "other_theme", "Dark or light", show=False),
        Binding("question_mark,f1", "show_help_panel", "Help", key_display="?"),
        Binding("ctrl+q", "quit", "Quit", priority=True),
    ]

    def __init__(self, session: Session, *, utc: bool = False, times: Times | None = None) -> None:
        super().__init__()
        self.session = session
        self.times = times or Times(utc=utc)
        self.standing_changed: Signal[Standing] = Signal(self, "standing changed")
        self.zone_changed: Signal[bool] = Signal(self, "zone changed")
        #: How the server stood before the last change.
        self.link_before = Link.NEW
        #: What to say when the console has ended by itself.
        self.parting_words = ""
        self._link = Link.NEW

    # -- life -----------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.session.on_change = self._on_standing
        for key, (label, address) in zip("1234567890", SCREENS.items(), strict=False):
            self.add_mode(label, _made_at(address))
            self.bind(key, f"show({label!r})", description=label, show=False)
        self.switch_mode(next(iter(SCREENS)))
        self.call_after_refresh(self.act, self._open)

    async def on_unmount(self) -> None:
        await self.session.close()

    async def _open(self) -> None:
        try:
            await self.session.open()
        except ConfigurationError as error:
            self.leave(error.detail)
            return
        self.set_interval(LOOK_SECONDS, self._look_again)
        self._look_again()

    def _look_again(self) -> None:
        if self.session.signed_in:
            _: Worker[None] = self.run_worker(self._look, group="looking", exclusive=True)

    async def _look(self) -> None:
        try:
            await self.session.look()
        except CollidiumError:
            return  # the session told it in its standing

    # -- screens --------------------------------------------------------------------------------------

    @property
    def screen_keys(self) -> dict[str, str]:
        """The label of the screen behind each key."""
        return dict(zip("1234567890", SCREENS, strict=False))

    def action_show(self, label: str) -> None:
        """Show the screen of that label."""
        self.switch_mode(label)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        for label in SCREENS:
            yield SystemCommand(label, "Show this screen", lambda label=label: self.action_show(label))
        yield SystemCommand(
            "Freeze or unfreeze", "Refuse new simulation requests, or take them", self.action_freeze
        )
        yield from super().get_system_commands(screen)

    # -- actions --------------------------------------------------------------------------------------

    def act(self, deed: Deed) -> None:
        """Call ``deed`` and wait for it beside the screens; a mistake in it is told, and ends nothing."""
        _: Worker[None] = self.run_worker(partial(self._guarded, deed), group="acting")

    async def perform(self, call: Call[Result], done: str = "") -> Result | None:
        """Make a call that changes something, tell how it went, and show what is so now; None: refused."""
        try:
            result = await self.session.ask(call)
        except CollidiumError as error:
            self.notify(str(error), title="Not done", severity="error", markup=False)
            return None
        if done:
            self.notify(done, markup=False)
        self._look_again()
        refresh_now = getattr(self.screen, "refresh_now", None)
        if refresh_now is not None:
            refresh_now()
        return result

    def action_freeze(self) -> None:
        """Stop or open the platform for new simulation requests, after one question."""
        if not isinstance(self.screen, Ask | Login):
            self.act(self._freeze)

    async def _freeze(self) -> None:
        freeze = not self.session.standing.frozen
        if await self.push_screen_wait(Ask(_FREEZE if freeze else _UNFREEZE)):
            done = (
                "Frozen: new simulation requests are refused."
                if freeze
                else "Open: new simulation requests are taken."
            )
            await self.perform(lambda client: client.admin_freeze(freeze), done)

    def action_zone(self) -> None:
        """Show times in UTC, or in the local zone."""
        self.times.utc = not self.times.utc
        self.zone_changed.publish(self.times.utc)

    def action_other_theme(self) -> None:
        """Dark or light."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    # -- when things go wrong -------------------------------------------------------------------------

    def report(self, error: Exception) -> str:
        """Log a mistake in the console itself; returns what to tell of it."""
        logger.error("something is wrong in the console", exc_info=error)
        return f"something is wrong in the console ({type(error).__name__})"

    def leave(self, words: str) -> None:
        """End the console and say why."""
        self.parting_words = words
        self.exit()

    async def _guarded(self, deed: Deed) -> None:
        try:
            await deed()
        except CollidiumError as error:
            self.notify(str(error), title="Not done", severity="error", markup=False)
        except Exception as error:
            self.notify(self.report(error), severity="error", markup=False)

    def _on_standing(self, standing: Standing) -> None:
        self.link_before, self._link = self._link, standing.link
        self.standing_changed.publish(standing)
        if standing.link is Link.SIGNED_OUT and not isinstance(self.screen, Login):
            self.push_screen(Login(standing.last_error))


_FREEZE = Question(
    "Freeze the platform",
    "New simulation requests of everybody are refused (503) from now on, until it is unfrozen. "
    "Requests under way go on; submissions to benchmarks are taken as before.",
    "Freeze",
    reversible=True,
)
_UNFREEZE = Question(
    "Unfreeze the platform",
    "New simulation requests are taken and charged again.",
    "Unfreeze",
    reversible=True,
)


def _made_at(address: str) -> Callable[[], Screen[None]]:
    """Imports the screen at ``module:class`` when it is first shown."""

    def make() -> Screen[None]:
        module, _, name = address.partition(":")
        return cast("Screen[None]", getattr(import_module(module), name)())

    return make
