"""The application: screens by key, the freeze from everywhere, login, palette, themes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar, Final, TypeVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.signal import Signal
from textual.worker import Worker, WorkerFailed

from collidium.errors import CollidiumError, ConfigurationError
from collidium_tui import frame
from collidium_tui.frame import Help, Login, keys_of
from collidium_tui.screens import SCREENS, Maker, at, or_broken
from collidium_tui.session import Action, Handler, Link, ServerStatus, Session, Watch
from collidium_tui.widgets.form import Ask, Question
from collidium_tui.widgets.text import Times, printable

Result = TypeVar("Result")

#: Screens of plugins by label, and what was wrong with any of them.
PluginScreens = Callable[[], tuple[Mapping[str, type[Screen[Any]]], Sequence[str]]]

#: Keys of screens, in their order; those after the tenth are in the palette.
KEYS: Final = "1234567890"

#: Shown first to operators who may not read the overview: organisers of one challenge.
WITHOUT_OVERVIEW: Final = "Benchmarks"

_SEND_AGAIN: Final = "It may have been done nevertheless. If you send it again, it is still done only once."
_PERHAPS_DONE: Final = (
    "It may have been done nevertheless: see the ledger or the audit log before you repeat it."
)

_FREEZE: Final = Question(
    "Freeze the platform",
    "New simulation requests of all accounts are rejected (503) from now on, until it is unfrozen. "
    "Running requests continue, and submissions to benchmarks are accepted as before.",
    "Freeze",
    reversible=True,
)
_UNFREEZE: Final = Question(
    "Unfreeze the platform",
    "New simulation requests are accepted, and charged, again.",
    "Unfreeze",
    reversible=True,
)
_FROZEN: Final = "Frozen: new simulation requests are rejected."
_OPEN: Final = "Open: new simulation requests are accepted."


def _in_doubt(error: CollidiumError) -> bool:
    """Whether an action may have been done although it failed: no answer, or one that leaves it open."""
    return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, ConfigurationError)


class Console(App[None]):
    """The operator's console."""

    TITLE = "Collidium"
    CSS_PATH = "console.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        # Before every widget, so that it works while something is being typed, too.
        Binding("ctrl+f", "freeze", "Freeze", priority=True, key_display="^f", tooltip="Freeze or unfreeze"),
        Binding("question_mark,f1", "help", "Help", key_display="?"),
        Binding("u", "zone", "Times in UTC or here", show=False),
        Binding("t", "other_theme", "Dark or light", show=False),
        Binding("ctrl+q", "quit", "Quit", priority=True, key_display="^q"),
    ]

    def __init__(
        self,
        session: Session,
        *,
        times: Times | None = None,
        plugin_screens: PluginScreens = lambda: ({}, ()),
    ) -> None:
        """``plugin_screens`` returns the screens of plugins; called in a thread, after the console opened."""
        super().__init__()
        self.session = session
        self.times = times or Times()
        self.status_changed: Signal[ServerStatus] = Signal(self, "status changed")
        self.zone_changed: Signal[bool] = Signal(self, "zone changed")
        self.screens_changed: Signal[None] = Signal(self, "screens changed")
        #: The link before the last change of the status.
        self.link_before = Link.NEW
        #: Printed after the console has ended by itself.
        self.exit_message = ""
        self._plugin_screens = plugin_screens
        #: Of all screens, in the order of their keys.
        self.labels: list[str] = []
        self._watch = Watch(session, self._show_mistake)
        self._link = Link.NEW

    # -- life -----------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.session.on_change = self._on_status
        for label, address in SCREENS.items():
            self._add(label, at(address))
        self.switch_mode(self.labels[0])
        self.call_after_refresh(self.act, self._open)

    async def on_unmount(self) -> None:
        await self.session.close()

    async def _open(self) -> None:
        try:
            await self.session.open()
        except ConfigurationError as error:
            self.leave(error.detail)
            return
        self.act(self._watch.keep)
        screens, failures = await asyncio.to_thread(self._plugin_screens)
        for label, kind in screens.items():
            if label in self.labels:
                failures = [*failures, f"screen {label!r} of a plugin: the label is taken"]
            else:
                self._add(label, kind)
        self.screens_changed.publish(None)
        for failure in failures:
            self.notify(failure, title="Plugin", severity="warning", markup=False)

    # -- screens --------------------------------------------------------------------------------------

    @property
    def screen_keys(self) -> dict[str, str]:
        """The label of the screen behind each key."""
        return dict(zip(KEYS, self.labels, strict=False))

    def action_show(self, label: str) -> None:
        """Show the screen of that label."""
        self.switch_mode(label)

    def action_help(self) -> None:
        """Show what the screen is for, and its keys."""
        self.push_screen(Help(self.screen, self.screen_keys))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Every action by name, for the palette."""
        for label in self.labels:
            yield SystemCommand(label, "Show this screen", partial(self.action_show, label))
        for key in keys_of(screen):
            run = partial(self.run_action, key.binding.action, key.node)
            yield SystemCommand(key.does, f"Key {key.key}", run)
        yield SystemCommand("Theme", "Choose other colours", self.action_change_theme)

    def _add(self, label: str, make: Maker) -> None:
        self.labels.append(label)
        self.add_mode(label, or_broken(label, make))
        if len(self.labels) <= len(KEYS):
            self.bind(KEYS[len(self.labels) - 1], f"show({label!r})", show=False)

    # -- actions --------------------------------------------------------------------------------------

    def act(self, handler: Handler) -> None:
        """Run ``handler`` in a worker; errors in it are shown and do not end the console."""
        _: Worker[None] = self.run_worker(partial(self._guarded, handler), group="acting")

    async def perform(self, action: Action[Result], done: str = "") -> Result | None:
        """Perform an action, show its outcome and refresh; None if it was rejected or not answered."""
        try:
            result = await self._call_until_answered(action)
        except CollidiumError as error:
            if _in_doubt(error):
                message = f"{error}\n{_PERHAPS_DONE}"
                self.notify(message, title="No answer", severity="error", timeout=20, markup=False)
            else:
                self.show_rejection(error)
            return None
        if done:
            self.notify(done, markup=False)
        self._watch.look_now()
        refresh_now = getattr(self.screen, "refresh_now", None)
        if refresh_now is not None:
            refresh_now()
        return result

    async def _call_until_answered(self, action: Action[Result]) -> Result:
        """Send an action under one key, again as long as there is no answer and the operator wants it."""
        key = uuid.uuid4().hex
        while True:
            try:
                return await self.session.call(lambda client: action(client, key))
            except CollidiumError as error:
                if not _in_doubt(error):
                    raise
                question = Question("No answer", f"{error}\n{_SEND_AGAIN}", "Send again", reversible=True)
                if not await self.push_screen_wait(Ask(question)):
                    raise

    def action_freeze(self) -> None:
        """Reject new simulation requests, or accept them again, after a question."""
        asked = isinstance(self.screen, Ask) and self.screen.question in (_FREEZE, _UNFREEZE)
        if self.session.signed_in and not asked:
            self.act(self._freeze)

    async def _freeze(self) -> None:
        freeze = not self.session.status.frozen
        if await self.push_screen_wait(Ask(_FREEZE if freeze else _UNFREEZE)):
            await self.perform(
                lambda client, key: client.admin_freeze(freeze, idempotency_key=key),
                _FROZEN if freeze else _OPEN,
            )

    def action_zone(self) -> None:
        """Show times in UTC, or in the local zone."""
        self.times.utc = not self.times.utc
        self.zone_changed.publish(self.times.utc)

    def action_other_theme(self) -> None:
        """Dark or light."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    # -- errors ----------------------------------------------------------------------------------------

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Notify the operator; of every screen and widget, too. The text may be untrusted."""
        message, title = printable(message), printable(title, single_line=True)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)

    def report(self, error: BaseException) -> str:
        """Log an error of the console itself and return the text to show."""
        return frame.record(error)

    def show_rejection(self, error: CollidiumError) -> None:
        """Show that an action was not done, and why."""
        self.notify(str(error), title="Not done", severity="error", markup=False)

    def leave(self, reason: str) -> None:
        """End the console and show why."""
        self.exit_message = self.exit_message or printable(reason)
        self.exit(return_code=1)

    async def _guarded(self, handler: Handler) -> None:
        before = self.session.status.last_error_at
        try:
            await handler()
        except CollidiumError as error:
            self.show_rejection(error)
        except Exception as error:
            self._show_mistake(error)
        else:
            if self.session.status.last_error_at == before:
                self.session.forget_error()

    def _show_mistake(self, error: Exception) -> None:
        self.notify(self.report(error), severity="error", markup=False)

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print a traceback with the values of variables. What raised it no longer runs.
        cause = error.error if isinstance(error, WorkerFailed) else error
        self.leave(f"The console ended: {self.report(cause)}")

    def _on_status(self, status: ServerStatus) -> None:
        self.link_before, self._link = self._link, status.link
        self.status_changed.publish(status)
        if status.link is Link.SIGNED_OUT and not isinstance(self.screen, Login):
            self.push_screen(Login(status.last_error), lambda _: self._show_first())
        if status.link is Link.UP and self.link_before is Link.NEW:
            self._show_first()

    def _show_first(self) -> None:
        """Show organisers, who may not read the overview, what they may."""
        if self.session.status.overview is None:
            self.switch_mode(WITHOUT_OVERVIEW)
