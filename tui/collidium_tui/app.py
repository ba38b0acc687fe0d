"""The application: its screens, keys, command palette, login, actions and errors."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar, Final, TypeVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.signal import Signal
from textual.worker import Worker, WorkerFailed

from collidium.errors import CollidiumError, ConfigurationError
from collidium.overrides.textual import ConsoleApp
from collidium.presentation import consequences
from collidium_tui import logs
from collidium_tui.frame import Help, Login, keys_of
from collidium_tui.screens import SCREENS, CreateScreen, create_or_explain, import_screen
from collidium_tui.session import Action, Handler, Link, ServerStatus, Session, StatusPoller
from collidium_tui.widgets.form import Ask, Question
from collidium_tui.widgets.text import Times, printable

Result = TypeVar("Result")

#: Returns the screens of plugins by label, and the errors of plugins that do not load.
PluginScreens = Callable[[], tuple[Mapping[str, type[Screen[Any]]], Sequence[str]]]

#: The keys of the first screens. Further ones are only in the palette.
KEYS: Final = "1234567890"

#: The first screen of organisers of one challenge, who have no access to the overview.
WITHOUT_OVERVIEW: Final = "Benchmarks"

_SEND_AGAIN: Final = "The action may have been done. If you send it again, it is still done only once."
_MAYBE_DONE: Final = "The action may have been done: check the ledger or the audit log before you repeat it."

_FREEZE: Final = Question(
    "Freeze the platform",
    consequences.FREEZE,
    "Freeze",
    reversible=True,
)
_UNFREEZE: Final = Question(
    "Unfreeze the platform",
    consequences.UNFREEZE,
    "Unfreeze",
    reversible=True,
)
_FROZEN: Final = "Frozen: new simulation requests are rejected."
_OPEN: Final = "Open: new simulation requests are accepted."


def _maybe_done(error: CollidiumError) -> bool:
    """Whether the server may have done an action that failed with this error."""
    return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, ConfigurationError)


class Console(ConsoleApp[None]):
    """The operator's console."""

    TITLE = "Collidium"
    CSS_PATH = "console.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        # With priority over widgets, so that it works while the operator types.
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
        """Create the console; ``plugin_screens`` is called in a thread once it is open."""
        super().__init__()
        self.session = session
        self.times = times or Times()
        self.status_changed: Signal[ServerStatus] = Signal(self, "status changed")
        self.zone_changed: Signal[bool] = Signal(self, "zone changed")
        self.screens_changed: Signal[None] = Signal(self, "screens changed")
        #: The link before the last change of the status.
        self.link_before = Link.NEW
        #: Printed after the console ended because of an error.
        self.exit_message = ""
        self._plugin_screens = plugin_screens
        #: The labels of all screens, in the order of their keys.
        self.labels: list[str] = []
        self._poller = StatusPoller(session, self._show_internal_error)
        self._link = Link.NEW

    def action_help_quit(self) -> None:
        """Say how to quit; Textual's own text has markup, which :meth:`notify` shows as it is."""
        self.notify("Press ^q to quit.", title="Ctrl-C does not quit")

    # -- life -----------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.session.on_change = self._on_status
        for label, address in SCREENS.items():
            self._add(label, partial(import_screen, address))
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
        self.act(self._poller.run)
        screens, failures = await asyncio.to_thread(self._plugin_screens)
        for label, kind in screens.items():
            if label in self.labels:
                failures = [*failures, f"screen {label!r} of a plugin: the label is already used"]
            else:
                self._add(label, kind)
        self.screens_changed.publish(None)
        for failure in failures:
            self.notify(failure, title="Plugin", severity="warning")

    # -- screens --------------------------------------------------------------------------------------

    @property
    def screen_keys(self) -> dict[str, str]:
        """The label of the screen of each key."""
        return dict(zip(KEYS, self.labels, strict=False))

    def action_show(self, label: str) -> None:
        """Show the screen of that label."""
        self.switch_mode(label)

    def action_help(self) -> None:
        """Show the help of the screen."""
        self.push_screen(Help(self.screen, self.screen_keys))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield every action for the palette."""
        for label in self.labels:
            yield SystemCommand(label, "Show this screen", partial(self.action_show, label))
        for key in keys_of(screen):
            run = partial(self.run_action, key.binding.action, key.node)
            yield SystemCommand(key.does, f"Key {key.key}", run)
        yield SystemCommand("Theme", "Choose other colours", self.action_change_theme)

    def _add(self, label: str, create: CreateScreen) -> None:
        self.labels.append(label)
        self.add_mode(label, partial(create_or_explain, label, create))
        if len(self.labels) <= len(KEYS):
            self.bind(KEYS[len(self.labels) - 1], f"show({label!r})", show=False)

    # -- actions --------------------------------------------------------------------------------------

    def act(self, handler: Handler) -> None:
        """Run ``handler`` in a worker and show its errors."""
        _: Worker[None] = self.run_worker(partial(self._guarded, handler), group="acting")

    async def perform(
        self, action: Action[Result], done: str | Callable[[Result], str] = ""
    ) -> Result | None:
        """Perform an action, show its outcome and refresh. Returns None if it failed.

        ``done`` is shown when it succeeded: a text, or a function of the result.
        """
        try:
            result = await self._call_with_retries(action)
        except CollidiumError as error:
            if _maybe_done(error):
                message = f"{error}\n{_MAYBE_DONE}"
                self.notify(message, title="No response", severity="error", timeout=20)
            else:
                self.show_rejection(error)
            return None
        if message := done if isinstance(done, str) else done(result):
            self.notify(message)
        self._poller.poll_now()
        refresh_now = getattr(self.screen, "refresh_now", None)
        if refresh_now is not None:
            refresh_now()
        return result

    async def _call_with_retries(self, action: Action[Result]) -> Result:
        """Send an action; without a response, ask the operator whether to repeat it with the same key."""
        key = uuid.uuid4().hex
        while True:
            try:
                return await self.session.call(lambda client: action(client, key))
            except CollidiumError as error:
                if not _maybe_done(error):
                    raise
                question = Question("No response", f"{error}\n{_SEND_AGAIN}", "Send again", reversible=True)
                if not await self.push_screen_wait(Ask(question)):
                    raise

    def action_freeze(self) -> None:
        """Freeze or unfreeze the platform, after confirmation."""
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
        """Switch between times in UTC and in the local zone."""
        self.times.utc = not self.times.utc
        self.zone_changed.publish(self.times.utc)

    def action_other_theme(self) -> None:
        """Switch between dark and light."""
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
        """Show a notification without markup, because texts may be untrusted. Widgets call it too."""
        message, title = printable(message), printable(title, single_line=True)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)

    def report(self, error: BaseException) -> str:
        """Log an internal error of the console and return the text to show."""
        return logs.log_error(error)

    def show_rejection(self, error: CollidiumError) -> None:
        """Show why an action was not done."""
        self.notify(str(error), title="Not done", severity="error")

    def leave(self, reason: str) -> None:
        """End the console and print the reason."""
        self.exit_message = self.exit_message or printable(reason)
        self.exit(return_code=1)

    async def _guarded(self, handler: Handler) -> None:
        before = self.session.status.last_error_at
        try:
            await handler()
        except CollidiumError as error:
            self.show_rejection(error)
        except Exception as error:  # a fault of the console must not end it
            self._show_internal_error(error)
        else:
            if self.session.status.last_error_at == before:
                self.session.clear_error()

    def _show_internal_error(self, error: Exception) -> None:
        self.notify(self.report(error), severity="error")

    def handle_exception(self, error: Exception) -> None:
        # Textual would print a traceback with the values of variables.
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
        """Show operators without access to the overview another screen."""
        if self.session.status.overview is None:
            self.switch_mode(WITHOUT_OVERVIEW)
